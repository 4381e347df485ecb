"""Is the engine that is timed the one that answers? Probes that an engine cannot tell from the timed work.

One more, shorter round than asked is run, at a place that the engine cannot know. It mixes batches of the data, *new*
ones, spliced from two samples each, which nobody can have seen, and repeats of a new one that was just answered, all
under the same clock. What follows from them:

- a new batch's answer agrees, row by row, with the framework's answer to the same inputs;
- new batches are not slower than the data's (no memorised data), repeats not faster (no cached answers);
- an answer stays what it was when the device was said to be idle (nobody returned early), and copying it to the host
  takes no longer the first time than the second;
- inputs are left as they were.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.pace import GRACE, PACE, Paces
from harness.probes import Call, Synchronize, chains, pairs, timed_call

if TYPE_CHECKING:
    import torch

    from harness.case import Loader
    from harness.loop import Compute

KEPT = 10
"""Earlier calls whose answers are held to be looked at again at the end."""

ROWS = 16
"""Rows of a new batch, chosen by chance, that the framework answers too."""

HIDDEN = 0.1
"""Share of the compute time by which the first copy of an answer may be slower than the second."""

TIMED_PACE = 1.25
"""By how much the fastest call with new inputs may be slower than a middling one of the fastest timed round."""

TOLERANCE = {"fp32": 0.0002, "tf32": 0.005, "fp16": 0.02, "bf16": 0.1, "int8": 0.7}
"""Largest distance of a row's answer from the framework's, in units of the spread between samples.

Worst rows of the embedded cases: engines in float32 up to 7e-7, inputs cut to 15 bits of mantissa 5e-5, float16 weights
alone 3e-4 to 1.4e-3, tf32 5e-4 to 1.5e-3, float16 7e-4 to 2.3e-3, bfloat16 7e-3 to 3e-2, int8 (one scale per tensor)
1.8e-2 to 7.3e-2, float8 (e4m3) 8e-2 to 1.8e-1. float16 within tf32's bound cannot be told from it: its mantissa is as
long.
"""


@dataclass(frozen=True)
class Check:
    """One check of one engine: its figure, the bound that it is held to, and what a failure means."""

    name: str
    passed: bool
    figure: float | None
    bound: float | None
    meaning: str


def probe(
    loader: Loader,
    engine: Compute,
    synchronize: Synchronize,
    reference: Compute | None,
    precision: str,
    remainder: int = 0,
) -> tuple[list[Check], float]:
    """Run the honesty round; its checks, and the seconds of its fastest call with new inputs.

    Args:
        loader: the data; batches of its full size are used.
        engine: what is timed.
        synchronize: returns when the device is idle.
        reference: the framework in float32 on the CPU; None without a model, and then an engine is held to
            its own answer to the same rows in another order.
        precision: the tested one; it decides how far answers may be apart.
        remainder: size of the data's last short batch, which is answered anew too; 0 if there is none.
    """
    calls: list[Call] = []
    fastest = float("inf")
    memorised, cached = Paces(), Paces()
    chance = random.SystemRandom()
    for data, other in pairs(loader):
        known, new = chains(data, other, chance)
        order = [("known", known), ("new", new)]
        chance.shuffle(order)
        ran = {kind: [timed_call(kind, engine, inputs, synchronize) for inputs in chain] for kind, chain in order}
        calls = [*calls[-KEPT:], *ran["known"], *ran["new"]]
        fastest = min(fastest, *(call.seconds for call in ran["new"][:2]))
        (_, settled), (_, first, again) = ran["known"], ran["new"]
        memorised.add(first.seconds, settled.seconds)
        cached.add(first.seconds, again.seconds)
        if memorised.clear and cached.clear:
            break
    if remainder:
        calls.append(timed_call("new", engine, [tensor[-remainder:].clone() for tensor in new[0]], synchronize))
    time.sleep(min(0.5, 3 * statistics.median(call.seconds for call in calls)))
    checks = [
        _pace_check("no memorised data", memorised, "inputs that it has not seen take it longer than the data set's"),
        _pace_check("no cached answers", cached, "an input that it has just answered takes it less time"),
        _agreement(calls, reference, engine, synchronize, precision),
        _settled(calls),
        _copied(calls),
        _unchanged(calls),
    ]
    return checks, fastest


def timed_pace(fastest_new: float, timed: float) -> Check:
    """Hold the batches of the timed rounds against the fastest call with new inputs, both in seconds.

    An engine that finds out when it is timed is faster then.
    """
    ratio = fastest_new / (timed + GRACE)
    meaning = "the same work takes it longer outside the timed rounds"
    return Check("no faster when timed", ratio <= TIMED_PACE, ratio, TIMED_PACE, meaning)


def recognition(loader: Loader, engine: Compute, other: Compute, synchronize: Synchronize) -> list[Check]:
    """Compare an engine with the one that the same compiler made of the model with other weights.

    Other weights must change the answers, and must not change the speed.
    """
    paces = Paces()
    closest = float("inf")
    chance = random.SystemRandom()
    for data, previous in pairs(loader):
        seconds, answers = {}, {}
        engines = [("known", engine), ("other", other)]
        chance.shuffle(engines)
        for name, compute in engines:
            timed_call(name, compute, previous, synchronize)
            call = timed_call(name, compute, data, synchronize)
            seconds[name], answers[name] = call.seconds, call.snapshot
        paces.add(seconds["other"], seconds["known"])
        closest = min(closest, *map(distance, answers["other"], answers["known"]))
        if paces.clear:
            break
    return [
        _pace_check("knows no weights", paces, "the same model with other weights takes it longer"),
        Check("uses its weights", closest > 0, closest, 0.0, "other weights leave its answers as they were"),
    ]


def _pace_check(name: str, paces: Paces, meaning: str) -> Check:
    return Check(name, not paces.accused, paces.median, PACE, meaning)


def _agreement(
    calls: list[Call], reference: Compute | None, engine: Compute, synchronize: Synchronize, precision: str
) -> Check:
    """The largest distance of any row of a new batch, in units of the spread between samples."""
    worst = 0.0
    for call in calls:
        if call.kind != "new":
            continue
        count = len(call.before[0])
        rows = random.SystemRandom().sample(range(count), min(ROWS, count))
        if reference is not None:
            expected, _ = reference([tensor[rows] for tensor in call.before])
        else:
            outputs, _ = engine([tensor.flip(0) for tensor in call.before])
            synchronize()
            expected = [output.detach().cpu().flip(0)[rows] for output in outputs]
        for answer, wanted in zip(call.snapshot, expected, strict=True):
            worst = max(worst, distance(answer[rows], wanted))
    whose = "the framework's answer to the same inputs" if reference else "its own answer to them in another order"
    bound = TOLERANCE[precision]
    return Check("answers new inputs", worst <= bound, worst, bound, f"answers to new inputs differ from {whose}")


def distance(answer: torch.Tensor, wanted: torch.Tensor) -> float:
    """How far the worst row of `answer` is from `wanted`, in units of how far rows of `wanted` are from their mean.

    Infinite for another shape or for what is not a number.
    """
    import torch

    if answer.shape != wanted.shape:
        return float("inf")
    got, want = (tensor.detach().cpu().to(torch.float64).reshape(len(tensor), -1) for tensor in (answer, wanted))
    centre = want.mean(0) if len(want) > 1 else torch.zeros_like(want[0])
    spread = float((want - centre).norm(dim=1).mean())
    worst = float((got - want).norm(dim=1).max())
    if worst == 0:
        return 0.0
    return worst / spread if spread > 0 and worst == worst else float("inf")


def _settled(calls: list[Call]) -> Check:
    """Answers now, compared with what they were when the device was said to be idle."""
    changed = sum(
        not _same(output.detach().cpu(), then)
        for call in calls
        for output, then in zip(call.outputs, call.snapshot, strict=True)
    )
    meaning = "an answer changed after the device was said to be idle: it was not waited for"
    return Check("waits for its device", changed == 0, float(changed), 0.0, meaning)


def _copied(calls: list[Call]) -> Check:
    """Waiting that hides in the first copy of an answer to the host, as a share of the compute time.

    Without the worst call: a scheduler may take the core away in the middle of one copy.
    """
    excess = sorted(max(0.0, call.first_copy - call.second_copy) for call in calls)
    hidden = sum(excess[:-1])
    share = hidden / sum(call.seconds for call in calls)
    passed = share <= HIDDEN or hidden / len(calls) < GRACE
    return Check(
        "no work after the clock",
        passed,
        share,
        HIDDEN,
        "work goes on in the first copy of an answer, outside the clock",
    )


def _unchanged(calls: list[Call]) -> Check:
    changed = sum(not _same(now, then) for call in calls for now, then in zip(call.inputs, call.before, strict=True))
    return Check("leaves its inputs alone", changed == 0, float(changed), 0.0, "it wrote into its inputs")


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit, so that NaN equals itself."""
    import torch

    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one.contiguous().reshape(-1).view(torch.uint8), other.contiguous().reshape(-1).view(torch.uint8))
