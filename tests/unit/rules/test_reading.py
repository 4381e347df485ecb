"""YAML, numbers, case files, chips and host files: what is read, and what is refused."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from proofmark.errors import ConfigurationError, UsageError
from proofmark.flagperf.host_file import load_host_file
from proofmark.inference.case import InferenceParameters
from proofmark.rules.case_file import CaseFile, load_case_file
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.legality import Override
from proofmark.rules.scale import Scale
from proofmark.rules.yaml.arithmetic import parse_product
from proofmark.rules.yaml.strict import load_mapping, parse
from proofmark.suite import find_suites
from proofmark.vendor.contract import Processor
from proofmark.vendor.engine import Compiler
from proofmark.vendor.hardware.chips import describe_chip, load_chips
from proofmark.vendor.unsupported import (
    asked_for_by_itself,
    contradictions,
    expected_reason,
    load_expected,
    unknown_cases,
)

ROOT = Path(__file__).parents[3]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


SEEN = st.characters(exclude_categories=("Cs", "Cc", "Cf"))
"""What moves no cursor and turns no direction."""

WORDS = st.text(SEEN, max_size=5).filter(lambda text: not re.fullmatch(r"[-+.0-9]+[eE][-+0-9]+", text))
"""Not what is a number to us and text to PyYAML, which therefore writes it without quotes."""

VALUES = st.integers(-(2**63) + 1, 2**63 - 1) | WORDS | st.booleans()


class TestYaml:
    @pytest.mark.parametrize(
        "text, expected",
        [
            ("a: [1", "line"),
            ("a: 1\na: 2", "line 2: duplicate key 'a', first on line 1"),
            ("a:\n  b: 1\n c: 2", "need the same indentation"),
            ("a:\n  b: 1\n    c: 2", "need the same indentation"),
            ("a: {b: 1, b: 2}", "duplicate key 'b'"),
            ("- 1", "expected a mapping"),
            ("1: a", "not a string"),
            ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
            ("a: &x [*x]\nb: !!set", "not valid YAML"),
            ("[" * 2000, "not valid YAML"),
            ("a: &a [*a]", "refers to itself"),
            ("a: &a {b: *a}", "refers to itself"),
            ("a: " + "9" * 4000, "64 bits"),
            ('a: "\\uD800"', "not valid YAML"),
            ("a: 1\nb: !!bool 3", "not valid YAML: line 2: a value does not fit its tag"),
            ("a: !!int ''", "not valid YAML: line 1: "),
            ("a: {b: [!!timestamp x]}", "line 1: a value does not fit its tag"),
            ("a: 1\n\nb: !!float ''", "not valid YAML: line 3: "),
            ("a: {b: 2026-01-01}", "a.b: a date is not a plain value"),
            ("a: [2026-01-01 10:00:00]", "a: a datetime is not a plain value"),
            ("a: {b: .nan}", "a.b: expected a finite number"),
            ("a: -.inf", "a: expected a finite number"),
            ("a: !!binary aGVsbG8=", "a bytes is not a plain value"),
            ("a: !!set {x, y}", "a set is not a plain value"),
            ("a: !!omap [x: 1]", "is not a plain value"),
            ("? [a, b]\n: 1", "key on line 1 is not a string"),
            ("a: " + "{x: " * 60 + "1" + "}" * 60, "nested too deeply"),
            ("b: &b [x, x]\n" + "".join(f"c{n}: &c{n} [{f'*c{n - 1}, ' * 9}*b]\n" for n in range(1, 12)), "undefined"),
            ("c0: &c0 [x]\n" + "".join(f"c{n}: &c{n} [{f'*c{n - 1}, ' * 9}]\n" for n in range(1, 12)), "too large"),
            (f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 30}]", "too large"),
            ('"\\e[31mred": 1\n"\\e[31mred": 2', r"duplicate key '\x1b[31mred'"),
            ("#" * (1 << 20) + "\n", "larger than 1 MiB"),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str, expected: str) -> None:
        path = written(tmp_path / "x.yaml", text)
        with pytest.raises(ConfigurationError, match="x.yaml") as caught:
            load_mapping(path)
        assert expected in str(caught.value)

    def test_empty_is_an_empty_mapping(self, tmp_path: Path) -> None:
        assert load_mapping(written(tmp_path / "x.yaml", "# nothing\n")) == {}

    def test_missing_and_not_text(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load_mapping(tmp_path / "none.yaml")
        (tmp_path / "case.yml").touch()
        with pytest.raises(ConfigurationError, match=r"No such file or directory; did you mean 'case\.yml'\?"):
            load_mapping(tmp_path / "case.yaml")
        (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load_mapping(tmp_path / "b.yaml")

    def test_a_link_out_of_its_tree_is_not_followed(self, tmp_path: Path) -> None:
        tree, secret = tmp_path / "tree", written(tmp_path / "credentials", "password: [hunter2")
        (tree / "configs").mkdir(parents=True)
        (tree / "configs" / "net.yaml").symlink_to(secret)
        (tree / "elsewhere").symlink_to(tmp_path)
        (tree / "same.yaml").symlink_to(written(tree / "real.yaml", "a: 1"))
        for name in ("configs/net.yaml", "elsewhere/credentials"):
            with pytest.raises(ConfigurationError, match="a link out of") as caught:
                load_mapping(tree / name, tree)
            assert "hunter2" not in str(caught.value) and "password" not in str(caught.value)
        assert load_mapping(tree / "same.yaml", tree) == {"a": 1}

    def test_what_never_ends_is_not_read_to_its_end(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.yaml")
        with pytest.raises(ConfigurationError, match="not a regular file"):
            load_mapping(tmp_path / "pipe.yaml", tmp_path)
        with pytest.raises(ConfigurationError, match="larger than"):
            load_mapping(Path("/dev/zero"))

    @pytest.mark.parametrize(
        "text, value",
        [("1e-4", 1e-4), ("1E5", 1e5), ("-2.5e3", -2500.0), (".5e+1", 5.0), ("1.e-2", 0.01), ("+1e2", 100.0)],
    )
    def test_numbers_as_people_write_them(self, text: str, value: float) -> None:
        assert parse(text, "x") == value and type(parse(text, "x")) is float
        assert parse(f"a: [{text}, {text}]", "x") == {"a": [value, value]}
        assert parse(f"'{text}'", "x") == text

    @pytest.mark.parametrize("text", ["0100", "010", "1:30", "1:30.5", "1_6", "0x10", "0b11", "-08", "190:20:30"])
    def test_what_yaml_reads_as_another_number_than_people_is_text(self, text: str) -> None:
        assert parse(f"a: {text}", "x") == {"a": text}

    @pytest.mark.parametrize("text", ["\\e[2J", "\\x07", "\\u202e", "\\u2066", "\\x9b"])
    def test_what_moves_what_is_shown_is_refused(self, text: str) -> None:
        for content in (f'a: "{text}"', f'{{"{text}": 1}}', f'a: [{{b: "x{text}"}}]'):
            with pytest.raises(ConfigurationError, match="which alters what is shown") as caught:
                parse(content, "x")
            assert str(caught.value).isprintable()

    @pytest.mark.parametrize("text", ["e5", "1e", "1e5x", "1 e5", "--1e5", "1e5.0", "a1e5", "."])
    def test_text_that_only_looks_like_a_number(self, text: str) -> None:
        assert parse(text, "x") == text

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_any_number_as_python_writes_it(self, value: float) -> None:
        assert parse(repr(value), "x") == value
        assert parse(f"{value:e}".replace("+", ""), "x") == float(f"{value:e}")

    @given(st.text(max_size=60))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        try:
            parse(text, "x")
        except ConfigurationError:
            pass

    @given(st.dictionaries(WORDS, VALUES, max_size=4))
    def test_what_yaml_writes_comes_back(self, values: dict[str, object]) -> None:
        assert parse(yaml.safe_dump(values), "x") == values


class TestProducts:
    @pytest.mark.parametrize(
        "text, value", [("2*512*0.33e9", 2 * 512 * 0.33e9), ("4.12e9", 4.12e9), (4.12e9, 4.12e9), ("3", 3), (7, 7)]
    )
    def test_read(self, text: object, value: float) -> None:
        assert parse_product(text) == pytest.approx(value)

    @pytest.mark.parametrize(
        "text",
        ["", "2**3", "__import__('os')", "1+1", "-1", "nan", "inf", "1e999", "2*", True, None, [1], "1*" * 200 + "1"],
    )
    def test_refused(self, text: object) -> None:
        with pytest.raises(ValueError):
            parse_product(text)

    @given(st.lists(st.floats(0, 1e6), min_size=1, max_size=4))
    def test_product_of_any_numbers(self, factors: list[float]) -> None:
        assert parse_product("*".join(map(repr, factors))) == pytest.approx(math.prod(factors))


COMMON = "parameters: {seed: 0, warmup: 2}\nconfigurations:\n  batch_size: {type: int, value: 1, min: 1}\n"
CASE = """
parameters: {metric: top1, item: image, flops: 2*1e6}
configurations: {batch_size: 4}
profiles:
  embedded: {parameters: {target: 0.9}}
"""
TRAINED = "{epochs: 3, batch_size: 8, learning_rate: 1.0e-2}"


class TestCaseFile:
    def read(self, tmp_path: Path, text: str) -> object:
        common = written(tmp_path / "contract.yaml", COMMON)
        return load_case_file(
            written(tmp_path / "net.yaml", text), "inference", "embedded", common, InferenceParameters
        )

    def test_read(self, tmp_path: Path) -> None:
        case = self.read(tmp_path, CASE)
        assert case.case == "net"
        assert case.settings["batch_size"].value == 4
        assert case.parameters.flops == 2e6
        assert case.elsewhere["batch_size"] == ()

    def test_a_setting_of_a_profile_is_told_with_its_place(self, tmp_path: Path) -> None:
        text = CASE.replace("0.9}}", "0.9}, configurations: {batch_size: 0, colour: red}}")
        with pytest.raises(ConfigurationError) as caught:
            self.read(tmp_path, text)
        keys = [problem.key for problem in caught.value.problems]
        assert keys == [f"profiles.embedded.configurations.{key}" for key in ("batch_size", "colour")]

    def test_what_is_wrong_in_the_common_base_is_told_of_it(self, tmp_path: Path) -> None:
        common = written(tmp_path / "contract.yaml", COMMON.replace("seed: 0", "seed: none"))
        path = written(tmp_path / "net.yaml", CASE)
        with pytest.raises(ConfigurationError) as caught:
            load_case_file(path, "inference", "embedded", common, InferenceParameters)
        (problem,) = caught.value.problems
        assert (problem.where, problem.key) == (str(common), "parameters.seed")

    def test_without_its_yaml_a_case_gets_no_other_ones(self, tmp_path: Path) -> None:
        common, path = written(tmp_path / "contract.yaml", COMMON), tmp_path / "rent.yaml"
        written(tmp_path / "resnet50.yaml", CASE)
        test = written(tmp_path / "test_resnet50.py", "")
        told = f"{path}: is not there; expected the numbers of test_rent.py"
        for hint in ("", "; did you mean 'resnet50.yaml'?"):
            with pytest.raises(ConfigurationError) as caught:
                load_case_file(path, "inference", "embedded", common, InferenceParameters)
            assert str(caught.value) == told + hint
            test.unlink(missing_ok=True)

    def test_the_common_base_is_no_case_of_another_name(self, tmp_path: Path) -> None:
        common, path = written(tmp_path / "contract.yaml", COMMON), tmp_path / "contrast.yaml"
        with pytest.raises(ConfigurationError, match=r"expected the numbers of test_contrast\.py$"):
            load_case_file(path, "inference", "embedded", common, InferenceParameters)

    def test_how_weights_are_trained_is_kept_as_it_is_given(self, tmp_path: Path) -> None:
        case = self.read(tmp_path, CASE.replace("flops:", f"training: {TRAINED}, flops:"))
        assert isinstance(case, CaseFile)
        assert case.parameters.model_dump()["training"] == {"epochs": 3, "batch_size": 8, "learning_rate": 0.01}
        untrained = self.read(tmp_path, CASE)
        assert isinstance(untrained, CaseFile) and "training" not in untrained.parameters.model_dump()

    def test_what_the_other_profiles_have(self, tmp_path: Path) -> None:
        other = CASE + "  standard:\n    configurations: {batch_size: 64}\n"
        case = self.read(tmp_path, other)
        assert isinstance(case, CaseFile) and case.elsewhere["batch_size"] == (64,)

    @pytest.mark.parametrize(
        "change, key, expected",
        [
            (("parameters:", "parametres:"), "parametres", "unknown key; did you mean 'parameters'?"),
            (("target: 0.9", "target: high"), "profiles.embedded.parameters.target", "high"),
            (("target: 0.9", "target: 0.9, metric: 5"), "profiles.embedded.parameters.metric", "expected text"),
            (("target: 0.9", "target: 0.9, flops: 1+1"), "profiles.embedded.parameters.flops", "product"),
            (("target: 0.9", "target: .nan"), "profiles.embedded.parameters.target", "finite"),
            (("metric: top1, ", ""), "parameters.metric", "missing"),
            (("2*1e6", "2+2"), "parameters.flops", "product"),
            (("2*1e6", "0"), "parameters.flops", "expected greater than 0, found 0"),
            (("target: 0.9", "targt: 0.9"), "parameters.target", "missing; did you mean it by 'targt'?"),
            (("target: 0.9", "dataset: digits"), "parameters.target", "is required and missing"),
            (
                ("flops:", f"training: {TRAINED.replace('epochs', 'epoch')}, flops:"),
                "parameters.training.epoch",
                "unknown key; did you mean 'epochs'?",
            ),
            (
                ("flops:", f"training: {TRAINED.replace('1.0e-2', '1.0 e-2')}, flops:"),
                "parameters.training.learning_rate",
                "expected a number, found '1.0 e-2'",
            ),
            (("batch_size: 4", "batch_size: 0"), "configurations.batch_size", "at least 1"),
            (("batch_size: 4", "batch_size: four"), "configurations.batch_size", "expected int"),
            (("batch_size: 4", "colour: red"), "configurations.colour", "not declared"),
            (("batch_size: 4", "batchsize: 4"), "configurations.batchsize", "not declared; did you mean 'batch_size'?"),
            (("embedded:", "small:"), "profiles", "no profile 'embedded'"),
            (("item: image", "item: image, batch_size: 3"), "batch_size", "both a parameter and a configuration"),
            (("batch_size: 4", "warmup: {type: int, value: 3}"), "warmup", "both a parameter and a configuration"),
            (("batch_size: 4", "max_noise: {type: float, value: 3}"), "max_noise", "both a parameter and"),
            (("item: image", "item: image, items: 3"), "parameters.items", "is a name that the configuration has"),
            (("target: 0.9", "target: 0.9, source: de"), "profiles.embedded.parameters.source", "choose another"),
            (("batch_size: 4", "values: {type: int, value: 3}"), "configurations.values", "is a reserved name"),
            (
                ("batch_size: 4", "target_length: {type: int, value: 3}"),
                "configurations.target_length",
                "may not be declared: it names a target or a seed, which may not be overridden",
            ),
        ],
    )
    def test_refused_by_file_and_key(self, tmp_path: Path, change: tuple[str, str], key: str, expected: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            self.read(tmp_path, CASE.replace(*change))
        assert any(problem.key == key for problem in caught.value.problems), caught.value
        assert "net.yaml" in str(caught.value) and expected in str(caught.value)

    def test_all_problems_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError) as caught:
            self.read(tmp_path, CASE.replace("target: 0.9", "target: no").replace("batch_size: 4", "batch_size: no"))
        assert len(caught.value.problems) == 2

    @pytest.mark.parametrize(
        "path",
        [path for path in sorted((ROOT / "suites").glob("*/*.yaml")) if path.stem != "contract"],
        ids=lambda path: f"{path.parent.name}-{path.stem}",
    )
    @pytest.mark.parametrize("profile", ["embedded", "standard"])
    def test_shipped_cases(self, path: Path, profile: str) -> None:
        suite = path.parent.name
        kind = find_suites(ROOT / "suites")[suite].case_type.parameters_type
        read = load_case_file(path, suite, profile, path.with_name("contract.yaml"), kind)
        assert (read.case, read.profile) == (path.stem, profile)


CHIP = "chips:\n- {name: A, match: 'chip a', peaks: {fp32: {flops: 2*3e9, source: sheet}}}\n"


class TestChips:
    def test_peak_of_the_detected_chip(self, tmp_path: Path) -> None:
        path = written(tmp_path / "chips.yaml", CHIP)
        chip = describe_chip("Big CHIP A rev 2", 4, "fp32", path)
        assert chip.peak is not None
        assert chip.peak.flops_per_second == 24e9

    def test_more_than_any_device_has(self, tmp_path: Path) -> None:
        path = written(tmp_path / "chips.yaml", CHIP.replace("2*3e9", "9e18"))
        assert describe_chip("chip a", 1, "fp32", path).peak is not None
        with pytest.raises(ConfigurationError, match=r"A\.peaks\.fp32\.flops: 9e\+18 FLOP/s of each of 2 units"):
            describe_chip("chip a", 2, "fp32", path)

    @pytest.mark.parametrize("name, precision", [("chip b", "fp32"), ("chip a", "bf16"), ("chip a", "fp12")])
    def test_unknown_is_null_with_a_reason(self, tmp_path: Path, name: str, precision: str) -> None:
        chip = describe_chip(name, 1, precision, written(tmp_path / "chips.yaml", CHIP))
        assert chip.peak is None and chip.peak_missing

    def test_no_file_is_no_chips(self, tmp_path: Path) -> None:
        assert describe_chip("x", 1, "fp32", tmp_path / "chips.yaml").peak is None

    @pytest.mark.parametrize(
        "change",
        [
            ("2*3e9", "-1"),
            ("2*3e9", "0"),
            ("2*3e9", "1e30"),
            ("fp32:", "fp12:"),
            (", source: sheet", ""),
            ("'chip a'", "'('"),
            ("name: A", "name: A, colour: red"),
        ],
    )
    def test_refused(self, tmp_path: Path, change: tuple[str, str]) -> None:
        with pytest.raises(ConfigurationError, match="chips.yaml"):
            load_chips(written(tmp_path / "chips.yaml", CHIP.replace(*change)))

    def test_twice_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="more than once"):
            load_chips(written(tmp_path / "chips.yaml", CHIP + CHIP.partition("\n")[2]))

    @pytest.mark.parametrize(
        "change, expected",
        [
            ("memory_bandwith: 1e9", "chips.0.memory_bandwith: unknown key; did you mean 'memory_bandwidth'?"),
            ("peaks: {fp32: {achievble: 1}}", "chips.0.peaks.fp32.achievble: unknown key; did you mean 'achievable'?"),
            ("zebra: 1", "chips.0.zebra: unknown key"),
        ],
    )
    def test_a_misspelt_key_is_told_what_it_may_mean(self, tmp_path: Path, change: str, expected: str) -> None:
        given = f"chips:\n- {{name: A, match: a, {change}}}\n"
        with pytest.raises(ConfigurationError) as caught:
            load_chips(written(tmp_path / "chips.yaml", given))
        assert any(str(problem).endswith(expected) for problem in caught.value.problems), caught.value

    @pytest.mark.parametrize("path", sorted((ROOT / "vendors").glob("*/chips.yaml")), ids=lambda p: p.parent.name)
    def test_shipped(self, path: Path) -> None:
        assert load_chips(path)


class TestHostFile:
    def test_other_hosts_are_a_cluster_files(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="HOSTS: .*; --cluster FILE names other hosts"):
            load_host_file(written(tmp_path / "host.yaml", "HOSTS: [10.1.2.3]\n"))

    def test_keys_of_the_source_document(self, tmp_path: Path) -> None:
        text = """
FLAGPERF_PATH: "/home/x/FlagPerf/inference"
FLAGPERF_LOG_PATH: "result"
VENDOR: "nvidia"
FLAGPERF_LOG_LEVEL: "INFO"
LOG_CALL_INFORMATION: True
HOSTS: ["127.0.0.1"]
SSH_PORT: "22"
HOSTS_PORTS: ["2222"]
MASTER_PORT: "29501"
SHM_SIZE: "32G"
ACCE_CONTAINER_OPT: " --gpus all"
PIP_SOURCE: "x"
CLEAR_CACHES: True
ACCE_VISIBLE_DEVICE_ENV_NAME: "CUDA_VISIBLE_DEVICES"
CASES:
  "resnet50:pytorch_1.13": "/data/val"
"""
        host = load_host_file(written(tmp_path / "host.yaml", text))
        assert [(entry.case, entry.data_dir) for entry in host.entries] == [("resnet50", "/data/val")]
        assert "SHM_SIZE" in host.left_aside

    def test_a_run_list_of_trainings(self, tmp_path: Path) -> None:
        text = "CASES: {'bert:pytorch_1.8:A100:2:8:3': /data/bert, 'bert:pytorch:A100:1:1:1': /b, 'glm:pytorch': /glm}"
        host = load_host_file(written(tmp_path / "host.yaml", text))
        assert host.entries == [
            ("bert:pytorch_1.8:A100:2:8:3", "training", "bert", "A100x2x8", {"repeat": 3}, "/data/bert"),
            ("bert:pytorch:A100:1:1:1", "training", "bert", "A100x1x1", {"repeat": 1}, "/b"),
            ("glm:pytorch", "inference", "glm", "", {}, "/glm"),
        ]
        assert host.entry("training", "bert", "A100x1x1") == host.entries[1]
        assert host.entry("inference", "bert") is host.entry("training", "bert") is None

    def test_every_wrong_entry_of_a_run_list_is_told(self, tmp_path: Path) -> None:
        text = "CASES: {'a:paddle:A100:1:8:1': x, 'b:pytorch:A100:1': y, 'c:pytorch:A100:1:8:-1': z}"
        with pytest.raises(ConfigurationError) as caught:
            load_host_file(written(tmp_path / "host.yaml", text))
        assert all(f"'{case}:" in str(caught.value) for case in "abc")

    @pytest.mark.parametrize(
        "text, key",
        [
            ("VENDORS: x", "VENDORS"),
            ("VENDOR: 3", "VENDOR"),
            ("HOSTS: ['10.1.2.3']", "HOSTS"),
            ("HOSTS: ['localhost', 'localhost']", "HOSTS"),
            ("CASES: {resnet50: x}", "CASES"),
            ("CASES: {'a:paddle': x}", "CASES"),
            ("CASES: {'a:pytorch': x, 'a:pytorch_2': y}", "CASES"),
            ("CASES: {'a:pytorch:A100:1:8': x}", "found 'a:pytorch:A100:1:8'"),
            ("CASES: {'a:pytorch:A100:0:8:1': x}", "numbers of at least 1"),
            ("CASES: {'a:pytorch:A100:1:8:x': x}", "numbers of at least 1"),
            ("CASES: {'a:pytorch:A100:1:8:1': x, 'a:pytorch_2:A100:1:8:3': y}", "a:A100:1:8"),
            ("CASES: {'a:pytorch:A100:1:8:1': x, 'a:pytorch:A100:01:8:3': y}", "a:A100:1:8"),
            ("FLAGPERF_LOG_LEVEL: LOUD", "FLAGPERF_LOG_LEVEL"),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str, key: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            load_host_file(written(tmp_path / "host.yaml", text))
        assert key in str(caught.value)


class TestScale:
    @given(st.integers(1, 9999), st.integers(1, 999), st.sampled_from([None, "A100", "H200-SXM", "x", "MI300X"]))
    def test_read_back(self, nnodes: int, nproc: int, chip: str | None) -> None:
        scale = Scale(nnodes, nproc, chip)
        assert Scale.parse(str(scale)) == scale

    @pytest.mark.parametrize("text", ["", "1", "1x", "x1x1", "0x1", "1x0", "1x-1", "A100x1", "A100", "1x1 ", "1×1"])
    def test_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="is not a scale"):
            Scale.parse(text)

    @pytest.mark.parametrize(
        "chip",
        "A100xB100 A100_H100 A100-H100 A100.H100 H100andA100 H100_and_A100 A100+H100 A100_A30".split(),
    )
    def test_two_chips_are_refused(self, chip: str) -> None:
        with pytest.raises(UsageError, match=f"'{re.escape(chip)}x1x8' names two chips: expected one chip"):
            Scale.parse(f"{chip}x1x8")
        assert not Scale.is_named(f"{chip}x1x8")

    @pytest.mark.parametrize(
        "chip",
        "A100_40_SXM BI-V100 C550_64 A100-SXM4-40GB A100-PG509-200 GB200-NVL72 MLU370-X8 H200-141GB".split(),
    )
    def test_one_chip_in_several_words_is_one(self, chip: str) -> None:
        assert Scale.parse(f"{chip}x1x8") == Scale(1, 8, chip)

    def test_is_for_the_chip_that_it_names(self) -> None:
        assert Scale(1, 8, "A100").is_for("Maker A100-SXM4-40GB") and Scale(1, 8).is_for("anything")
        for other in ("H100", "A10", "SXM", "100"):
            assert not Scale(1, 8, other).is_for("Maker A100-SXM4-40GB")


class Fake(Processor):
    """A vendor with two compilers."""

    compilers = {
        "one": Compiler(frozenset({"fp32", "fp16"}), consumes="onnx"),
        "two": Compiler(frozenset({"fp32"}), consumes="model"),
    }


class TestUnsupported:
    def test_read(self, tmp_path: Path) -> None:
        text = """
unsupported:
  - {case: inference/net, compiler: two, precision: fp16, reason: no such kernels}
  - {case: inference/net, precision: bf16, reason: the framework has none}
  - {case: training/net, precision: bf16, reason: overflows}
"""
        path = written(tmp_path / "unsupported.yaml", text)
        entries = load_expected(path)
        assert not contradictions(path, entries, Fake(), {"training"})
        assert expected_reason(entries, "inference/net", "two", "fp16") == "no such kernels"
        assert expected_reason(entries, "inference/net", None, "bf16") == "the framework has none"
        for place in (
            ("inference/net", "one", "fp16"),
            ("inference/other", "two", "fp16"),
            ("training/net", "two", "x"),
        ):
            assert expected_reason(entries, *place) is None
        (unknown,) = unknown_cases(path, entries, ["inference/net"])
        assert (unknown.key, unknown.what) == ("unsupported.2.case", "there is no case 'training/net'")
        misspelled = unknown_cases(path, entries, ["inference/nett", "training/net"])
        assert {each.what for each in misspelled} == {
            "there is no case 'inference/net'; did you mean 'inference/nett'?"
        }

    def test_no_file_is_no_expectation(self, tmp_path: Path) -> None:
        assert load_expected(tmp_path / "unsupported.yaml") == ()

    @pytest.mark.parametrize(
        "entry, expected",
        [
            (
                "{case: inference/net, compiler: one, precision: fp16, reason: r}",
                "fp16 is among the precisions of comp",
            ),
            ("{case: inference/net, compiler: three, precision: fp16, reason: r}", "expected one of one, two"),
            ("{case: inference/net, compiler: twoo, precision: fp16, reason: r}", "one, two; did you mean 'two'?"),
            ("{case: inference/net, precision: fp32, reason: r}", "fp32 is among framework_precisions"),
            ("{case: training/net, precision: fp32, reason: r}", "fp32 is among training_precisions"),
            ("{case: training/net, compiler: one, precision: bf16, reason: r}", "a case of training has no compiler"),
        ],
    )
    def test_what_is_declared_may_not_be_listed(self, tmp_path: Path, entry: str, expected: str) -> None:
        path = written(tmp_path / "unsupported.yaml", f"unsupported: [{entry}]")
        (problem,) = contradictions(path, load_expected(path), Fake(), {"training"})
        assert problem.key == "unsupported.0" and expected in problem.what

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "unsupported: {}",
            "unsupported: [{case: inference/net, precision: fp16}]",
            "unsupported: [{case: inference/net, precision: fp12, reason: r}]",
            "unsupported: [{case: inference/net, precision: fp16, reason: ''}]",
            "unsupported: [{case: inference/net, precision: fp16, reason: r, colour: red}]",
            "unsupported: [{case: a, precision: fp16, reason: r}, {case: a, precision: fp16, reason: again}]",
        ],
    )
    def test_refused(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(ConfigurationError, match="unsupported.yaml"):
            load_expected(written(tmp_path / "unsupported.yaml", text))

    def test_a_vendors_file_may_not_ask_for_what_it_lists(self) -> None:
        own = Override("fp16", False, True, "configs/net.yaml", "changed")
        compiler = Override("compiler", "default", "one", "vendor acme", "changed")
        config = EffectiveConfig("inference", "net", "embedded", "acme", {}, {}, (own, compiler))
        (problem,) = asked_for_by_itself(config, "configs/net.yaml", "no kernels")
        assert (problem.where, problem.key) == ("configs/net.yaml", "fp16") and "(no kernels)" in problem.what
        assert not asked_for_by_itself(config, "configs/net.yaml", None)
        users = Override("compiler", "default", "two", "--compiler", "changed")
        assert not asked_for_by_itself(replace(config, overrides=(own, users)), "configs/net.yaml", "no kernels")
