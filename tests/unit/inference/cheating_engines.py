"""Data with a perfect model, and engines that cheat, each right in every batch of the data."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from proofmark.record.parts import Identity

Answer = tuple[list[torch.Tensor], float]
WORK = 0.002
"""Seconds that the device takes for a batch."""

WARM = 3
"""Calls before anything is timed, of the first batch and twice of the short one: in those each is honest."""


class Data:
    """Images whose class is a linear function of them, so that a perfect model exists."""

    def __init__(self, items: int = 72) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(32, 10).eval()
        inputs = torch.randn(items, 32)
        with torch.no_grad():
            targets = self.model(inputs).argmax(-1)
        self.dataset = TensorDataset(inputs, targets)
        self.dataset.identity = Identity(name="made", sha256="0" * 64, items=items)  # type: ignore[attr-defined]
        self.loader: Any = DataLoader(self.dataset, batch_size=16, collate_fn=self._collate)

    @staticmethod
    def _collate(samples: list[Any]) -> tuple[list[torch.Tensor], torch.Tensor]:
        inputs, targets = zip(*samples, strict=True)
        return [torch.stack(inputs)], torch.stack(targets)

    take: Callable[[float], None] = staticmethod(time.sleep)
    """How time passes."""

    @torch.no_grad()
    def honest(self, inputs: list[torch.Tensor]) -> Answer:
        time.sleep(WORK)
        return [self.model(inputs[0])], 0.0


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
    def answers_more_columns(data: Data, warm: int = WARM) -> Callable[[list[torch.Tensor]], Answer]:
        calls = itertools.count()

        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0]
            return [answer if next(calls) < warm else torch.cat([answer, answer[:, :1] - 1e6], -1)], 0.0

        return engine

    @staticmethod
    def answers_integers(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        calls = itertools.count()

        def engine(inputs: list[torch.Tensor]) -> Answer:
            answer = data.honest(inputs)[0][0]
            return [answer if next(calls) < WARM else (answer * 1e4).long()], 0.0

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
                answer = answer.roll(1, 0)  # each row is wrong: which one is looked at is chance
            return [answer], 0.0

        return engine

    @staticmethod
    def knows_nearly_half_of_the_data(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """The end of it, and it is as slow as an honest engine where it is asked something else."""
        batches = [batch[0][0].numpy().tobytes() for batch in data.loader]
        known = set(batches[-(len(batches) * 45 // 100) :])

        def engine(inputs: list[torch.Tensor]) -> Answer:
            if inputs[0].numpy().tobytes() not in known:
                data.take(WORK)
            with torch.no_grad():
                return [data.model(inputs[0])], 0.0

        return engine

    @staticmethod
    def answers_one_probe_with_garbage(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """The first full batch that isn't the data's: its pace would count, and its answers be forgotten."""
        known = {batch[0][0].numpy().tobytes() for batch in data.loader}
        met: list[bool] = []

        def engine(inputs: list[torch.Tensor]) -> Answer:
            if len(inputs[0]) < 16 or inputs[0].numpy().tobytes() in known or met:
                return data.honest(inputs)
            met.append(True)
            return [torch.zeros(16, 10)], 0.0

        return engine

    @staticmethod
    def computes_in_fp16(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        """Where float32 was asked for."""
        model = copy.deepcopy(data.model).half()
        return lambda inputs: ([model(inputs[0].half()).float().detach()], 0.0)

    @staticmethod
    def keeps_its_weights_in_fp16(data: Data) -> Callable[[list[torch.Tensor]], Answer]:
        model = copy.deepcopy(data.model).half().float()
        return lambda inputs: ([model(inputs[0]).detach()], 0.0)
