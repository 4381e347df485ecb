"""How a search is told of while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from proofmark.automl.search.driver import Progress
from proofmark.automl.search.state import Trial

Tell = Callable[[dict[str, Any]], None]


class Telling:
    """Turns what the driver says into reports: a note for each trial that has ended, and figures in between."""

    def __init__(self, report: Tell, metric: str) -> None:
        self._report, self._metric = report, metric
        self._told = set[int]()

    def __call__(self, progress: Progress) -> None:
        """One moment of a search."""
        for trial in list(progress.state.trials.values()):
            if trial.ended is not None and trial.number not in self._told:
                self._told.add(trial.number)
                self._report({"note": self._note(trial)})
        best = progress.state.best()
        known = [] if best is None or best.accuracy is None else [f"best error {1 - best.accuracy:.2%}"]
        known.append(f"score {_flops(progress) / max(progress.seconds, 1e-9) / 1e9:.3g} GFLOP/s")
        self._report(
            {
                "phase": "trials",
                "step": progress.done + progress.failed,
                "steps": progress.most,
                "may_end_early": True,
                "also": [f"{progress.running} running, {progress.failed} failed", *known],
            }
        )

    def _note(self, trial: Trial) -> str:
        ended, begun = trial.ended or {}, trial.begun
        made = ", ".join(str(operation.get("kind", "?")) for operation in begun["operations"]) or "seed"
        of = f" of {begun['parent']}" if begun["parent"] is not None else ""
        came = f"failed: {ended['reason']}" if trial.accuracy is None else f"{self._metric} {trial.accuracy:.4f}"
        epochs = sum(epoch["images"] > 0 for epoch in ended["epochs"])
        return f"trial {trial.number}, {made}{of}, {epochs} epochs: {came}"


def _flops(progress: Progress) -> float:
    """What was computed so far, trials that run included."""
    ended = [(trial, trial.ended["epochs"]) for trial in progress.state.trials.values() if trial.ended is not None]
    running = [(progress.state.trials[number], epochs) for number, epochs in progress.open_epochs.items()]
    return float(sum(_of_trial(trial, epochs) for trial, epochs in [*ended, *running]))


def _of_trial(trial: Trial, epochs: Iterable[dict[str, Any]]) -> int:
    cost = trial.begun["per_image"]
    return sum(epoch["images"] * cost["training"] + epoch["evaluated"] * cost["forward"] for epoch in epochs)
