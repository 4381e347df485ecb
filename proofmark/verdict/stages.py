"""Stages of a verdict that every suite shares: each gives its complaints about a record, none where all is well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofmark.literal import digits_apart, some
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Contention, Flops, Identity, Monitoring, Utilisation, Verdict, VerdictKind
from proofmark.record.policy import Noise
from proofmark.record.provenance import Chip

Stage = tuple[VerdictKind, Sequence[str]]
"""What a run is judged if there are any complaints, and the complaints, in full sentences."""

_CHECK, _MISSING = "the honesty check '", "' is missing"

MOST_CORES = 16
"""Of those that are named."""

FLOPS_TOLERANCE = 0.05
"""How far the declared FLOPs may be from the counted ones, as a share of the counted."""


def illegalities(record: CaseRecord) -> list[str]:
    """What was wrong with the configuration."""
    return [str(problem) for problem in record.problems]


def parts_left_out(record: CaseRecord) -> list[str]:
    """Say that not all of the case was run."""
    if record.stopped:
        return ["the session was stopped before all of the case's tests (-x, --maxfail)"]
    return ["only some tests of the case were selected"] if record.partial else []


def damaged_lines(record: CaseRecord, log: str) -> list[str]:
    """How many lines of the run's log are no events, and which."""
    if not record.corrupt_lines:
        return []
    finding = f"{record.corrupt_lines} lines of {log} are damaged"
    return [f"{finding}: {'; '.join(record.damaged)}" if record.damaged else finding]


def changed_log(record: CaseRecord) -> list[str]:
    """Say that somebody else wrote into the run's log."""
    return [f"the event log was changed by somebody else than the session: {what}" for what in record.changed]


def missing_identity(dataset: Identity | None, weights: Identity | None, weights_loaded: bool) -> list[str]:
    """What makes a figure one of this task and no other: its data, and its weights where any were loaded."""
    reasons = [] if dataset else ["nothing identifies the data set"]
    return reasons + (["nothing identifies the weights"] if weights_loaded and not weights else [])


def missing_utilisation(flops: Flops | None, utilisation: Utilisation, chip: Chip) -> list[str]:
    """Figures that there must be where a model was measured: its counted FLOPs, and MFU where the peak is known."""
    reasons = [] if flops and flops.counted is not None else ["the FLOPs were not counted"]
    if utilisation.mfu is None and chip.peak is not None:
        reasons.append("MFU is missing, though the chip's peak is known")
    return reasons


def wrong_flops(flops: Flops | None, item: str) -> list[str]:
    """Declared FLOPs that are not those of the model, by more than FLOPS_TOLERANCE."""
    if flops is None or flops.counted is None:
        return []
    if flops.counted > 0 and abs(flops.declared - flops.counted) <= FLOPS_TOLERANCE * flops.counted:
        return []
    finding = f"the case declares {flops.declared:.4g} FLOPs per {item}, counted were {flops.counted:.4g}"
    return [f"{finding}: more than {FLOPS_TOLERANCE:.0%} of the counted apart"]


def impossible_utilisation(utilisation: Utilisation, chip: Chip) -> list[str]:
    """An MFU that no device reaches: not above 0, above its peak, or above what was ever measured on it."""
    mfu, peak = utilisation.mfu, chip.peak
    if mfu is None:
        return []
    if mfu <= 0:
        return [f"MFU {mfu:.1%} is not above 0: the FLOPs, the peak or the clock are wrong"]
    if mfu > 1:
        digits = digits_apart(mfu, 1.0, 1, "%")
        return [f"MFU {mfu:.{digits}%} is above 100 %: wrong FLOPs, a wrong peak, or a device that was not waited for"]
    if peak and peak.achievable is not None and mfu * peak.flops_per_second > peak.achievable:
        reached = f"{mfu * peak.flops_per_second:.4g} FLOP/s"
        return [f"MFU {mfu:.1%}, {reached}, is above the chip's measured achievable {peak.achievable:.4g} FLOP/s"]
    return []


def beyond_its_cores(seen: Contention | None, whose: str = "") -> list[str]:
    """That a process which the session started may use cores that the session may not: it has left them itself."""
    if seen is None or not seen.beyond:
        return []
    cores = some([str(core) for core in seen.beyond], MOST_CORES)
    return [
        f"{whose}a process of this run could use cores that the session may not ({cores}): its speed may be that of "
        "more cores than the record names, and what others took of those is not known; the vendor's code must leave "
        "its threads on the cores that it starts with"
    ]


def missing_checks(names: Iterable[str], whose: str = "") -> list[str]:
    """Honesty checks that there must be, and are not."""
    return [f"{whose}{_CHECK}{name}{_MISSING}" for name in sorted(names)]


def lacks_checks_alone(verdict: Verdict) -> bool:
    """Whether all that it complains of are `missing_checks`, which a record of an older schema could not have."""
    return bool(verdict.reasons) and all(_CHECK in each and each.endswith(_MISSING) for each in verdict.reasons)


def disturbances(seen: Monitoring | None, noise: Noise) -> list[str]:
    """What made a device another one than the chip alone, while it was timed, for longer than a policy allows."""
    if seen is None:
        return []
    reasons = []
    share = seen.throttled_share
    if seen.throttled and (share is None or share > noise.throttled):
        part = "" if share is None else f" in {share:.3g} of the readings"
        reasons.append(f"a device was throttled while it was timed{part}: {', '.join(seen.throttled)}")
    if seen.foreign_processes:
        who = ", ".join(map(str, seen.foreign_processes))
        reasons.append(f"other processes were on a device while it was timed: {who}")
    return reasons
