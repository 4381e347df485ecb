"""Readers of what a search leaves: its journal, its study, its trials' logs and records, networks to begin with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from proofmark.automl.logs.trial_log import outcome
from proofmark.automl.network.seeds import small_network
from proofmark.automl.outcome.collect import collect
from proofmark.automl.outcome.record import AutoMLRecord, TrialRecord
from proofmark.automl.search.journal import FILE, Journal
from proofmark.automl.search.state import State
from proofmark.automl.search.study import FILE as STUDY
from proofmark.automl.search.study import Study
from proofmark.automl.trial.spec import HANDED_OUT, LOG, Begin
from proofmark.errors import ProofmarkError
from proofmark.record.beside import read_beside, write_beside
from tests.automl.automl_records import trial
from tests.automl.searches import PER_IMAGE, RANGES
from tests.fuzz import inputs, samples

LINKED = {"previous": "0" * 64}
EPOCH = {"clock": 9, "images": 100, "evaluated": 10, "accuracy": 0.9, "loss": 0.1, "seconds": 1.0}
CHECK = {"name": "parameters", "passed": True, "figure": 0.0, "bound": 0.0, "meaning": "they are others"}
ISOLATION = {"kind": "wall", "landlock": 6, "network": "closed", "devices": [], "gaps": []}
BEGUN: dict[str, Any] = {
    **LINKED,
    "trial": 0,
    "round": 0,
    "attempt": 1,
    "parent": None,
    "operations": [],
    "per_image": PER_IMAGE,
    "graph": small_network(size=8).model_dump(mode="json"),
    "hyperparameters": {"kernel_size": 3, "batch_size": 8, "dropout": 0.0},
    "study": 0,
    "sampled": False,
    "epochs": 1,
    "seed": 0,
    "generated_seconds": 0.1,
    "device": "0",
}
ENDED: dict[str, Any] = {
    **LINKED,
    "trial": 0,
    "status": "finished",
    "reason": None,
    "accuracy": 0.9,
    "best_epoch": 1,
    "stopped_early": None,
    "epochs": [EPOCH],
    "counted": {"forward": 10, "training": 30},
    "dtypes": ["float32"],
    "checks": [CHECK],
    "energy": {"joules": 5.0, "reason": None, "method": "counters"},
    "isolation": ISOLATION,
    "log_sha256": "0" * 64,
    "train_seconds": 1.0,
}
DATA = {"name": "corners", "sha256": "d" * 64, "items": 100, "origin": None}
UNDER = {"host": samples.HOST_FACTS, "conditions": "c" * 64}
JOURNAL = samples.stamped(
    [
        ("init_models", {**LINKED, "networks": [DATA]}),
        ("driver_begin", {**LINKED, "config_hash": "0" * 64, "devices": 1, "places": 1, **UNDER}),
        ("data", {**LINKED, "dataset": DATA}),
        ("trial_begin", BEGUN),
        ("trial_end", ENDED),
        ("trial_begin", {**BEGUN, "trial": 1, "parent": 0, "study": 1}),
        ("trial_end", {**ENDED, "trial": 1, "status": "failed", "reason": "it died", "accuracy": None}),
        ("search_end", {**LINKED, "reason": "2 trials were begun"}),
        ("contention", {**LINKED, "others": 0.1, "stolen": 0.0, "idle": 0.5}),
        ("examined", {**LINKED, "trial": 0, "accuracy": 0.8, "items": 10, "dataset": DATA, "reason": None}),
    ]
)
CONFIG = {**samples.CONFIG}
CONFIG["configurations"] = {
    **CONFIG["configurations"],
    "min_seconds": 0.0,
    "mark_seconds": 3600.0,
    "first_mark": 1,
    "max_trials": 2,
    "rankable": True,
}
SESSION = samples.stamped(
    [
        ("run_begin", {**samples.BEGIN, "config": CONFIG, "devices": 1, "adapted": []}),
        ("search", {"folder": "search", "resumed": False}),
        ("contention", {"others": 0.0, "stolen": 0.0, "idle": 0.1}),
        ("run_end", {}),
    ]
)
TRIAL = [
    *samples.stamped([("trial_begin", {"trial": 0}), ("isolated", {"of": "trial", "isolation": ISOLATION})]),
    *samples.rank(0)[1:-1],
    *samples.stamped(
        [
            ("evaluated_on", DATA),
            ("counted", {"forward": 10, "training": 30}),
            ("computed", {"dtypes": ["float32"], "window": [1.79e9, 1.79e9 + 9]}),
            ("check", CHECK),
            ("chosen", {"metric": 0.9, "epoch": 1}),
            ("energy", {"joules": 5.0, "reason": None}),
            ("stopped_early", {"reason": "no better"}),
            ("trial_end", {"trial": 0}),
        ]
    ),
]
(HANDED,) = samples.stamped([("handed_out", {"trained": 1 << 40, "evaluated": 1 << 40})])
STUDY_LINES: list[Any] = [
    {"op_code": 0, "worker_id": "w", "study_name": "hyper-parameters", "directions": [2]},
    {
        "op_code": 4,
        "worker_id": "w",
        "study_id": 0,
        "state": 1,
        "value": 0.5,
        "datetime_start": "2026-01-01T00:00:00.000000",
        "datetime_complete": "2026-01-01T00:00:09.000000",
        "distributions": {"dropout": '{"name": "FloatDistribution", "attributes": {"low": 0.0, "high": 0.2}}'},
        "params": {"dropout": 0.1},
        "user_attrs": {},
        "system_attrs": {},
        "intermediate_values": {},
    },
]
TRIALS = [trial(0).model_dump(mode="json"), trial(1).model_dump(mode="json")]
BEGIN = {"environment": {"ACME_VISIBLE_DEVICES": "0"}, "seconds": 9.5}
Shown = Callable[[AutoMLRecord, Path], None]


def session(shown: Shown) -> Callable[[Path, tuple[bytes, bytes]], None]:
    """The logs of a session and of its search, up to every report."""

    def read(folder: Path, content: tuple[bytes, bytes]) -> None:
        (folder / "search").mkdir()
        (folder / "events.jsonl").write_bytes(content[0])
        (folder / "search" / FILE).write_bytes(content[1])
        shown(collect(folder), folder)

    return read


def resumed(folder: Path, content: bytes) -> None:
    """A journal that a driver is to go on with."""
    (folder / FILE).write_bytes(content)
    journal = Journal(folder)
    try:
        state = State.of(journal.events)
    finally:
        journal.close()
    assert state.seconds >= 0 and len(state.finished()) <= len(state.trials)


def of_trial(folder: Path, content: bytes) -> None:
    """What a trial's process left, as the driver takes it."""
    (folder / LOG).write_bytes(content)
    (folder / HANDED_OUT).write_bytes(json.dumps(HANDED).encode() + b"\n")
    ended = outcome(folder, 1, True, None)
    assert ended["status"] == "finished" or ended["reason"]


def of_handed(folder: Path, content: bytes) -> None:
    """What a trial's process counted, as the driver takes it."""
    (folder / HANDED_OUT).write_bytes(content)
    assert outcome(folder, 1, True, None)["status"] == "failed", "nothing else is there"


def study(folder: Path, content: bytes) -> None:
    """A study that a driver is to go on with."""
    (folder / STUDY).write_bytes(content)
    number, chosen = Study(folder, RANGES, seed=0).ask(7, None)
    assert number >= 0 and chosen.keys() == RANGES.keys()


def trials(folder: Path, content: bytes) -> None:
    """Trials beside a record, whatever that says of their file."""
    path = write_beside([trial(0), trial(1)], folder, "trials")
    known = path.read_bytes()
    path.write_bytes(content)
    with_digest = samples.beside_of(content)
    assert known == content or len(read_beside(path, with_digest, TrialRecord)) == with_digest.items


def begun(folder: Path, line: bytes) -> None:
    """What a trial's process is told by the one that runs it."""
    Begin.of(line).deadline()


def searches(shown: Shown) -> dict[str, tuple[st.SearchStrategy[Any], Callable[[Path, Any], None], Any]]:
    """By name: inputs, what reads them, and how it may refuse."""
    logs = st.tuples(inputs.logs(SESSION), inputs.logs(JOURNAL))
    return {
        "a search's logs": (logs, session(shown), (ProofmarkError, samples.no_beginning)),
        "a journal to go on with": (inputs.logs(JOURNAL), resumed, (ProofmarkError,)),
        "a trial's log": (inputs.logs(TRIAL), of_trial, ()),
        "what a trial was handed": (inputs.logs([HANDED]), of_handed, ()),
        "a study": (inputs.logs(STUDY_LINES), study, (ProofmarkError,)),
        "trials beside a record": (inputs.logs(TRIALS), trials, (ProofmarkError,)),
        "a trial's beginning": (inputs.jsons(BEGIN), begun, (ValueError,)),
    }
