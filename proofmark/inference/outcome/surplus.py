"""An upper bound of a metric: what is better than the framework by more than rounding explains was not computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from proofmark.inference.outcome.record import RunRecord, Score
from proofmark.inference.outcome.validated import held_to

FLIPS = 0.05
"""The share of samples that rounding may make right where they were wrong, or wrong where they were right.

Seen in the embedded cases: of images none of 355 by bfloat16 or weights of int8 (one scale per tensor); of 2,805 hidden
words 0.2 % by bfloat16, 0.3 % by weights of int8 and 0.4 % of float8 (e4m3), more of them wrong than right."""

DEVIATIONS = 4
"""Standard deviations of what as many coins would add to a metric, beyond the share that an engine may lose of it."""


def surplus(record: RunRecord) -> list[str]:
    """Reasons why the measured target is better than the framework in float32 by more than chance explains.

    Only for metrics from 0 to 1 that are means: of others it is not known what one sample can gain. A mean may be over
    fewer things than there are samples, as recall is, or over more, which one sample decides together. Where answers
    decide over how many, as of precision, the most count: an engine that answers less isn't allowed more by that.
    """
    items = record.dataset.items if record.dataset else None
    if items is None:
        return []
    rounds = [each for side in (record.framework, record.engine) if side is not None for each in side.rounds]
    # older records don't say: all their metrics were taken for means over samples
    count = min(items, max((items if each.weight is None else each.weight for each in rounds), default=items))
    if not count:
        return []
    scores = (held_to(record, score) for score in record.accuracy.scores if score.target is not None)
    return [reason for score in scores for reason in _beyond(record, score, count)]


def _beyond(record: RunRecord, score: Score, count: float) -> Iterator[str]:
    name, found = ("engine", score.engine) if record.compiler else ("framework", score.framework)
    reference = score.framework_fp32
    if found is None or reference is None or not (0 <= found <= 1 and 0 <= reference <= 1):
        return
    gained = found - reference if score.better == "higher" else reference - found
    allowed = (1 - record.policy.accuracy_ratio) * reference + DEVIATIONS * math.sqrt(FLIPS / max(1, count))
    if gained > allowed:
        yield (
            f"{name} {score.metric} {found:.5f} is better than the fp32 framework's {reference:.5f} by more than"
            f" rounding makes of a mean over {count:,.6g} ({allowed:.5f}): it knows what it is scored by"
        )
