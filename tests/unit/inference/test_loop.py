"""The timed loop against loaders, engines and evaluators that are slow, wrong or broken."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.inference.timing.loop import TimedRound, loader_round, timed_round
from proofmark.inference.timing.stages import AHEAD
from proofmark.metric import Mean
from tests.waiting import until

Batch = tuple[list[torch.Tensor], torch.Tensor]


class Loader:
    """`items` samples counted from 0, in batches of `size`; may be slow, or break at a batch."""

    def __init__(self, items: int = 10, size: int = 4, seconds: float = 0.0, breaks_at: int | None = None) -> None:
        self.dataset = range(items)
        self.starts = range(0, items, size)
        self.size, self.seconds, self.breaks_at = size, seconds, breaks_at
        self.drawn = 0

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Batch]:
        for number, start in enumerate(self.starts):
            if number == self.breaks_at:
                raise OSError("truncated image")
            time.sleep(self.seconds)
            self.drawn += 1
            items = torch.arange(start, min(start + self.size, len(self.dataset)))
            yield [items.float().unsqueeze(1)], items


def engine(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
    return [inputs[0] * 2], 0.0


def nothing() -> None:
    pass


def evaluate(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
    return float((outputs[0].squeeze(1) == 2 * targets).sum()), float(len(targets))


def run(loader: Loader | None = None, compute: Any = engine, synchronize: Any = nothing, **more: Any) -> TimedRound:
    metric = more.pop("metric", None) or Mean(more.pop("evaluate", evaluate))
    return timed_round(loader or Loader(), compute, synchronize, metric, **more)  # type: ignore[arg-type]


def mean(result: TimedRound) -> Mean:
    assert isinstance(result.score.metric, Mean)
    return result.score.metric


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = {*threading.enumerate()}  # of a test before some may still be ending
    yield
    until(lambda: not {*threading.enumerate()} - before, "the end of all threads")


class TestWhatIsRun:
    def test_every_sample_once_with_a_last_short_batch(self) -> None:
        result = run()
        assert (result.items, len(result.batch_ns), mean(result).weight) == (10, 3, 10.0)
        assert mean(result).compute() == 1.0

    def test_outputs_meet_their_own_targets_in_order(self) -> None:
        met: list[tuple[float, int]] = []

        def watch(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
            met.extend(zip(outputs[0].squeeze(1).tolist(), targets.tolist(), strict=True))
            return 0.0, len(targets)

        run(Loader(50, 3), evaluate=watch)
        assert met == [(2.0 * n, n) for n in range(50)]

    def test_progress_is_told_after_each_batch(self) -> None:
        reports: list[tuple[int, int]] = []
        run(progress=lambda batches, items: reports.append((batches, items)))
        assert reports == [(1, 4), (2, 8), (3, 10)]

    def test_nothing_weighed_is_no_accuracy(self) -> None:
        assert math.isnan(mean(run(evaluate=lambda outputs, targets: (0.0, 0.0))).compute())

    def test_foo_time_is_added_up_whatever_its_sign(self) -> None:
        signs = iter([0.5, -0.5, 0.0])
        assert run(compute=lambda inputs: ([inputs[0] * 2], next(signs))).foo_seconds == 1.0

    @pytest.mark.parametrize(
        "foo, undeclared, declared",
        [
            (0.0, None, None),
            (1e-9, "reports 3e-09 s of foo_time", None),
            (-1e-9, "reports 3e-09 s of foo_time", "not within its call"),
            (60.0, "reports 180 s of foo_time", "not within its call"),
            (math.nan, "reports nan s of foo_time", "not within its call"),
            (math.inf, "reports inf s of foo_time", "not within its call"),
        ],
    )
    def test_a_declared_foo_time_must_lie_within_its_call(
        self, foo: float, undeclared: str | None, declared: str | None
    ) -> None:
        result = run(compute=lambda inputs: ([inputs[0] * 2], foo))
        assert result.foo_fault(declared=False) == undeclared
        assert (declared or "None") in str(result.foo_fault(declared=True))

    @pytest.mark.parametrize("beside", [True, False])
    def test_as_many_passes_as_are_asked_for(self, beside: bool) -> None:
        result = run(passes=3, beside=beside)
        assert (result.passes, result.items, len(result.batch_ns), mean(result).weight) == (3, 30, 9, 30.0)
        assert mean(result).compute() == 1.0

    def test_nothing_runs_beside_the_compute_of_a_processor(self) -> None:
        loader, drawn = Loader(20, 2), []
        evaluated: list[int] = []

        def watch(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
            time.sleep(0.01)
            drawn.append((loader.drawn, len(evaluated), {*threading.enumerate()} - threads))
            return engine(inputs)

        def score(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
            evaluated.append(1)
            return evaluate(outputs, targets)

        threads = {*threading.enumerate()}  # of a test before some may still be ending
        run(loader, watch, evaluate=score, beside=False)
        assert drawn == [(number + 1, number, set()) for number in range(10)]


class Between:
    """When each batch was loaded, and when its evaluation began: a window lies between, however long others take."""

    def __init__(self, loading: float, evaluating: float) -> None:
        self.loaded, self.scored = list[int](), list[int]()
        between = self

        class Noted(Loader):
            def __iter__(self) -> Iterator[Batch]:
                for batch in super().__iter__():
                    between.loaded.append(time.perf_counter_ns())
                    yield batch

        def score(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
            between.scored.append(time.perf_counter_ns())
            time.sleep(evaluating)
            return evaluate(outputs, targets)

        self.result = run(Noted(seconds=loading), evaluate=score)

    def holds_windows(self) -> bool:
        windows = zip(self.result.batch_ns, self.loaded, self.scored, strict=True)
        return all(0 < window <= scored - loaded for window, loaded, scored in windows)


class TestClock:
    def test_core_is_compute_alone(self) -> None:
        def slow(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
            time.sleep(0.02)
            return engine(inputs)

        result = run(compute=slow)
        assert all(ns >= 20e6 for ns in result.batch_ns)
        assert result.whole_ns >= result.core_ns

    def test_slow_loader_is_not_in_core_and_is_in_whole(self) -> None:
        between = Between(0.05, 0.0)
        assert between.result.whole_ns >= 150e6
        assert between.holds_windows()

    def test_slow_evaluation_is_in_whole_and_not_in_core(self) -> None:
        between = Between(0.0, 0.05)
        assert between.result.whole_ns >= 150e6 and between.result.score.evaluation_ns >= 150e6
        assert between.holds_windows()

    @pytest.mark.parametrize("beside", [True, False])
    def test_what_is_computed_in_the_end_is_in_whole(self, beside: bool) -> None:
        class Slow:
            fed: list[int] = []

            def update(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
                self.fed += targets.tolist()

            def compute(self) -> float:
                assert self.fed == [*range(10)], "of all batches"
                ended.append(time.perf_counter_ns())
                time.sleep(0.15)
                return 1.0

        begun, ended = time.perf_counter_ns(), list[int]()
        result = run(metric=Slow(), beside=beside)
        assert result.whole_ns >= 150e6 and result.score.evaluation_ns >= 150e6
        assert result.core_ns <= ended[0] - begun
        Slow.fed.clear()

    def test_loading_runs_ahead_but_not_far(self) -> None:
        loader, drawn = Loader(100, 1), []

        def watch(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
            if not drawn:
                until(lambda: loader.drawn >= 2, "it to run ahead")
                time.sleep(0.2)
                drawn.append(loader.drawn)
            return engine(inputs)

        run(loader, watch)
        assert drawn[0] <= AHEAD + 2

    def test_an_asynchronous_device_is_waited_for_inside_the_window(self) -> None:
        class Device:
            """Answers at once and works on for 20 ms."""

            busy_until = 0.0

            def compute(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
                self.busy_until = time.perf_counter() + 0.02
                return engine(inputs)

            def synchronize(self) -> None:
                time.sleep(max(0.0, self.busy_until - time.perf_counter()))

        device = Device()
        result = run(compute=device.compute, synchronize=device.synchronize)
        assert all(ns >= 19e6 for ns in result.batch_ns)

    def test_the_device_is_waited_for_after_each_compute_and_nowhere_else(self) -> None:
        """Nothing of the vendor's runs where no clock runs; the end of a window leaves the device idle for the next."""
        order: list[str] = []

        def watch(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
            order.append("compute")
            return engine(inputs)

        run(compute=watch, synchronize=lambda: order.append("synchronize"))
        assert order == ["compute", "synchronize"] * 3

    def test_work_done_in_synchronize_counts(self) -> None:
        """An engine that computes while it is waited for, ahead where it can."""
        worked: list[int] = []

        def works() -> None:
            begun = time.perf_counter_ns()
            time.sleep(0.01)
            worked.append(time.perf_counter_ns() - begun)

        assert run(synchronize=works).core_ns >= sum(worked)


class TestFailures:
    def test_loader(self) -> None:
        with pytest.raises(OSError, match="truncated image"):
            run(Loader(breaks_at=1))

    @pytest.mark.parametrize("at", [1, 3])
    def test_engine(self, at: int) -> None:
        calls = []

        def breaks(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
            calls.append(1)
            if len(calls) == at:
                raise RuntimeError("lost the device")
            return engine(inputs)

        with pytest.raises(RuntimeError, match="lost the device"):
            run(Loader(400, 4), breaks)

    @pytest.mark.parametrize("items", [4, 400])
    def test_evaluator(self, items: int) -> None:
        def breaks(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
            raise ValueError("no such class")

        with pytest.raises(ValueError, match="no such class"):
            run(Loader(items), evaluate=breaks)

    @pytest.mark.parametrize("beside", [True, False])
    def test_a_metric_that_cannot_be_computed(self, beside: bool) -> None:
        class Breaks(Mean):
            def compute(self) -> float:
                raise ValueError("too few samples")

        with pytest.raises(ValueError, match="too few samples"):
            run(metric=Breaks(evaluate), beside=beside)

    def test_synchronize(self) -> None:
        def breaks() -> None:
            raise RuntimeError("device lost")

        with pytest.raises(RuntimeError, match="device lost"):
            run(synchronize=breaks)

    def test_interrupt(self) -> None:
        def breaks(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(compute=breaks)

    @pytest.mark.parametrize(
        "answer",
        [
            lambda x: x,
            lambda x: (x,),
            lambda x: [],
            lambda x: None,
            lambda x: [x[:-1]],
            lambda x: [x, x[:1]],
            lambda x: [x.sum()],
            lambda x: ["text"],
            lambda x: [None],
        ],
    )
    def test_an_answer_that_is_none(self, answer: Callable[[torch.Tensor], Any]) -> None:
        with pytest.raises(StepError, match="outputs are|output"):
            run(compute=lambda inputs: (answer(inputs[0]), 0.0))


def test_what_runs_beside_the_compute_has_one_thread_each() -> None:
    """Also where it first asks when the compute's own number is in force again."""
    under_way, seen = threading.Event(), list[int]()

    class Waiting(Loader):
        def __iter__(self) -> Iterator[Batch]:
            for number, batch in enumerate(super().__iter__()):
                if number == 1:
                    under_way.wait()
                    seen.append(torch.get_num_threads())
                yield batch

    def compute(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        under_way.set()
        return engine(inputs)

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(Waiting(), compute, evaluate=lambda *each: seen.append(torch.get_num_threads()) or evaluate(*each))
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("beside", [True, False])
def test_one_buffer_for_all_answers_changes_none_of_them(beside: bool) -> None:
    buffer = torch.empty(4, 1)

    def reuses(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        return [buffer[: len(inputs[0])].copy_(inputs[0] * 2)], 0.0

    assert run(compute=reuses, beside=beside).score.metric.compute() == 1


def test_the_loader_alone_as_many_passes_as_last_long_enough() -> None:
    loader = Loader(10, 2, seconds=0.002)
    items, seconds = loader_round(loader, 0.05)  # type: ignore[arg-type]
    assert seconds >= 0.05 and items % 10 == 0 and items == 2 * loader.drawn
    assert loader_round(Loader(10, 2), 0.0)[0] == 10, "one pass at least"  # type: ignore[arg-type]


def test_a_loader_of_nothing_is_not_walked_for_ever() -> None:
    assert loader_round(Loader(0), 1.0)[0] == 0  # type: ignore[arg-type]


def test_a_pass_over_much_data_is_ended() -> None:
    endless = Loader(10_000, 1, seconds=0.01)
    items, seconds = loader_round(endless, 0.05, most_seconds=0.1)  # type: ignore[arg-type]
    assert items == endless.drawn < 50 and seconds >= 0.1


def test_a_pass_that_its_order_ends_counts_what_was_being_loaded() -> None:
    class Ordered(Loader):
        to_come = 10_000

        def end(self) -> None:
            self.to_come = min(self.to_come, 3)

        def __iter__(self) -> Iterator[Batch]:
            for batch in super().__iter__():
                if not self.to_come:
                    return
                self.to_come -= 1
                yield batch

    ordered: Any = Ordered(10_000, 1, seconds=0.01)
    items, seconds = loader_round(ordered, 0.05, most_seconds=0.1, order=ordered)
    assert 3 < items == ordered.drawn - 1 < 50 and ordered.to_come == 0 and seconds >= 0.1
