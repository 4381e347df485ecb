"""The end of a search: its best trial's weights, evaluated by the referee on data that no trial was chosen by."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proofmark.automl.logs.event_types import TRIAL_EVENTS
from proofmark.automl.logs.held import as_good_as_told
from proofmark.automl.search.driver import LOOK
from proofmark.automl.search.journal import Journal
from proofmark.automl.search.running import MODULE, TrialProcess, make_anew
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.state import Trial, hyperparameters
from proofmark.automl.search.upcoming import MakeSpec
from proofmark.automl.trial.spec import HELD_OUT, LOG, Parent
from proofmark.launch.job import Launcher
from proofmark.record.events.log import Event, read_events
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig

FOLDER = "examination"


def examine(
    folder: Path,
    journal: Journal,
    best: Trial,
    launcher: Launcher,
    make_spec: MakeSpec,
    settings: SearchSettings,
) -> None:
    """Evaluate the best trial's weights, and write the result, or why there is none, to the journal."""
    directory = folder / FOLDER
    make_anew(directory)  # a driver may have died in it
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
    ended = _ended(TrialProcess(spec, launcher, settings.hang, settings.setup, MODULE, settings.imports), settings)
    first_events = dict[str, Event]()  # by a process without a vendor's code
    for event in read_events(spec.folder / LOG, TRIAL_EVENTS):
        first_events.setdefault(event["event"], event)
    if "dataset" in first_events:
        journal.write("data", dataset=_only(first_events["dataset"], Identity.model_fields))
    config = EffectiveConfig.from_dict(spec.config)
    journal.write(
        "examined",
        trial=best.number,
        accuracy=ended["accuracy"],
        items=sum(epoch["evaluated"] for epoch in ended["epochs"]),
        dataset=_only(first_events.get("evaluated_on"), Identity.model_fields),
        reason=ended["reason"],
        data_items=_only(first_events.get("items"), ("train", "search")),
        check=_check(best, first_events.get("searched"), config),
        chosen_on=_only(first_events.get("chosen_on"), Identity.model_fields),
    )


def _ended(running: TrialProcess, settings: SearchSettings) -> dict[str, Any]:
    """Run it; how it ended."""
    running.begin(settings.environments[0], None)
    try:
        while (ended := running.poll()) is None:
            time.sleep(LOOK)
    finally:
        running.stop()
    return ended


def _check(best: Trial, searched: Event | None, config: EffectiveConfig) -> dict[str, Any] | None:
    """Whether it is as good as it was chosen for; None where nobody looked."""
    if searched is None or best.accuracy is None:
        return None
    return asdict(as_good_as_told(config.metric, best.accuracy, searched, config.precision))


def _only(event: Event | None, names: Iterable[str]) -> dict[str, Any] | None:
    return {name: event.get(name) for name in names} if event is not None else None
