"""The block that the original benchmark ends with, from what was measured; null, and why, where nothing was."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from proofmark.launch.launchers.modelarts.triplet import Instance
from proofmark.launch.rank_result import RankResult
from proofmark.launch.service.contract import Ended

FILE = "train_result_info.json"
NO_POWER = "the platform measures no power"
NO_LOADING = "data is loaded while the model is trained, in no phase of its own"
NO_MOMENT = "the platform does not say when that began or ended"


@dataclass(frozen=True)
class Measured:
    """What is known of a job. `results` are those of all ranks, `utilisation` is a share of 1."""

    ended: Ended
    mode: str
    instances: Sequence[Instance]
    results: Sequence[RankResult]
    utilisation: float | None
    no_utilisation: str

    @property
    def throughput(self) -> float:
        """Items per second: the mean over instances."""
        return fmean([each.throughput for each in self.instances])

    @property
    def accuracy(self) -> float:
        """The mean over instances."""
        return fmean([each.accuracy for each in self.instances])

    @property
    def began(self) -> float | None:
        """When the first rank began to train, seconds since the epoch by the clock of the first node, or of its own
        server."""
        return min((result.began for result in self.results if not result.node), default=None)

    @property
    def trained(self) -> float | None:
        """When the last rank had, alike: ranks of one training end together, and nodes' clocks differ."""
        return max((result.ended for result in self.results if not result.node), default=None)

    def seconds(self) -> dict[str, float | None]:
        """In the queue, preparing, in the job, and from the submission until all had come home."""
        view = self.ended.view
        return {
            "queue_seconds": _between(view.created, view.started),
            "prepare_seconds": _between(view.started, self.began),
            "run_seconds": view.seconds,
            "total_seconds": _between(self.ended.submitted, self.ended.brought),
        }

    def instances_fact(self) -> dict[str, Any]:
        """For the run's record: `proofmark.record.provenance.Instances`."""
        return {
            "mode": self.mode,
            "throughputs": [each.throughput for each in self.instances],
            "accuracies": [each.accuracy for each in self.instances],
            "throughput": self.throughput,
            "accuracy": self.accuracy,
            "utilisation": self.utilisation,
            **self.seconds(),
        }

    def block(self) -> dict[str, Any]:
        """The original's fields with our reasons beside them. Times are local, as the original's are."""
        ended = self.ended
        fields: dict[str, tuple[Any, str]] = {
            "accuracy": (self.accuracy, ""),
            "average_power": (None, NO_POWER),
            "dataload_end_time": (None, NO_LOADING),
            "dataload_start_time": (None, NO_LOADING),
            "efficientcy": (None, NO_POWER),
            "energy_consumption": (None, NO_POWER),
            "max_power": (None, NO_POWER),
            "prepare_end_time": (_shown(self.began), "no rank says when it began"),
            "prepare_start_time": (_shown(ended.view.started), "the platform does not say when the job started"),
            "proc_end_time": (_shown(self.trained), "no rank says when it had ended"),
            "proc_start_time": (_shown(self.began), "no rank says when it began"),
            "resource_util_ratio": (self.utilisation, self.no_utilisation),
            "throughput_ratio": (self.throughput, ""),
            "total_end_time": (_shown(ended.brought), ""),
            "total_start_time": (_shown(ended.submitted), ""),
        }
        fields |= {name: (seconds, NO_MOMENT) for name, seconds in self.seconds().items()}
        reasons = {name: reason for name, (value, reason) in fields.items() if value is None}
        return {**{name: value for name, (value, _) in fields.items()}, "reasons": reasons}

    def save(self) -> None:
        """Write the block into the run's folder.

        Raises:
            OSError: no space, no permission.
        """
        text = json.dumps({"train_result_info": self.block()}, indent=1)
        (Path(self.ended.folder) / FILE).write_text(text + "\n", encoding="utf-8")


def _between(first: float | None, last: float | None) -> float | None:
    return None if first is None or last is None else max(0.0, last - first)


def _shown(moment: float | None) -> str | None:
    return None if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
