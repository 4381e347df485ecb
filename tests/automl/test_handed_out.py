"""What a trial tells of is held to what it was given, and to what it was handed by who loads its data."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.automl.logs import held
from proofmark.automl.logs.event_types import HANDED_EVENTS
from proofmark.automl.logs.trial_log import outcome
from proofmark.automl.outcome.verdict import judge
from proofmark.automl.search.journal import FILE, Journal, read_journal
from proofmark.automl.search.running import IMPORTED, MODULE, TrialProcess
from proofmark.automl.trial.examined import Spread
from proofmark.automl.trial.spec import HANDED_OUT, LOG
from proofmark.launch.job import LocalLauncher
from proofmark.record.events.log import CORRUPT, EventLog, read_events
from proofmark.record.parts import Check
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import HostSettings, resolve
from proofmark.rules.legality import OverrideLayer
from suites.automl import test_image_search
from tests.automl.automl_records import record, trial
from tests.automl.searches import ROOT
from tests.automl.stub_trial import TOTALS
from tests.automl.test_examined import Case, Images
from tests.automl.test_examined import trial as examined
from tests.automl.test_several_devices import ended, process
from tests.automl.test_trial_walls import vendors_with

LONG = 0.1 + 0.2
"""A number with as many digits as there may be."""


def told(folder: Path, epochs: int, handed: tuple[int, int] | None, **others: Any) -> None:
    """What a trial leaves that tells of so many epochs of 100 images, each evaluated on 10."""
    log = EventLog(folder / LOG)
    log.write("trial_begin", trial=0)
    seconds = {"took_seconds": LONG, "samples_evaluated": 10}
    for epoch in range(1 + epochs):
        log.write("evaluation", **{**TOTALS, "samples": 100 * epoch, "train_seconds": LONG}, metric=LONG, **seconds)
    for kind, fields in others.items():
        for each in fields:
            log.write(kind, **each)
    log.write("chosen", metric=LONG, epoch=1)
    log.write("trial_end", trial=0)
    if handed:
        EventLog(folder / HANDED_OUT).write("handed_out", trained=handed[0], evaluated=handed[1])


@pytest.mark.parametrize(
    ("handed", "expected"),
    [
        ((200, 30), None),
        ((232, 46), None),  # what is borrowed, or lies ahead, counts too
        ((199, 30), "it tells of 200 images to train on, and was handed 199"),
        ((200, 29), "it tells of 30 images to be evaluated on, and was handed 29"),
        (None, "nobody says how many images it was handed"),
    ],
)
def test_more_than_it_was_handed_is_no_trial(
    tmp_path: Path, handed: tuple[int, int] | None, expected: str | None
) -> None:
    told(tmp_path, 2, handed)
    end = outcome(tmp_path, 2, succeeded=True, hung=None)
    assert (end["status"], end["reason"]) == ("failed" if expected else "finished", expected)
    checks = tuple(Check(**check) for check in end["checks"])
    verdict = judge(record(trial(0), trial(1, status=end["status"], checks=trial().checks + checks)))
    assert (verdict.kind == "FAIL_HONESTY") == (expected is not None and handed is not None)
    assert not expected or not handed or f"trial 1: {expected}" in verdict.reasons


def test_what_a_rank_says_that_it_was_handed_is_not_heard(tmp_path: Path) -> None:
    """Its log is not the file of who counts."""
    forged = {"handed_out": [{"trained": 1 << 40, "evaluated": 1 << 40}]}
    told(
        tmp_path,
        2,
        (1, 30),
        **forged,
        check=[{"name": held.TRAINED, "passed": True, "figure": 0.0, "bound": 0.0, "meaning": ""}],
    )
    assert (
        outcome(tmp_path, 2, succeeded=True, hung=None)["reason"]
        == "it tells of 200 images to train on, and was handed 1"
    )


def test_more_evaluations_than_it_may_have_are_no_trial_and_are_not_kept(tmp_path: Path) -> None:
    told(tmp_path, 9, (1000, 1000))
    end = outcome(tmp_path, 2, succeeded=True, hung=None)
    assert end["reason"] == "it tells of 10 evaluations, of which there may be 3" and len(end["epochs"]) == 3
    assert [check["passed"] for check in end["checks"]] == [False, True, True]


@pytest.mark.parametrize(
    "others",
    [
        {"check": [{"name": "mine", "passed": True, "figure": 0.0, "bound": 0.0, "meaning": "x" * 2000}] * 2500},
        {"computed": [{"dtypes": ["x" * (1 << 19)] * 12, "window": [0.0, 1.0]}]},
        {
            "stopped_early": [{"reason": "\U0001f600" * (1 << 19)}],
            "trial_begin": [{"trial": 0, "host": "é" * (1 << 20)}],
        },
    ],
    ids=["checks", "numbers", "words"],
)
def test_no_trial_makes_its_journal_unreadable(tmp_path: Path, others: dict[str, Any]) -> None:
    told(tmp_path, 2, (200, 30), **others)
    end = outcome(tmp_path, 2, succeeded=True, hung=None)
    assert (end["status"], end["epochs"]) == ("failed", []) and "bytes in the journal" in end["reason"]
    assert events_with(tmp_path / "search", end)[-1]["event"] == "trial_end"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [({"samples": 7}, "images"), ({"samples_evaluated": 1e29}, "evaluated"), ({"metric": 1.5}, "accuracy")],
)
def test_what_no_trial_comes_to_fails_it_alone(tmp_path: Path, wrong: dict[str, Any], reason: str) -> None:
    """The journal is whole: it is refused before it is written there."""
    told(tmp_path, 2, (200, 30), evaluation=[{**TOTALS, "samples": 300, "metric": LONG, "took_seconds": LONG, **wrong}])
    end = outcome(tmp_path, 3, succeeded=True, hung=None)
    assert (end["status"], end["epochs"]) == ("failed", [])
    assert f"what it tells can't be: epochs.3.{reason}" in end["reason"]
    assert events_with(tmp_path / "search", end)[-1]["event"] == "trial_end"


def test_the_longest_honest_trial_fits_into_a_line(tmp_path: Path) -> None:
    epochs = 10_000
    told(tmp_path, epochs, (100 * epochs, 10 + 10 * epochs))
    end = outcome(tmp_path, epochs, succeeded=True, hung=None)
    assert end["reason"] is None and len(end["epochs"]) == epochs + 1
    widest = {"clock": (1 << 63) - 1, "images": 1_281_167, "evaluated": 1_281_167, "loss": -LONG, "accuracy": LONG}
    end["epochs"] = [epoch | widest | {"seconds": 1e5 + LONG} for epoch in end["epochs"]]
    assert held.as_an_end(end) is end, "whatever its numbers are"
    (last,) = events_with(tmp_path / "search", end)[-1:]
    assert last["event"] == "trial_end" and len(last["epochs"]) == epochs + 1


@pytest.mark.parametrize("name", ["warmup_1", "warmup_2", "warmup_3", "epochs"])
def test_more_epochs_than_that_are_refused(name: str) -> None:
    resolution = resolved({name: 10_001})
    assert any(name in str(each) and "10000" in str(each) for each in resolution.problems), resolution.problems


def resolved(configured: dict[str, Any]) -> Any:
    path, case = ROOT / "suites/automl/image_search.yaml", test_image_search.TestImageSearch
    file = load_case_file(path, "automl", "embedded", case.common_file, case.parameters_type)
    return resolve(
        file, "cpu", [OverrideLayer("--set", configured)], None, HostSettings(None, None, "cache", None, None)
    )


def events_with(folder: Path, end: dict[str, Any]) -> list[dict[str, Any]]:
    """A journal with a trial's end, as it is read again."""
    folder.mkdir()
    journal = Journal(folder)
    journal.write("trial_end", trial=0, **end)
    journal.close()
    events = list(read_journal(folder / FILE))
    assert not [event for event in events if event["event"] == CORRUPT]
    return events


@pytest.mark.parametrize("nproc", [1, 2])
def test_who_loads_counts_what_ranks_are_handed(tmp_path: Path, nproc: int) -> None:
    end = ended(process(tmp_path, epochs=2, nproc=nproc))
    assert (end["status"], end["reason"]) == ("finished", None)
    (handed,) = read_events(tmp_path / "noderank0" / HANDED_OUT, HANDED_EVENTS)
    trained, evaluated = (sum(epoch[what] for epoch in end["epochs"]) for what in ("images", "evaluated"))
    # a sample to rehearse with on each, and one or two that are borrowed where an epoch's last batch is short
    assert (
        trained <= handed["trained"] <= trained + 8 * nproc
        and evaluated <= handed["evaluated"] <= evaluated + 8 * nproc
    )
    assert {check["name"] for check in end["checks"] if check["passed"]} >= {held.TRAINED, held.EVALUATED}


BURNT = 0.3
"""Seconds of a core that a batch takes who loads it."""


class Slow(Images):
    """Images that are much to decode."""

    def __getitems__(self, indices: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
        until = time.process_time() + BURNT
        while time.process_time() < until:
            pass
        return super().__getitems__(indices)


class SlowCase(Case):
    def build_dataset(self, config: Any, split: str) -> Any:
        return Slow()


def test_what_loading_takes_of_the_cores_is_the_sessions_own(tmp_path: Path) -> None:
    """As all that its processes' parents have waited for: else others would have taken it, from a search that is
    ranked."""
    vendor = {"vendor": "cpu", "vendors_dir": str(ROOT / "vendors")}
    spec = replace(examined(tmp_path, 0), case=(__name__, "SlowCase"), sys_path=(str(ROOT),), **vendor)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    trial = TrialProcess(spec, LocalLauncher(), 300.0, 600.0, MODULE, IMPORTED)
    trial.begin({}, None)
    assert ended(trial)["status"] == "finished"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    batches = 1 + 3 + 3  # an image is counted, nine are evaluated, and looked at for what it was chosen by
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime > batches * BURNT


REACHES = """
import os
from pathlib import Path

from proofmark.automl.trial.handed_out import PAGES
from proofmark.vendor import TrainingAdapter


def link(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # the listing's own
        return ""


class Adapter(TrainingAdapter):
    def create_optimizer(self, case, model, config):
        agent, page = os.environ["PROOFMARK_AGENT"], os.environ[PAGES].split(",")[0]
        try:
            os.close(os.open(f"/proc/{agent}/fd/{page}", os.O_RDWR))
            came = True
        except OSError:
            came = False
        open_here = [fd for fd in os.listdir("/proc/self/fd") if "proofmark-counts" in link(fd)]
        mapped = "proofmark-counts" in Path("/proc/self/maps").read_text()
        raise RuntimeError(f"came {came}, open {open_here}, mapped {mapped}")
"""


def test_a_rank_does_not_come_to_what_is_counted(tmp_path: Path) -> None:
    vendors, folder = vendors_with(tmp_path, REACHES), tmp_path / "search"
    folder.mkdir()
    end = ended(process(folder, epochs=1, nproc=1, vendors=vendors))
    assert end["reason"] == "RuntimeError: came False, open [], mapped False"


@pytest.mark.parametrize(
    ("claimed", "found", "of_all", "good"),
    [
        (0.97, 0.97, 288, True),
        (0.9757, 0.97, 288, True),  # two images that another processor answers otherwise
        (0.9999, 0.97, 288, False),
        (0.5, 0.97, 288, True),  # nothing is gained by that
        (0.73, 0.72, 49_276, True),  # of which some are looked at
        (0.75, 0.72, 49_276, False),
    ],
)
def test_the_best_trial_is_as_good_as_it_was_chosen_for(claimed: float, found: float, of_all: int, good: bool) -> None:
    looked = {"accuracy": found, "images": min(of_all, 9_856), "of_all": of_all}
    check = held.as_good_as_told("top1", claimed, looked, "fp32")
    assert check.passed == good
    verdict = judge(record(examination=check))
    assert (verdict.kind == "FAIL_HONESTY") == (not good)
    assert good or any("trial 0: its top1 is said to be" in reason for reason in verdict.reasons)


def test_of_much_data_some_is_looked_at() -> None:
    class Data:
        items = 25
        identity: Any = None

        def load(self, lists: list[list[int]], epoch: int = 0) -> Any:
            return iter(lists)

    assert (Spread(Data(), 10).items, [*Spread(Data(), 10).load([[0, 1], [8]])]) == (9, [[0, 3], [24]])
    assert Spread(Data(), 25).items == 25
