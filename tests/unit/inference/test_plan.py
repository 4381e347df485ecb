"""What the four switches leave to do, for compilers of every kind."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from proofmark.inference.plan import Plan, make_plan
from proofmark.rules.config import EffectiveConfig, HostSettings
from proofmark.rules.host_problems import host_problems
from proofmark.vendor.engine import Compiler
from suites.automl import AutoMLSuite
from suites.training import TrainingSuite

ONNX = Compiler(frozenset({"fp32"}), consumes="onnx", loads_compiled=True)
ONNX_ONLY = Compiler(frozenset({"fp32"}), consumes="onnx")
MODEL = Compiler(frozenset({"fp32"}), consumes="model", loads_compiled=True)
MODEL_ONLY = Compiler(frozenset({"fp32"}), consumes="model")
ENGINE_STEPS = {"export", "compile", "engine_inference"}


def config(profile: str = "embedded", host: HostSettings | None = None, **switches: Any) -> EffectiveConfig:
    values = {"compiler": "c", "no_validation": False, "exist_onnx_path": None, "exist_compiler_path": None}
    return EffectiveConfig("inference", "net", profile, "acme", {}, values | switches, host=host or HostSettings())


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "file"
    path.write_text("")
    return str(path)


def plan_of(compiler: Compiler | None, no_validation: bool, onnx: str | None, engine: str | None) -> Plan:
    name = "c" if compiler else None
    switches = {"no_validation": no_validation, "exist_onnx_path": onnx, "exist_compiler_path": engine}
    return make_plan(config(compiler=name, **switches), compiler)


# (no_validation, exist_onnx_path, exist_compiler_path) -> skipped steps, or the keys that make it impossible
EXPECTED: dict[str, tuple[Compiler | None, dict[tuple[int, int, int], set[str] | str]]] = {
    "null": (
        None,
        {
            (0, 0, 0): ENGINE_STEPS,
            (0, 0, 1): ENGINE_STEPS,
            (0, 1, 0): ENGINE_STEPS,
            (0, 1, 1): ENGINE_STEPS,
            (1, 0, 0): "no_validation no_validation",
            (1, 0, 1): "no_validation no_validation",
            (1, 1, 0): "no_validation",
            (1, 1, 1): "no_validation",
        },
    ),
    "onnx": (
        ONNX,
        {
            (0, 0, 0): set(),
            (0, 0, 1): {"export", "compile"},
            (0, 1, 0): {"export"},
            (0, 1, 1): {"export", "compile"},
            (1, 0, 0): "no_validation",
            (1, 0, 1): "no_validation",
            (1, 1, 0): {"framework_validation", "export"},
            (1, 1, 1): {"framework_validation", "export", "compile"},
        },
    ),
    "onnx that loads no engine": (
        ONNX_ONLY,
        {
            (0, 0, 0): set(),
            (0, 0, 1): "exist_compiler_path",
            (0, 1, 0): {"export"},
            (0, 1, 1): "exist_compiler_path",
            (1, 0, 0): "no_validation",
            (1, 0, 1): "no_validation exist_compiler_path",
            (1, 1, 0): {"framework_validation", "export"},
            (1, 1, 1): "exist_compiler_path",
        },
    ),
    "model": (
        MODEL,
        {
            (0, 0, 0): {"export"},
            (0, 0, 1): {"export", "compile"},
            (0, 1, 0): {"export"},
            (0, 1, 1): {"export", "compile"},
            (1, 0, 0): "no_validation no_validation",
            (1, 0, 1): "no_validation no_validation",
            (1, 1, 0): "no_validation",
            (1, 1, 1): "no_validation",
        },
    ),
    "model that loads no engine": (
        MODEL_ONLY,
        {
            (0, 0, 0): {"export"},
            (0, 0, 1): "exist_compiler_path",
            (0, 1, 0): {"export"},
            (0, 1, 1): "exist_compiler_path",
            (1, 0, 0): "no_validation no_validation",
            (1, 0, 1): "no_validation no_validation exist_compiler_path",
            (1, 1, 0): "no_validation",
            (1, 1, 1): "no_validation exist_compiler_path",
        },
    ),
}


@pytest.mark.parametrize("switches", list(itertools.product((0, 1), repeat=3)), ids=str)
@pytest.mark.parametrize("kind", EXPECTED)
def test_every_combination(kind: str, switches: tuple[int, int, int], file: str) -> None:
    compiler, expected = EXPECTED[kind]
    no_validation, onnx, engine = switches
    plan = plan_of(compiler, bool(no_validation), file if onnx else None, file if engine else None)
    wanted = expected[switches]
    if isinstance(wanted, str):
        assert [problem.key for problem in plan.problems] == wanted.split()
    else:
        assert not plan.problems
        assert set(plan.skipped) - {"audit"} == wanted
        assert all(plan.skipped.values())


@pytest.mark.parametrize(
    "compiler, switches, audited",
    [
        (None, (0, 0, 0), False),
        (ONNX, (0, 0, 0), True),
        (ONNX, (1, 1, 0), False),
        (ONNX, (0, 1, 0), False),
        (MODEL, (0, 0, 0), True),
        (MODEL, (0, 1, 0), True),
        (ONNX, (0, 0, 1), False),  # a second time it would be the same one, and be taken for a cheat
        (MODEL, (0, 0, 1), False),
    ],
)
def test_audited_is_what_is_made_of_the_frameworks_model(
    compiler: Compiler | None, switches: tuple[int, int, int], audited: bool, file: str
) -> None:
    """A file that is given is another graph than an export, which may not compile, or take longer, though honest."""
    no_validation, onnx, engine = switches
    plan = plan_of(compiler, bool(no_validation), file if onnx else None, file if engine else None)
    assert ("audit" not in plan.skipped) == audited


@pytest.mark.parametrize("key", ["exist_onnx_path", "exist_compiler_path"])
def test_a_file_that_is_read_must_be_there(key: str, tmp_path: Path) -> None:
    none, folder = str(tmp_path / "none"), str(tmp_path)
    for path, expected in ((none, f"no such file: {none}"), (folder, f"{folder} is a folder; expected a file")):
        (problem,) = make_plan(config(**{key: path}), ONNX).problems
        assert (problem.key, problem.what) == (key, expected)


def test_an_onnx_file_that_nobody_reads_may_be_any_word(file: str) -> None:
    """As the source document has it: the ONNX path may be a placeholder where only the engine is loaded."""
    plan = plan_of(ONNX, True, "word", file)
    assert not plan.problems


def test_switches_without_effect_are_told(file: str) -> None:
    assert len(plan_of(None, False, file, file).warnings) == 2
    assert not plan_of(ONNX, False, file, None).warnings and not plan_of(MODEL, False, None, file).warnings


@pytest.mark.parametrize("compiler, engine, why", [(MODEL, 0, "takes the framework's model"), (ONNX, 1, "exist_comp")])
def test_a_given_onnx_file_that_nobody_reads_is_told(compiler: Compiler, engine: int, why: str, file: str) -> None:
    """What was skipped for another reason is not told as if the file had been compiled."""
    plan = plan_of(compiler, False, "word", file if engine else None)
    (warning,) = plan.warnings
    assert warning.startswith("exist_onnx_path has no effect: ") and why in warning and why in plan.skipped["export"]
    asked_for = plan_of(ONNX, True, "word", file)
    assert not asked_for.warnings, "no_validation demands one"


class TestHost:
    """Where the user's data and weights are."""

    @pytest.fixture
    def full(self, tmp_path: Path) -> str:
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "file").touch()
        return str(tmp_path / "full")

    def test_standard_needs_data_and_weights(self, full: str) -> None:
        assert [problem.where for problem in host_problems(config("standard"))] == ["--data-dir", "--weights"]
        assert not host_problems(config("standard", HostSettings(data_dir=full, weights=full)))

    def test_standard_without_a_model_needs_no_weights(self, full: str) -> None:
        assert not host_problems(config("standard", HostSettings(data_dir=full), no_validation=True))

    def test_embedded_takes_no_data(self, full: str) -> None:
        (problem,) = host_problems(config(host=HostSettings(data_dir=full)))
        assert "--profile standard" in problem.what

    @pytest.mark.parametrize("option", ["data_dir", "weights"])
    @pytest.mark.parametrize(
        "name, expected",
        [
            ("none", "no such directory"),
            ("full/file", "cannot be read as a directory (Not a directory)"),
            ("empty", "nothing is in the directory"),
        ],
    )
    def test_a_directory_that_is_none(self, full: str, tmp_path: Path, option: str, name: str, expected: str) -> None:
        (tmp_path / "empty").mkdir()
        bad = str(tmp_path / name)
        host = HostSettings(**{"data_dir": full, "weights": full} | {option: bad})
        (problem,) = host_problems(config("standard", host))
        assert str(problem) == f"--{option.replace('_', '-')}: {expected}: {bad}"

    def test_all_that_is_wrong_is_told_at_once(self) -> None:
        host = HostSettings(data_dir="none", weights="none", engine_user="nobody")
        found = [(problem.where, problem.what) for problem in host_problems(config(host=host))]
        embedded = ("--data-dir", "the embedded profile brings its own data; add --profile standard")
        assert found == [embedded, ("--weights", "no such directory: none")]
        for suite in (TrainingSuite(), AutoMLSuite()):
            problems = suite.host_problems(config("standard", host, initial_weights=False), here=True)
            wheres = ["--data-dir", "--engine-user", "--weights"]
            assert sorted(problem.where for problem in problems) == wheres, suite.name

    @pytest.mark.parametrize("declared, refused", [(False, False), (True, False), ("required", True)])
    def test_a_training_that_must_begin_with_given_weights(self, full: str, declared: object, refused: bool) -> None:
        asked = {"no_validation": True, "initial_weights": declared}
        problems = TrainingSuite().host_problems(config("standard", HostSettings(data_dir=full), **asked), here=True)
        begins = "--weights: case net, profile standard, begins with pre-trained weights: --weights DIR"
        assert [str(problem).partition(" (")[0] for problem in problems] == [begins] * refused
        given = HostSettings(data_dir=full, weights=full)
        assert not TrainingSuite().host_problems(config("standard", given, **asked), here=True)

    def test_a_search_is_on_no_hosts_of_a_cluster(self) -> None:
        host = HostSettings(data_dir="far/away", weights="far/away", engine_user="nobody")
        problems = list(map(str, AutoMLSuite().host_problems(config("standard", host), here=False)))
        assert [problem.partition(":")[0] for problem in problems] == ["--engine-user", "--launcher"]
        assert problems[1].endswith("devices, or by --launcher ray: remove any other, --container and --cluster")
