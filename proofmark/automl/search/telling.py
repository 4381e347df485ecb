"""Reports on a search's progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofmark.automl.search.driver import Progress
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.state import State, Trial, flops_of

Tell = Callable[[dict[str, Any]], None]


class Telling:
    """Turns what the driver says into reports: a note for each trial that has ended since it began, and figures in
    between.

    The time left is that of the epochs that are planned, since the first trials have the fewest.
    """

    def __init__(self, report: Tell, metric: str, settings: SearchSettings) -> None:
        self._report, self._metric, self._settings = report, metric, settings
        self._noted = self._done = 0
        self._begun, self._later = (-1, -1), 0

    def __call__(self, progress: Progress) -> None:
        """Report the state of a search at one moment."""
        over = progress.state.over
        for place, trial in enumerate(over[self._noted :], self._noted):
            if place >= progress.state.before:
                self._report({"note": self._note(trial)})
            self._done += self._settings.epochs_of(trial.round)
        self._noted = len(over)
        best = progress.state.best()
        known = [] if best is None or best.accuracy is None else [f"best error {1 - best.accuracy:.2%}"]
        known.append(f"score {_flops(progress) / max(progress.seconds, 1e-9) / 1e9:.3g} GFLOP/s")
        known += [f"devices lost: {progress.lost}"] if progress.lost else []
        self._report(
            {
                "phase": "trials",
                "step": progress.done + progress.failed,
                "steps": progress.most,
                **self._left(progress),
                "also": [f"{progress.running} running, {progress.done} done, {progress.failed} failed", *known],
            }
        )

    def _to_come(self, state: State) -> int:
        """Epochs of trials that have not ended: of those to come none is of an earlier round than the latest."""
        settings, begun = self._settings, (len(state.trials), state.round)
        if begun != self._begun:  # of thousands to come
            later = range(begun[0], settings.most_trials)
            self._begun = begun
            self._later = sum(settings.epochs_of(settings.round(number, state.round)) for number in later)
        return self._later + sum(settings.epochs_of(trial.round) for trial in state.open())

    def _left(self, progress: Progress) -> dict[str, float]:
        """Seconds that are left by the epochs that are planned, and until no more trials are begun."""
        trained = sum(epoch["images"] > 0 for epochs in progress.open_epochs.values() for epoch in epochs)
        left = {"left_at_most": max(0.0, self._settings.most_seconds - progress.seconds)}
        done, to_come = self._done + trained, self._to_come(progress.state) - trained
        return left | ({"left": progress.seconds / done * max(0, to_come)} if done else {})

    def _note(self, trial: Trial) -> str:
        ended, begun = trial.ended or {}, trial.begun
        made = ", ".join(str(operation.get("kind", "?")) for operation in begun["operations"]) or "seed"
        of = f" of {begun['parent']}" if begun["parent"] is not None else ""
        came = f"failed: {ended['reason']}" if trial.accuracy is None else f"{self._metric} {trial.accuracy:.4f}"
        epochs = sum(epoch["images"] > 0 for epoch in ended["epochs"])
        return f"trial {trial.number}, {made}{of}, {epochs} epochs: {came}"


def _flops(progress: Progress) -> float:
    """FLOPs so far, trials that run included."""
    trials = progress.state.trials
    return progress.state.flops + sum(
        flops_of(trials[number].begun["per_image"], epochs) for number, epochs in progress.open_epochs.items()
    )
