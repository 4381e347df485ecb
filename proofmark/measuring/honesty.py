"""Is the engine that is timed the one that answers? Probes that an engine cannot tell from the timed work.

One more, shorter round than asked is run, at a place that the engine cannot know. It mixes batches of the data, *new*
ones, spliced from two samples each, which nobody can have seen, and repeats of a new one that was just answered, all
under the same clock. What follows from them:

- a new batch's answer agrees, row by row, with the framework's answer to the same inputs;
- new batches are not slower than the data's (no memorised data), repeats not faster (no cached answers);
- an answer stays what it was when the clock was stopped (nobody returned early);
- inputs are left as they were.

Every call's answers are looked at, those whose pace counts among them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from proofmark.measuring.agreement import AT_ONCE, Answers, distance
from proofmark.measuring.audible_loader import sign_of
from proofmark.measuring.names import SaysHowNear
from proofmark.measuring.pace import GRACE, PACE, Paces
from proofmark.measuring.probes import Call, chains, full_batches, pairs, timed_call
from proofmark.measuring.window import Compute, Synchronize, run_window
from proofmark.record.parts import Check

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader

TIMED_PACE = 1.25
"""By how much a pass at the pace of new inputs may take longer than the fastest timed one."""

LOOKED_AT = 96
"""Rows of a measurement's timed answers that are compared. Wrong in one of twenty, an engine is seen in 99 of 100."""

TOLERANCE = {"fp32": 0.0002, "tf32": 0.005, "fp16": 0.02, "bf16": 0.1, "int8": 0.2}
"""Largest distance of a row's answer from the framework's, in units of the spread between samples.

Worst rows of the embedded cases: engines in float32 up to 7e-7, inputs cut to 15 bits of mantissa 5e-5, float16 weights
alone 3e-4 to 1.4e-3, tf32 5e-4 to 1.5e-3, float16 7e-4 to 4.1e-3, bfloat16 7e-3 to 3.2e-2, int8 (one scale per tensor)
1.8e-2 to 7.3e-2, float8 (e4m3) 8e-2 to 1.8e-1. float16 within tf32's bound cannot be told from it: its mantissa is as
long.
"""


def probe(
    loader: Loader,
    engine: Compute,
    synchronize: Synchronize,
    reference: Compute | None,
    precision: str,
    remainder: int = 0,
) -> tuple[list[Check], float, float]:
    """Run the honesty round; its checks, and the seconds that a full batch and the short one take at its pace.

    Args:
        loader: the data; batches of its full size are used.
        engine: what is timed.
        synchronize: returns when the device is idle.
        reference: the framework in float32 on the CPU; None without a model, and then an engine is held to
            its own answer to the same rows in other company.
        precision: the tested one; it decides how far answers may be apart.
        remainder: size of the data's last short batch, which is answered anew too; 0 if there is none.
    """
    answers, memorised, cached = Answers(), Paces(), Paces()
    full, new = _full_batches(loader, engine, synchronize, answers, memorised, cached)
    last = [[tensor[-remainder:].clone() for tensor in inputs] for inputs in new[:2]] if remainder else []
    short = _calls(engine, last, synchronize, sign_of(loader))
    answers.hold(short)
    time.sleep(min(0.5, 3 * statistics.median(full)))
    answers.finish()
    checks = [
        _pace_check("no memorised data", memorised, "inputs that it has not seen take it longer than the data set's"),
        _pace_check("no cached answers", cached, "an input that it has just answered takes it less time"),
        _agreement(answers, reference, engine, synchronize, precision, len(new[0][0]), sign_of(loader)),
        _none(
            "waits for its device",
            answers.changed,
            "an answer changed after the device was said to be idle: it was not waited for",
        ),
        _none("leaves its inputs alone", answers.written, "it wrote into its inputs"),
    ]
    return checks, _brisk(full), _brisk([call.seconds for call in short])


def _full_batches(
    loader: Loader, engine: Compute, synchronize: Synchronize, answers: Answers, memorised: Paces, cached: Paces
) -> tuple[list[float], list[list[torch.Tensor]]]:
    """Ask for known and for new batches until their paces are clear: what new ones took, and some of the last.

    Calls are compared that stand at the same place of either chain, and which chain is first is a coin's: an engine
    that makes no difference has times that could as well have changed places, whatever the machine did to them.
    """
    full, sign = list[float](), sign_of(loader)
    chance = random.SystemRandom()
    for data, other in pairs(loader, chance):
        known, new = chains(data, other, chance)
        order = [("known", known), ("new", new)]
        chance.shuffle(order)
        ran = {kind: _calls(engine, chain, synchronize, sign) for kind, chain in order}
        answers.hold([*ran["known"], *ran["new"]])
        (_, settled, once), (begun, first, again) = ran["known"], ran["new"]
        full += [call.seconds for call in (begun, first, once)]
        memorised.add(first.seconds, settled.seconds)
        cached.add(once.seconds, again.seconds)
        if memorised.clear and cached.clear:
            break
    return full, new


def _calls(
    engine: Compute, chain: Sequence[list[torch.Tensor]], synchronize: Synchronize, sign: Callable[[], None]
) -> list[Call]:
    """Call an engine with one batch after another; with each comes a sign, after the clock."""
    calls = []
    for inputs in chain:
        calls.append(timed_call(engine, inputs, synchronize))
        sign()
    return calls


def _brisk(seconds: list[float]) -> float:
    """What a quarter of the calls took at most: so few are not made quick by answering wrongly; 0 without any."""
    return sorted(seconds)[len(seconds) // 4] if seconds else 0.0


def timed_answers(
    answers: Answers,
    reference: Compute | None,
    engine: Compute,
    synchronize: Synchronize,
    precision: str,
    loader: Loader,
) -> Check:
    """Hold random rows of the timed rounds, of fresh batches and of the data's, against another's answers to them.

    Args:
        answers: those rows.
        reference: the framework in float32 on the CPU; None without a model, as in `probe`.
        loader: the data, which tells how far samples lie apart where the rows are few.
    """
    drawn = full_batches(loader, random.SystemRandom())
    company = [next(drawn)]
    batch = len(company[0][0])
    company += [next(drawn) for _ in range(AT_ONCE // batch)]
    check = _agreement(answers, reference, engine, synchronize, precision, batch, sign_of(loader), company)
    whose = "the framework's to the same inputs" if reference else "its own to them in other company"
    return replace(check, name="answers alike when timed", meaning=f"answers in the timed rounds differ from {whose}")


def timed_pace(new: float, timed: float, batches: int) -> Check:
    """Hold the fastest timed round, by the sum of its batches, against the pace of new inputs.

    An engine that finds out when it is timed, or knows some of the data, is faster then.

    Args:
        new: seconds of a pass over the data, had all of it been new.
        timed: seconds of compute that a pass of the fastest timed round took.
        batches: calls in a pass.
    """
    ratio = new / (timed + batches * GRACE)
    meaning = "the same work takes it longer outside the timed rounds"
    return Check("no faster when timed", ratio <= TIMED_PACE, ratio, TIMED_PACE, meaning)


def recognition(loader: Loader, engine: Compute, other: Compute, synchronize: Synchronize) -> list[Check]:
    """Compare an engine with the one that the same compiler made of the model with other weights.

    Other weights must change the answers, and must not change the speed.
    """
    paces = Paces()
    closest = float("inf")
    chance, sign = random.SystemRandom(), sign_of(loader)
    for data, previous in pairs(loader, chance):
        seconds, answers = {}, {}
        engines = [("known", engine), ("other", other)]
        chance.shuffle(engines)
        for name, compute in engines:
            _, call = _calls(compute, [previous, data], synchronize, sign)
            seconds[name], answers[name] = call.seconds, call.answer
        paces.add(seconds["other"], seconds["known"])
        both_answers = zip(answers["other"], answers["known"], strict=True)
        closest = min(closest, *(distance(*each) for each in both_answers if each[0].is_floating_point()))
        if paces.clear:
            break
    return [
        _pace_check("knows no weights", paces, "the same model with other weights takes it longer"),
        Check("uses its weights", closest > 0, closest, 0.0, "other weights leave its answers as they were"),
    ]


def _pace_check(name: str, paces: Paces, meaning: str) -> Check:
    return Check(name, not paces.accused, paces.mean, PACE, meaning)


def _none(name: str, count: int, meaning: str) -> Check:
    return Check(name, count == 0, float(count), 0.0, meaning)


def _agreement(
    answers: Answers,
    reference: Compute | None,
    engine: Compute,
    synchronize: Synchronize,
    precision: str,
    batch: int,
    sign: Callable[[], None],
    company: Sequence[list[torch.Tensor]] = (),
) -> Check:
    """The largest distance of any row that was looked at, in units of the spread between samples."""

    def ask(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        answer = run_window(reference or engine, inputs, synchronize).answer
        if reference is None:  # else it has told that it takes as long as it takes
            sign()
        return answer

    near = reference.shortfall if isinstance(reference, SaysHowNear) else None
    worst, bound = answers.worst(ask, None if reference else batch, company, near), TOLERANCE[precision]
    whose = "the framework's answer to the same inputs" if reference else "its own answer to them in other company"
    return Check("answers new inputs", worst <= bound, worst, bound, f"answers to new inputs differ from {whose}")
