"""Cheating engines, each right in every batch of the data and caught all the same; honest ones are never accused."""

from __future__ import annotations

import copy
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from harness import measure
from harness.config import EffectiveConfig
from harness.contention import ContentionMeter
from harness.errors import StepError
from harness.events import EventLog, read_events
from harness.honesty import _copied, distance, probe
from harness.measure import Measurer
from harness.pace import Paces
from harness.probes import Call, splice
from harness.record import Contention, Identity

pytestmark = pytest.mark.quiet

Answer = tuple[list[torch.Tensor], float]
WORK = 0.002
"""Seconds that the device takes for a batch."""


class Data:
    """Images whose class is a linear function of them, so that a perfect model exists."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(32, 10).eval()
        inputs = torch.randn(72, 32)
        with torch.no_grad():
            targets = self.model(inputs).argmax(-1)
        self.dataset = TensorDataset(inputs, targets)
        self.dataset.identity = Identity(name="made", sha256="0" * 64, items=72)  # type: ignore[attr-defined]
        self.loader: Any = DataLoader(self.dataset, batch_size=16, collate_fn=self._collate)

    @staticmethod
    def _collate(samples: list[Any]) -> tuple[list[torch.Tensor], torch.Tensor]:
        inputs, targets = zip(*samples, strict=True)
        return [torch.stack(inputs)], torch.stack(targets)

    @torch.no_grad()
    def honest(self, inputs: list[torch.Tensor]) -> Answer:
        time.sleep(WORK)
        return [self.model(inputs[0])], 0.0


def evaluator(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
    return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))


def measured(
    data: Data,
    engine: Callable[[list[torch.Tensor]], Answer],
    tmp_path: Path,
    synchronize: Callable[[], None] = lambda: None,
    with_model: bool = True,
) -> tuple[list[str], list[float]]:
    """What the engine is accused of, and its accuracy in each round."""

    def reference(inputs: list[torch.Tensor]) -> Answer:
        with torch.no_grad():
            return [data.model(inputs[0])], 0.0

    config = EffectiveConfig(
        "inference", "net", "embedded", "fake", {"warmup": 1}, {"precision": "fp32", "fp16": False, "log_freq": 100}
    )
    vendor: Any = SimpleNamespace(synchronize=synchronize, memory=lambda: (None, None), runs_on_processor=True)
    log = EventLog(tmp_path / "events.jsonl")
    first = next(iter(data.loader))[0]
    measurer = Measurer(config, data.loader, first, evaluator, vendor, log, lambda **_: None)
    measurer.measure("framework", reference, 1)
    measurer.measure("engine", engine, 3, probed=True, probed_with=reference if with_model else None)
    events = list(read_events(log.path))
    accusations = [event["what"] for event in events if event["event"] == "dishonest"]
    return accusations, [e["accuracy"] for e in events if e["event"] == "round" and e["of"] == "engine"]


class Cheats:
    """Each is a factory of an engine over some data."""

    @staticmethod
    def caches_outputs(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        known: dict[bytes, torch.Tensor] = {}

        def engine(inputs: list[torch.Tensor]) -> Answer:
            key = inputs[0].numpy().tobytes()
            if key not in known:
                known[key] = data.honest(inputs)[0][0]
            return [known[key].clone()], 0.0

        return engine

    @staticmethod
    def knows_the_data_by_heart(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """Has the data's answers from the start; computes only what it doesn't know."""
        known = {batch[0][0].numpy().tobytes(): batch[0] for batch in data.loader}

        def engine(inputs: list[torch.Tensor]) -> Answer:
            if inputs[0].numpy().tobytes() not in known:
                time.sleep(10 * WORK)
            with torch.no_grad():
                return [data.model(inputs[0])], 0.0

        return engine

    @staticmethod
    def ignores_its_input(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """Answers the data's batches in order, whatever it is asked."""
        state = {"turn": -3}  # the warm-up has three calls
        batches = [batch[0][0] for batch in data.loader]

        def engine(inputs: list[torch.Tensor]) -> Answer:
            fits = [b for b in batches if len(b) == len(inputs[0])]
            answered = batches[state["turn"] % len(batches)] if state["turn"] >= 0 else inputs[0]
            answered = answered if len(answered) == len(inputs[0]) else fits[0]
            state["turn"] += 1
            with torch.no_grad():
                return [data.model(answered)], 0.0

        return engine

    @staticmethod
    def answers_the_previous_batch(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        last: list[torch.Tensor] = []

        def engine(inputs: list[torch.Tensor]) -> Answer:
            with torch.no_grad():
                now = data.model(inputs[0])
            before = last.pop() if last else now
            last.append(now)
            return [before if before.shape == now.shape else now], 0.0

        return engine

    @staticmethod
    def skips_samples(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0].clone()
            answer[len(answer) - 1] = answer[0]
            return [answer], 0.0

        return engine

    @staticmethod
    def returns_before_the_device_is_done(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """An asynchronous device with a real delay, and nobody waits for it."""

        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = torch.empty(len(inputs[0]), 10)

            def device() -> None:
                time.sleep(WORK)
                with torch.no_grad():
                    answer.copy_(data.model(inputs[0]))

            threading.Thread(target=device).start()
            return [answer], 0.0

        return engine

    @staticmethod
    def answers_nan(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0].clone()
            low = answer.argmin(-1)
            answer[0, low[0]] = float("nan")
            return [answer.nan_to_num(nan=float("nan"))], 0.0

        return engine

    @staticmethod
    def answers_more_columns(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0]
            return [torch.cat([answer, answer[:, :1] - 1e6], -1)], 0.0

        return engine

    @staticmethod
    def answers_integers(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        def engine(inputs: list[torch.Tensor]) -> Answer:
            return [(data.honest(inputs)[0][0] * 1e4).long()], 0.0

        return engine

    @staticmethod
    def writes_into_its_input(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)
            inputs[0].mul_(0)
            return answer

        return engine

    @staticmethod
    def reports_foo_time(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        return lambda inputs: (data.honest(inputs)[0], 1e-4)

    @staticmethod
    def reports_negative_foo_time(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        return lambda inputs: (data.honest(inputs)[0], -1e-4)

    @staticmethod
    def sleeps_inside_foo_time(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        def engine(inputs: list[torch.Tensor]) -> Answer:
            start = time.perf_counter()
            time.sleep(WORK)
            return data.honest(inputs)[0], time.perf_counter() - start

        return engine

    @staticmethod
    def recognises_repeated_data(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """Computes anew what it is asked, unless it is what it was asked just now."""
        last: list[tuple[torch.Tensor, torch.Tensor]] = []

        def engine(inputs: list[torch.Tensor]) -> Answer:
            if last and last[0][0].shape == inputs[0].shape and torch.equal(last[0][0], inputs[0]):
                return [last[0][1].clone()], 0.0
            answer = data.honest(inputs)
            last[:] = [(inputs[0].clone(), answer[0][0].clone())]
            return answer

        return engine

    @staticmethod
    def answers_in_the_same_memory(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        memory: dict[int, torch.Tensor] = {}

        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0]
            held = memory.setdefault(len(answer), torch.empty_like(answer))
            return [held.copy_(answer)], 0.0

        return engine

    @staticmethod
    def knows_when_it_is_timed(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """Answers known data by heart, unless it was asked something new a short while ago."""
        known = {batch[0][0].numpy().tobytes() for batch in data.loader}
        state = {"asked": 0, "new": -100}

        def engine(inputs: list[torch.Tensor]) -> Answer:
            state["asked"] += 1
            if inputs[0].numpy().tobytes() not in known:
                state["new"] = state["asked"]
            if state["asked"] - state["new"] < 6:
                end = time.perf_counter() + 15 * WORK  # a sleep ends with a tick of the kernel's clock, and ticks beat
                while time.perf_counter() < end:
                    pass
            with torch.no_grad():
                return [data.model(inputs[0])], 0.0

        return engine

    @staticmethod
    def computes_the_first_rows_only(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """The last rows of a new batch get the answer of another row; those of the data are looked up."""
        known = {row.numpy().tobytes() for batch in data.loader for row in batch[0][0]}

        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0].clone()
            for row in range(len(answer) * 3 // 4, len(answer)):
                if inputs[0][row].numpy().tobytes() not in known:
                    answer[row] = answer[0]
            return [answer], 0.0

        return engine

    @staticmethod
    def looks_up_the_short_batch(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """Computes full batches; of the short one it knows the answers."""
        known = {batch[0][0].numpy().tobytes() for batch in data.loader if len(batch[0][0]) < 16}

        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0].clone()
            if len(answer) < 16 and inputs[0].numpy().tobytes() not in known:
                answer[:] = answer[0]
            return [answer], 0.0

        return engine

    @staticmethod
    def works_in_the_copy(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """A tensor of a type of its own, which computes when it is looked at."""

        class Lazy(torch.Tensor):
            pass

        return lambda inputs: ([data.honest(inputs)[0][0].as_subclass(Lazy)], 0.0)

    @staticmethod
    def computes_in_fp16(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """Where float32 was asked for."""
        model = copy.deepcopy(data.model).half()
        return lambda inputs: ([model(inputs[0].half()).float().detach()], 0.0)

    @staticmethod
    def keeps_its_weights_in_fp16(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        model = copy.deepcopy(data.model).half().float()
        return lambda inputs: ([model(inputs[0]).detach()], 0.0)


EXPECTED = {
    "computes_in_fp16": "answers new inputs",
    "keeps_its_weights_in_fp16": "answers new inputs",
    "knows_when_it_is_timed": "no faster when timed",
    "computes_the_first_rows_only": "answers new inputs",
    "looks_up_the_short_batch": "answers new inputs",
    "caches_outputs": "no memorised data",
    "knows_the_data_by_heart": "no memorised data",
    "ignores_its_input": "answers new inputs",
    "answers_the_previous_batch": "answers new inputs",
    "skips_samples": "answers new inputs",
    "returns_before_the_device_is_done": "waits for its device",
    "answers_nan": "answers NaN",
    "answers_more_columns": "another form",
    "answers_integers": "another form",
    "writes_into_its_input": "leaves its inputs alone",
    "reports_foo_time": "foo_time",
    "reports_negative_foo_time": "foo_time",
    "sleeps_inside_foo_time": "foo_time",
    "recognises_repeated_data": "no cached answers",
    "answers_in_the_same_memory": "memory of its previous answer",
}


@pytest.fixture(autouse=True)
def one_second_chance_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECOND_CHANCES", 1)
    monkeypatch.setattr(ContentionMeter, "seen", lambda self: Contention(others=0.0, stolen=0.0, idle=0.1))


@pytest.mark.parametrize("cheat, accusation", EXPECTED.items())
def test_a_cheating_engine_is_caught(cheat: str, accusation: str, tmp_path: Path) -> None:
    data = Data()
    accusations, _ = measured(data, getattr(Cheats, cheat)(data), tmp_path)
    assert any(accusation in told for told in accusations), accusations


def test_an_engine_whose_machine_becomes_busy_is_not_accused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has it a speed: it may be one that is fast until it meets something new."""
    last = SimpleNamespace(randint=lambda first, last: last)  # where the honesty round comes
    monkeypatch.setattr(measure, "random", SimpleNamespace(SystemRandom=lambda: last))
    data = Data()
    known = {batch[0][0].numpy().tobytes() for batch in data.loader}
    busy: list[bool] = []

    def engine(inputs: list[torch.Tensor]) -> Answer:
        if busy or (len(inputs[0]) == 16 and inputs[0].numpy().tobytes() not in known):
            busy.append(True)
            time.sleep(WORK)
        return data.honest(inputs)

    accusations, accuracies = measured(data, engine, tmp_path)
    assert not accusations and len(accuracies) == 3
    (told,) = (event["what"] for event in read_events(tmp_path / "events.jsonl") if event["event"] == "disturbed")
    assert re.fullmatch(r"timed again, the engine took \S+ ms a batch instead of \S+ ms", told)


def test_on_a_crowded_machine_nobody_is_accused_of_being_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContentionMeter, "seen", lambda self: Contention(others=0.3, stolen=0.0, idle=0.1))
    data = Data()
    accusations, _ = measured(data, Cheats.knows_when_it_is_timed(data), tmp_path)
    events = list(read_events(tmp_path / "events.jsonl"))
    (told,) = (event["what"] for event in events if event["event"] == "disturbed")
    assert not accusations and told.startswith("other processes took 30% of the cores while the engine took ")
    (check,) = (event for event in events if event["event"] == "check" and event["name"] == "no faster when timed")
    assert check["passed"] and check["bound"] is None and check["figure"] > 1.25


@pytest.mark.parametrize("cheat", ["answers_the_previous_batch", "caches_outputs", "skips_samples"])
def test_without_a_model_it_is_caught_too(cheat: str, tmp_path: Path) -> None:
    data = Data()
    accusations, _ = measured(data, getattr(Cheats, cheat)(data), tmp_path, with_model=False)
    assert accusations


def test_a_tensor_of_a_type_of_its_own_is_no_answer(tmp_path: Path) -> None:
    data = Data()
    with pytest.raises(StepError, match="plain, dense"):
        measured(data, Cheats.works_in_the_copy(data), tmp_path)


def test_every_cheat_is_expected_somewhere() -> None:
    assert {*EXPECTED, "works_in_the_copy"} == {name for name in vars(Cheats) if not name.startswith("_")}


def test_an_engine_that_is_right_only_at_first_is_as_good_as_its_worst_round(tmp_path: Path) -> None:
    data, calls = Data(), {"count": 0}

    def engine(inputs: list[torch.Tensor]) -> Answer:
        calls["count"] += 1
        answer = data.honest(inputs)[0][0]
        return [answer if calls["count"] < 10 else -answer], 0.0

    _, accuracies = measured(data, engine, tmp_path)
    assert min(accuracies) < 0.5


def test_an_asynchronous_device_that_is_waited_for_is_honest(tmp_path: Path) -> None:
    data, running = Data(), []

    def engine(inputs: list[torch.Tensor]) -> Answer:
        answer = torch.empty(len(inputs[0]), 10)

        def device() -> None:
            time.sleep(WORK)
            with torch.no_grad():
                answer.copy_(data.model(inputs[0]))

        running.append(threading.Thread(target=device))
        running[-1].start()
        return [answer], 0.0

    def synchronize() -> None:
        while running:
            running.pop().join()

    accusations, accuracies = measured(data, engine, tmp_path, synchronize)
    assert not accusations
    assert accuracies == [1.0, 1.0, 1.0]


def test_honest_engines_are_never_accused() -> None:
    """200 honesty rounds, at three precisions and with noise of the kind that a busy machine makes."""
    data, chance = Data(), torch.Generator().manual_seed(1)

    def compute(dtype: torch.dtype) -> Callable[[list[torch.Tensor]], Answer]:
        model = torch.nn.Linear(32, 10)
        model.load_state_dict(data.model.state_dict())
        model.to(dtype)

        @torch.no_grad()
        def engine(inputs: list[torch.Tensor]) -> Answer:
            time.sleep(float(torch.rand(1, generator=chance)) * 4e-4)
            return [model(inputs[0].to(dtype))], 0.0

        return engine

    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
        for _ in range(70):
            checks, _ = probe(data.loader, compute(dtype), lambda: None, compute(torch.float32), precision)
            assert [check for check in checks if not check.passed] == []


@pytest.mark.parametrize(
    "declared, computed",
    [("fp32", torch.float16), ("tf32", torch.bfloat16), ("fp16", torch.float8_e4m3fn), ("bf16", torch.float8_e5m2)],
)
def test_a_coarser_number_than_the_declared_one_is_caught(declared: str, computed: torch.dtype) -> None:
    torch.manual_seed(5)
    weights = [torch.randn(32, 32) / 4 for _ in range(8)]

    def through(form: torch.dtype) -> Callable[[list[torch.Tensor]], Answer]:
        def compute(inputs: list[torch.Tensor]) -> Answer:
            (state,) = inputs
            for weight in weights:
                state = torch.relu(state.to(form).float() @ weight.to(form).float())
            return [state], 0.0

        return compute

    checks, _ = probe(Data().loader, through(computed), lambda: None, through(torch.float32), declared)
    assert [check.name for check in checks if not check.passed] == ["answers new inputs"]


class TestParts:
    def test_spliced_inputs_are_new_and_of_the_same_form(self) -> None:
        one, other = torch.arange(24).reshape(4, 6), torch.arange(100, 124).reshape(4, 6)
        (spliced,) = splice([one], [other], 0.5, 1)
        assert spliced.shape == one.shape and spliced.dtype == one.dtype
        assert spliced[1].tolist() == [6, 7, 8, 103, 104, 105]

    def test_distance(self) -> None:
        wanted = torch.eye(4)
        assert distance(wanted.clone(), wanted) == 0
        assert distance(wanted.roll(1, 0), wanted) > 1
        assert distance(wanted * float("nan"), wanted) == float("inf")
        assert distance(wanted[:2], wanted) == float("inf")

    def test_a_pace_accuses_only_when_nearly_all_of_many_pairs_are_beyond_the_bound(self) -> None:
        assert Paces([1.0] * 5).clear
        assert not Paces([1.2] * 31).accused
        assert Paces([1.2] * 23 + [1.0] * 9).accused
        assert not Paces([1.2] * 22 + [1.0] * 10).accused


@pytest.mark.parametrize("slow, honest", [(1, True), (2, False), (16, False)])
def test_work_in_the_first_copy_is_told_from_a_core_that_was_taken_away(slow: int, honest: bool) -> None:
    calls = [
        Call("new", 0.001, [], [], [], [], first_copy=0.01 if number < slow else 1e-5, second_copy=1e-5)
        for number in range(16)
    ]
    check = _copied(calls)
    assert (check.name, check.passed) == ("no work after the clock", honest)
