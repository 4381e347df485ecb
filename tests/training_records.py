"""Training records made up for tests, each part open to change."""

from __future__ import annotations

from typing import Any

from proofmark.record.parts import Check, Contention, Flops, Identity, Utilisation
from proofmark.record.provenance import Chip, Host
from proofmark.training.outcome.checks import required
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.over_runs import measured, rates_over
from proofmark.training.outcome.record import Epoch, Evaluation, NotedStep, Rank, Rates, SeedRun, Split, TrainingRecord
from proofmark.training.outcome.verdict import judge

BEGUN = 1_790_000_000.0
SAMPLES, SECONDS = 100, 10.0
"""Of an epoch. Each ends with an evaluation of a second."""


def make_run(passes: int = 2, **changes: Any) -> SeedRun:
    """A run that reaches 0.95 at the end of its last epoch; it initialises for five seconds."""
    trained = BEGUN + 5
    ends = [trained + SECONDS * number for number in range(1, passes + 1)]
    evaluations = [Evaluation(samples=0, seconds=0.0, metric=0.1, began=trained - 1.5, ended=trained - 0.5)]
    evaluations += [
        Evaluation(samples=SAMPLES * number, seconds=end - trained, metric=0.95, began=end - 1, ended=end)
        for number, end in enumerate(ends, 1)
    ]
    notes = [
        NotedStep(step=4 * n, epoch=n - 1, samples=SAMPLES * n, time=end - 1, learning_rate=0.1, loss=1 / n)
        for n, end in enumerate(ends, 1)
    ]
    samples, seconds = SAMPLES * passes, SECONDS * passes
    values: dict[str, Any] = {
        "seed": 0,
        "started": BEGUN,
        "converged": True,
        "metric": 0.95,
        "steps": 4 * passes,
        "samples": samples,
        "e2e_seconds": seconds + 6.25,
        "init_seconds": 5.0,
        "train_seconds": seconds,
        "no_eval_seconds": seconds - passes,
        "pure_compute_seconds": seconds / 2,
        "rates": Rates(
            raw=samples / seconds, no_eval=samples / (seconds - passes), pure_compute=samples / (seconds / 2)
        ),
        "split": Split(init=5.0, data=1.0, compute=seconds / 2, evaluation=passes, checkpoint=0.0, other=0.5),
        "parameters": 196,
        "train_began": trained,
        "train_ended": ends[-1],
        "epochs": [Epoch(number=n, began=end - SECONDS, ended=end) for n, end in enumerate(ends)],
        "evaluations": evaluations,
        "losses": [(note.step, note.loss) for note in notes],
        "notes": notes,
        "checks": [passed(name) for name in sorted(required(adapted=False, converged=True))],
        "contention": Contention(others=0.0, stolen=0.0, idle=0.0),
        "ranks": [Rank(rank=0, steps=4 * passes, compute_seconds=seconds / 2)],
    }
    return SeedRun(**{**values, **changes})


def passed(name: str, **changes: Any) -> Check:
    """A check of honesty that found nothing."""
    return Check(**{"name": name, "passed": True, "figure": 0.0, "bound": 0.015, "meaning": f"not: {name}", **changes})


def make_training(*runs: SeedRun, **changes: Any) -> TrainingRecord:
    """A judged record of runs, of one that converged where none is given."""
    trained = runs or (make_run(),)
    values: dict[str, Any] = {
        "suite": "training",
        "case": "tiny",
        "profile": "embedded",
        "vendor": "acme",
        "precision": "fp32",
        "item": "point",
        "started": BEGUN,
        "seconds": 60.0,
        "config_hash": "c0ffee" * 10 + "c0ff",
        "config": {"learning_rate": 0.02, "weight_decay": 0.01, "gradient_accumulation_steps": 1},
        "versions": {"python": "3.11"},
        "host": Host(name="h", system="Linux", processor="p", cores=2, memory_bytes=1 << 30),
        "chip": Chip(name="chip", peak_missing="not in chips.yaml"),
        "seed": 0,
        "dataset": Identity(name="corners", sha256="d" * 64, items=SAMPLES),
        "validation_items": 50,
        "optimizer": "AdamW",
        "flops": Flops(declared=1e3, counted=1e3),
        "utilisation": Utilisation(reason="not in chips.yaml"),
        "scale": "1x1",
        "nnodes": 1,
        "nproc": 1,
        "metric": "top1",
        "target": 0.9,
        "better": "higher",
        "global_batch_size": 16,
        "train_batch_size": 16,
        "runs": trained,
        "repeats": len(trained),
    }
    record = TrainingRecord(**{**values, **changes})
    if "rates" not in changes:
        record = record.model_copy(update={"rates": rates_over(measured(record))})
    return record.model_copy(update={"verdict": judge(record)}).with_figures(figures(record))
