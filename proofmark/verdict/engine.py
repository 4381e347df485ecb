"""The one verdict engine: stages in order, of which the first with a complaint decides. Pure functions of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from proofmark.record.compared import judge_compared
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.verdict.stages import (
    Stage,
    changed_log,
    damaged_lines,
    illegalities,
    impossible_utilisation,
    missing_identity,
    parts_left_out,
    wrong_flops,
)


def judge(record: CaseRecord, own: Iterable[Stage]) -> Verdict:
    """Judge a run by legality, whose its log is, the suite's `own` stages in their order, and what no run may have.

    The first stage with a complaint decides the kind; all its complaints are reasons. Without any it is a PASS, unless
    its speed was compared with a baseline's and something graver came of that: what the policy lets pass hides nothing
    that it does not. An old record gives the same verdict again.
    """
    alone, beside = _judge_alone(record, own), judge_compared(record.compared, record.policy.gate_width)
    if not alone.kind.shows_speed:
        return alone  # the speed of a run that is not valid is compared with nobody's
    return max(alone, beside, key=lambda verdict: (_blocks(verdict.kind, record), verdict.kind.exit_code))


def _blocks(kind: VerdictKind, record: CaseRecord) -> bool:
    """Whether it decides a session's exit code."""
    return kind is not VerdictKind.PASS and not record.policy.lets_pass(kind)


def _judge_alone(record: CaseRecord, own: Iterable[Stage]) -> Verdict:
    """Without what its speed is compared with."""
    first = [(VerdictKind.FAIL_LEGALITY, illegalities(record)), (VerdictKind.ERROR, changed_log(record))]
    for kind, reasons in chain(first, own, _guards(record)):
        if reasons:
            return _as_expected(Verdict(kind=kind, reasons=tuple(reasons)), record)
    return Verdict(kind=VerdictKind.PASS)


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """One exit code for a session: the gravest verdict's, without UNSUPPORTED that the vendor lists, beside a PASS."""
    passed = any(verdict.kind is VerdictKind.PASS for verdict in verdicts)
    return max((verdict.kind.exit_code for verdict in verdicts if not (passed and verdict.expected)), default=0)


def _guards(record: CaseRecord) -> Iterator[Stage]:
    """What a suite that forgot a stage is caught by."""
    yield VerdictKind.ERROR, [f"interrupted in {record.interrupted}"] if record.interrupted else []
    yield VerdictKind.INSUFFICIENT, parts_left_out(record)
    yield VerdictKind.ERROR, damaged_lines(record, "the event log")
    yield VerdictKind.ERROR, missing_identity(record.dataset, None, weights_loaded=False)
    yield VerdictKind.ERROR, wrong_flops(record.flops, record.item)
    yield VerdictKind.ERROR, impossible_utilisation(record.utilisation, record.chip)


def _as_expected(verdict: Verdict, record: CaseRecord) -> Verdict:
    """An UNSUPPORTED that the vendor's own file lists says so."""
    if verdict.kind is not VerdictKind.UNSUPPORTED or record.expected_unsupported is None:
        return verdict
    expectation = f"the vendor expects it: {record.expected_unsupported}"
    return verdict.model_copy(update={"reasons": (*verdict.reasons, expectation), "expected": True})
