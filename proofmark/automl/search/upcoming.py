"""The next trial: which network, with which hyper-parameters, and a process that has made itself ready for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from proofmark.automl.search.ahead import Made, Networks
from proofmark.automl.search.running import TrialProcess, make_anew
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.state import State, Trial, folder_of
from proofmark.automl.search.study import Study
from proofmark.automl.trial.spec import Parent, TrialSpec
from proofmark.errors import ProofmarkError
from proofmark.launch.job import Launcher

OF_JOURNAL = ("event", "time", "clock", "previous", "device")
"""Fields of a `trial_begin` that another attempt does not take over."""


class MakeSpec(Protocol):
    """Makes a trial's spec of what is the search's own business."""

    def __call__(self, directory: Path, **trial: Any) -> TrialSpec:
        """The rest is the session's: vendor, case, configuration."""


@dataclass(frozen=True)
class Ready:
    """A trial that may begin: what the journal will say of it, but for its device, and its process."""

    fields: dict[str, Any]
    process: TrialProcess


class Upcoming:
    """Makes trials, each of the number that follows those that the journal has."""

    def __init__(
        self,
        folder: Path,
        settings: SearchSettings,
        networks: Networks,
        study: Study,
        launcher: Launcher,
        make_spec: MakeSpec,
        module: str,
    ) -> None:
        self._folder, self._settings, self._networks, self._study = folder, settings, networks, study
        self._launcher, self._make_spec, self._module = launcher, make_spec, module

    def again(self, state: State, trial: Trial, ahead: bool) -> Ready:
        """A trial that an earlier driver began and did not see the end of.

        Args:
            ahead: whether its device is still another's.
        """
        fields = {key: value for key, value in trial.begun.items() if key not in OF_JOURNAL}
        return self._ready(state, fields | {"attempt": trial.begun["attempt"] + 1}, ahead)

    def new(self, state: State, made: Made, ahead: bool) -> Ready | None:
        """A trial of a network; None where it is a child that is too large after all. Args: as of `again`.

        Raises:
            ProofmarkError: a network that the search begins with is too large.
        """
        number, settings = len(state.trials), self._settings
        of_round = settings.round(number, state.round)
        sampled = of_round >= settings.study_from
        asked, chosen, graph = self._settled(number, made, self._inherited(state, made.parent), sampled)
        if graph is None:
            self._study.tell(asked, None)
            if made.parent is None:
                raise ProofmarkError(f"trial {number}: its network is too large with hyper-parameters {chosen}")
            return None
        return self._ready(
            state,
            {
                "trial": number,
                "round": of_round,
                "attempt": 1,
                "parent": made.parent,
                "operations": made.operations,
                "graph": graph,
                "per_image": self._networks.per_image(graph),
                "hyperparameters": chosen,
                "study": asked,
                "sampled": sampled,
                "epochs": settings.epochs_of(of_round),
                "seed": settings.seed + number,
                "generated_seconds": made.seconds,
            },
            ahead,
        )

    def _settled(
        self, number: int, made: Made, inherited: dict[str, Any], sampled: bool
    ) -> tuple[int, dict[str, Any], dict[str, Any] | None]:
        """The study's number, hyper-parameters and the network with them: with the parent's kernel size where the one
        that the study chose would make it too large; None where that does too."""
        asked, chosen = self._study.ask(number, None if sampled else inherited)
        graph = self._networks.settled(made.graph, chosen)
        if graph is None and sampled:
            self._study.tell(asked, None)
            asked, chosen = self._study.ask(number, chosen | {"kernel_size": inherited["kernel_size"]})
            graph = self._networks.settled(made.graph, chosen)
        return asked, chosen, graph

    def let_go(self, ready: Ready) -> None:
        """Discard a trial that is not begun after all."""
        ready.process.stop()
        if ready.fields["attempt"] == 1:
            self._study.tell(ready.fields["study"], None)

    def _inherited(self, state: State, parent: int | None) -> dict[str, Any]:
        """Hyper-parameters of a trial that the study does not choose for: its parent's."""
        own = state.trials[parent].begun["hyperparameters"] if parent is not None else self._settings.defaults
        return dict(own)

    def _ready(self, state: State, fields: dict[str, Any], ahead: bool) -> Ready:
        settings, directory = self._settings, self._folder / folder_of(fields["trial"], fields["attempt"])
        make_anew(directory)  # one may have been ready there when its driver died, and never have begun
        spec = self._make_spec(
            directory,
            trial=fields["trial"],
            graph=fields["graph"],
            parent=self._parent(state, fields["parent"], fields["operations"]),
            hyperparameters=fields["hyperparameters"],
            epochs=fields["epochs"],
            patience=settings.patience,
            seed=fields["seed"],
            nproc=settings.devices_per_trial,
            ahead=ahead,
        )
        timeouts = settings.hang, settings.setup
        return Ready(fields, TrialProcess(spec, self._launcher, *timeouts, self._module, settings.imports))

    def _parent(self, state: State, number: int | None, operations: Sequence[dict[str, Any]]) -> Parent | None:
        if number is None:
            return None
        parent = state.trials[number]
        return Parent(parent.begun["graph"], list(operations), str(parent.left(self._folder)))
