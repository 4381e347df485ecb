"""Measuring one target, the framework or the engine: warm-up, timed rounds, a honesty round; anew if disturbed."""

from __future__ import annotations

import random

from proofmark.inference.outcome.record import Round
from proofmark.inference.outcome.rounds import core_of
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.honesty_round import HonestyRound
from proofmark.inference.timing.timing import Timing
from proofmark.measuring.agreement import Answers
from proofmark.measuring.honesty import LOOKED_AT
from proofmark.measuring.window import Apart, Compute
from proofmark.process.memory import peak_resident_bytes, reset_peak
from proofmark.record.policy import default_policy
from proofmark.rules.case_file import NOISE
from proofmark.verdict.noise import noise_of

REPETITIONS = 2
"""How often a measurement that was disturbed is made anew. The host of a virtual machine may put two of its processors
on one core for a second or two, unseen from within: of a small model every third measurement had a round at two thirds
of its speed."""


def measure(
    bench: Bench,
    name: str,
    compute: Compute,
    rounds: int,
    *,
    ranked: bool = False,
    probed: bool = False,
    reference: Compute | None = None,
    precision: str | None = None,
) -> Timing:
    """Measure `compute`, called `name` in the log.

    Args:
        bench: what it is measured with.
        rounds: timed rounds, each of as many passes over the data as last `min_seconds` of compute.
        ranked: whether a measurement that was disturbed is repeated.
        probed: whether a honesty round is slipped in.
        reference: what its answers are compared with, the framework in float32 on the processor; None where there is
            no model, or nothing to compare: those of a target that isn't probed are looked at only with one.
        precision: that it computes in; None for the tested one.

    Returns:
        What timed it, with the fastest of the rounds that count.

    Raises:
        StepError: an answer that is none, or a round that lost samples.
    """
    compute.reset_peak() if isinstance(compute, Apart) else reset_peak()
    bench.accused = False
    timing = Timing(bench, name, compute)
    timing.warm_up()
    for bench.attempt in range(REPETITIONS + 1):
        # all of it anew, the honesty round too: it is held against rounds of the same minute
        timing.fastest, timing.answers = float("inf"), Answers(LOOKED_AT) if probed or reference else None
        honesty = HonestyRound(bench, name, compute, reference, precision)
        noise = _rounds(bench, timing, rounds, honesty if probed else None)
        if not noise or not ranked or bench.accused or bench.attempt == REPETITIONS:
            break
        bench.log.write("repeated", of=name, what=noise)
        bench.report(note=f"measuring again: {'; '.join(noise)}")
    timing.time_alone()
    if probed:
        honesty.hold_pace(timing)
    if timing.answers is not None:
        honesty.hold_answers_timed(timing.answers)
    used, total = _device_memory(compute)
    peak = compute.peak_resident_bytes() if isinstance(compute, Apart) else peak_resident_bytes()
    bench.log.write("memory", of=name, host_peak_bytes=peak, device_peak_bytes=used, device_total_bytes=total)
    return timing


def _rounds(bench: Bench, timing: Timing, rounds: int, honesty: HonestyRound | None) -> list[str]:
    """All timed rounds, and the honesty round at a place among them that nobody can know; what disturbed them."""
    secret = random.SystemRandom().randint(1, rounds + 1) if honesty else 0
    timed: list[Round] = []
    for number in range(1, rounds + 1):
        if honesty and number == secret:
            honesty.probe()
        timing.load()
        timed.append(timing.time(number, rounds))
    if honesty and secret == rounds + 1:
        honesty.probe()
    if not all(each.core_seconds > 0 for each in timed):
        return []
    return noise_of(timed, core_of(timed), bench.config.get("max_noise", NOISE), default_policy().noise)


def _device_memory(compute: Compute) -> tuple[int | None, int | None]:
    """What the vendor reads, where it can be true: bytes, and no more used than there are."""
    used, total = compute.device_memory() if isinstance(compute, Apart) else (None, None)
    used = used if used is not None and 0 <= used < 2**63 else None
    total = total if total is not None and 0 < total < 2**63 else None
    return (None if used and total and used > total else used), total
