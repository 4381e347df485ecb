"""One run of a FlagPerf log, from its lines to its figures."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from proofmark.training.logs.downsampled import Downsampled
from proofmark.training.outcome.record import Epoch, Evaluation, Failure, NotedStep, Rates, SeedRun

MOMENTS = frozenset({"INIT_START", "INIT_END", "TRAIN_START", "TRAIN_END", "FINISHED"})
METRICS = ("accuracy", "acc", "acc1", "mAP", "auc", "rouge1", "rouge2", "rougeL", "rougeLsum", "val_loss", "ppl")
"""What FlagPerf's cases call their metric where they don't call it `final_<metric>`."""

_BROKE_OFF = Failure(ranks=(), cause="the log has no FINISHED: the run did not come to its end")

_CASE = re.compile(r"benchmarks/(?!driver/)([^/]{1,99})/")
"""Of the file that wrote a line. Of some it is FlagPerf's own logger, which is of no case."""

RAW = ("throughput(ips)_raw", *(f"training_{items}_per_second" for items in ("sequences", "images", "samples")))


TOKENS = ("effective_tokens_per_second", "training_ntokens_per_second", "training_tokens_per_second")
"""Token rates of all ranks together: those that count no padding first, as ours."""


@dataclass
class RankLines:
    """The part of one rank's lines that a record needs."""

    times: dict[str, float] = field(default_factory=dict)
    began: float = math.inf
    ended: float = -math.inf
    case: str = ""
    finished: dict[str, Any] | None = None
    steps: int | None = None
    samples: int | None = None
    uncounted: int = 0
    """Evaluations after nobody knows how many samples."""
    epoch: tuple[int, float] | None = None
    evaluations: Downsampled[tuple[int, float | None, dict[str, Any]]] = field(default_factory=Downsampled)
    losses: Downsampled[tuple[int, float | None]] = field(default_factory=Downsampled)
    notes: Downsampled[NotedStep] = field(default_factory=Downsampled)
    epochs: Downsampled[Epoch] = field(default_factory=Downsampled)

    @property
    def under_way(self) -> bool:
        """Whether this run has gone so far that the beginning of one must be another's."""
        return "TRAIN_START" in self.times or self.finished is not None

    def take(self, event: dict[str, Any]) -> None:
        """The next line: a name, a time in milliseconds or none where it is withheld, and perhaps a value."""
        name, time_ms = event["event"], event["metadata"]["time_ms"]
        time = None if time_ms is None else time_ms / 1000
        value = event["value"] if isinstance(event.get("value"), dict) else {}
        if time is not None:
            self.began, self.ended = min(self.began, time), max(self.ended, time)
        if not self.case and (named := _CASE.search(str(event["metadata"].get("file", "")))):
            self.case = named[1]
        if name in MOMENTS and time is not None:
            self.times[name] = time
        if name == "FINISHED":
            self.finished = value
        elif name == "STEP_END":
            self._step(value, time)
        elif name in ("INIT_EVALUATION", "EVALUATE"):
            samples = whole(value.get("num_trained_samples"))
            samples = samples if samples is not None else self.samples if name == "EVALUATE" else 0
            if samples is not None:
                self.evaluations.extend([(samples, time, value)])
            else:
                self.uncounted += 1
        elif name == "EPOCH_BEGIN":
            number = whole(value.get("epoch"))
            self.epoch = (number, time) if number is not None and time is not None else None
        elif name == "EPOCH_END" and self.epoch is not None and time is not None:
            self.epochs.extend([Epoch(number=self.epoch[0], began=self.epoch[1], ended=time)])
            self.epoch = None

    def _step(self, value: dict[str, Any], time: float | None) -> None:
        step, samples = whole(value.get("global_steps")), whole(value.get("num_trained_samples"))
        epoch, rate, loss = whole(value.get("epoch")), figure(value.get("learning_rate")), figure(value.get("loss"))
        self.steps = self.steps if step is None else step
        self.samples = self.samples if samples is None else samples
        if step is not None:
            self.losses.extend([(step, loss)])
        if step is not None and samples is not None and epoch is not None and rate is not None and time is not None:
            note = NotedStep(step=step, epoch=epoch, samples=samples, time=time, learning_rate=rate, loss=loss)
            self.notes.extend([note])


def figure(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole(value: Any) -> int | None:
    """A count; None for anything else."""
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def metric_of(finished: dict[str, Any], submitted: dict[str, Any]) -> str | None:
    """What the metric is called: as submitted, or by the first `final_<metric>`, or as some cases call theirs."""
    if isinstance(submitted.get("metric"), str):
        return str(submitted["metric"])
    return next(iter(_metrics(finished)), None)


def _metrics(finished: dict[str, Any]) -> dict[str, Any]:
    """All metrics that a log ends with, in their order: mask_rcnn has two."""
    finals = {key.removeprefix("final_"): value for key, value in finished.items() if key.startswith("final_")}
    others = {name: finished[name] for name in METRICS if name in finished}
    return {name: value for name, value in {**finals, **others}.items() if name not in ("", "loss")}


def seed_run(lines: RankLines, submitted: dict[str, Any]) -> SeedRun:
    """The run's figures. Seconds are the log's own where it has them, else those between its lines."""
    finished = lines.finished or {}
    between = {"between init": _between(lines, "INIT"), "between train": _between(lines, "TRAIN")}
    metric = metric_of(finished, submitted)
    score = next((finished[key] for key in (f"final_{metric}", metric) if metric and key in finished), None)
    converged = finished.get("converged")
    return SeedRun(
        seed=whole(submitted.get("seed")),
        started=lines.times.get("INIT_START", lines.began),
        converged=converged if isinstance(converged, bool) else None,
        metric=figure(score),
        metrics={name: figure(value) for name, value in _metrics(finished).items() if name != metric},
        steps=lines.steps,
        samples=lines.samples,
        e2e_seconds=figure(finished.get("e2e_time")),
        init_seconds=_first(between | finished, "init_time", "between init"),
        train_seconds=_first(between | finished, "train_time", "raw_train_time", "between train"),
        no_eval_seconds=_first(finished, "train_no_eval_time"),
        pure_compute_seconds=_first(finished, "pure_training_computing_time"),
        rates=_rates(finished),
        split=None,
        parameters=None,
        train_began=lines.times.get("TRAIN_START"),
        train_ended=lines.times.get("TRAIN_END"),
        epochs=lines.epochs.kept(),
        # with one left out, the last of them is not the one that reached the target
        evaluations=() if lines.uncounted else _evaluations(lines, metric, finished),
        uncounted=lines.uncounted,
        losses=lines.losses.kept(),
        notes=lines.notes.kept(),
        failure=_BROKE_OFF if lines.finished is None else None,
    )


def _rates(finished: dict[str, Any]) -> Rates | None:
    raw = _first(finished, *RAW)
    others = {name: _first(finished, f"throughput(ips)_{name}") for name in ("no_eval", "pure_compute")}
    return None if raw is None else Rates(raw=raw, **others)


def token_rate(lines: RankLines) -> float | None:
    """Tokens per second, as some language models end their log with."""
    rate = _first(lines.finished or {}, *TOKENS)
    return rate if rate is not None and rate > 0 else None


def _evaluations(lines: RankLines, metric: str | None, finished: dict[str, Any]) -> tuple[Evaluation, ...]:
    """The run's evaluations, each with those values that the log ends with, too."""
    began = lines.times.get("TRAIN_START")
    found = []
    for samples, time, value in lines.evaluations.kept():
        since = figure(value.get("train_time"))
        if since is None and time is not None:
            since = max(0.0, time - began) if began is not None else None
        score = _first(value, f"{metric}", f"eval_{metric}")
        names = [name for name in _metrics(finished) if name != metric and {name, f"eval_{name}"} & value.keys()]
        others = {name: _first(value, name, f"eval_{name}") for name in names}
        found.append(Evaluation(samples=samples, seconds=since, metric=score, others=others, ended=time))
    return tuple(found)


def _first(values: dict[str, Any], *keys: str) -> float | None:
    """The first value that is a finite number."""
    return next((number for key in keys if (number := figure(values.get(key))) is not None), None)


def _between(lines: RankLines, what: str) -> float | None:
    begin, end = (lines.times.get(f"{what}_{edge}") for edge in ("START", "END"))
    return None if begin is None or end is None else end - begin
