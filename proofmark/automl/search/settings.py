"""What a search is held to, read once from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proofmark.automl.places import Places
from proofmark.rules.config import EffectiveConfig

FAILURES = 3
"""Trials that fail in a row, each begun after the one before had failed, before a search gives up."""


@dataclass(frozen=True)
class SearchSettings:
    """How long a search goes on, and how its trials are trained.

    Attributes:
        environments: variables that give a trial its devices, for each place that one has at a time.
        epochs: of the first round, the second, and so on; the last stays.
        study_from: the first round, from 0, whose hyper-parameters are the study's.
        ranges: of the hyper-parameters.
        patience: epochs without a better evaluation after which a trial ends; None for never.
        most_trials, most_seconds: after which none is begun.
        hang, setup: seconds without a sign of life that mean a hang, and those where no step is to be expected.
        devices: in all places.
        devices_per_trial: processes of a trial, each on a device.
        networks: that the search begins with.
        ahead: whether a trial's process may be started before there is a device for it.
        imports: large modules that the case needs.
    """

    environments: tuple[Mapping[str, str], ...]
    epochs: tuple[int, ...]
    study_from: int
    ranges: Mapping[str, tuple[float, ...]]
    startup: int
    defaults: Mapping[str, Any]
    patience: int | None
    most_trials: int
    most_seconds: float
    seed: int
    hang: float
    setup: float
    devices: int = 1
    devices_per_trial: int = 1
    networks: int = 1
    ahead: bool = False
    imports: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        config: EffectiveConfig,
        places: Places,
        networks: int,
        hang: float,
        setup: float,
        imports: tuple[str, ...],
    ) -> SearchSettings:
        """The settings of a case."""
        return cls(
            environments=places.environments,
            devices=places.devices,
            epochs=(config.warmup_1, config.warmup_2, config.warmup_3, config.epochs),
            study_from=config.study_from_round,
            ranges={
                **{name: tuple(values) for name, values in config.hyperparameters.items()},
                "batch_size": around(config.batch_size, *config.hyperparameters["batch_size"]),
            },
            startup=config.study_startup,
            defaults={"kernel_size": config.kernel_size, "batch_size": config.batch_size, "dropout": config.dropout},
            patience=config.patience,
            most_trials=config.max_trials,
            most_seconds=config.max_seconds,
            seed=config.seed,
            hang=hang,
            setup=setup,
            devices_per_trial=config.devices_per_trial,
            networks=networks,
            ahead=places.here,
            imports=imports,
        )

    def round(self, trial: int, latest: int = 0) -> int:
        """Which round a trial is of, from 0: each has a trial per place, and the first one for each network that the
        search begins with.

        Args:
            trial: its number.
            latest: the last round so far: of a search that goes on with more places none is of an earlier one.
        """
        places = len(self.environments)
        longer = max(0, self.networks - places)
        return max(latest, max(0, trial - longer) // places)

    def epochs_of(self, of_round: int) -> int:
        """How many a trial of a round is trained for at most."""
        return self.epochs[min(of_round, len(self.epochs) - 1)]


def around(batch_size: int, low: float, high: float) -> tuple[float, float]:
    """The bounds between which a study chooses batches: the case's, or, where a device was given other batches than
    those, the same share of the batch and no more."""
    return (low, high) if low <= batch_size <= high else (max(1, round(batch_size * low / high)), batch_size)
