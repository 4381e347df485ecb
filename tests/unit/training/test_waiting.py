"""Who of the ranks that hang waits for others, on a processor and on accelerators."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.training.feeding.batches import Share
from proofmark.training.node.waiting import waits
from proofmark.training.ranks.communication import CommunicationMeter
from proofmark.training.ranks.model.strategy import Place, exchange
from proofmark.training.ranks.stepper import Stepper

RANK = """
import faulthandler, signal, sys, threading
from proofmark.training.ranks.clock import Clock

def busy():
    print("there", flush=True)
    sum(iter(int, 1))  # in C, and no wait that a kernel would see

threading.Thread(target=threading.Event().wait, daemon=True).start()
faulthandler.register(signal.SIGUSR1, all_threads=True)
clock = Clock(busy if sys.argv[1] == "device" else lambda: None)
if sys.argv[1] == "device":
    clock.part("data").__enter__()
    part = clock.part("compute")
    part.__exit__(None, None, None)
else:
    with clock.part("compute"):
        busy()
"""


@pytest.mark.parametrize("hangs, waiting", [("device", True), ("own", False)])
def test_a_rank_that_has_done_its_part_waits_on_any_device(hangs: str, waiting: bool) -> None:
    command = [sys.executable, "-c", RANK, hangs]
    pipe, house = subprocess.PIPE, Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=house, text=True) as rank:
        try:
            assert rank.stdout is not None and rank.stdout.readline() == "there\n"
            rank.send_signal(signal.SIGUSR1)
            assert rank.stderr is not None
            stack = [rank.stderr.readline()]
            while "in <module>" not in stack[-1]:
                stack.append(rank.stderr.readline())
        finally:
            rank.kill()
    assert waits("".join(stack)) is waiting, stack


HERE = """Thread 0x1 (most recent call first):
  File "/python/threading.py", line 5 in synchronize

Thread 0x3 (most recent call first):
  File "/house/proofmark/training/ranks/clock.py", line 5 in __exit__

Current thread 0x2 (most recent call first):
{frames}
"""
OURS = "/house/proofmark/training/ranks"
STACKS = {
    "an exchange on a processor": (["torch/distributed/distributed_c10d.py:all_reduce", "x.py:step"], True),
    "a backward pass": (["torch/autograd/graph.py:_engine_run_backward", f"{OURS}/stepper.py:step"], True),
    "a device at a step's end": (["torch/cuda/__init__.py:synchronize", f"{OURS}/clock.py:__exit__"], True),
    "a vendor's own device there": (["acme/device.py:wait_idle", "acme/x.py:y", f"{OURS}/clock.py:__exit__"], True),
    "a vendor's wait for its device": (["torch_npu/npu/utils.py:synchronize", "acme/adapter.py:train_step"], True),
    "what others said, read of a device": ([f"{OURS}/model/gathering.py:<listcomp>", f"{OURS}/x.py:f"], True),
    "what a loss scaler reads of a device": (["torch/amp/grad_scaler.py:<genexpr>", f"{OURS}/stepper.py:step"], True),
    "a vendor's code": (
        ["acme/adapter.py:train_step", f"{OURS}/stepper.py:_micro_step", f"{OURS}/stepper.py:step"],
        False,
    ),
    "a model's layer": (["torch/nn/modules/linear.py:forward", f"{OURS}/stepper.py:_micro_step"], False),
}


@pytest.mark.parametrize("where", STACKS)
def test_where_a_rank_waits(where: str) -> None:
    frames, waiting = STACKS[where]
    lines = [f'  File "{file}", line 7 in {name}' for file, name in (frame.split(":") for frame in frames)]
    assert waits(HERE.format(frames="\n".join(lines))) is waiting


class Dumping(torch.nn.Linear):
    """Keeps the stack where it is called."""

    stack = ""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.stack = stack_here()
        return super().forward(inputs)


class DumpingOptimizer(torch.optim.SGD):
    """Keeps the stack where it changes the weights."""

    stack = ""

    def step(self, closure: Any = None) -> None:
        self.stack = stack_here()


def stack_here() -> str:
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


def test_a_rank_is_told_to_be_before_or_after_its_exchanges_by_the_referees_own_step() -> None:
    made: Any = object.__new__(Stepper)
    model = Dumping(1, 1)
    made.model, made.optimizer = model, DumpingOptimizer(model.parameters(), lr=0.1)
    made._begun = True
    made._scheduler, made._scaler = SimpleNamespace(step=lambda: None), torch.amp.GradScaler("cpu", enabled=False)
    made._place, made._config = Place(0, 0, 1, torch.device("cpu")), SimpleNamespace(channels_last=False)
    made.communication, made._exchange = CommunicationMeter(model, made._place), exchange(model)
    made._adapter = SimpleNamespace(
        train_step=lambda case, model, inputs, targets: model(*inputs).sum(),
        backward=lambda loss: loss.backward(),
        autocast=lambda config, device: contextlib.nullcontext(),
    )
    made._case = None
    made.step([Share([0], 1)], [([torch.ones(1, 1)], torch.ones(1))], lambda: None)
    assert not waits(model.stack), model.stack
    assert waits(made.optimizer.stack), made.optimizer.stack


@pytest.mark.parametrize("asked", ["Thread", "Current thread"])
def test_a_rank_that_was_stopped_shows_its_main_thread_last(asked: str) -> None:
    """Whichever of its threads goes on first is asked, and may be one that Python doesn't know."""
    other = f'{asked} 0x1 (most recent call first):\n  File "/python/threading.py", line 5 in wait\n\n'
    main = 'Thread 0x2 (most recent call first):\n  File "/x/{}", line 7 in step\n'
    assert waits(other + main.format("torch/distributed/nn.py")) and not waits(other + main.format("case.py"))


def test_of_a_rank_that_shows_no_stack_nobody_says_that_it_waits() -> None:
    assert not waits("") and not waits("what a rank has printed in synchronize")
