"""A run's rounds against those that an earlier session recorded: nothing is interleaved, and so little is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from proofmark.gate.decision import Estimate, StoppingRule, ratio_of
from proofmark.record.compared import Compared, Ratio
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import VerdictKind
from proofmark.rules.case_file import NOISE
from proofmark.suite import Suite
from proofmark.verdict.engine import judge


def against(begun: Compared, base: CaseRecord, head: CaseRecord, suite: Suite, rule: StoppingRule) -> Compared:
    """Each metric of both records, by their spreads."""
    wrong = [f"the {name} has no speed" for name, record in (("base", base), ("head", head)) if not _sound(record)]
    alone = judge(base.model_copy(update={"compared": None}), suite.stages(base))
    if (
        not wrong and alone.kind is VerdictKind.AMBIGUOUS
    ):  # one that could only not be told from another's is a baseline
        wrong = [f"the base is AMBIGUOUS by itself: {'; '.join(alone.reasons)}"]
    if wrong:
        return begun.model_copy(update={"problems": tuple(wrong)})
    figures = [{figure.key: figure for figure in record.figures} for record in (base, head)]
    ratios, problems = [], []
    for metric in suite.compared:
        values = [found.get(metric) for found in figures]
        rates = [(each.value, each.spread) for each in values if each and isinstance(each.value, int | float)]
        if len(rates) < 2 or not all(value > 0 for value, _ in rates):
            problems.append(f"{metric} is missing on a side")
            continue
        ratios.append(_ratio(metric, rates, float(head.config.get("max_noise", NOISE)), rule))
    differences = (*begun.differences, *([] if problems else _disturbed(head)))
    return begun.model_copy(update={"ratios": tuple(ratios), "problems": tuple(problems), "differences": differences})


def _disturbed(head: CaseRecord) -> list[str]:
    """Why a session's own run says little of how fast it is, as nothing disturbed the record meanwhile. Compared it is
    all the same: scatter that is its own would hide that it is slower."""
    if head.verdict is None or head.verdict.kind is not VerdictKind.AMBIGUOUS:
        return []
    return [f"this session's run is AMBIGUOUS by itself: {'; '.join(head.verdict.reasons)}"]


def _sound(record: CaseRecord) -> bool:
    return record.verdict is not None and record.verdict.kind.shows_speed


def _ratio(metric: str, rates: Sequence[tuple[float, float | None]], noise: float, rule: StoppingRule) -> Ratio:
    """The logarithm of the ratio, as far as two sessions can tell.

    A session's rounds say how far they scatter, and nothing of how far sessions do: what a case bears (`max_noise`) is
    added on both sides to twice the noise of the rounds. That is a margin by convention, of no known probability.
    """
    (base, before), (head, now) = rates
    value = math.log(head) - math.log(base)
    margin = noise + 2 * math.hypot((before or 0.0) / base, (now or 0.0) / head)
    return ratio_of(metric, Estimate(value, value - margin, value + margin), rule.width, 0)
