"""The record of a search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field

from proofmark.atomic_file import write_atomically
from proofmark.plain_json import LARGEST
from proofmark.record.beside import Beside, beside, read_beside, remove_others, write_beside
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Check, Contention, Identity, Part
from proofmark.verdict.noise import bound_of, contention_of

TRIALS = "trials"
"""What the file beside a record's is called that has its trials, where they are many: `trials.<digest>.jsonl`."""

MOST, ROOM = 10_000, LARGEST // 2
"""Trials that a record's own file has room for, and how long it may be with them."""


@cache
def _fields_of(kind: type[Part]) -> set[str]:
    return set(kind.model_fields)


class OfMany(Part):
    """A part of which a record may have millions.

    pydantic keeps for each instance the set of fields that were given, which is two thirds of what a small part takes.
    Where all were given, all instances of a class share one set.
    """

    def model_post_init(self, context: Any, /) -> None:
        """See pydantic."""
        if len(self.model_fields_set) == len(given := _fields_of(type(self))):
            object.__setattr__(self, "__pydantic_fields_set__", given)


class Items(NamedTuple):
    """Sizes of the splits, counted by a process without a vendor's code; None: not reported (yet)."""

    train: int | None = None
    search: int | None = None


class EpochRecord(OfMany):
    """One evaluation of a trial, and the training before it."""

    SPEEDS = frozenset({"ended", "seconds"})

    ended: float = Field(description="seconds since the search began")
    images: int = Field(description="trained on since the evaluation before")
    evaluated: int
    accuracy: float | None
    loss: float | None = Field(description="of its last step; null before the first one")
    seconds: float = Field(description="of the training since the evaluation before; of the first, its own")


class TrialRecord(OfMany):
    """One trial: what was trained, out of what, and how well."""

    SPEEDS = frozenset({"began", "ended", "train_seconds", "energy_joules"})
    ADDED = frozenset({"asked", "trained_on", "evaluated_on"})

    number: int
    round: int
    attempts: int = Field(description="more than one: a driver died in it")
    status: str = Field(description="finished, failed, running while the search goes on, or none: it has no end")
    reason: str | None = Field(description="why it failed")
    parent: int | None
    operations: tuple[dict[str, Any], ...]
    hyperparameters: dict[str, int | float | None]
    sampled: bool = Field(description="whether the study chose them, and not the parent's were taken")
    accuracy: float | None = Field(description="the best on the search's split")
    best_epoch: int | None
    stopped_early: str | None
    asked: int | None = Field(default=None, description="epochs, at most; null in older records")
    epochs: tuple[EpochRecord, ...]
    parameters: int
    forward_flops: int = Field(description="per image, of the network that was built, by the closed form")
    training_flops: int = Field(description="per image, of a whole step")
    compatible_forward_flops: int = Field(description="by the original's formulas, as the next one")
    compatible_training_flops: int
    counted: tuple[int, int] | None = Field(description="forward and training by torch's counter")
    dtypes: tuple[str, ...] = Field(description="in which its layers with weights computed")
    checks: tuple[Check, ...]
    began: float
    ended: float | None
    train_seconds: float
    generated_seconds: float = Field(description="that generating its network took, while others trained")
    energy_joules: float | None
    energy_reason: str | None
    device: str
    host: str
    log_intact: bool = Field(description="whether its own log is the one that the driver read")
    trained_on: str | None = Field(
        default=None, description="SHA-256 of its data; empty: nobody said; null in older records"
    )
    evaluated_on: str | None = Field(default=None, description="likewise")

    @property
    def earns(self) -> bool:
        """Whether its FLOPs count towards the score.

        A failed trial's do not, since nothing shows that it kept to the rules; in older records, which do not say what
        it was trained on, they do.
        """
        return self.status != "failed" or self.trained_on is None

    def finished_epochs(self, items: Items) -> Iterator[EpochRecord]:
        """Epochs of all training images that were evaluated on the whole search split, and the evaluation before the
        first step. No others can count towards the score."""
        return (epoch for number, epoch in enumerate(self.epochs) if _is_finished(epoch, number, items))

    def unfinished_epochs(self, items: Items) -> Iterator[tuple[int, EpochRecord]]:
        """All other epochs, each with its position among the trial's: 0 is the evaluation before the first step."""
        return ((n, epoch) for n, epoch in enumerate(self.epochs) if not _is_finished(epoch, n, items))

    @property
    def lasted(self) -> float:
        """Seconds from its beginning to its end by its driver's clock; 0 if it has not ended."""
        return max(0.0, self.ended - self.began) if self.ended is not None else 0.0

    @property
    def trained(self) -> float:
        """Seconds of its training and of the evaluation before its first step, as its ranks report them."""
        return self.train_seconds + sum(epoch.seconds for epoch in self.epochs if not epoch.images)

    @property
    def flops(self) -> float:
        """FLOPs of all its epochs, as its ranks report those."""
        return sum(map(self.flops_of, self.epochs))

    @property
    def compatible_flops(self) -> float:
        """FLOPs of all its epochs by AIPerf's formulas. AIPerf's own score scales them to the images of ImageNet."""
        training, forward = self.compatible_training_flops, self.compatible_forward_flops
        return float(sum(epoch.images * training + epoch.evaluated * forward for epoch in self.epochs))

    def flops_of(self, epoch: EpochRecord) -> float:
        """FLOPs of one of its epochs."""
        return float(epoch.images * self.training_flops + epoch.evaluated * self.forward_flops)


def _is_finished(epoch: EpochRecord, number: int, items: Items) -> bool:
    trained = items.train in (None, epoch.images) or (not epoch.images and not number)
    return trained and items.search in (None, epoch.evaluated)


class Mark(Part):
    """The state of a search at one moment: a point of its curves."""

    SPEEDS = frozenset({"score", "regulated", "compatible", "compatible_regulated"})

    seconds: float
    error: float | None = Field(description="of the best trial so far, on the search's split, 0 to 1")
    score: float | None = Field(description="FLOP/s, from the beginning to this moment")
    regulated: float | None
    compatible: float | None = Field(description="by the original's formulas, as the next one")
    compatible_regulated: float | None


class Score(Part):
    """The score of a search in FLOP/s, over all of its time."""

    SPEEDS = frozenset({"honest", "regulated", "compatible", "compatible_regulated", "joules_per_teraflop"})

    honest: float | None
    regulated: float | None
    compatible: float | None
    compatible_regulated: float | None
    joules_per_teraflop: float | None = None
    energy_reason: str | None = None
    flops: float = 0.0
    error: float | None = Field(default=None, description="on the held-out split, 0 to 1")


class AutoMLRecord(CaseRecord):
    """Everything about one search."""

    SPEEDS = frozenset({"seconds", "search_seconds", "score", "marks", "training_share", "generation_share"})

    metric: str
    target: float
    rankable: bool
    adapted: tuple[str, ...] = ()
    unsupported: str | None = None
    devices: int
    as_of: float | None = Field(default=None, description="seconds since the epoch, of a search that goes on")
    search_seconds: float | None = Field(default=None, description="of all its drivers; null: it did not begin")
    drivers: int = Field(default=0, description="more than one: it was resumed")
    ended: bool = Field(default=False, description="whether the search came to its end, and its session too")
    end_reason: str | None = None
    failure: str | None = Field(default=None, description="why the search broke off")
    trials: tuple[TrialRecord, ...] = ()
    trials_beside: Beside | None = Field(default=None, description="the file that they are in; null: they are here")
    init_models: tuple[Identity, ...] = Field(default=(), description="that it began with, not with the case's network")
    examined: int | None = Field(default=None, description="the trial that was judged on the held-out split")
    held_out_accuracy: float | None = None
    held_out_reason: str | None = None
    held_out: Identity | None = None
    chosen_on: Identity | None = Field(default=None, description="that trials were evaluated on; null in older records")
    examination: Check | None = Field(
        default=None, description="of what the best trial was chosen by; null: not examined (yet), or an older record"
    )
    train_items: int | None = Field(default=None, description="of an epoch; null: nobody without a vendor's code said")
    search_items: int | None = Field(default=None, description="of an evaluation, likewise")
    score: Score | None = None
    marks: tuple[Mark, ...] = ()
    training_share: float | None = Field(
        default=None, description="of the devices' time, in which trials trained or were evaluated on them"
    )
    generation_share: float | None = Field(default=None, description="of the trials' time, that generating took")
    journal: str = Field(default="", description="where it lies")
    journal_head: str | None = Field(default=None, description="digest of its last event")
    faults: tuple[str, ...] = Field(default=(), description="what shows that the journal is not as it was written")
    contention: Contention | None = None
    trials_among_others: bool = Field(
        default=False, description="in `contention`: what placed them was not started by the session"
    )

    def text(self) -> str:
        """What its file holds: without trials that are too many for it."""
        return self._file()[0]

    def _file(self) -> tuple[str, bool]:
        """What its file holds, and whether its trials are beside it."""
        if len(self.trials) <= MOST and (len(text := super().text()) <= ROOM or not self.trials):
            return text, False
        apart = self.model_copy(update={"trials": (), "trials_beside": beside(self.trials)})
        return apart._file()[0], True

    def whole(self, folder: Path) -> Self:
        """See `CaseRecord`: with its trials."""
        if self.trials_beside is None:
            return self
        trials = read_beside(folder / self.trials_beside.file(TRIALS), self.trials_beside, TrialRecord)
        return self.model_copy(update={"trials": trials, "trials_beside": None})

    def save(self, path: Path) -> None:
        """See `CaseRecord`: first the trials, then its file, and what an earlier one had last."""
        text, apart = self._file()
        written = write_beside(self.trials, path.parent, TRIALS) if apart else None
        write_atomically(path, text)
        remove_others(path.parent, TRIALS, written)

    @property
    def variant(self) -> dict[str, str]:
        """The number of devices that the search used."""
        return {"devices": str(self.devices)}

    @property
    def fresh_weights(self) -> bool:
        """A search begins from a network that nobody has trained."""
        return True

    @property
    def best(self) -> TrialRecord | None:
        """The trial with the highest accuracy on the search's split."""
        known = [trial for trial in self.trials if trial.accuracy is not None]
        return max(known, key=lambda trial: (trial.accuracy, -trial.number), default=None)

    @property
    def items(self) -> Items:
        """How many items an epoch trains on and an evaluation looks at."""
        return Items(self.train_items, self.search_items)

    @property
    def trained_images(self) -> int:
        """Images trained on in all epochs that count towards the score."""
        earning = (trial for trial in self.trials if trial.earns)
        return sum(epoch.images for trial in earning for epoch in trial.finished_epochs(self.items))

    @property
    def resumed(self) -> bool:
        """Whether more than one driver has worked on the search."""
        return self.drivers > 1

    @property
    def unrankable(self) -> list[str]:
        """Why its score must not be compared with others'; empty if it may be."""
        reasons = {
            "the profile is too small to stand for the workload": not self.rankable,
            "it was resumed, and has no time to rank": self.resumed,
            "it began with other networks than the case's": bool(self.init_models),
            "nobody knows its devices' peak, which bounds what trials say that they computed": self.chip.peak is None,
            "trials ran on other machines than the session's, whose devices and load nobody saw": self.was_spread,
            "others on its machine can't be told from its trials, which a cluster ran that it did not start": (
                self.trials_among_others and bool(self.disturbed)
            ),
            "no trial came of another: it did not search": self.as_of is None and not self._searched,
            "the search goes on": self.as_of is not None,
        }
        return [reason for reason, so in reasons.items() if so]

    @property
    def disturbed(self) -> list[str]:
        """What others, as its contention has them, took of the cores that it needed."""
        return contention_of(self.contention, bound_of(self), self.policy.noise)

    @property
    def was_spread(self) -> bool:
        """Whether a trial ran on another host than the session's."""
        return not all(map(self.ran_here, self.trials))

    def ran_here(self, trial: TrialRecord) -> bool:
        """Whether a trial ran on the session's host, whose chip is the record's."""
        return self.host is None or trial.host == self.host.name

    @property
    def _searched(self) -> bool:
        """Whether some finished trial was derived from another one and trained. Taken for granted in older records, and
        where trials are so many that they are in a file of their own."""
        finished = [trial for trial in self.trials if trial.status == "finished"]
        trained = [trial for trial in finished if any(epoch.images for epoch in trial.epochs)]
        asked = any(trial.trained_on is not None for trial in finished)
        return not asked or any(trial.parent is not None for trial in trained)
