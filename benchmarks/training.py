"""`make overhead`, second part: the suite's training loop against a hand-written one, in interleaved pairs.

A ratio is the hand-written loop's time over the suite's for as many steps of the same model on the same batches: 1 is
as good as by hand. Printed: the median over pairs and its quartiles.
"""

from __future__ import annotations

import itertools
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.by_hand import ROOT
from benchmarks.overhead import quartiles
from proofmark.process.memory import heap_left_alone, keep_freed
from proofmark.process.warm.modules import split_off
from proofmark.record.events.log import EventLog, read_events
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import EffectiveConfig, resolve
from proofmark.training.case import TrainingCase
from proofmark.training.feeding.batches import GlobalBatches
from proofmark.training.feeding.fed import Fed, Requested
from proofmark.training.feeding.loading import Data, RankLoader
from proofmark.training.feeding.on_request import AHEAD
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.node.agent_forks import IMPORTED
from proofmark.training.node.feeders import Feeders
from proofmark.training.ranks.model.strategy import Place
from proofmark.training.ranks.trainer import Trainer
from proofmark.training.spec import AGENT, TrainingSpec
from proofmark.vendor.contract import Processor
from suites.training.test_resnet50 import TestResNet50

PAIRS, STEPS = 5, 10
SMALL_PAIRS, SMALL_STEPS, SMALL_BATCH = 5, 3200, 8
"""Small batches lie ready for later steps; for the first ones few do."""

SMALL_FLOPS = 3 * 2 * (3 * 32 * 32) * 10
CHECKPOINT_RUNS, EVERY, APART, BESIDE = 1, 20, 10, 3
"""The cost of a checkpoint every `EVERY` steps is read where they are `APART`, from the `BESIDE` steps after each."""

PLACE = Place(0, 0, 1, torch.device("cpu"))


class Small(TestResNet50):
    """The same data through one layer: a step of nearly no compute."""

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """Image to logits."""
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * config.image_size**2, config.classes))


def main() -> None:
    """Print one line per figure."""
    keep_freed()  # as a rank does
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
    os.environ |= {AGENT: str(os.getpid()), "PYTHONPATH": os.pathsep.join(sys.path)}
    split_off(IMPORTED)  # feeders are forked from there
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=0, world_size=1)
        case, config = TestResNet50(), config_of(TestResNet50(), STEPS)
        by_hand(case, config, 2)
        ratios = [by_hand(case, config, STEPS) / by_suite(case, config) for _ in range(PAIRS)]
        print(f"{'training':18} {'rate':6} {quartiles(ratios)}", flush=True)
        cores = torch.get_num_threads()
        ways: dict[tuple[str, str], Callable[[], list[float]]] = {
            ("a step", "us"): _added,
            ("checkpoints", "rate"): partial(_checkpointing, case),
        }
        for (name, figure), way in ways.items():
            for shown, used in {name: cores, "  a core is spare": max(1, cores - 1)}.items():
                torch.set_num_threads(used)
                print(f"{shown:18} {figure:6} {quartiles(way())}", flush=True)
        dist.destroy_process_group()


def _added() -> list[float]:
    """Microseconds that a step of next to no work takes longer than by hand. Its feeder loads ahead of it, for which it
    needs a core: beside an accelerator there are some."""
    small, brief = Small(), config_of(TestResNet50(), SMALL_STEPS, SMALL_FLOPS, global_batch_size=SMALL_BATCH)
    pairs = [(by_suite(small, brief), by_hand(small, brief, SMALL_STEPS)) for _ in range(SMALL_PAIRS)]
    return [(suite - hand) / SMALL_STEPS * 1e6 for suite, hand in pairs]


def _checkpointing(case: TrainingCase) -> list[float]:
    """The rate with a checkpoint every `EVERY` steps over that without, once per checkpoint.

    A checkpoint's cost is what it and the steps that follow take beyond as many of the median step around it: whole
    runs with and without differ more by the machine's own wandering. It must be written within those steps; one of
    this model is after one or two. The writer needs a core: beside an accelerator there are some.
    """
    logs = [
        suite_log(case, config_of(TestResNet50(), 120, log_freq=1, checkpoint_steps=APART))
        for _ in range(CHECKPOINT_RUNS)
    ]
    return [rate for log in logs for rate in _rates(log)]


def _rates(log: list[dict[str, Any]]) -> list[float]:
    """One for each checkpoint but the first, which imports and allocates, and those beside an epoch's short batch."""
    events = [event for event in log if event["event"] == "steps"]
    ends = [event["train_seconds"] - event["evaluation_seconds"] for event in events]
    steps = [later - earlier for earlier, later in itertools.pairwise(ends)]  # a checkpoint is in the step after it
    sizes = [later["samples"] - earlier["samples"] for earlier, later in itertools.pairwise(events)]
    rates = []
    for at in range(2 * APART - 1, len(steps) - APART, APART):
        after = slice(at, at + BESIDE)
        if min(sizes[after]) == max(sizes):
            usual = statistics.median(steps[at - APART + BESIDE : at] + steps[at + BESIDE : at + APART])
            rates.append(EVERY * usual / (EVERY * usual + sum(steps[after]) - BESIDE * usual))
    return rates


def by_suite(case: TrainingCase, config: EffectiveConfig) -> float:
    """Seconds of training by the suite's loop, without its one evaluation."""
    ends = [event for event in suite_log(case, config) if event["event"] == "train_end"]
    return float(ends[0]["train_seconds"] - ends[0]["evaluation_seconds"])


def suite_log(case: TrainingCase, config: EffectiveConfig) -> list[dict[str, Any]]:
    """The events of a training by the suite's loop."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        name = (type(case).__module__.replace("__main__", "benchmarks.training"), type(case).__name__)
        spec = TrainingSpec(name, "", "", config.as_dict(), folder, (), until_converged=False)
        spec.save(directory / "spec.json")
        log, heartbeat = EventLog(directory / "rank0.jsonl"), HeartbeatWriter(directory / "rank0.heartbeat")
        feeders, ends = Feeders({0: 1}, log), dict[int, tuple[int, ...]]()
        feeders.start(directory / "spec.json", ends)
        feeder, requests = (socket.socket(fileno=end) for end in ends[0])
        data = Data(Fed(feeder, config, 1, spec.seed), Requested(requests, AHEAD))
        Trainer(case, data, config, spec, Processor(), PLACE, log, heartbeat).run()
        feeders.end()
        log.close()
        return list(read_events(directory / "rank0.jsonl"))


def by_hand(case: TrainingCase, config: EffectiveConfig, steps: int) -> float:
    """Seconds of the tightest loop over as many steps of the same batches.

    It is as well prepared as the suite's: the model has been evaluated, and the garbage collector leaves alone what is
    there.
    """
    data = case.build_dataset(config, "train")
    torch.manual_seed(config.seed)
    model = case.create_model(config).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    optimizer = case.create_optimizer(model, config)
    order = GlobalBatches(len(data), config.global_batch_size, 1, 1, config.seed)
    scheduler = case.create_scheduler(optimizer, config, len(order) * config.max_epoch)
    lists = [
        [share.indices for shares in order.shares(epoch, 0) for share in shares] for epoch in range(config.max_epoch)
    ]
    with torch.no_grad():
        for inputs, _ in RankLoader(data, workers=0).load(lists[0][:1]):
            model.eval()(*map(_channels_last, inputs))
    model.train()
    with heap_left_alone():
        done, begun = 0, time.perf_counter()
        for batches in lists:
            for inputs, targets in RankLoader(data, workers=0).load(batches[: steps - done]):
                loss = case.train_step(model, [_channels_last(image) for image in inputs], targets)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
                done += 1
        return time.perf_counter() - begun


def _channels_last(image: torch.Tensor) -> torch.Tensor:
    return image.to(memory_format=torch.channels_last) if image.dim() == 4 else image


def config_of(case: TrainingCase, steps: int, flops: float | None = None, **settings: Any) -> EffectiveConfig:
    """That of the case on the processor, for as many steps and no evaluation between them."""
    name = type(case).__module__.rpartition(".test_")[2]
    path = ROOT / "suites" / "training" / f"{name}.yaml"
    file = load_case_file(path, "training", "embedded", case.common_file, case.parameters_type)
    config = resolve(file, "cpu", []).config
    configurations = {**config.configurations, **settings}
    parameters: dict[str, Any] = {
        **config.parameters,
        "max_samples_termination": steps * configurations["global_batch_size"],
        "eval_interval_samples": 1 << 40,
        "max_epoch": 1 + steps // 20,
    }
    parameters |= {"flops": flops or config.flops}
    return EffectiveConfig("training", name, "embedded", "cpu", parameters, configurations)


if __name__ == "__main__":
    main()
