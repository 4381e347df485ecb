"""The end of a search: its best trial's weights, evaluated by the referee on data that no trial was chosen by."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from proofmark.automl.outcome.event_types import TRIAL_EVENTS
from proofmark.automl.search.driver import LOOK
from proofmark.automl.search.journal import Journal
from proofmark.automl.search.running import MODULE, TrialProcess
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.state import Trial, hyperparameters
from proofmark.automl.search.upcoming import MakeSpec
from proofmark.automl.trial.spec import HELD_OUT, LOG, Parent
from proofmark.launch.job import Launcher
from proofmark.process.own_directory import remove
from proofmark.record.events.log import read_events
from proofmark.record.parts import Identity

FOLDER = "examination"


def examine(
    folder: Path,
    journal: Journal,
    best: Trial,
    launcher: Launcher,
    make_spec: MakeSpec,
    settings: SearchSettings,
    module: str = MODULE,
) -> None:
    """Evaluate, and write down what came of it."""
    directory = folder / FOLDER
    remove(directory)  # of a driver that died in it
    directory.mkdir()
    graph = best.begun["graph"]
    spec = make_spec(
        directory,
        trial=best.number,
        graph=graph,
        parent=Parent(graph, [], str(best.left(folder))),
        hyperparameters=hyperparameters(best),
        epochs=0,
        patience=None,
        seed=best.begun["seed"],
        split=HELD_OUT,
    )
    running = TrialProcess(spec, launcher, settings.hang, settings.setup, module, settings.imports)
    running.begin(settings.environments[0], None)
    try:
        while (ended := running.poll()) is None:
            time.sleep(LOOK)
    finally:
        running.stop()
    identities = {kind: _identity(spec.folder / LOG, kind) for kind in ("dataset", "evaluated_on", "chosen_on")}
    if identities["dataset"] is not None:
        journal.write("data", dataset=identities["dataset"])
    journal.write(
        "examined",
        trial=best.number,
        accuracy=ended["accuracy"],
        items=sum(epoch["evaluated"] for epoch in ended["epochs"]),
        dataset=identities["evaluated_on"],
        reason=ended["reason"],
        data_items=_items(spec.folder / LOG),
        chosen_on=identities["chosen_on"],
    )


def _items(path: Path) -> dict[str, Any] | None:
    """How much there is to train on and to be evaluated on, by the word of a process without a vendor's code."""
    found = next((event for event in read_events(path, TRIAL_EVENTS) if event["event"] == "items"), None)
    return {key: found[key] for key in ("train", "search")} if found else None


def _identity(path: Path, kind: str) -> dict[str, Any] | None:
    found = next((event for event in read_events(path, TRIAL_EVENTS) if event["event"] == kind), None)
    return {key: found.get(key) for key in Identity.model_fields} if found else None
