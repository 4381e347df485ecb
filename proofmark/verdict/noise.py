"""What makes a measurement another one than the device's alone: rounds far apart, and a machine that others use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from proofmark.literal import digits_apart
from proofmark.monitoring.contention import merged
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Contention, Rate
from proofmark.record.policy import Noise
from proofmark.rules.case_file import NOISE

BESIDE, TICKS = 0.25, 0.2
"""Cores that a case's monitor may keep busy, and seconds of a core beside that, since the kernel counts in hundredths:
reading devices once a second takes a hundredth of a core, by a program of their vendor's a tenth."""


def bound_of(record: CaseRecord) -> float:
    """How far the rounds' core throughput may scatter: as the policy says, or else the case."""
    bound = record.policy.noise.scatter
    return float(record.config.get("max_noise", NOISE)) if bound is None else bound


class Timed(Protocol):
    """Something that was timed while the machine was watched."""

    @property
    def whole_seconds(self) -> float:
        """How long it took."""

    @property
    def contention(self) -> Contention | None:
        """What else the machine did."""


def noise_of(rounds: Sequence[Timed], core: Rate, bound: float, noise: Noise) -> list[str]:
    """What speaks against a measurement's core throughput, in sentences; empty if nothing does.

    Args:
        rounds: the timed ones.
        core: their core throughput.
        bound: how far it may scatter, as a share.
        noise: the policy's bounds of what others may take.
    """
    reasons = []
    if core.noise is not None and core.noise > bound:
        reasons.append(f"the core throughput of the {len(rounds)} rounds {scatters(core.noise, bound)}")
    reasons += contention_of(contention_in(rounds), bound, noise)
    return [*reasons, *_clock_changes(rounds)] if reasons else []


def scatters(noise: float, bound: float) -> str:
    """By how much, which is more than its bound."""
    digits = digits_apart(noise, bound, 1, "%")
    return f"scatters by {noise:.{digits}%}, more than {bound:.{digits}%}"


def contention_in(rounds: Sequence[Timed]) -> Contention | None:
    """Over all rounds that say what else the machine did; None where none does."""
    return merged([(timed.whole_seconds, timed.contention) for timed in rounds if timed.contention is not None])


def contention_of(seen: Contention | None, bound: float, noise: Noise) -> list[str]:
    """What others took of the cores while nothing was spare, where it is more than the bounds allow."""
    if seen is None or seen.others <= noise.contended * bound or seen.idle > noise.idle:
        return []
    others = math.ceil(round(1000 * seen.others, 6)) / 1000  # what is more than its bound reads as more
    stolen = f" ({seen.stolen:.1%} the host of this virtual machine)" if seen.stolen > 0.001 else ""
    return [
        f"contention: others took {others:.1%} of the cores{stolen} while it was timed, more than "
        f"{noise.contended * bound:.1%}, and {seen.idle:.1%} were idle"
    ]


def slowed_by_its_monitor(rounds: Sequence[Timed], whose: str) -> list[str]:
    """That a case's monitor took what was timed its cores."""
    seen = contention_in(rounds)
    seconds = sum(timed.whole_seconds for timed in rounds if timed.contention is not None)
    if seen is None or seen.beside * seconds <= BESIDE * seconds + TICKS:
        return []
    return [
        f"the case's monitor kept {seen.beside:.2g} cores busy while the {whose} was timed, more than {BESIDE:g}: the "
        "vendor's monitor must read and sleep, or --monitor-interval be longer"
    ]


def _clock_changes(rounds: Sequence[Timed]) -> list[str]:
    clocks = [timed.contention.clock_mhz for timed in rounds if timed.contention and timed.contention.clock_mhz]
    if not clocks or max(clocks) <= 1.1 * min(clocks):
        return []
    return [f"the processor's clock went from {max(clocks):.0f} to {min(clocks):.0f} MHz"]
