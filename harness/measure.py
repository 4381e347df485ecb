"""Measuring one target, the framework or the engine: warm-up, timed rounds with the loader alone between them, and a
honesty round."""

from __future__ import annotations

import gc
import itertools
import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from harness.contention import ContentionMeter
from harness.errors import StepError
from harness.events import EventLog
from harness.honesty import Check, probe, recognition, timed_pace
from harness.loop import TimedRound, loader_round, timed_round
from harness.memory import peak_resident_bytes, reset_peak
from harness.noise import NOISE, noise_of
from harness.record import Contention, Round
from harness.rounds import core_of, round_of
from harness.stages import Evaluate
from harness.threads import one_thread
from harness.vendor import Vendor
from harness.window import Compute, run_window, share_memory

if TYPE_CHECKING:
    import torch

    from harness.case import Loader
    from harness.config import EffectiveConfig

SECOND_CHANCES = 10
"""Honesty rounds more, over some 10 s, before the timed rounds are doubted."""

APPEALS = 3
"""Times that two timed rounds and a honesty round are run again before an engine is accused of being faster then."""

CROWDED = 0.1
"""Share of the cores that others take from which on nobody can tell why an engine is slow."""

LENGTHENINGS = 8
"""Times that a round which was too short is run again with more passes."""

MOST_LONGER = 1e4
"""By how much a round is lengthened at once: what a first call says of a pass may be far from the truth."""

HELD = 64
"""Batches held in memory to be computed with nothing loaded beside them."""

MARGIN = 1.1
"""By how much a round's passes are meant to last longer than they must."""

Form = list[tuple[tuple[int, ...], bool]]
"""Of each output: its shape without the batch, and whether it is a floating-point one."""


class Measurer:
    """Runs targets over a case's data and writes what comes of it to the event log."""

    def __init__(
        self,
        config: EffectiveConfig,
        loader: Loader,
        first: list[torch.Tensor],
        evaluator: Evaluate,
        vendor: Vendor,
        log: EventLog,
        report: Callable[..., None],
    ) -> None:
        self._config = config
        self._loader = loader
        self._first = first
        self._evaluator = evaluator
        self._vendor = vendor
        self._log = log
        self._report = report
        self._form: Form | None = None
        self._accused = False
        self._fastest_new = self._fastest_timed = float("inf")
        self._attempt = 0
        self._passes = 1
        self._least_seconds = float(config.get("min_seconds", 0.0))
        self._beside = not vendor.runs_on_processor

    def measure(
        self,
        name: str,
        compute: Compute,
        rounds: int,
        *,
        ranked: bool = False,
        probed_with: Compute | None = None,
        probed: bool = False,
    ) -> None:
        """Measure `compute`, called `name` in the log.

        Args:
            rounds: timed rounds, each of as many passes over the data as last `min_seconds` of compute.
            ranked: whether a measurement that was disturbed is repeated once.
            probed: whether a honesty round is slipped in.
            probed_with: what its answers are compared with, the framework in float32, if there is a model.

        Raises:
            StepError: an answer that is none, or a round that lost samples.
        """
        reset_peak()
        self._attempt = 0
        self._warm_up(name, compute)
        noise = self._rounds(name, compute, rounds, probed, probed_with)
        if noise and ranked and not self._accused:
            self._log.write("repeated", of=name, what=noise)
            self._report(note=f"measuring again: {'; '.join(noise)}")
            self._attempt = 1
            self._rounds(name, compute, rounds, probed, probed_with)
        if self._beside or self._config.get("num_workers"):
            self._time_alone(name, compute)
        if probed:
            self._hold(name, [self._timed_pace(name, compute, probed_with)])
        device_peak, device_total = self._device_memory()
        self._log.write(
            "memory",
            of=name,
            host_peak_bytes=peak_resident_bytes(),
            device_peak_bytes=device_peak,
            device_total_bytes=device_total,
        )

    def _rounds(self, name: str, compute: Compute, rounds: int, probed: bool, reference: Compute | None) -> list[str]:
        """All timed rounds and the honesty round among them; what disturbed them."""
        self._fastest_new = self._fastest_timed = float("inf")
        secret = random.SystemRandom().randint(1, rounds + 1) if probed else 0
        timed: list[Round] = []
        for number in range(1, rounds + 1):
            if number == secret:
                self._probe(name, compute, reference)
            self._load(name)
            timed.append(self._time(name, compute, number, rounds))
        if secret == rounds + 1:
            self._probe(name, compute, reference)
        if not all(each.core_seconds > 0 for each in timed):
            return []
        return noise_of(timed, core_of(timed), self._config.get("max_noise", NOISE))

    def _load(self, name: str) -> None:
        """The loader alone, right before a timed round, so that a machine that slows down slows both."""
        with one_thread():
            items, seconds = loader_round(self._loader, self._least_seconds)
        self._log.write("loader", of=name, attempt=self._attempt, items=items, seconds=seconds)

    def _time_alone(self, name: str, compute: Compute) -> None:
        """The core with nothing loaded beside it: what the timed rounds have lost to the loader."""
        batches = [inputs for inputs, _ in itertools.islice(self._loader, HELD)]
        items = 0
        spent = 0
        gc.collect()
        while spent < self._least_seconds * 1e9 or not items:
            for inputs in batches:
                self._report(alive="calls")
                spent += run_window(compute, inputs, self._vendor.synchronize).nanoseconds
                items += len(inputs[0])
        self._log.write("alone", of=name, items_per_second=items / (spent / 1e9) if spent else None)

    def _warm_up(self, name: str, compute: Compute) -> None:
        """Untimed calls at both batch sizes that the data has, so that nothing compiles under the clock."""
        self._report(alive="setup")
        begun = time.perf_counter()
        remainder = len(self._loader.dataset) % len(self._first[0])
        batches = [self._first] * self._config.warmup
        if remainder and len(self._loader) > 1:
            batches += [[tensor[:remainder] for tensor in self._first]] * 2
        previous: list[torch.Tensor] = []
        fastest = float("inf")
        for number, inputs in enumerate(batches, 1):
            window = run_window(compute, inputs, self._vendor.synchronize)
            fastest = min(fastest, window.seconds)
            self._report(phase=f"{name} warm-up", step=number, steps=len(batches), items=0)
            if share_memory(previous, window.outputs):
                self._accuse(name, "answers in the memory of its previous answer")
            previous = window.outputs
            if self._form is None:
                self._form = _form(window.answer)
        self._passes = self._enough(1, fastest * len(self._loader))
        self._log.write("warmup", of=name, batches=len(batches), seconds=time.perf_counter() - begun)

    def _enough(self, passes: int, took: float) -> int:
        """How many passes last `min_seconds` if so many took so long."""
        if took >= self._least_seconds:
            return passes
        return math.ceil(passes * min(MOST_LONGER, MARGIN * self._least_seconds / max(took, 1e-9)))

    def _time(self, name: str, compute: Compute, number: int, rounds: int) -> Round:
        """One timed round. One that turns out too short is run again, and longer; it does not count."""
        for _ in range(LENGTHENINGS):
            meter = ContentionMeter()
            result = self._run(name, compute, number, rounds)
            contention = meter.seen()
            enough = self._enough(self._passes, result.core_ns / 1e9)
            if enough == self._passes:
                break
            self._passes = enough
        self._fastest_timed = min(self._fastest_timed, result.core_ns / 1e9 / result.passes)
        return self._log_round(name, number, result, contention)

    def _run(self, name: str, compute: Compute, number: int, rounds: int) -> TimedRound:
        gc.collect()
        strange: set[str] = set()

        def evaluate(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
            strange.update(self._strange(outputs))
            return self._evaluator(outputs, targets)

        phase, steps = f"{name} round {number}/{rounds}", len(self._loader) * self._passes

        def progress(batches: int, items: int) -> None:
            self._report(phase=phase, step=batches, steps=steps, items=items)
            if batches % self._config.log_freq == 0:
                print(f"{phase}: {batches}/{steps} batches, {items} items", flush=True)

        progress(0, 0)
        result = timed_round(
            self._loader,
            compute,
            self._vendor.synchronize,
            evaluate,
            progress,
            passes=self._passes,
            beside=self._beside,
        )
        self._look_at(name, number, result)
        for what in sorted(strange):
            self._accuse(name, what)
        return result

    def _device_memory(self) -> tuple[int | None, int | None]:
        """What the vendor reads, where it can be true: bytes, and no more used than there are."""
        used, total = self._vendor.memory()
        used = used if type(used) is int and 0 <= used < 2**63 else None
        total = total if type(total) is int and 0 < total < 2**63 else None
        return (None if used and total and used > total else used), total

    def _strange(self, outputs: list[torch.Tensor]) -> list[str]:
        """What is wrong with an answer, apart from its values."""
        told = ["answers NaN" for output in outputs if output.is_floating_point() and output.isnan().any()]
        if self._form is not None and _form(outputs) != self._form:
            told.append(f"answers in another form than expected: {_told(_form(outputs))}, not {_told(self._form)}")
        return told

    def _log_round(self, name: str, number: int, result: TimedRound, contention: Contention) -> Round:
        accuracy = result.accuracy
        fields = {
            "started": result.started,
            "items": result.items,
            "passes": result.passes,
            "whole_ns": result.whole_ns,
            "batch_ns": result.batch_ns,
            "evaluation_ns": result.score.evaluation_ns,
            "accuracy": accuracy if accuracy is not None and math.isfinite(accuracy) else None,
            "contention": contention.model_dump(),
        }
        self._log.write("round", of=name, number=number, attempt=self._attempt, **fields)
        return round_of(fields)

    def _look_at(self, name: str, number: int, result: TimedRound) -> None:
        """What a round shows beside its times, also one that does not count."""
        items = len(self._loader.dataset) * result.passes
        if result.items != items:
            raise StepError(f"round {number} ran {result.items} of {items} samples")
        if result.reused_memory:
            self._accuse(name, "answers in the memory of its previous answer")
        if result.foo_seconds:
            self._accuse(name, f"reports {result.foo_seconds:.6g} s of foo_time in timed round {number}; expected 0.0")

    def _probe(self, name: str, compute: Compute, reference: Compute | None) -> None:
        begun = time.perf_counter()
        self._hold(name, self._probed(compute, reference))
        self._log.write("probed", of=name, seconds=time.perf_counter() - begun)

    def _probed(self, compute: Compute, reference: Compute | None) -> list[Check]:
        remainder = len(self._loader.dataset) % len(self._first[0]) if len(self._loader) > 1 else 0
        checks, a_pass = probe(self._loader, compute, self._vendor.synchronize, reference, self._precision, remainder)
        self._fastest_new = min(self._fastest_new, a_pass)
        return checks

    def _timed_pace(self, name: str, compute: Compute, reference: Compute | None) -> Check:
        """An honesty round may have met a busy machine: before it accuses, it is run again, its answers checked too."""
        meter, check = ContentionMeter(), self._pace()
        for attempt in range(SECOND_CHANCES):
            if check.passed or self._accused:
                break
            time.sleep(0.2 * attempt)
            check = self._probed_again(name, compute, reference)
        if not check.passed and not self._accused:
            check = self._appeal(name, compute, reference, check)
        others = meter.seen().others
        if check.passed or self._accused or others < CROWDED:
            return check
        crowded = f"other processes took {others:.0%} of the cores"
        self._log.write("disturbed", what=f"{crowded} while the {name} took {check.figure:.3g} times as long untimed")
        return replace(check, passed=True, bound=None, meaning=f"no bound holds: {crowded}")

    def _pace(self) -> Check:
        return timed_pace(self._fastest_new, self._fastest_timed, len(self._loader))

    def _probed_again(self, name: str, compute: Compute, reference: Compute | None) -> Check:
        self._hold(name, [failed for failed in self._probed(compute, reference) if not failed.passed])
        return self._pace()

    def _appeal(self, name: str, compute: Compute, reference: Compute | None, check: Check) -> Check:
        """The machine may have become busier since: then timed rounds take longer now, as long as new inputs do.

        Two of them, so that there is one without new inputs right before it. They do not count, but where they clear
        an engine there is no result: its speed could not be had a second time.
        """
        before = self._fastest_timed
        self._fastest_new = self._fastest_timed = float("inf")
        for _ in range(APPEALS):
            for number in (1, 2):
                self._time(f"{name} once more", compute, number, 2)
            check = self._probed_again(name, compute, reference)
            if check.passed or self._accused:
                break
        if check.passed:
            now, then = (f"{seconds / len(self._loader) * 1e3:.3g} ms" for seconds in (self._fastest_timed, before))
            self._log.write("disturbed", what=f"timed again, the {name} took {now} a batch instead of {then}")
        return check

    @property
    def _precision(self) -> str:
        precision: str = self._config.effective_precision
        return precision

    def _hold(self, name: str, checks: list[Check]) -> None:
        """Log checks, and accuse the target of those that failed."""
        for check in checks:
            finite = check.figure is not None and math.isfinite(check.figure)
            self._log.write(
                "check",
                **(
                    asdict(check)
                    | {"attempt": self._attempt}
                    | {"name": check.name if name == "engine" else f"{check.name} ({name})"}
                    | {"figure": check.figure if finite else None}
                ),
            )
            if not check.passed:
                self._accuse(
                    name, f"fails '{check.name}': {check.meaning} ({check.figure:.3g}, bound {check.bound:.3g})"
                )

    def audit(self, engine: Compute, other: Compute, reference: Compute) -> None:
        """Compare an engine with the same compiler's engine for a model with other weights."""
        for _ in range(self._config.warmup):
            other(self._first)
        self._hold("engine", recognition(self._loader, engine, other, self._vendor.synchronize))
        checks, _ = probe(self._loader, other, self._vendor.synchronize, reference, self._precision)
        self._hold("engine of other weights", checks)

    def _accuse(self, name: str, what: str) -> None:
        self._accused = True
        self._log.write("dishonest", what=f"the {name} {what}")


def _form(outputs: list[torch.Tensor]) -> Form:
    return [(tuple(output.shape[1:]), output.is_floating_point()) for output in outputs]


def _told(form: Form) -> str:
    return ", ".join(
        f"{'float' if floating else 'integer'} (batch, {', '.join(map(str, shape))})" for shape, floating in form
    )
