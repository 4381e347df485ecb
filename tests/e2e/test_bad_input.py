"""A command line that is wrong gets one line and exit code 4."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import House, clean, one_line_answer
from tests.reports.xunit2 import ended, suites


@pytest.fixture(scope="module")
def unused(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A house in which nothing is ever run."""
    return House(tmp_path_factory.mktemp("bad_input") / "house")


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--vendor=faker"], ["unknown vendor 'faker'", "did you mean 'fake'?"]),
        (["--vendor=../fake"], ["unknown vendor '../fake'"]),
        (["--compiler=honset"], ["unknown compiler 'honset' of vendor fake", "did you mean 'honest'?"]),
        (["--set", "batch_size"], ["--set batch_size: expected KEY=VALUE"]),
        (["--set", "=8"], ["--set =8: expected KEY=VALUE"]),
        (["--set", "a=[1"], ["--set a=[1: not valid YAML"]),
        (["--set", "repeat=4", "--repeat=5"], ["the command line sets repeat more than once"]),
        (["--accuracy-gate=0.5"], ["--accuracy-gate: expected 0.99 to 1, found 0.5"]),
        (["--accuracy-gate=nan"], ["--accuracy-gate"]),
        (["--step-timeout=0"], ["--step-timeout"]),
        (["--step-timeout=nan"], ["--step-timeout"]),
        (["--profile=standard", "--data-dir=/none", "--weights=vendors"], ["--data-dir: no such directory: /none"]),
        (["--profile=standard", "--data-dir=vendors"], ["--weights: profile standard needs trained weights"]),
        (["--profile=standard", "--weights=vendors"], ["--data-dir: profile standard needs the data set"]),
        (["--data-dir=vendors"], ["--data-dir: the embedded profile brings its own data; add --profile standard"]),
        (["--weights=pytest.ini"], ["--weights: cannot be read as a directory (Not a directory)", "pytest.ini"]),
        (["-n1", "--profile=standard", "--weights=vendors"], ["--data-dir: profile standard needs the data set"]),
        (["--weights=/none"], ["--weights: no such directory: /none"]),
        (["--lf"], ["--lf needs pytest's cache, which pytest.ini turns off"]),
        (["--stepwise"], ["--sw needs pytest's cache"]),
        (["--sw-skip"], ["--sw-skip needs pytest's cache"]),
        (["--sw-reset"], ["--sw-reset needs pytest's cache"]),
        (["-p", "no:benchmark"], ["pytest-benchmark is not loaded", "leave out -p no:benchmark"]),
        (["--disable-plugin-autoload"], ["pytest-benchmark is not loaded", "add -p benchmark"]),
        (["--benchmark-group-by=name,case"], ["--benchmark-group-by: expected some of group,", "found name,case"]),
        (["--benchmark-group-by=param:scale"], ["--benchmark-group-by", "found param:scale"]),
        (["--benchmark-histogram"], ["--benchmark-histogram: ", "compare --histogram"]),
        (["--benchmark-cprofile=cumtime"], ["--benchmark-cprofile: recorded rounds are replayed"]),
        (["--container="], ["--container: expected a value, found none; is a variable not set?"]),
        (["--weights", ""], ["--weights: expected a value, found none"]),
        (["--set", ""], ["--set: expected a value, found none"]),
        (["--container-engine=podman"], ["--container-engine needs --container, which says what it runs"]),
        (["--host-config=none.yaml"], ["none.yaml", "cannot be read"]),
        (["--judge", "record.json"], ["--judge is a separate command", "python -m proofmark --judge RECORD..."]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value[0].startswith("--") else "",
)
def test_one_clear_line(unused: House, options: list[str], expected: list[str]) -> None:
    unused.root.joinpath("junit.xml").write_text("<testsuites><testsuite tests='9' errors='0'/></testsuites>")
    ran = unused.run(*options, "--junitxml=junit.xml")
    one_line_answer(ran, *expected)
    assert not ran.results.exists() and unused.becomes_empty()
    (suite,) = suites(unused.root / "junit.xml").values()
    ((_, message),) = ended(suite, "error")
    assert expected[0] in message


def test_a_device_that_is_not_there_is_told_with_what_was_looked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DEVICES", "0")
    monkeypatch.setenv("FAKE_VISIBLE_DEVICES", "0")
    ran = house.run("--junitxml=junit.xml")
    one_line_answer(ran, "vendor fake finds no device on this machine", "vendors/fake/__init__.py: devices()")
    assert "\n  /dev/fake*: not there\n  FAKE_VISIBLE_DEVICES: set to '0'" in ran.output
    (suite,) = suites(house.root / "junit.xml").values()
    assert suite.attrib["name"] == "inference/tiny" and suite.attrib["tests"] == "7"
    ((name, message),) = ended(suite, "error")
    assert "finds no device" in message
    assert {f"not run: {name} says why"} == {why for _, why in ended(suite, "skipped")}


def test_value_that_the_parser_refuses(unused: House) -> None:
    ran = unused.run("--accuracy-gate=high")
    assert ran.code == 4 and "argument --accuracy-gate: invalid float value: 'high'" in ran.output, ran.output
    clean(ran)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import nonesuch\n", "cannot be imported: ModuleNotFoundError"),
        ("def x(:\n", "cannot be imported: SyntaxError"),
        ("vendor = 7\n", "expected an attribute 'vendor'"),
        ("raise SystemExit(0)\n", "cannot be imported: SystemExit"),
        ("import os\nprint('no card')\nos._exit(0)\n", "its import ended with exit code 0"),
    ],
)
def test_broken_vendor(house: House, text: str, expected: str) -> None:
    (house.root / "vendors/broken").mkdir()
    (house.root / "vendors/broken/__init__.py").write_text(text)
    one_line_answer(house.run(vendor="broken"), "vendor 'broken'", expected)


def test_a_session_that_is_ended_before_its_end_is_no_success(house: House) -> None:
    module = house.case_yaml.with_name("test_tiny.py")
    module.write_text(module.read_text() + "\n\nimport os\n\nos._exit(0)\n")
    ran = house.run()
    assert ran.code == 17 and "ERROR: the session was ended before its end" in ran.output
    assert house.becomes_empty()  # the kernel ends what it had split off


@pytest.mark.parametrize(
    "text, expected",
    [
        ("\n\nclass TestMlp(:\n", "suites/inference/test_mlp.py:3: cannot be imported: SyntaxError: invalid syntax"),
        ("\nimport nonesuch\n", "suites/inference/test_mlp.py:2: cannot be imported: ModuleNotFoundError: No module"),
        ("import json\n\njson.loads('')\n", "suites/inference/test_mlp.py:3: cannot be imported: JSONDecodeError"),
        ("raise SystemExit(0)\n", "suites/inference/test_mlp.py:1: cannot be imported: SystemExit: 0"),
        ("x = '\0'\n", "suites/inference/test_mlp.py: cannot be imported: SyntaxError"),
        (
            "class TestMlp: ...\n",
            "suites/inference/test_mlp.py: has no case: a class Test... that inherits the contract",
        ),
        (
            "from suites.inference.test_tiny import TestTiny\n",
            "suites/inference/test_mlp.py: has no case: a class Test... that inherits the contract",
        ),
        (
            "from suites.inference.contract import InferenceContract\n\n\nclass TestMlp(InferenceContract): ...\n",
            "suites/inference/test_mlp.py: TestMlp: does not define build_dataloader, create_model, which",
        ),
        (
            "from suites.inference.contract import InferenceContract\n\n\nclass TestBoth(InferenceContract): ...\n\n\n"
            "class TestDraft(InferenceContract):\n    __test__ = False\n\n\n"
            "class TestMlp(TestBoth):\n    def create_model(self, config): ...\n",
            "suites/inference/test_mlp.py: TestMlp: does not define build_dataloader, which",
        ),
    ],
    ids=["syntax", "import", "within a library", "exit", "null", "no case", "imported", "abstract", "beside a draft"],
)
@pytest.mark.parametrize("options", [["-k", "mlp"], ["-n1"]], ids=" ".join)
def test_a_case_module_that_cannot_be_imported_or_has_no_case(
    house: House, text: str, expected: str, options: list[str]
) -> None:
    house.case_yaml.with_name("test_mlp.py").write_text(text)
    ran = house.run(*options)
    one_line_answer(ran, expected)
    assert "WARNING" not in ran.output and "Traceback" not in ran.output and not ran.results.exists()


def test_a_case_that_inherits_another_does_not_run_that_one_too(house: House) -> None:
    house.add_case("second")
    text = "from suites.inference.test_tiny import TestTiny\n\n\nclass TestSecond(TestTiny):\n    pass\n"
    house.case_yaml.with_name("test_second.py").write_text(text)
    ran = house.run("--collect-only", "-q")
    found = {line.rpartition("::")[0] for line in ran.output.splitlines() if "::" in line}
    assert found == {"suites/inference/test_second.py::TestSecond", "suites/inference/test_tiny.py::TestTiny"}


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=" ".join)
def test_a_test_that_is_named_by_its_id_is_not_merely_missing(house: House, options: tuple[str, ...]) -> None:
    ran = house.run(*options, suite="inference/test_tiny.py::TestTiny::test_it")
    one_line_answer(ran, "not found: ", "inference/test_tiny.py::TestTiny::test_it")
    house.case_yaml.with_name("test_mlp.py").write_text("class TestMlp(:\n")
    ran = house.run(*options, suite="inference/test_mlp.py::TestMlp")
    one_line_answer(ran, "suites/inference/test_mlp.py:1: cannot be imported: SyntaxError: invalid syntax")


def test_what_a_cases_own_look_at_folders_raises_is_told_with_its_place(house: House) -> None:
    module = house.case_yaml.with_name("test_tiny.py")
    text = module.read_text() + "\n\nTestTiny.host_problems = classmethod(lambda cls, config: [config.classses])\n"
    module.write_text(text)
    line = len(text.splitlines())
    expected = f"suites/inference/test_tiny.py:{line}: host_problems: AttributeError: case tiny has no parameter or"
    one_line_answer(house.run(), expected, "'classses'")
    module.write_text(text.replace("[config.classses]", "None"))
    one_line_answer(house.run(), "suites/inference/test_tiny.py: host_problems: TypeError: 'NoneType' object is not")


def test_a_helper_of_a_case_that_cannot_be_imported_is_the_place(house: House) -> None:
    house.case_yaml.with_name("layers.py").write_text("\nWIDTH = 1 / 0\n")
    house.case_yaml.with_name("test_mlp.py").write_text("from suites.inference import layers\n")
    house.case_yaml.with_name("test_other.py").write_text("import nonesuch\n")
    ran = house.run()
    assert ran.code == 4, ran.output
    assert "suites/inference/layers.py:2: cannot be imported: ZeroDivisionError: division by zero\n" in ran.output
    assert "suites/inference/test_other.py:1: cannot be imported: ModuleNotFoundError: No module named" in ran.output
    clean(ran)


def test_broken_chips_file(house: House) -> None:
    (house.root / "vendors/fake/chips.yaml").write_text("chips: [{name: A}]\n")
    ran = house.run()
    assert ran.code == 4, ran.output
    assert "chips.0.match: is required and missing" in ran.output
    clean(ran)


def test_broken_compiler_module_fails_its_case_by_name(house: House) -> None:
    (house.root / "vendors/fake/slow.py").write_text("import nonesuch\n\n\nclass InferModel: ...\n")
    ran = house.run("--compiler=slow")
    kind, reasons = ran.verdict()
    assert kind == "ERROR" and "compiler 'slow' of vendor fake cannot be imported" in reasons
    assert ran.code == 17
    clean(ran)


def test_a_compiler_module_of_which_nothing_can_come_is_told_before_anything_runs(house: House) -> None:
    (house.root / "vendors/fake/slow.py").write_text("class InferModel(:\n")
    one_line_answer(house.run(), "vendors/fake/slow.py: line 1: invalid syntax")


@pytest.mark.parametrize("content", [b"", b"not a model", None], ids=["empty", "text", "truncated"])
def test_corrupt_onnx(house: House, content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    if content is None:
        onnx = pytest.importorskip("onnx")
        node = onnx.helper.make_node("Relu", ["a"], ["b"])
        shapes = [onnx.helper.make_tensor_value_info(name, 1, [4]) for name in "ab"]
        graph = onnx.helper.make_graph([node], "g", shapes[:1], shapes[1:])
        content = onnx.helper.make_model(graph).SerializeToString()[:-9]
    path.write_bytes(content)
    ran = house.run("--set", f"exist_onnx_path={path}", "--set", "no_validation=true", vendor="cpu")
    kind, reasons = ran.verdict()
    assert kind == "ERROR" and "step data_and_model failed" in reasons and "not a valid ONNX model" in reasons
    assert ran.code == 17
    clean(ran)


def test_an_onnx_file_of_another_model_is_told_before_anything_is_measured(house: House, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Relu", ["a"], ["b"])
    shapes = [onnx.helper.make_tensor_value_info(name, 1, ["n", 4]) for name in "ab"]
    graph = onnx.helper.make_graph([node], "g", shapes[:1], shapes[1:])
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    ran = house.run("--set", f"exist_onnx_path={path}", vendor="cpu")
    kind, reasons = ran.verdict()
    assert kind == "ERROR" and "step data_and_model failed" in reasons and "not of this case's model" in reasons
    assert ran.steps()["framework_validation"] == "not_reached"
    clean(ran)


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=" ".join)
def test_a_keyword_that_selects_no_case_is_told_with_what_may_be_meant(house: House, options: tuple[str, ...]) -> None:
    ran = house.run("-k", "tyny", *options)
    assert ran.code == 5 and "WARNING -k tyny: selects no case; did you mean 'tiny'?" in ran.output, ran.output


def test_a_case_is_meant_by_what_others_call_it(house: House) -> None:
    house.case_yaml.write_text("known_as: [tinyNet_large]\n" + house.case_yaml.read_text())
    ran = house.run("-k", "tinyNetLarge")
    assert ran.code == 5 and "-k tinyNetLarge: selects no case; did you mean 'tiny'?" in ran.output
    house.root.joinpath("host.yaml").write_text("CASES: {'tinyNet_large:pytorch': suites}\n")
    one_line_answer(house.run("--host-config=host.yaml"), "no such case: tinyNet_large; did you mean 'tiny'?")


def test_a_host_file_of_another_suites_cases_selects_none(house: House) -> None:
    house.root.joinpath("host.yaml").write_text("CASES: {'tiny:pytorch:x:1:1:1': suites}\n")
    expected = "host.yaml: CASES: names cases of training alone; selected are those of inference"
    one_line_answer(house.run("--host-config=host.yaml"), expected)


def test_the_cases_of_a_host_file_are_narrowed_by_the_command_line(house: House) -> None:
    house.add_case("second")
    house.add_case("third")
    house.root.joinpath("host.yaml").write_text("CASES: {'tiny:pytorch': suites, 'second:pytorch': suites}\n")
    options = ("--host-config=host.yaml", "--weights=vendors", "--collect-only", "-q")
    for ran in (house.run(*options, "-k", "second"), house.run(*options, suite="inference/test_second.py")):
        found = {line.partition("::")[0] for line in ran.output.splitlines() if "::" in line}
        assert ran.code == 0 and found == {"suites/inference/test_second.py"}, ran.output
    expected = "host.yaml: CASES: names none of those selected: inference/third"
    one_line_answer(house.run(*options, "-k", "third"), expected)
    house.root.joinpath("host.yaml").write_text("CASES: {'second:pytorch': suites, 'tyny:pytorch': suites}\n")
    one_line_answer(house.run(*options, "-k", "second"), "no such case: tyny; did you mean 'tiny'?")


def test_a_loader_of_a_cases_own_is_refused_where_weights_are_trained(house: House) -> None:
    """Training draws batches of its own, by their indices."""
    house.add_case("walks")
    house.case_yaml.with_name("test_walks.py").write_text(
        "from suites.inference import test_tiny\n\n\n"
        "class Walker:\n"
        "    def __init__(self, inner):\n        self.inner, self.dataset = inner, inner.dataset\n"
        "    def __len__(self):\n        return len(self.inner)\n"
        "    def __iter__(self):\n        return iter(self.inner)\n\n\n"
        "class TestWalks(test_tiny.TestTiny):\n"
        "    def build_dataloader(self, config, split='validation'):\n"
        "        return Walker(super().build_dataloader(config, split))\n"
    )
    house.cache = house.root / ".cache"  # there are no weights
    kind, reasons = house.run("-k", "Walks").verdict("walks")
    assert kind == "ERROR" and "expected a torch.utils.data.DataLoader over data with indices" in reasons, reasons
    assert reasons.endswith("found Walker")


def test_all_that_is_wrong_with_what_a_vendor_lists_as_unsupported_is_told_at_once(house: House) -> None:
    entry = "{case: inference/tinny, compiler: honset, precision: fp16, reason: r}"
    (house.root / "vendors/fake/unsupported.yaml").write_text(f"unsupported: [{entry}]\n")
    ran = house.run()
    one_line_answer(ran, "unsupported.0: unknown compiler 'honset'", "did you mean 'honest'?")
    assert "unsupported.0.case: there is no case 'inference/tinny'; did you mean 'inference/tiny'?" in ran.output


@pytest.mark.parametrize("option", ["--fixtures", "--fixtures-per-test"])
def test_a_session_that_only_looks_lacks_no_results(unused: House, option: str) -> None:
    ran = unused.run(option)
    assert ran.code == 0 and "NOT RUN" not in ran.output, ran.output
