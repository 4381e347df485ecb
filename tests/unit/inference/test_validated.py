"""What a run that validates nothing itself may rely on, each thing missing or other by itself."""

from __future__ import annotations

from typing import Any

import pytest

from proofmark.errors import UsageError
from proofmark.inference.outcome.record import Score, Validated
from proofmark.inference.outcome.validated import held_to, unvalidated, validated_by
from proofmark.record.parts import Identity
from proofmark.record.policy import default_policy
from proofmark.verdict.ranking import obstacles
from tests.unit.records import accuracy, record, steps

ONNX, CASE, DATA = "a" * 64, "b" * 64, Identity(name="digits", sha256="d" * 64)
OTHER = Score(metric="top5", target=None, framework_fp32=0.99)
UNMEASURED = Score(metric="top9", target=None)
EARLIER: dict[str, Any] = {"onnx": ONNX, "case_hash": CASE, "accuracy": accuracy(others=(OTHER, UNMEASURED))}


def relied_on(**changes: Any) -> Validated:
    found = validated_by(record(**EARLIER), "20260301-120000", "c" * 64)
    return found.model_copy(update=changes)


def run(validated: Validated | None, **changes: Any) -> Any:
    return record(**{"framework": None, "validated": validated, "onnx": ONNX, "case_hash": CASE, **changes})


def test_what_is_relied_on() -> None:
    earlier = record(**EARLIER)
    assert relied_on() == Validated(
        session="20260301-120000",
        record_sha256="c" * 64,
        suite="inference",
        case="net",
        profile="embedded",
        case_hash=CASE,
        vendor="acme",
        started=earlier.started,
        framework_fp32={"top1": 0.98, "top5": 0.99},
        dataset_sha256="d" * 64,
        weights=Identity(name="weights", sha256="e" * 64),
        onnx_sha256=ONNX,
    )


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"accuracy": accuracy(framework_fp32=None)}, "its framework was not validated"),
        ({"dataset": None}, "its framework was not validated"),
        ({"weights": None}, "its framework was not validated"),
        ({"onnx": None}, "it has exported no ONNX file"),
        ({"steps": steps(export={"status": "skipped"})}, "it has exported no ONNX file"),
        ({"case_hash": None}, "it does not say of which files of its case its configuration is"),
    ],
)
def test_what_nothing_can_rely_on(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        validated_by(record(**{**EARLIER, **changes}), "20260301-120000", "c" * 64)
    assert str(refused.value) == expected


@pytest.mark.parametrize(
    "differs, changes, wanted",
    [
        ({}, {}, []),
        ({"case": "other"}, {}, ["is of inference/other, profile embedded; this is inference/net, profile embedded"]),
        ({"profile": "standard"}, {"onnx": None}, ["is of inference/net, profile standard; this is inference/net, "]),
        ({"case_hash": "9" * 64}, {}, ["is of the same case with other numbers in its files (case_hash)"]),
        ({"dataset_sha256": "9" * 64}, {}, ["is of another data set"]),
        ({}, {"dataset": None}, ["is of another data set"]),
        ({}, {"onnx": None}, ["vouches for an ONNX file, and this run has read none"]),
        (
            {},
            {"onnx": "9" * 64, "dataset": None},
            [
                "is of another data set",
                "exported another ONNX file: SHA-256 aaaaaaaaaaaa, this run's is 999999999999",
            ],
        ),
    ],
)
def test_whose_model_an_engine_is(differs: dict[str, Any], changes: dict[str, Any], wanted: list[str]) -> None:
    found = unvalidated(run(relied_on(**differs), **changes))
    assert len(found) == len(wanted)
    for line, expected in zip(found, wanted, strict=True):
        assert line.startswith(f"the record given with --validated {expected}")
        assert line.endswith(("profile embedded", expected))
    score = Score(metric="top1", target=0.97, engine=0.98)
    assert held_to(run(relied_on(**differs), **changes), score).framework_fp32 == (None if wanted else 0.98)


def test_what_an_earlier_session_alone_says_is_not_ranked() -> None:
    """One that was made up verifies too: of a network with a third of the operations, for one."""
    (why,) = obstacles(run(relied_on()), default_policy())
    assert "--validated" in why
    assert not [*obstacles(run(None), default_policy())], "that is no PASS"
    assert not [*obstacles(record(validated=relied_on()), default_policy())], "it has validated itself"


def test_a_run_without_anything_to_rely_on_and_one_that_needs_nothing() -> None:
    nothing = "no framework validation: nothing says that the engine's model is the case's"
    assert unvalidated(run(None)) == [nothing] and unvalidated(record()) == []
    assert unvalidated(record(validated=relied_on(case="other"))) == [], "it has validated itself"
    own = Score(metric="top1", target=0.97, framework_fp32=0.5, engine=0.98)
    assert held_to(record(validated=relied_on()), own) == held_to(run(None), own) == own
    assert held_to(run(relied_on()), OTHER.model_copy(update={"framework_fp32": None})).framework_fp32 == 0.99
    assert held_to(run(relied_on()), Score(metric="top7", target=None)).framework_fp32 is None
