"""Vendors found by name, and what is told of one that is broken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from proofmark.errors import Problem, UsageError
from proofmark.vendor import registry
from proofmark.vendor.registry import available_vendors, find_vendor

GOOD = """
from proofmark.vendor.engine import Compiler
from proofmark.vendor.contract import Device, Vendor
class Acme(Vendor):
    compilers = {"engine": Compiler(frozenset({"fp32"}), consumes="onnx")}
    default_compiler = "engine"
    def devices(self): return [Device(0, "a")]
    def synchronize(self): pass
    def chip(self): return "a"
vendor = Acme()
"""
CALLED = "class InferModel:\n    def __call__(self, inputs): return inputs, 0.0\n"
ENGINE = f"{CALLED}    def __init__(self, config, onnx_path, model): ...\n"


@pytest.fixture
def vendors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of vendors, importable as `vendors`."""
    directory = tmp_path / "vendors"
    directory.mkdir()
    (directory / "__init__.py").write_text("")
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "vendors"}
    monkeypatch.syspath_prepend(str(tmp_path))
    yield directory
    for name in [name for name in sys.modules if name.partition(".")[0] == "vendors"]:
        del sys.modules[name]
    sys.modules.update(kept)


def add(vendors: Path, name: str, text: str = GOOD, **modules: str) -> None:
    """A vendor of that name."""
    (vendors / name).mkdir()
    (vendors / name / "__init__.py").write_text(text)
    for module, content in ({"engine": ENGINE} | modules).items():
        (vendors / name / f"{module}.py").write_text(content)


def test_its_chips_are_those_beside_its_package_wherever_its_class_lies(vendors: Path, tmp_path: Path) -> None:
    """As runs have them: else a log that is read again had no peaks, without a word."""
    add(vendors, "acme", "from vendors.acme.core.adapter import Acme\nvendor = Acme()\n")
    (vendors / "acme/core").mkdir()
    (vendors / "acme/core/__init__.py").touch()
    (vendors / "acme/core/adapter.py").write_text(GOOD.replace("vendor = Acme()", ""))
    peak = "{flops: 2e12, source: its datasheet}"
    (vendors / "acme/chips.yaml").write_text(f"chips:\n- {{name: A, match: ^a$, peaks: {{fp32: {peak}}}}}\n")
    (tmp_path / "monitor.jsonl").write_text('{"time": 1, "devices": []}\n')
    found = find_vendor("acme", vendors)
    assert found.chips_file.is_file()
    assert found.vendor.analysis_log(tmp_path / "monitor.jsonl").fp32_peak == 2e12


def test_found_in_its_folder(vendors: Path) -> None:
    add(vendors, "acme")
    found = find_vendor("acme", vendors)
    assert found.name == "acme"
    assert found.chips_file == vendors / "acme/chips.yaml"
    assert found.overrides_file("inference", "net") == vendors / "acme/configs/inference/net.yaml"
    assert found.compiler("default")[0] == "engine"
    assert found.infer_model("engine").__name__ == "InferModel"
    assert "acme" in available_vendors(vendors)


def test_found_behind_an_entry_point(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = vendors.parent / "acme_adapter"
    package.mkdir()
    (package / "__init__.py").write_text(GOOD)
    (package / "engine.py").write_text(ENGINE)
    monkeypatch.setattr(registry, "installed", lambda group: [EntryPoint("far", "acme_adapter", group)])
    found = find_vendor("far", vendors)
    assert found.directory == package
    assert found.infer_model("engine")


def test_twice_is_ambiguous(vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(vendors, "acme")
    monkeypatch.setattr(registry, "installed", lambda group: [EntryPoint("acme", "acme_adapter", group)])
    with pytest.raises(UsageError, match=r"more than once: .*vendors/acme, acme_adapter"):
        find_vendor("acme", vendors)


@pytest.mark.parametrize("name", ["acmee", "", "..", "acme.engine", "../vendors/acme", "/etc", "a b"])
def test_unknown(vendors: Path, name: str) -> None:
    add(vendors, "acme")
    with pytest.raises(UsageError, match="unknown vendor"):
        find_vendor(name, vendors)


def test_a_folder_that_is_no_package_is_told_why(vendors: Path) -> None:
    add(vendors, "acme")
    add(vendors, "ac-me")
    (vendors / "bare").mkdir()
    for name, expected in (("ac-me", "only have letters, digits and underscores"), ("bare", "no __init__.py in it")):
        with pytest.raises(UsageError, match=f"vendor '{name}': .*/{name} cannot be imported: .*{expected}"):
            find_vendor(name, vendors)
    assert "ac-me" not in available_vendors(vendors)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import nonesuch", "ModuleNotFoundError: No module named 'nonesuch'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import sys; sys.exit('no driver')", "SystemExit: no driver"),
        ("", "expected an attribute 'vendor'"),
        ("vendor = 3", "expected an attribute 'vendor'"),
        (GOOD.replace("vendor = Acme()", "vendor = Acme"), "'vendor' is a class"),
        (GOOD.replace("    def synchronize(self): pass\n", ""), "abstract"),
        (GOOD.replace('"engine": Compiler(frozenset({"fp32"}), consumes="onnx")', '"engine": 3'), "'compilers' must"),
        (
            GOOD.replace('default_compiler = "engine"', 'default_compiler = "engin"'),
            "one of engine; found 'engin'; did you mean 'engine'?",
        ),
        (GOOD.replace('default_compiler = "engine"', 'default_compiler = ["engine"]'), "one of engine; found no text"),
        (GOOD.replace('    default_compiler = "engine"\n', ""), "'default_compiler' must be one of"),
        (GOOD.replace('"engine"', '"missing"'), "compiler 'missing' has no module"),
    ],
)
def test_broken(vendors: Path, text: str, expected: str) -> None:
    add(vendors, "acme", text)
    with pytest.raises(UsageError, match="acme") as caught:
        find_vendor("acme", vendors)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("import nonesuch\nclass InferModel: ...", "cannot be imported"),
        ("", "expected a class InferModel"),
        ("InferModel = 3", "expected a class"),
    ],
)
def test_broken_compiler_module(vendors: Path, text: str, expected: str) -> None:
    add(vendors, "acme", engine=text)
    with pytest.raises(UsageError, match="engine") as caught:
        find_vendor("acme", vendors).infer_model("engine")
    assert expected in str(caught.value)


def test_a_class_that_cannot_be_called_is_no_infer_model(vendors: Path) -> None:
    add(vendors, "acme", engine="class InferModel:\n    pass\n")
    with pytest.raises(UsageError, match="expected a class InferModel with a method __call__; it has no method"):
        find_vendor("acme", vendors).infer_model("engine")


def test_what_may_be_meant_by_a_method(vendors: Path) -> None:
    add(vendors, "acme", engine="class InferModel:\n    def __cal__(self): ...\n")
    with pytest.raises(UsageError, match="it has __cal__; did you mean '__call__'"):
        find_vendor("acme", vendors).infer_model("engine")


@pytest.mark.parametrize(
    "parameters, fits",
    [
        ("self, config, onnx", False),
        ("self, config, onnx_path, model, more", False),
        ("self, config, *, onnx_path, model", False),
        ("self, config, onnx_path, model, more=None", True),
        ("self, *given", True),
    ],
)
def test_what_an_engine_is_made_of(vendors: Path, parameters: str, fits: bool) -> None:
    add(vendors, "acme", engine=f"{CALLED}    def __init__({parameters}): ...\n")
    found = find_vendor("acme", vendors)
    if fits:
        assert found.infer_model("engine")
        return
    with pytest.raises(UsageError) as refused:
        found.infer_model("engine")
    own = parameters.removeprefix("self, ")
    expected = f"acme/engine.py:3: expected InferModel(config, onnx_path, model), found InferModel({own})"
    assert str(refused.value).endswith(expected)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x = 1\nclass InferModel(:\n", "engine.py: line 2: invalid syntax"),
        ("def helper(): ...\n", "__init__ and __call__; it has helper"),
        ("raise SystemExit\nclass InferModle:\n    pass\n", "it has InferModle; did you mean 'InferModel'?"),
    ],
)
def test_a_compiler_module_of_which_nothing_can_come_is_told_with_the_vendor(
    vendors: Path, text: str, expected: str
) -> None:
    add(vendors, "acme", engine=text)
    with pytest.raises(UsageError) as refused:
        find_vendor("acme", vendors)
    assert str(refused.value).startswith(str(vendors / "acme/engine.py")) and expected in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "from vendors.acme.other import InferModel",
        "from vendors.acme.other import *",
        "import vendors.acme.other as InferModel",
        "if True:\n    class InferModel: ...",
        "def __getattr__(name): ...",
        "InferModel = make()",
    ],
)
def test_what_the_text_of_a_compiler_module_may_leave_to_its_import(vendors: Path, text: str) -> None:
    add(vendors, "acme", engine=text)
    assert find_vendor("acme", vendors).compiler("engine")


@pytest.mark.parametrize(
    "change, expected",
    [
        (('frozenset({"fp32"})', '"fp32"'), "compilers.engine.precisions: expected a set of precisions, found the"),
        (("    default_", '    training_precisions = "bf16"\n    default_'), "training_precisions: expected a set of"),
    ],
)
def test_precisions_that_are_text(vendors: Path, change: tuple[str, str], expected: str) -> None:
    add(vendors, "acme", GOOD.replace(*change))
    with pytest.raises(UsageError) as refused:
        find_vendor("acme", vendors)
    assert expected in str(refused.value) and "\n" not in str(refused.value)


def test_unknown_compiler(vendors: Path) -> None:
    add(vendors, "acme")
    with pytest.raises(
        UsageError,
        match="unknown compiler 'engin' of vendor acme: it has engine, and 'null' ends after framework validation; "
        "did you mean 'engine'",
    ):
        find_vendor("acme", vendors).compiler("engin")


@pytest.mark.parametrize(
    "name, expected",
    [
        ("inference/net.yml", "is never read: expected YAML in inference/net.yaml"),
        ("inference/net.json", "is never read: expected YAML in inference/net.yaml"),
        ("inference/net.py", "is never read: expected YAML in inference/net.yaml"),
        ("training/net/A100x1x8.yml", "is never read: expected YAML in training/net/A100x1x8.yaml"),
        (
            "training/net/config_A100x1x8.py",
            "is never read: FlagPerf's settings at a scale are expected as YAML, in training/net/A100x1x8.yaml",
        ),
        (
            "training/net/config_A100x1x8.yaml",
            "is never read: FlagPerf's settings at a scale are expected as YAML, in training/net/A100x1x8.yaml "
            "(`python -m proofmark.flagperf import",
        ),
        ("training/net/config_A100x1x8.json", "is never read: FlagPerf's settings at a scale are expected as YAML"),
        (
            "training/other/config_A100x2x8.py",
            "is never read: FlagPerf's settings at a scale are expected as YAML, in training/<case>/A100x2x8.yaml",
        ),
        (
            "inference/nett.yaml",
            "is not named after a case, so it is never read; did you mean 'inference/net.yaml'? (`python -m proofmark.",
        ),
        ("inference/vgg.yaml", "is not named after a case, so it is never read (`python -m proofmark.flagperf import"),
        ("inferense/net.yaml", "is not named after a case, so it is never read; did you mean 'inference/net.yaml'?"),
        ("net.yaml", "is not named after a case, so it is never read; did you mean 'inference/net.yaml'?"),
        (
            "training/net/many.yaml",
            "is not named after a scale, so it is never read: expected training/net/<scale>.yaml, as A100x1x8.yaml",
        ),
        (
            "training/net.yaml",
            "is not named after a scale, so it is never read: expected training/net/<scale>.yaml, as A100x1x8.yaml",
        ),
        ("inference/acme_configurations.yaml", "is not named after a case, so it is never read (`python -m proofmark."),
        ("configurations.yaml", "is not named after a case, so it is never read (`python -m proofmark.flagperf import"),
        ("training/net/A100_H100x1x8.yaml", "names two chips, so it is never read: expected a file for each"),
        ("training/net/config_A100xB100x1x8.py", "names two chips, so it is never read"),
        ("inference/resnet.yml", "is never read: expected <suite>/<case>.yaml or training/<case>/<scale>.yaml"),
        ("README.md", "is never read: expected <suite>/<case>.yaml"),
        ("config_common.py", "is never read: expected <suite>/<case>.yaml"),
        (".net.yaml.swp", "is never read: expected <suite>/<case>.yaml"),
        ("noending", "is never read: expected <suite>/<case>.yaml"),
    ],
)
def test_a_file_that_no_case_reads_is_told(vendors: Path, name: str, expected: str) -> None:
    add(vendors, "acme")
    configs = vendors / "acme/configs"
    for file in ("inference/net.yaml", "training/net/A100x1x8.yaml", "training/net/.gitkeep", name):
        (configs / file).parent.mkdir(parents=True, exist_ok=True)
        (configs / file).touch()
    (problem,) = find_vendor("acme", vendors).stray_overrides({"inference/net": False, "training/net": True})
    assert problem.where == str(configs / name)
    assert "`python -m proofmark.flagperf import" in problem.what
    assert problem.what.startswith(expected) and ("did you mean" in problem.what) == ("did you mean" in expected)


def test_settings_beside_the_package_that_nobody_reads_are_told(vendors: Path) -> None:
    add(vendors, "acme")
    read = ("environment.yaml", "requirements.txt", "config_flow.py", "setup.sh", "training/bert.py")
    theirs = ("environment_variables.sh", "config_A100x1x8.py", "acme_configurations.yaml", "training/test_conf.py")
    ours = {"environment.yml": "environment.yaml", "chips.json": "chips.yaml"}
    for file in (*read, *theirs, *ours):
        (vendors / "acme" / file).parent.mkdir(exist_ok=True)
        (vendors / "acme" / file).touch()
    by_file = {Path(each.where).relative_to(vendors / "acme").as_posix(): each.what for each in found_strays(vendors)}
    assert by_file.keys() == {*theirs, *ours}
    assert all("`python -m proofmark.flagperf import" in by_file[file] for file in theirs)
    assert all(by_file[file] == f"is never read: expected YAML in {right}" for file, right in ours.items())


@pytest.mark.parametrize(("name", "meant"), [("chip.yaml", "chips.yaml"), ("enviroment.yaml", "environment.yaml")])
def test_misspelled_settings_beside_the_package_are_told(vendors: Path, name: str, meant: str) -> None:
    add(vendors, "acme")
    for file in ("chips.yaml", "kernels.yaml", "supported.yaml", "chipset.yaml", name):
        (vendors / "acme" / file).touch()
    (problem,) = found_strays(vendors)
    assert (problem.where, problem.what) == (str(vendors / "acme" / name), f"is never read; did you mean '{meant}'?")


def test_a_misspelled_folder_of_overrides_is_told_and_a_package_of_the_vendors_is_not(vendors: Path) -> None:
    add(vendors, "acme")
    for file in (
        "configs/training/net/1x1.yaml",
        "config/training/net/1x1.yaml",
        "configure/kernels/a.yaml",
        "conf/training/a.py",
    ):
        (vendors / "acme" / file).parent.mkdir(parents=True)
        (vendors / "acme" / file).touch()
    (problem,) = found_strays(vendors)
    assert (problem.where, problem.what) == (str(vendors / "acme/config"), "is never read; did you mean 'configs'?")


def found_strays(vendors: Path) -> list[Problem]:
    return find_vendor("acme", vendors).stray_files(["training/net"])


def test_a_link_to_nowhere_among_the_overrides_is_told(vendors: Path) -> None:
    add(vendors, "acme")
    (vendors / "acme/configs").mkdir()
    (vendors / "acme/configs/elsewhere").symlink_to(vendors.parent)
    (problem,) = find_vendor("acme", vendors).stray_overrides({"inference/net": False})
    assert problem.where.endswith("configs/elsewhere")
