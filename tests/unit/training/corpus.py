"""Training on tokens, judged by metrics that are no mean; in one process or under torchrun.

`python -m tests.unit.training.corpus DIRECTORY` trains under every metric of METRICS; each rank leaves its log there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from proofmark.metric import Metric
from proofmark.rules.config import EffectiveConfig
from proofmark.training.ranks.model.strategy import Place
from tests.unit.training.tokens import WORDS, Tokens, trained

TASK = {"metrics": {"accuracy": {"target": 2.0}, "perplexity": {"target": -1.0, "better": "lower"}, "words": {}}}
TASK |= {"metric": "accuracy", "target": 2.0}  # type: ignore[dict-item]


class OfTorchmetrics(Tokens):
    """A collection of theirs, whose states are sums, and lists of what came."""

    def metric(self, config: EffectiveConfig) -> Metric:
        from torchmetrics import CatMetric, MetricCollection
        from torchmetrics.classification import MulticlassAccuracy
        from torchmetrics.text import Perplexity

        class Words(CatMetric):
            def update(self, outputs: torch.Tensor, targets: torch.Tensor) -> None:  # type: ignore[override]
                super().update(targets[targets != -100].float())

            def compute(self) -> torch.Tensor:
                return super().compute().unique().numel() * torch.ones(())

        known: Any = {
            "accuracy": flat(MulticlassAccuracy(WORDS, average="macro", ignore_index=-100)),
            "perplexity": Perplexity(ignore_index=-100),
            "words": Words(),
        }
        return MetricCollection(known, compute_groups=False)


def flat(metric: Any) -> Any:
    """One that is fed with classes first, fed with them last."""
    update = metric.update
    metric.update = lambda outputs, targets: update(outputs.reshape(-1, WORDS), targets.reshape(-1))
    return metric


class OfOnesOwn(Tokens):
    """What holds theirs, and does not know that there are ranks."""

    def metric(self, config: EffectiveConfig) -> Metric:
        return Held(OfTorchmetrics().metric(config))


class Held:
    """Nothing of torch's, but what it holds."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor, /) -> None:
        assert isinstance(outputs, list) and outputs[0].device.type == targets.device.type == "cpu"
        self.inner.update(outputs[0], targets)

    def compute(self) -> Any:
        return {**self.inner.compute(), "more": torch.ones(3)}


METRICS = {"of_torchmetrics": OfTorchmetrics, "of_ones_own": OfOnesOwn}

if __name__ == "__main__":
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    for name, case in METRICS.items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(exist_ok=True)
        trained(folder, Place(rank, rank, world, torch.device("cpu")), TASK, case=case())
    dist.destroy_process_group()
    os._exit(0)  # the interpreter's own end may abort over threads of torch, as for proofmark.training.ranks.rank
