"""A rank's data comes from a process without others' code, which counts what the rank takes."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proofmark.errors import StepError
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding import fed as fed_module
from proofmark.training.feeding import feeder, shelf, words
from proofmark.training.feeding.counts import Counts
from proofmark.training.feeding.fed import Fed, Supply
from proofmark.training.feeding.feeder import Feeder
from proofmark.training.feeding.loading import Planned, ahead
from proofmark.training.logs.outside import FEEDERS, standing
from proofmark.training.logs.ranks.handed_out import Evaluations, handed_out, tokens_per_item
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.node import feeders as node_feeders
from proofmark.training.node.feeders import Feeders
from proofmark.training.outcome.examined import HandedOut
from proofmark.training.outcome.verdict import judge
from tests.training_records import make_run, make_training
from tests.unit.training.tokens import ITEMS, KNOWN, Sequences, Tokens
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from proofmark.case import Batch

CONFIG: dict[str, Any] = {
    "global_batch_size": 4,
    "gradient_accumulation_steps": 1,
    "max_epoch": 2,
    "num_workers": 0,
    "max_samples_termination": None,
}


def config_of(**changes: Any) -> EffectiveConfig:
    return EffectiveConfig("training", "tokens", "embedded", "acme", {}, {**CONFIG, **changes})


class Pair:
    """A rank's end and its feeder, which feeds and listens in threads of this process."""

    def __init__(self, case: Any, rank: int = 0, world: int = 1, resumed: bool = False, **changes: Any) -> None:
        its, self.end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = config_of(**changes)
        page = Counts.make()
        self.counts = Counts(page)
        self.counts.begin()
        plan = Planned.of(case, config, rank, world, seed=3)
        self.feeder = Feeder(case, plan, ahead(config), its, self.counts, resumed)
        self.raised: list[BaseException] = []
        self._pipe = os.pipe()
        self._threads = [self._begun(call) for call in (self.feeder.feed, partial(self.feeder.listen, self._pipe[0]))]
        self.fed = Fed(self.end, config, world, seed=3)
        self.own = Planned.of(case, config, rank, world, seed=3)
        PAIRS.append(self)

    def _begun(self, call: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                call()
            except Exception as error:
                self.raised.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def listened(self) -> None:
        """Wait until the feeder has heard all that the rank said, which is gone."""
        self.end.close()
        self._threads[1].join(PATIENCE)

    def close(self) -> None:
        """Let no descriptor outlast its test."""
        self.listened()
        for descriptor in self._pipe:
            os.close(descriptor)


PAIRS: list[Pair] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No test leaves a pair's descriptors behind."""
    yield
    while PAIRS:
        PAIRS.pop().close()


def equal(one: Batch, other: Batch) -> bool:
    pairs = zip([*one[0], one[1]], [*other[0], other[1]], strict=True)
    return all(torch.equal(a, b) and a.stride() == b.stride() for a, b in pairs)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("at", [(0, 0), (1, 2)], ids=["whole", "resumed"])
def test_a_rank_is_fed_what_it_would_have_loaded(world: int, at: tuple[int, int]) -> None:
    """Across epochs, short batches, accumulation, borrowed samples; and all that it took is counted, no more."""
    totals = [0, 0]
    for rank in range(world):
        pair = Pair(Tokens(), rank, world, resumed=at != (0, 0), gradient_accumulation_steps=2)
        wanted = list(pair.own.batches(*at))
        found = pair.fed.batches(*at)
        assert all(equal(next(found), batch) for batch in wanted)
        pair.listened()
        totals[0] += pair.counts.samples
        totals[1] += pair.counts.tokens or 0
        assert pair.counts.began == at
        assert pair.counts.whole and pair.counts.laid == pair.counts.samples and not pair.raised
    assert totals[0] == (2 * ITEMS if at == (0, 0) else ITEMS - 8)
    assert at != (0, 0) or totals[1] == KNOWN


def test_what_lies_ahead_is_shown_and_not_taken() -> None:
    pair = Pair(Tokens())
    batches = pair.fed.batches(0, 0)
    kept = [next(batches) for _ in range(2)]
    assert [len(targets) for _, targets in kept] == [4, 4]
    pair.listened()
    assert pair.counts.samples == 8 <= pair.counts.laid <= 8 + 2 * 4


class Odd(Tokens):
    """Counts tokens in a way that a test says."""

    def __init__(self, tokens: Any) -> None:
        self._tokens = tokens

    def tokens(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> Any:
        return self._tokens


@pytest.mark.parametrize(
    "tokens, told",
    [
        (6, "an int"),
        ([6], r"a list of 1 \(an int\)"),
        (torch.tensor(6), r"a tensor \(\)"),
        (torch.ones(1, 6), r"a tensor \(1, 6\)"),
        (torch.ones(2), r"a tensor \(2,\)"),
    ],
)
def test_tokens_that_are_none_are_told_at_the_first_sample(tokens: Any, told: str) -> None:
    pair = Pair(Odd(tokens))
    pair.fed._say(bytes([words.SAMPLE]))
    pair.fed._ring()
    until(lambda: pair.raised, "the feeder's end")
    (error,) = pair.raised
    assert re.match(rf"tokens: returns {told}; expected a tensor \(1,\)", str(error)), error


def test_a_sample_counts_for_nothing() -> None:
    pair = Pair(Tokens())
    assert equal(pair.fed.sample(), pair.own.sample())
    assert len(next(pair.fed.batches(0, 0))[1]) == 4
    pair.listened()
    assert pair.counts.samples == 4


def test_what_a_rank_holds_is_not_laid_over() -> None:
    pair = Pair(Tokens())
    batches = pair.fed.batches(0, 0)
    held = [next(batches) for _ in range(6)]
    assert all(equal(batch, own) for batch, own in zip(held, pair.own.batches(0, 0), strict=True))


def test_a_rank_that_gives_nothing_back_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "HELD", 3)
    pair = Pair(Tokens(), max_epoch=9)
    batches = pair.fed.batches(0, 0)
    held = [next(batches) for _ in range(2 + 3)]
    pair._threads[0].join(PATIENCE)
    assert "holds 5 batches that it has not given back" in str(pair.raised[0])
    assert len(held) == 5 <= len(pair.feeder._shelf._out) <= 5 + 2


def test_a_rank_that_gives_them_back_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "HELD", 1)
    pair = Pair(Tokens(), max_epoch=9)
    wanted, found = list(pair.own.batches(0, 0)), pair.fed.batches(0, 0)
    assert all(equal(next(found), batch) for batch in wanted)


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a rank has rung; and as many small batches may lie ready at the beginning as later."""
    monkeypatch.setattr(shelf, "SHARE", 1)
    rings: list[int] = []
    ring = os.eventfd_write
    monkeypatch.setattr(os, "eventfd_write", lambda bell, count: rings.append(count) or ring(bell, count))
    return rings


def test_small_batches_wake_their_feeder_once_for_half_of_them(rung: list[int]) -> None:
    pair = Pair(Tokens(), max_epoch=12)
    batches = pair.fed.batches(0, 0)
    kept = [next(batches) for _ in range(12)]
    until(lambda: len(pair.feeder._shelf._waiting) == feeder.SMALL, "as many as may lie ready")
    rung.clear()
    kept += [next(batches) for _ in range(2 * feeder.SMALL)]
    assert len(rung) == 4 and len(kept) == 28
    pair.listened()
    assert pair.counts.samples == sum(len(targets) for _, targets in kept), "those too that no ringing told of"


def test_no_more_small_batches_lie_ready_than_a_share_of_those_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a training that reaches its target soon, or is resumed, so many may be taken after the clock stands."""
    monkeypatch.setattr(shelf, "SHARE", 4)
    pair = Pair(Tokens(), max_epoch=12)
    batches = pair.fed.batches(0, 0)
    for taken in range(1, 30):
        next(batches)
        assert len(pair.feeder._shelf._waiting) <= max(2, taken // 4)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("accumulation", [200, 300])
def test_many_micro_batches_of_a_step_come_to_the_plans_end(
    accumulation: int, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of words that nobody hears yet a socket has room for 278."""
    changes = {"global_batch_size": ITEMS, "gradient_accumulation_steps": accumulation, "max_epoch": 3}
    pair = Pair(Tokens(), **changes)
    if pinned:
        monkeypatch.setattr(fed_module, "can_pin", lambda: True)
        monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
        monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: None)
        monkeypatch.setattr(pair.fed, "_pinned", pair.fed._laid)
        pair.fed.pin()
    batches = pair.fed.batches(0, 0)
    for _ in range(3):
        step = [next(batches) for _ in range(accumulation)]
        del step
    pair.end.shutdown(socket.SHUT_RDWR)  # the thread that pins waits there for more
    pair.listened()
    assert pair.counts.samples == 3 * ITEMS and pair.counts.whole and not pair.raised


@given(lengths=st.lists(st.sampled_from([1, 100, 130, 150, 180, 250, 400, 4000]), min_size=12, max_size=60))
def test_whatever_lies_ready_a_rank_that_takes_it_all_rings(lengths: list[int]) -> None:
    """However many batches of each size may: a feeder that has no room waits for that."""
    said: list[bytes] = []
    rank = SimpleNamespace(send=said.append, sendmsg=lambda *_: None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shelf, "SMALL", 4096)
        its = shelf.Shelf[None](cast("socket.socket", rank), 2, "train_batch_size", small=8)
        for length in lengths:
            its.lay(([torch.zeros(length)], torch.zeros(1)), None)
            while not its.has_room:
                rings = [words.LAID_FORM.unpack_from(message)[1] for message in said]
                assert any(rings)
                for message in said[: 1 + rings.index(True)]:
                    its.take(words.TAKEN_FORM.pack(words.TAKEN) + message[4:8])
                del said[: 1 + rings.index(True)]


class Pictures(Tokens):
    """Images as a stack of them may lie."""

    def build_dataset(self, config: EffectiveConfig, split: str) -> Any:
        class Lying(Sequences):
            def __getitems__(self, indices: list[int]) -> Batch:
                images = torch.arange(len(indices) * 24.0).reshape(-1, 2, 4, 3)
                return [images.permute(0, 3, 1, 2), images[:, :, :, :1].transpose(1, 2)], torch.tensor(indices)

        return Lying()

    def tokens(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> None:  # type: ignore[override]
        return None


def test_channels_lie_where_they_lay() -> None:
    pair = Pair(Pictures())
    (images, other), _ = next(pair.fed.batches(0, 0))
    (own, wanted), _ = next(pair.own.batches(0, 0))
    assert torch.equal(images, own) and images.stride() == own.stride() and not images.is_contiguous()
    assert torch.equal(other, wanted)
    pair.listened()
    assert pair.counts.samples == 4 and pair.counts.tokens is None


@pytest.mark.parametrize(
    "word, expected",
    [
        (words.TAKEN_FORM.pack(words.TAKEN) + words.NUMBER.pack(99), "a slot that it does not have"),
        (words.TAKEN_FORM.pack(words.TAKEN) + b"xx", "iterative unpacking"),
        (words.BEGIN_FORM.pack(words.BEGIN, 0, 0), "asks for what it has asked for"),
        (bytes([words.SAMPLE]), "asks for what it has asked for"),
        (words.TAKEN_FORM.pack(words.TAKEN) * 4000, "a slot that it does not have"),
    ],
)
def test_a_rank_that_says_what_is_no_word_is_heard_no_more(word: bytes, expected: str) -> None:
    pair = Pair(Tokens())
    next(pair.fed.batches(0, 0))
    pair.fed._laid()  # another lies there, to be taken
    pair.end.send(word)
    pair.listened()
    assert any(expected in str(error) for error in pair.raised) and not pair.counts.whole


@pytest.mark.parametrize("at", [(1, 0), (0, 1)])
def test_without_a_checkpoint_a_rank_begins_at_the_beginning(at: tuple[int, int]) -> None:
    pair = Pair(Tokens())
    pair.end.send(words.BEGIN_FORM.pack(words.BEGIN, *at))
    pair.listened()
    expected = f"it begins at batch {at[1]} of epoch {at[0]} without a checkpoint"
    assert [str(raised) for raised in pair.raised] == [expected]
    assert not pair.counts.whole and pair.counts.laid == 0


@pytest.mark.parametrize("at", [(0, 1 << 40), (1 << 31, 1 << 63)])
def test_a_rank_begins_within_an_epoch(at: tuple[int, int]) -> None:
    """With a checkpoint it says from where; what is recorded of it is a number of 64 bits yet."""
    pair = Pair(Tokens(), resumed=True)
    pair.end.send(words.BEGIN_FORM.pack(words.BEGIN, *at))
    pair.listened()
    expected = f"it begins at batch {at[1]} of an epoch of {len(pair.own.order)}"
    assert [str(raised) for raised in pair.raised] == [expected] and pair.counts.began == (0, 0)


@pytest.mark.parametrize("quiet", [lambda end: end.send(b""), lambda end: end.shutdown(socket.SHUT_WR)])
def test_a_rank_that_is_there_and_says_nothing_has_not_ended(quiet: Callable[[socket.socket], Any]) -> None:
    pair = Pair(Tokens())
    next(pair.fed.batches(0, 0))
    quiet(pair.end)
    pair.fed._ring()
    pair._threads[0].join(PATIENCE)
    pair.listened()
    assert any("an unknown request" in str(error) for error in pair.raised) and not pair.counts.whole


def test_why_there_is_no_more_data_lies_behind_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has not read all that it was told, and ends, breaks the line: that is told first, and once."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    hello = json.dumps([Identity(name="words", sha256="0" * 64).model_dump(), 5]).encode()
    far.send(bytes([words.HELLO]) + hello)
    supply = Supply(near, 1)
    near.send(b"taken")
    far.send(bytes([words.FAILED]) + b"sample 3 can't be read")
    far.close()
    with pytest.raises(StepError, match="sample 3 can't be read"):
        supply._laid()


def test_a_rank_cannot_take_what_does_not_lie_there() -> None:
    pair = Pair(Tokens())
    for _ in range(2):
        pair.end.send(words.TAKEN_FORM.pack(words.TAKEN))
    pair.listened()
    assert "takes a batch that is not there" in str(pair.raised[0]) and pair.counts.samples == 0


def no_memory(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_no_memory_for_a_batch_is_told_with_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(Tokens())
    monkeypatch.setattr(os, "posix_fallocate", no_memory)
    pair.fed.batches(0, 0)
    pair._threads[0].join(PATIENCE)
    assert "No space left on device; free memory, or set a smaller train_batch_size" in str(pair.raised[0])


def fed_with(*messages: bytes) -> Fed:
    """A rank whose feeder says this and ends."""
    its, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    identity = json.dumps([Sequences.identity.model_dump(mode="json"), ITEMS]).encode()
    bell = os.eventfd(0)
    socket.send_fds(its, [bytes([words.HELLO]) + identity], [bell])
    os.close(bell)
    for message in messages:
        its.send(message)
    its.close()
    return Fed(end, config_of(), 1, 0)


def test_why_there_is_no_more_reaches_the_rank() -> None:
    fed = fed_with(bytes([words.FAILED]) + b"data/x.png can't be read")
    with pytest.raises(StepError, match="data/x.png can't be read"):
        fed._laid()
    with pytest.raises(StepError, match="the process that loads its data has ended"):
        fed_with().sample()
    assert fed_with().identity == Identity(name="sequences", sha256="0" * 64, items=ITEMS)


def test_a_batch_whose_memory_did_not_come_is_told() -> None:
    with pytest.raises(StepError, match="too many files are open here"):
        fed_with(words.SLOT_FORM.pack(words.SLOT, 1, 4096))._laid()


class Agent(list[dict[str, Any]]):
    """Its log."""

    def write(self, event: str, **fields: Any) -> None:
        self.append({"event": event, **fields})


@pytest.fixture
def feeders() -> tuple[Feeders, Agent]:
    agent: Any = Agent()
    return Feeders({0: 1}, agent), agent


def counted(made: Feeders, code: int | None, whole: bool) -> Any:
    """As if rank 0's had counted and ended; what it had counted at a look between."""
    counts = Counts(Counts.make())
    counts.begin()
    made._counts[0] = counts
    counts.lay(9)
    counts.take(4, 20)
    counts.evaluate(30)
    between = made.now()
    counts.take(3, 10)
    counts.evaluate(20)
    made.ended(made.now())
    counts.lay(5)
    counts.evaluate(10)
    if whole:
        counts.end()
    process: Any = SimpleNamespace(returncode=code)
    made._process = process
    return between


def test_an_agent_writes_down_what_was_counted(feeders: tuple[Feeders, Agent]) -> None:
    made, agent = feeders
    counted(made, 0, whole=True)
    made.tell()
    taken = {"samples": 7, "tokens": 30, "began": (0, 0), "shown_before": 0, "by_the_end": 9}
    assert agent == [{"event": "fed", "rank": 0, **taken, "evaluated": 50, "evaluated_before": 0}]


def test_an_agent_notes_what_was_shown_before_training_began(feeders: tuple[Feeders, Agent]) -> None:
    made, agent = feeders
    made.begun(counted(made, 0, whole=True))
    made.tell()
    assert (agent[0]["shown_before"], agent[0]["evaluated_before"]) == (9, 30)
    made.begun(None)
    made.tell()
    assert (agent[1]["shown_before"], agent[1]["evaluated_before"]) == (0, 0), "nobody looked before"


def test_one_that_was_killed_is_named(feeders: tuple[Feeders, Agent]) -> None:
    made, agent = feeders
    counted(made, -9, whole=False)
    made.tell()
    reason = "the process that loads its data died of signal 9 (SIGKILL)"
    assert agent == [{"event": "rank_ended", "rank": 0, "reason": reason}]


def test_one_that_cannot_be_started_is_told(
    feeders: tuple[Feeders, Agent], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, agent = feeders
    monkeypatch.setattr(node_feeders, "start_module", no_memory)
    assert not made.start(tmp_path / "spec.json", {})
    reason = "the process that loads its data can't be started: No space left on device"
    assert agent == [{"event": "rank_ended", "rank": 0, "reason": reason}]
    made.end()


@pytest.mark.parametrize("said", [None, b"", b"rubbish", b"{" + b" " * (1 << 16) + b"}"])
def test_where_nothing_says_which_data_it_is_nobody_knows(feeders: tuple[Feeders, Agent], said: bytes | None) -> None:
    made, _ = feeders
    assert made.data() == {}, "it was not started"
    made._told, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with made._told, other:
        if said is not None:
            other.send(said)
        assert made.data() == {}


SLEEPS = "import time; print(flush=True); time.sleep(600)"
SHOWS = f"import faulthandler; faulthandler.register(10, all_threads=True); {SLEEPS}"


def test_only_one_that_has_begun_is_asked_where_it_is(feeders: tuple[Feeders, Agent]) -> None:
    """To another the question would be its end."""
    made, _ = feeders
    pipe = subprocess.PIPE
    begun = [subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe) for code in (SLEEPS, SHOWS)]
    assert all(process.stdout and process.stdout.readline() for process in begun)
    for rank, process in enumerate(begun):
        made._counts[rank] = Counts(Counts.make())
        made._process = process
        made.stacks({rank: "data"})
    assert [process.poll() for process in begun] == [None, None]
    for process in begun:
        process.kill()
    silent, shown = (process.communicate()[1] for process in begun)
    assert b"most recent call first" in shown and not silent


def test_a_page_of_counts_has_no_descriptor() -> None:
    before = os.listdir("/proc/self/fd")
    counts = Counts(Counts.make())
    assert os.listdir("/proc/self/fd") == before
    counts.take(3, 5)
    assert (counts.samples, counts.tokens) == (3, 5)


def test_a_page_that_cannot_be_mapped_is_told(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="denied|No such device"):
        Counts(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_page_is_seen_from_both_sides() -> None:
    descriptor = Counts.make()
    one, other = Counts(os.dup(descriptor)), Counts(descriptor)
    one.take(3, None)
    assert other.samples == 3


def logs(samples: int = 100, before: int = 0, ranks: int = 1, end: bool = True) -> list[RankLog]:
    found = [RankLog(rank) for rank in range(ranks)]
    for log in found:
        log.last["dataset"] = {"event": "dataset", "items": 50}
        log.last["train_begin"] = {"event": "train_begin", "samples": before, "steps": before // 10}
        if end:
            log.last["train_end"] = {"event": "train_end", "samples": samples, "step": samples // 10}
    return found


def fed(rank: int, samples: int, tokens: int | None = None, by_the_end: int | None = 200) -> dict[str, Any]:
    return {"event": "fed", "rank": rank, "samples": samples, "tokens": tokens, "by_the_end": by_the_end}


def test_all_ranks_counts_are_added_up() -> None:
    two = [fed(0, 60, 120, 70), fed(1, 40, 80, 50)]
    found = handed_out(logs(ranks=2), two, resumed=False)
    assert found and found.wrong is None
    assert (found.claimed, found.samples, found.by_the_end, found.tokens) == (100, 100, 120, 200)
    assert tokens_per_item(RankLog(0), [], found) == 2.0
    for events in (two[:1], [], [*two, fed(2, 1)]):
        assert handed_out(logs(ranks=2), events, resumed=False) is None
    assert handed_out(logs(end=False), [fed(0, 100)], resumed=False) is None


def test_what_a_resumed_run_has_from_before_was_not_handed_out_in_it() -> None:
    went_on = handed_out(logs(before=30), [fed(0, 70)], resumed=True)
    assert went_on and went_on.claimed == 70 and went_on.wrong is None
    fresh = handed_out(logs(before=30), [fed(0, 70)], resumed=False)
    assert fresh and fresh.wrong, "only the session says that it is one"


CLAIM = "it says that it was trained on 200 samples, and its ranks"


@pytest.mark.parametrize(
    "samples, by_the_end, wrong",
    [
        (200, 216, None),
        (200, None, f"{CLAIM} were shown nobody knows how many before its end: an agent did not see that"),
        (100, 216, f"{CLAIM} took 100 from the processes that load them"),
        (400, 400, f"{CLAIM} took 400 from the processes that load them"),
        (200, 116, f"{CLAIM} were shown 116 before its end"),
    ],
)
def test_claims_of_other_samples_than_were_handed_out(samples: int, by_the_end: int | None, wrong: str | None) -> None:
    taken = HandedOut(claimed=200, samples=samples, by_the_end=by_the_end, tokens=None)
    verdict = make_training(make_run(handed_out=taken), fed=True).verdict
    assert verdict is not None
    assert (str(verdict.kind), verdict.reasons) == (("ERROR", (wrong,)) if wrong else ("PASS", ()))
    (found,) = (each for each in standing((), None, taken, walled=True) if each.what == "samples")
    assert (found.verified, found.by) == ((False, "the ranks") if wrong else (True, FEEDERS))


def test_a_run_is_held_to_its_counts_by_what_it_began_with() -> None:
    """One of before there were feeders says nothing of them, and is judged as it was."""
    assert judge(make_training()).kind == "PASS"
    verdict = judge(make_training(fed=True))
    missing = "nothing says how many samples its ranks took from the processes that load them"
    assert (str(verdict.kind), verdict.reasons) == ("ERROR", (missing,))


def test_of_a_resumed_run_the_samples_before_are_a_claim() -> None:
    taken = HandedOut(claimed=70, samples=70, by_the_end=80, tokens=700)
    found = {each.what: each.verified for each in standing((), None, taken, text=True, resumed=True, walled=True)}
    assert not found["samples"] and found["tokens"]


def test_without_a_wall_what_was_counted_is_a_claim() -> None:
    taken = HandedOut(claimed=70, samples=70, by_the_end=80, tokens=700)
    found = {each.what: (each.verified, each.by) for each in standing((), None, taken, text=True)}
    assert found["samples"] == found["tokens"] == (False, "the ranks")


def held(
    *events: dict[str, Any], resumed: bool = False, before: int = 0, evaluations: Evaluations | None = None
) -> str | None:
    """What is wrong with two ranks' counts, of 50 samples in batches of 15: the fourth has five."""
    ranks = logs(ranks=len(events))
    for log in ranks:
        log.last["train_begin"] |= {"steps": 4 if before else 0, "samples": before}
        log.last["train_end"] |= {"step": 8, "samples": 100}
    found = handed_out(ranks, events, resumed, 15, evaluations)
    assert found is not None
    return found.wrong


WHOLE: dict[str, Any] = {"began": [0, 0]}


def test_each_rank_has_its_part_of_the_plan() -> None:
    """Of an epoch of 15, 15, 15 and 5 the first of two ranks has 8, 8, 8 and 3, the second one less of each."""
    assert held(fed(0, 54) | WHOLE, fed(1, 46) | WHOLE) is None
    swapped = held(fed(0, 46) | WHOLE, fed(1, 54) | WHOLE)
    assert swapped == "rank 0 took 46 samples; expected 54, its part of the plan"
    late = held(fed(0, 54) | WHOLE, fed(1, 46, by_the_end=45) | WHOLE)
    assert late == "rank 1 was shown 45 samples before the end; it took 46"


@pytest.mark.parametrize(
    "before, wrong",
    [
        ({"shown_before": 0}, None),
        ({"shown_before": 1}, "rank 1 was shown 1 samples before its training began; expected none"),
        ({"before": 14}, None),
        ({"before": 15}, "rank 1 took 15 samples before its training began; at most 14 may be"),
    ],
)
def test_what_is_shown_before_the_clock_runs_is_held_against_a_rank(before: dict[str, int], wrong: str | None) -> None:
    """In older logs it is what was taken."""
    assert held(fed(0, 54) | WHOLE, fed(1, 46) | WHOLE | before) == wrong


def evaluated(rank: int, samples: int, before: int) -> dict[str, Any]:
    return fed(rank, 46 if rank else 54) | WHOLE | {"evaluated": samples, "evaluated_before": before}


@pytest.mark.parametrize("interval, due", [(0, 2), (15, 6), (40, 2), (7, 8), (11, 7)])
def test_each_rank_is_evaluated_on_its_part_as_often_as_the_plan_has_it(interval: int, due: int) -> None:
    """After an epoch's 15, 30, 45 and 50 samples, and after those of a second one; shorter steps may have none."""
    plan, first = Evaluations(interval, epochs=2, items=9), evaluated(0, 5 + due * 5, 5)
    assert held(first, evaluated(1, 4 + due * 4, 4), evaluations=plan) is None
    assert held(first, fed(1, 46) | WHOLE, evaluations=plan) is None, "of before they were counted"
    less = held(first, evaluated(1, 3 + due * 4, 0), evaluations=plan)
    assert less == f"rank 1 was given {3 + due * 4} samples to be evaluated on; the plan has {4 + due * 4} for it"
    sooner = held(first, evaluated(1, 4 + due * 4, 5), evaluations=plan)
    of_those = f"rank 1 was given {due * 4 - 1} samples to be evaluated on while it trained"
    assert sooner == f"{of_those}; the plan has {due * 4} for it"


def test_a_run_that_goes_on_has_the_evaluations_of_its_own_steps() -> None:
    plan, began = Evaluations(0, epochs=2, items=9), {"began": [1, 0]}
    went_on = [fed(0, 27) | began | {"evaluated": 10}, fed(1, 23) | began | {"evaluated": 8}]
    assert held(*went_on, resumed=True, before=50, evaluations=plan) is None


def test_a_plan_has_no_more_evaluations_than_steps() -> None:
    assert Evaluations(15, epochs=2, items=9).due(0, 10**15, 50, 15) == 6


def test_ranks_that_go_on_begin_at_one_place() -> None:
    first, second = fed(0, 27) | WHOLE | {"began": [1, 0]}, fed(1, 23) | WHOLE
    assert held(first, second | {"began": [1, 0]}, resumed=True, before=50) is None
    for_more = held(first | {"began": [1, 1]}, second | {"began": [1, 1]}, resumed=True, before=50)
    assert for_more == "it says that it went on after step 4, and took samples from after step 5 on"
    wrong = held(first, second, resumed=True, before=50)
    assert wrong == "its ranks began at different places of the plan: batch 0 of epoch 0 and batch 0 of epoch 1"


def test_a_log_of_before_says_nothing_of_beginnings() -> None:
    assert held(fed(0, 60), fed(1, 40)) is None
