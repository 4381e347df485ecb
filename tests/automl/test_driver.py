"""The driver, with trials that train nothing: each fault is seen, told, and the search goes on."""

from __future__ import annotations

import fcntl
import json
import math
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proofmark.automl.logs.event_types import gave_up
from proofmark.automl.run import is_examined
from proofmark.automl.search.ahead import Made
from proofmark.automl.search.driver import Driver, Progress, _longest_epoch
from proofmark.automl.search.journal import FILE, LOCK, Journal, faults, read_journal
from proofmark.automl.search.running import TrialProcess
from proofmark.automl.search.state import State, Trial
from proofmark.automl.search.study import Study
from proofmark.automl.trial.spec import Begin, TrialSpec
from proofmark.errors import ProofmarkError, UsageError
from proofmark.launch import reattach
from proofmark.launch.job import Handle, Job, LocalHandle, LocalLauncher
from proofmark.launch.job_file import JobFile, Status
from proofmark.process.identity import ProcessIdentity
from proofmark.record.events.log import Event
from proofmark.record.integrity.chain import LINK, digest_of
from proofmark.record.parts import FIRST
from proofmark.vendor.hardware.machine import describe_host
from tests.automl.searches import ROOT, STUB, Numbers, search, settings, spec_maker
from tests.automl.stub_trial import PHASES, TOTALS
from tests.waiting import PATIENCE

EXAMINED: dict[str, Any] = {"trial": 0, "items": 1, "dataset": None, "reason": None, "data_items": None}


def ends(state: State) -> dict[int, str | None]:
    return {number: trial.ended and trial.ended["reason"] for number, trial in state.trials.items()}


def test_trials_follow_one_another_and_a_parent_is_finished(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(5))
    assert ends(state) == dict.fromkeys(range(5))
    assert state.ended == "5 trials were begun"
    assert [trial.begun["parent"] is None for trial in state.trials.values()] == [True] + 4 * [False]
    assert [trial.begun["epochs"] for trial in state.trials.values()] == [1, 2, 2, 2, 2]
    assert [trial.begun["sampled"] for trial in state.trials.values()] == [False, False, True, True, True]
    best = state.best()
    assert best is not None and best.number == 4
    events = list(read_journal(tmp_path / "search" / FILE))
    assert faults(events) == []
    finished = set[int]()
    for event in events:
        if event["event"] == "trial_end":
            finished.add(event["trial"])
        elif event["event"] == "trial_begin" and event["parent"] is not None:
            assert event["parent"] in finished


def test_each_device_has_a_trial(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(5, devices=2))
    assert [trial.begun["round"] for trial in state.trials.values()] == [0, 0, 1, 1, 2]
    assert {trial.begun["device"] for trial in state.trials.values()} == {"0", "1"}


@pytest.mark.parametrize(("devices", "rounds"), [(1, [0, 0, 0, 1, 2]), (2, [0, 0, 0, 1, 1]), (4, [0, 0, 0, 0, 1])])
def test_each_network_that_a_search_begins_with_is_trained(tmp_path: Path, devices: int, rounds: list[int]) -> None:
    """In a first round that is as long as they are many, where there are fewer devices."""
    state = search(tmp_path / "search", settings(5, devices=devices, networks=3))
    begun = [trial.begun for trial in state.trials.values()]
    assert [each["round"] for each in begun] == rounds
    assert [each["parent"] is None for each in begun] == [of == 0 for of in rounds]
    assert [each["graph"]["network"] for each in begun[:3]] == [0, 1, 2]


def test_a_search_that_goes_on_with_more_devices_is_in_no_earlier_round(tmp_path: Path) -> None:
    """Nor without the study, nor with a seed."""
    search(tmp_path / "search", settings(6), dict.fromkeys((1, 2, 3), "crash"))
    state = search(tmp_path / "search", settings(6, devices=4))
    begun = [trial.begun for trial in state.trials.values()]
    assert [each["round"] for each in begun] == [0, 1, 2, 3, 3, 3]
    assert all(each["sampled"] and each["epochs"] == 2 and each["parent"] is not None for each in begun[4:])


def test_whatever_a_trial_dies_of_is_told_and_the_search_goes_on(tmp_path: Path) -> None:
    does = {1: "crash", 2: "killed", 4: "nan", 5: "memory"}
    state = search(tmp_path / "search", settings(8), does)
    assert ends(state) == {
        0: None,
        1: "its process died: it fell over",
        2: "its process died without a word: it was killed, or crashed",
        3: None,
        4: "the loss of step 3 is not a finite number",
        5: "it ran out of memory: the host has no more",
        6: None,
        7: None,
    }
    killed = state.trials[2].ended
    assert killed is not None and [epoch["images"] for epoch in killed["epochs"]] == [0]
    left = {path.name for path in (tmp_path / "search/trials").rglob("*")}
    assert "trial.jsonl" in left and not {"spec.json", "own0", "weights"} & left


def test_a_device_is_the_next_trials_when_the_one_before_has_let_go(tmp_path: Path) -> None:
    """That one ends when the next has begun, or never; and what was ready is begun once."""
    state = search(tmp_path / "search", settings(4), {1: "let go", 2: "let go"})
    assert ends(state) == dict.fromkeys(range(4))
    events = [(event["event"], event["trial"]) for event in state_events(tmp_path / "search") if "trial" in event]
    begins, finishes = ([events.index((kind, number)) for number in range(4)] for kind in ("trial_begin", "trial_end"))
    assert begins[2] < finishes[1] < begins[3] < finishes[2] and finishes[0] < begins[1]
    parents = [trial.begun["parent"] for trial in state.trials.values()]
    assert parents == [None, 0, 0, 1], "nothing is made of a trial that has not ended"


def test_a_trial_that_saves_for_long_keeps_no_other_from_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends when the next has begun, which is made of the other one: that ends after it has let go."""
    monkeypatch.setattr("proofmark.automl.search.running.SAVES", 0.0)
    does = {0: f"wait for {tmp_path / 'search/trials/00001/noderank0/rank0.heartbeat'}", 1: "let go at once"}
    state = search(tmp_path / "search", settings(3, devices=2, setup=60.0), does)
    assert ends(state) == dict.fromkeys(range(3)) and state.trials[2].begun["parent"] == 0


def test_only_what_waits_for_its_device_yields_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one of all, and a child of the only one that has ended, are waited for."""
    said, save = dict[int, bool](), TrialSpec.save

    def save_noted(spec: TrialSpec, path: Path) -> None:
        said[spec.trial] = spec.ahead
        save(spec, path)

    monkeypatch.setattr(TrialSpec, "save", save_noted)
    search(tmp_path / "search", settings(3), {1: "let go"})
    assert said == {0: False, 1: False, 2: True}


def test_a_trial_that_was_ready_and_never_began_is_none(tmp_path: Path) -> None:
    """Its number is the next driver's, and its folder too."""
    left = tmp_path / "search/trials/00001/noderank0"
    left.mkdir(parents=True)
    (left / "trial.jsonl").write_text("not a line of this trial\n")
    assert ends(search(tmp_path / "search", settings(2))) == dict.fromkeys(range(2))


def test_a_trial_that_was_ready_when_its_driver_was_killed_is_ended_before_another_has_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that stands still, and has yet to see that nobody speaks to it."""
    folder = tmp_path / "search/trials/00001"
    folder.mkdir(parents=True)
    rest: dict[str, Any] = {"hyperparameters": {}, "epochs": 1, "patience": None, "seed": 0}
    spec = spec_maker(tmp_path / "cache")(folder, trial=1, graph={}, parent=None, **rest)
    left = LocalLauncher().submit(Job("a trial", STUB, spec, folder, (), sys_path=spec.sys_path))
    left._file.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"))
    monkeypatch.setattr(reattach, "LEAVING", 0.1)
    try:
        assert ends(search(tmp_path / "search", settings(2))) == dict.fromkeys(range(2))
        assert left._agent.has_ended(within=PATIENCE)
    finally:
        left.stop()


def state_events(folder: Path) -> list[Event]:
    return list(read_journal(folder / FILE))


def test_a_trial_that_hangs_is_ended(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(2, setup=1.0), {1: "hang"})
    reason = ends(state)[1]
    assert reason is not None and reason.startswith("it hung: no sign of life for")


class Later(Numbers):
    """Whose first child is asked for when the search's time is over, and is none."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def perf_counter_ns(self) -> int:
        return time.perf_counter_ns() + round(self.ahead * 1e9)

    def propose(self, finished: Sequence[Trial], taken: Sequence[Trial], number: int) -> Made | None:
        self.ahead = 20_000.0
        return None


def test_a_trial_without_a_step_hangs_no_longer_than_another_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is no search of failures for that, however many devices have one.

    The clock is set forward when one trial has ended and the others run, however long that takes.
    """
    networks = Later()
    clock = SimpleNamespace(monotonic=networks.monotonic, perf_counter_ns=networks.perf_counter_ns, sleep=time.sleep)
    for module in ("driver", "running"):
        monkeypatch.setattr(f"proofmark.automl.search.{module}.time", clock)
    hangs = dict.fromkeys(range(1, 4), "hang")
    settled = settings(9, devices=4, most_seconds=10_000.0, hang=0.5, setup=1e6)
    state = search(tmp_path / "search", settled, hangs, networks=networks)
    assert state.ended == "10000 s are over" and [trial.number for trial in state.finished()] == [0]
    hung = [reason for reason in ends(state).values() if reason]
    assert len(hung) == 3 and all(reason.startswith("it hung: no sign of life for") for reason in hung)


def seconds_until_ended(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: float | None,
    sign: Callable[[float], tuple[int, str, float]],
    suspended: float = 0.0,
    evaluations: Sequence[int] = (10, 30),
) -> tuple[float, str]:
    """Of a trial that gives a sign of life: its step, phase and since when, at a moment; and why it was ended.

    It began after another with epochs of 80 s. After 50 s all stands still for as long as it is `suspended`.
    """
    now = [0.0]
    monkeypatch.setattr("proofmark.automl.search.running.time", SimpleNamespace(monotonic=lambda: now[0]))
    said = {"waits": False, "anew": False, "clock_ahead": 0.0, "left": ""}
    running: Any = SimpleNamespace(status=lambda: "running", tell=str, stop=str, **said)
    launcher: Any = SimpleNamespace(submit=lambda _: running)
    rest: dict[str, Any] = {
        "graph": {},
        "parent": None,
        "hyperparameters": {},
        "epochs": 1,
        "patience": None,
        "seed": 0,
    }
    trial = TrialProcess(spec_maker(folder)(folder, trial=0, **rest), launcher, 60.0, 60.0, STUB)
    trial.spec.folder.mkdir()
    evaluation = TOTALS | {
        "metric": 0.5,
        "samples_evaluated": 1,
        "took_seconds": 0.0,
        "event": "evaluation",
        "time": 0.0,
    }
    lines = [json.dumps(evaluation | {"clock": round(clock * 1e9)}) + "\n" for clock in evaluations]
    (trial.spec.folder / "trial.jsonl").write_text("".join(lines))
    trial.begin({}, given, usual=80.0)
    for second in range(1, 1000):
        now[0] += 1.0 + (suspended if second == 50 else 0.0)
        step, phase, since = sign(now[0])
        packed = struct.pack("=qqqqd", 9, 0, step, PHASES.index(phase), since)
        (trial.spec.folder / "rank0.heartbeat").write_bytes(packed)
        if end := trial.poll():
            return float(second), end["reason"]
    return math.inf, ""


def test_signs_of_life_keep_no_trial_running_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of its longest epochs and the patience with a setup after the search's time it is ended."""
    seconds, why = seconds_until_ended(tmp_path, monkeypatch, 100.0, lambda now: (5, "compute", now))
    assert (seconds, why) == (100.0 + 60.0 + 4 * 20.0 + 1.0, "it goes on 141 s after the search's time")


def test_a_first_epoch_may_be_as_long_as_those_of_other_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign = lambda now: (5, "compute", now)  # noqa: E731
    seconds, _ = seconds_until_ended(tmp_path, monkeypatch, 100.0, sign, evaluations=[10])
    assert seconds == 100.0 + 60.0 + 4 * 80.0 + 1.0


def test_a_trial_that_is_run_again_after_the_time_is_waited_for_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = lambda now: (5, "compute", now)  # noqa: E731
    seconds, _ = seconds_until_ended(tmp_path, monkeypatch, -100.0, sign, evaluations=[10])
    assert seconds == 60.0 + 4 * 80.0 + 1.0


def test_a_trial_is_told_how_long_epochs_were_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, begin = list[float](), TrialProcess.begin

    def noted(process: TrialProcess, *given: Any) -> None:
        told.append(given[-1])
        begin(process, *given)

    monkeypatch.setattr(TrialProcess, "begin", noted)
    state = search(tmp_path / "search", settings(2))
    first = state.trials[0].ended
    assert first is not None
    before, after = (epoch["clock"] / 1e9 for epoch in first["epochs"])
    assert told == [0.0, pytest.approx(after - before)]
    monkeypatch.setattr(Driver, "run", lambda driver, *_: driver._longest)
    assert search(tmp_path / "search", settings(3)) == max(_longest_epoch(trial) for trial in state.over) > 0.0


def test_a_sign_of_life_from_a_time_to_come_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, why = seconds_until_ended(tmp_path, monkeypatch, None, lambda _: (5, "compute", 1e9))
    assert seconds == 62.0 and why.startswith("it hung: no sign of life for 61 s")


@pytest.mark.parametrize("given", [None, 40.0])
def test_a_trial_that_was_suspended_with_its_driver_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: float | None
) -> None:
    """Neither by its last sign of before, nor by the search's time, which is over meanwhile."""

    def sign(now: float) -> tuple[int, str, float]:
        number = int(now if now > 36051.0 else min(now, 49.0)) // 50  # by the first look afterwards there is no other
        return number, "compute", max(1.0, 50.0 * number)

    seconds, why = seconds_until_ended(tmp_path, monkeypatch, given, sign, suspended=36000.0)
    expected = math.inf if given is None else 40.0 + 60.0 + 4 * 20.0 + 1.0 - 2.0  # the one look counts as three
    assert (seconds, why[:10]) == (expected, "it goes on" if given else "")


def test_a_step_may_take_three_times_as_long_as_any_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of an epoch's last batch, for whose shape a network is compiled anew."""

    def sign(now: float) -> tuple[int, str, float]:
        step, since = (0, 1.0) if now < 55.0 else (1, 55.0) if now < 200.0 else (2, 200.0)
        return step, "compute", since

    seconds, why = seconds_until_ended(tmp_path, monkeypatch, None, sign)
    assert seconds > 600.0 and why.startswith("it hung: no sign of life for 43") and why.endswith("in compute, step 2")


def test_a_search_whose_trials_all_fail_gives_up(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(9, devices=3), dict.fromkeys(range(9), "nan"))
    assert state.ended is not None and state.ended.startswith("3 trials in a row have failed, the last one: the loss")
    assert state.best() is None


def test_what_befalls_all_devices_at_once_is_one_failure(tmp_path: Path) -> None:
    """As one stall of the disk that they share; and none of a row is forgotten where it goes on."""
    all_run = tmp_path / "once/trials/00007/noderank0/begun"
    at_once = dict.fromkeys(range(4, 8), f"crash, having waited for {all_run}")
    state = search(tmp_path / "once", settings(12, devices=4), at_once)
    assert len(state.trials) == 12 and state.ended == "12 trials were begun" and state.parents == 8
    state = search(tmp_path / "on", settings(40, devices=4), dict.fromkeys(range(4, 40), "crash"))
    assert state.ended is not None and state.ended.startswith("3 trials in a row have failed") and state.parents == 4


class Unplaced(Handle):
    """A job that no node runs."""

    waits = True

    def status(self) -> Status:
        return "running"

    def fetch(self, leaves: Sequence[str]) -> str | None:
        return None

    def stop(self) -> None:
        pass


class Shared:
    """A cluster that has room for the first trials alone."""

    def __init__(self, placed: int) -> None:
        self._placed = placed

    def submit(self, job: Job) -> Handle:
        if int(job.directory.name) < self._placed:
            return LocalLauncher().submit(job)
        return Unplaced(JobFile.begin(None, job.name, "shared", job.directory))


def test_trials_that_no_node_runs_end_no_search_while_others_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster that others use too there may be no more room than for those."""
    monkeypatch.setattr(
        TrialProcess, "_before_steps", property(lambda trial: -1.0 if trial._handle.waits else PATIENCE)
    )
    unplaced = "no node has run it for 0 s"
    second = {1: f"wait for {tmp_path / 'shared/trials/00006'}"}
    state = search(tmp_path / "shared", settings(7, devices=2, ahead=False), second, Shared(2))
    expected = dict.fromkeys(range(2)) | dict.fromkeys(range(2, 7), unplaced)
    assert state.ended == "7 trials were begun" and ends(state) == expected
    state = search(tmp_path / "full", settings(7, devices=2, ahead=False), launcher=Shared(0))
    assert state.ended == f"3 trials in a row have failed, the last one: {unplaced}"


def test_a_search_that_gave_up_goes_on_once_the_cause_is_mended(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    given_up = search(folder, settings(6), dict.fromkeys(range(1, 9), "crash"))
    assert given_up.ended is not None and given_up.ended.startswith("3 trials in a row") and len(given_up.trials) == 4
    state = search(folder, settings(6))
    assert state.ended == "6 trials were begun" and state.drivers == 2 and state.parents == 3
    assert faults(read_journal(folder / FILE)) == [] and State.of(read_journal(folder / FILE)).ended == state.ended


def test_a_network_that_is_best_no_longer_is_not_the_one_to_be_judged(tmp_path: Path) -> None:
    """Of a search that had given up, and was gone on with."""
    journal = Journal(tmp_path)
    journal.write("examined", **EXAMINED, accuracy=0.5)
    assert is_examined(journal, 0) and not is_examined(journal, 1)
    journal.close()


def test_a_first_round_that_fails_is_tried_again_on_one_device(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(4), {0: "nan", 1: "crash"})
    assert state.ended == "4 trials were begun"
    assert [trial.begun["parent"] for trial in state.trials.values()] == [None, None, None, 2]
    state = search(tmp_path / "all", settings(9), dict.fromkeys(range(9), "nan"))
    assert (
        len(state.trials) == 3 and state.ended is not None and state.ended.startswith("3 trials in a row have failed")
    )


class Childless(Numbers):
    """Of one finished trial nothing can be made; `asked` is made when it was tried."""

    def __init__(self, asked: Path) -> None:
        self._asked = asked

    def propose(self, finished: Sequence[Trial], taken: Sequence[Trial], number: int) -> Made | None:
        self._asked.touch()
        return super().propose(finished, taken, number) if len(finished) > 1 else None


def test_what_nothing_is_made_of_ends_no_search_while_a_trial_may_become_a_parent(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    state = search(tmp_path / "two", settings(3, devices=2), {1: f"wait for {asked}"}, networks=Childless(asked))
    assert ends(state) == dict.fromkeys(range(3)) and state.ended == "3 trials were begun"
    state = search(tmp_path / "one", settings(3), networks=Childless(asked))
    assert ends(state) == {0: None} and state.ended == "no operation leads to another network"


def test_a_trial_that_saves_slowly_is_none_that_hangs(tmp_path: Path) -> None:
    assert ends(search(tmp_path / "search", settings(1, hang=0.2), {0: "save slowly"})) == {0: None}


class Unruly(LocalLauncher):
    """Whose first job complains when it is ended."""

    def __init__(self) -> None:
        super().__init__()
        self.handles = list[LocalHandle]()

    def submit(self, job: Job) -> LocalHandle:
        handle = super().submit(job)
        if not self.handles:
            stop = handle.stop

            def complain() -> None:
                stop()
                raise ProofmarkError("the first one complains")

            handle.stop = complain  # type: ignore[method-assign]
        self.handles.append(handle)
        return handle


def test_whatever_breaks_a_search_off_no_process_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a journal that takes no more, nor by one that can't be ended properly."""
    write = Journal.write

    def full(journal: Journal, kind: str, /, **fields: Any) -> Event:
        if kind == "trial_begin" and fields["trial"] == 2:
            raise OSError("no space left on device")
        return write(journal, kind, **fields)

    monkeypatch.setattr(Journal, "write", full)
    launcher = Unruly()
    with pytest.raises(ProofmarkError, match="the first one complains"):
        search(tmp_path / "search", settings(3, devices=3), dict.fromkeys(range(3), "hang"), launcher)
    assert "running" not in [handle.status() for handle in launcher.handles[1:]] and len(launcher.handles) == 3


OUTLIVED = "; process 7 goes on though it was killed"


class Stuck(LocalLauncher):
    """Some of whose jobs leave a process that nothing ends."""

    def __init__(self, *trials: int) -> None:
        super().__init__()
        self._trials = trials

    def submit(self, job: Job) -> LocalHandle:
        left = OUTLIVED if cast(TrialSpec, job.spec).trial in self._trials else ""

        class Handle(LocalHandle):
            @property
            def left(self) -> str:
                return left if self._agent.returncode is not None else ""

        return Handle(job, None)


def test_a_device_on_which_a_process_goes_on_has_no_other_trial(tmp_path: Path) -> None:
    """Whatever that trial came to; the others go on."""
    does, told = {3: "crash", 2: f"wait for {tmp_path / 'search/trials/00004'}"}, list[Progress]()
    state = search(tmp_path / "search", settings(8, devices=3), does, Stuck(0, 3), tell=told.append)
    assert state.ended == "8 trials were begun" and len(state.over) == 8
    devices = [trial.begun["device"] for trial in state.trials.values()]
    assert devices.count("0") == 1 and devices.count(devices[3]) <= 2
    assert ends(state)[3] == f"its process died: it fell over{OUTLIVED}" and ends(state)[0] is None
    assert told[-1].lost == 2


def test_a_search_without_a_device_ends_and_is_gone_on_with(tmp_path: Path) -> None:
    """On a machine that was started anew."""
    folder = tmp_path / "search"
    state = search(folder, settings(6, devices=2), {}, Stuck(0, 1, 2))
    assert state.ended == f"no device is left{OUTLIVED}" and 2 <= len(state.trials) < 6
    assert gave_up(state.ended) and not gave_up("6 trials were begun") and not gave_up(None)
    state = search(folder, settings(6, devices=2))
    assert state.ended == "6 trials were begun" and state.drivers == 2


@pytest.mark.parametrize("here", [True, False])
def test_a_trial_of_this_machine_counts_its_time_from_when_it_was_told(tmp_path: Path, here: bool) -> None:
    """However late it hears of it; elsewhere nobody knows that machine's clock."""
    said = list[str]()

    class Listening(LocalLauncher):
        def submit(self, job: Job) -> LocalHandle:
            handle = super().submit(job)
            tell = handle.tell
            handle.tell = lambda line: (said.append(line), tell(line))[1]  # type: ignore[method-assign, func-returns-value]
            return handle

    before = time.perf_counter_ns()
    search(tmp_path / "search", settings(1, ahead=here), launcher=Listening())
    (begin,) = (Begin.of(line.encode(), heard=0) for line in said)
    assert begin.heard == 0 if not here else before < begin.heard < time.perf_counter_ns()  # type: ignore[operator]


def test_time_that_is_over_begins_no_trial(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(9, most_seconds=1e-9))
    assert state.trials == {} and state.ended == "1e-09 s are over"


def test_a_driver_that_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    """No trial is lost, and none that has ended is done twice; the machine may have lost what the study is."""
    folder = tmp_path / "search"
    command = [sys.executable, "-m", "tests.automl.searches", str(folder), "kill the driver"]
    died = subprocess.run(command, cwd=ROOT, timeout=600, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    before = State.of(read_journal(folder / FILE))
    assert [trial.number for trial in before.open()] == [2]
    ended = {number: trial.ended for number, trial in before.trials.items() if trial.ended is not None}
    (folder / "study.jsonl").unlink()
    after = search(folder, settings(4))
    assert ends(after) == dict.fromkeys(range(4))
    assert len({trial.study for trial in after.trials.values()}) == 4
    assert after.trials[2].begun["attempt"] == 2 and after.drivers == 2
    assert {number: after.trials[number].ended for number in ended} == ended
    assert after.trials[2].begun["hyperparameters"] == before.trials[2].begun["hyperparameters"]
    again = search(folder, settings(4))
    assert again.drivers == 2 and again.trials == after.trials


def test_the_time_of_a_driver_that_is_killed_counts_to_its_last_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing was decided since a trial began, hours ago."""
    folder, noted, plain, written = tmp_path / "search", tmp_path / "noted", Journal.write, list[str]()

    def write(journal: Journal, event: str, **fields: Any) -> Event:
        written.append(event)
        found = plain(journal, event, **fields)
        if event == "going_on" and "trial_begin" in written:
            noted.touch()
        return found

    monkeypatch.setattr("proofmark.automl.search.driver.NOTED", 0.0)
    monkeypatch.setattr(Journal, "write", write)
    search(folder, settings(1), {0: f"wait for {noted}"})
    lines = (folder / FILE).read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event"] for line in lines]
    until_killed = kinds.index("trial_end")
    begun, last = (json.loads(lines[number]) for number in (0, until_killed - 1))
    assert last["event"] == "going_on"
    (folder / FILE).write_bytes(b"".join(lines[:until_killed]))
    seconds = State.of(read_journal(folder / FILE)).seconds
    assert seconds == pytest.approx((last["clock"] - begun["clock"]) / 1e9)
    after = search(folder, settings(1))
    assert after.drivers == 2 and after.seconds > seconds and not faults(read_journal(folder / FILE))


def test_a_trial_that_was_begun_has_an_end_though_the_time_is_over(tmp_path: Path) -> None:
    """Its driver died in it: it is run again, and no other is begun."""
    folder = tmp_path / "search"
    command = [sys.executable, "-m", "tests.automl.searches", str(folder), "kill the driver"]
    assert subprocess.run(command, cwd=ROOT, timeout=600).returncode == -signal.SIGKILL
    after = search(folder, settings(4, most_seconds=0.001))
    assert not after.open() and sorted(after.trials) == [0, 1, 2] and after.ended == "0.001 s are over"


@pytest.mark.parametrize("earlier", [(), (None,), (0.5,)])
def test_who_only_examines_the_best_says_that_its_clock_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: tuple[float | None, ...]
) -> None:
    """An earlier driver ended the search, on a machine that ran for longer. What gave a number is not done again."""
    folder = tmp_path / "search"
    state = search(folder, settings(1))
    journal = Journal(folder)
    for accuracy in earlier:
        journal.write("examined", **EXAMINED, accuracy=accuracy)
    journal.close()
    began = time.perf_counter_ns()
    monkeypatch.setattr("proofmark.record.events.log.time.perf_counter_ns", lambda: began // 2)
    journal = Journal(folder)
    settled = settings(1)
    study = Study(folder, settled.ranges, settled.seed, settled.startup)
    driver = Driver(folder, journal, settled, Numbers(), study, LocalLauncher(), spec_maker(tmp_path))
    assert driver.is_over
    if not is_examined(journal, 0):
        driver.take_over(describe_host().model_dump(), "0")
        journal.write("examined", **EXAMINED, accuracy=0.9)
    journal.close()
    events = list(read_journal(folder / FILE))
    assert not faults(events) and State.of(events).ended == state.ended
    last = [event for event in events if event["event"] == "examined"][-1]
    assert last["accuracy"] == (0.5 if 0.5 in earlier else 0.9)


def test_two_drivers_on_one_folder_are_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    try:
        with pytest.raises(UsageError, match="process .* is searching there; only one driver at a time"):
            Journal(tmp_path)
    finally:
        journal.close()
    Journal(tmp_path).close()


HELD = "import os, time; os.write(1, b'held'); os.read(0, 1); time.sleep(0.3)"


def test_a_lock_that_a_killed_driver_left_to_a_process_it_started_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its fork and its exec a child has what the driver had; a driver that lives is refused at once."""
    lock = os.open(tmp_path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    gone = subprocess.Popen(["true"])
    gone.wait()
    os.write(lock, f"{gone.pid}\n".encode())
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen([sys.executable, "-c", HELD], stdin=PIPE, stdout=PIPE, pass_fds=[lock]) as child:
        os.close(lock)
        assert child.stdin and child.stdout and child.stdout.read(4) == b"held"
        monkeypatch.setattr("proofmark.automl.search.journal.LINGER", 0.1)
        with pytest.raises(UsageError, match=f"process {gone.pid} is searching there"):
            Journal(tmp_path)
        monkeypatch.undo()
        child.stdin.write(b"x")
        child.stdin.flush()
        Journal(tmp_path).close()


def test_an_edited_journal_is_seen_and_not_gone_on_with(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    search(folder, settings(2))
    path = folder / FILE
    lines = path.read_text(encoding="utf-8").splitlines()
    for edit in (
        lambda own: [line.replace('"accuracy":0.51', '"accuracy":0.99') for line in own],
        lambda own: own[:2] + own[3:],
        lambda own: [own[0], own[2], own[1], *own[3:]],
        lambda own: [*own[:2], "no event", *own[2:]],
    ):
        path.write_text("\n".join(edit(list(lines))) + "\n", encoding="utf-8")
        assert faults(list(read_journal(path)))
        with pytest.raises(UsageError, match="a search cannot be resumed from it"):
            Journal(folder)


def test_a_clock_that_runs_back_is_told(tmp_path: Path) -> None:
    """Whatever wrote such lines and linked them well: nothing of a driver's."""
    folder = tmp_path / "search"
    search(folder, settings(1))
    head, lines = FIRST, []
    for number, event in enumerate(read_journal(folder / FILE)):
        own = {**event, LINK: head}
        own["clock"] = 0 if number == 2 else own["clock"]
        head = digest_of(own)
        lines.append(json.dumps(own))
    (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (fault,) = faults(read_journal(folder / FILE))
    assert fault.startswith("event 3, ") and fault.endswith("is earlier than the one before it")


def test_a_torn_last_line_is_no_damage(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    search(folder, settings(1))
    whole = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(whole + json.dumps({"event": "trial_begin"}).encode()[:-3])
    Journal(folder).close()
    assert (folder / FILE).read_bytes() == whole


def test_a_full_disk_ends_the_driver_and_another_goes_on(tmp_path: Path) -> None:
    """Events that fit in part are none: neither journal nor study is damaged by them."""
    folder = tmp_path / "search"
    command = [sys.executable, "-m", "tests.automl.searches", str(folder), "disk full"]
    died = subprocess.run(command, cwd=ROOT, timeout=600, capture_output=True, text=True)
    assert died.returncode == 1 and "OSError" in died.stderr, died.stderr
    before = State.of(read_journal(folder / FILE))
    assert 0 < len(before.over) < 4 and before.ended is None
    after = search(folder, settings(4))
    assert ends(after) == dict.fromkeys(range(4)) and after.drivers == 2
    assert faults(read_journal(folder / FILE)) == []
