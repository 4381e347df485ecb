"""The four switches, in all sixteen combinations."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from proofmark.inference.outcome.record import STEPS
from tests.e2e.conftest import House, Ran

WORK = STEPS[1:-1]

# (compiler, no_validation, exist_onnx_path, exist_compiler_path) -> the steps that are skipped; the rest are done
LEGAL = {
    (True, False, False, False): set(),
    (True, False, True, False): {"export"},
    (True, False, False, True): {"export", "compile"},
    (True, False, True, True): {"export", "compile"},
    (True, True, True, False): {"framework_validation", "export"},
    (True, True, True, True): {"framework_validation", "export", "compile"},
    (False, False, False, False): {"export", "compile", "engine_inference"},
    (False, False, True, False): {"export", "compile", "engine_inference"},
    (False, False, False, True): {"export", "compile", "engine_inference"},
    (False, False, True, True): {"export", "compile", "engine_inference"},
}
ALL = list(itertools.product([True, False], repeat=4))
IMPOSSIBLE = [switches for switches in ALL if switches not in LEGAL]


def named(switches: tuple[bool, ...]) -> str:
    """A case's name for a combination: c for a compiler, n, o and e for the other three."""
    return "s" + "".join(letter if on else "x" for letter, on in zip("cnoe", switches, strict=True))


@dataclass(frozen=True)
class Combinations:
    """A session that made the files, one over all combinations that uses them, and one that audits besides."""

    made: Ran
    ran: Ran
    audited: Ran


@pytest.fixture(scope="module")
def combinations(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Combinations:
    house = House(tmp_path_factory.mktemp("switches") / "house", trained)
    made = house.run("--keep-artifacts", "-m", "", vendor="cpu")  # audited too
    assert made.code == 0, made.output
    (compiled,) = made.case_dir().glob("engine-*/model.optimized.onnx")
    files = {
        "exist_onnx_path": str(made.case_dir() / "model.onnx"),
        "exist_compiler_path": str(compiled),
    }
    for switches in ALL:
        compiler, no_validation, onnx, engine = switches
        own: dict[str, Any] = {} if compiler else {"compiler": None}  # these two no vendor may set
        own |= {"no_validation": True} if no_validation else {}
        own |= {key: files[key] for key, on in zip(files, (onnx, engine), strict=True) if on}  # nor files of no driver
        house.add_case(named(switches), vendor="cpu", configurations=own)
    ran = house.run("-k", "not tiny", vendor="cpu")
    return Combinations(made, ran, house.run("-k", "scxox", "-m", "", vendor="cpu"))


@pytest.mark.parametrize("switches", LEGAL, ids=named)
def test_legal(combinations: Combinations, switches: tuple[bool, ...]) -> None:
    ran, case = combinations.ran, named(switches)
    expected = "INSUFFICIENT" if switches[1] else "PASS"  # without a reference nothing says whose model it is
    assert ran.verdict(case)[0] == expected
    skipped = {step for step, status in ran.steps(case).items() if status == "skipped"}
    assert skipped == LEGAL[switches]
    assert {status for step, status in ran.steps(case).items() if step not in skipped} == {"done"}
    record = ran.record(case)
    compiler, no_validation = switches[:2]
    assert (record.engine is not None) == compiler
    assert (record.framework is not None) == (record.weights is not None) == (not no_validation)
    assert record.measured() is not None
    assert (record.accuracy.engine == 1.0) if compiler else (record.accuracy.framework == 1.0)


@pytest.mark.parametrize("switches", IMPOSSIBLE, ids=named)
def test_impossible_before_any_work(combinations: Combinations, switches: tuple[bool, ...]) -> None:
    case = named(switches)
    kind, reasons = combinations.ran.verdict(case)
    assert kind == "FAIL_LEGALITY" and "no_validation" in reasons
    steps = combinations.ran.steps(case)
    assert steps["init"] == "failed"
    assert {steps[name] for name in WORK} == {"not_reached"}
    left = {path.name for path in combinations.ran.case_dir(case).iterdir()}
    assert left == {"events.jsonl", "record.json"}, "no process was started, so it has no worker.log"


def test_they_are_sixteen_and_the_exit_code_is_that_of_legality(combinations: Combinations) -> None:
    assert len(LEGAL) + len(IMPOSSIBLE) == 16
    assert combinations.ran.code == 16, combinations.ran.output


def test_large_files_are_kept_on_request_only(combinations: Combinations) -> None:
    assert list(combinations.made.case_dir().glob("engine-*/model.optimized.onnx"))
    assert not list(combinations.ran.run_dir.rglob("*.onnx"))


def test_an_audit_compiles_a_second_time_and_leaves_the_engine_that_was_measured(combinations: Combinations) -> None:
    made = combinations.made
    checks = {check.name: check.passed for check in made.record().checks}
    assert checks["uses its weights"] and checks["knows no weights"]
    (engine,), (other,) = (made.case_dir().glob(f"engine-*/{place}model.optimized.onnx") for place in ("", "audit/"))
    points = np.eye(8, dtype=np.float32)
    one, two, exported = (
        onnxruntime.InferenceSession(path).run(None, {"points": points})[0]
        for path in (engine, other, made.case_dir() / "model.onnx")
    )
    assert np.allclose(one, exported, atol=1e-5) and not np.allclose(two, exported, atol=1e-3)


def test_an_engine_of_a_given_file_is_not_audited(combinations: Combinations) -> None:
    audited = combinations.audited.record("scxox")
    assert combinations.audited.verdict("scxox") == ("PASS", "")
    assert audited.audit is not None and audited.audit.status == "skipped"
    assert "knows no weights" not in {check.name for check in audited.checks}


def test_a_switch_without_effect_is_told(combinations: Combinations) -> None:
    expected = "WARNING exist_onnx_path has no effect while compiler is null"
    assert f"sxxox: {expected}" in combinations.ran.output
    assert f"scxox: {expected}" not in combinations.ran.output
