"""Training of the embedded profile's weights for inference: by the same trainer, in the case's own process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError
from proofmark.inference.recipe import Recipe
from proofmark.measuring.rehearsal import checked_batch
from proofmark.record.events.log import LOG_FILE, Event, EventLog
from proofmark.rules.config import EffectiveConfig, HostSettings
from proofmark.training.case import TrainingCase
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.contract import Processor

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch
    from proofmark.inference.case import InferenceCase
    from proofmark.metric import Metric
    from proofmark.training.case import TrainingData

Progress = Callable[..., None]

_NEVER = 1 << 62

NOT_TRAINED_BY = frozenset({"target", "metrics", "flops", "warmup", "published"})
"""Parameters by which a run is measured and judged. Of what makes weights only the metric gets to see them, so they
make nothing stale."""


class ForInference(TrainingCase):
    """An inference case as one to train: its `train` split, its model, its loss and its metric."""

    def __init__(self, case: InferenceCase, config: EffectiveConfig) -> None:
        """`config` is the whole of it, which training does not see."""
        self._case, self._config = case, config

    def build_dataset(self, config: EffectiveConfig, split: str) -> TrainingData:
        """What the case's loader of the split loads from."""
        return LoadedData(self._case.build_dataloader(config, split))

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """The case's."""
        return self._case.create_model(config)

    def metric(self, config: EffectiveConfig) -> Metric:
        """The case's, which may be made from what the values are called."""
        return self._case.metric(self._config)

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """The case's."""
        return self._case.loss(outputs, targets)

    def loss_weight(self, targets: torch.Tensor) -> float:
        """The case's."""
        return self._case.loss_weight(targets)


class LoadedData:
    """Any batch of what a DataLoader loads from, collated as it would.

    Raises:
        StepError: it is another loader, of which no batch can be asked for.
    """

    def __init__(self, loader: object) -> None:
        from torch.utils.data import DataLoader, IterableDataset

        if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
            expected = "a torch.utils.data.DataLoader over data with indices, since the case has a `training`"
            raise StepError(f"build_dataloader: expected {expected}, found {type(loader).__name__}")
        dataset: Any = loader.dataset
        self._dataset, self._collate, self.identity = dataset, loader.collate_fn, dataset.identity
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitems__(self, indices: list[int]) -> Batch:
        whole = getattr(self._dataset, "__getitems__", None)
        items = whole(indices) if whole else [self._dataset[index] for index in indices]
        return checked_batch(self._collate(items), "build_dataloader")


def seen_by_training(config: EffectiveConfig) -> EffectiveConfig:
    """A configuration without the parameters that make no weights."""
    seen = {key: value for key, value in config.parameters.items() if key not in NOT_TRAINED_BY}
    return replace(config, parameters=seen)


def train(case: InferenceCase, config: EffectiveConfig, recipe: Recipe, directory: Path, progress: Progress) -> Path:
    """Train a case's model by its recipe, in this process, on its processor; the weights' file, in `directory`.

    `progress` is called with step, steps, samples_per_second and loss.

    Raises:
        StepError: the loss became something that is no number.
    """
    import torch
    from safetensors.torch import save_file

    from proofmark.training.feeding.loading import Data
    from proofmark.training.ranks.model.strategy import Place
    from proofmark.training.ranks.trainer import Trainer

    settings = _training_config(seen_by_training(config), recipe)
    spec = TrainingSpec(("", ""), "", "", {}, str(directory), (), seed=config.seed, until_converged=False)
    log, heartbeat = _ProgressLog(directory / LOG_FILE, progress), HeartbeatWriter(directory / "heartbeat")
    place = Place(0, 0, 1, torch.device("cpu"))
    inner = ForInference(case, config)
    data = Data.of(inner, settings, seed=config.seed)
    trainer = Trainer(inner, data, settings, spec, Processor(), place, log, heartbeat)
    trainer.run()
    log.close()
    weights = directory / "weights.safetensors"
    state = trainer.model.state_dict()
    save_file({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()}, weights)
    return weights


class _ProgressLog(EventLog):
    """An event log that tells of each step."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__(path)
        self._progress = progress

    def write(self, kind: str, /, **fields: Any) -> Event:
        """Append one event, and tell of it."""
        event = super().write(kind, **fields)
        if kind == "steps":
            rate = fields["samples"] / fields["train_seconds"] if fields["train_seconds"] else 0.0
            steps, loss = fields["total_steps"], fields["losses"][-1]
            self._progress(step=fields["step"], steps=steps, samples_per_second=rate, loss=loss)
        return event


def _training_config(config: EffectiveConfig, recipe: Recipe) -> EffectiveConfig:
    """The case's parameters, with the recipe as settings."""
    parameters = {
        **config.parameters,
        "schedule": recipe.schedule,
        "max_epoch": recipe.epochs,
        "eval_interval_samples": _NEVER,
        "max_samples_termination": None,
    }
    settings = {
        "global_batch_size": recipe.batch_size,
        "eval_batch_size": config.batch_size,
        "learning_rate": recipe.learning_rate,
        "weight_decay": recipe.weight_decay,
        "channels_last": recipe.channels_last,
        "gradient_accumulation_steps": 1,
        "precision": "fp32",
        "parallel": "ddp",
        "compile": False,
        "activation_checkpointing": False,
        "log_freq": 1,
        "checkpoint_steps": None,
    }
    host = HostSettings(cache_dir=config.host.cache_dir)
    configurations = {**config.configurations, **settings}
    return EffectiveConfig(config.suite, config.case, config.profile, "", parameters, configurations, (), host)
