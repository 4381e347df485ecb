"""What of a training was looked at outside of its ranks, as its record has it."""

from __future__ import annotations

from pydantic import Field

from proofmark.record.parts import Part
from proofmark.record.policy import RestsOn


class Examined(Part):
    """A value of the metric with the weights of the target, in the case's own model, on the processor."""

    claimed: float | None = Field(description="the metric as the ranks say it")
    metric: float | None = Field(default=None, description="null: no finite number, or the examination's `reason`")
    error: float = Field(default=0.0, description="one standard error of it, where it is of some of the samples")
    weight: float | None = Field(default=None, description="over how many things it is a mean; null: it is none")


class Examination(Examined):
    """The weights of the target in a process without vendor's code: the metric's headline, and the rest."""

    SPEEDS = frozenset({"seconds"})

    samples: int = Field(default=0, description="of the validation data that it is of")
    of: int = Field(default=0, description="that the validation data has")
    others: dict[str, Examined] = Field(default_factory=dict, description="values but the headline, by name")
    misfits: tuple[str, ...] = Field(default=(), description="tensors in which the weights don't fit the case's model")
    replayed: int | None = Field(
        default=None, description="recorded steps that were done again; null: none were recorded"
    )
    left: int | None = Field(default=None, description="recorded steps that were not, `unreplayed` says why")
    unreplayed: str | None = Field(default=None, description="null: all were")
    updates: int | None = Field(
        default=None, description="recorded steps whose update was made again; null: none were recorded"
    )
    unseen: str | None = Field(default=None, description="why that of the others was not; null: it was, of all")
    seconds: float | None = Field(default=None, description="that it took, outside of training")
    reason: str | None = Field(default=None, description="why there is none")

    @property
    def without_replay(self) -> str | None:
        """What of recorded steps was not done again, and why."""
        if self.unreplayed is None:
            return None
        which = (
            "its recorded steps"
            if self.left is None
            else f"{self.left} of {self.left + (self.replayed or 0)} recorded steps"
        )
        return f"{which} were not done again: {self.unreplayed}"

    @property
    def whole(self) -> bool:
        """Whether it is of all the data: then it is the run's metric."""
        return self.metric is not None and self.samples == self.of


class Taken(Part):
    """What one rank took, as its feeder counted it."""

    rank: int
    samples: int
    by_the_end: int | None = Field(
        description="that lay ready at its agent's first look after the end; null: none saw it"
    )
    planned: int | None = Field(description="that the plan has for it; null: the plan is not known")
    shown_before: int | None = Field(
        default=None, description="that lay ready before its agent saw training begin; null: nobody looked"
    )
    before: int | None = Field(default=None, description="in older records: that it took before that")
    ahead: int | None = Field(default=None, description="in older records: that it may have, at most")
    began: tuple[int, int] | None = Field(description="epoch and global batch where it began; null: nobody looked")
    after: int | None = Field(default=None, description="the step that the plan has before that; null: not known")
    evaluated: int | None = Field(
        default=None, description="that it was given to be evaluated on, up to the end; null: nobody counted them"
    )
    evaluated_before: int | None = Field(default=None, description="of those, before its agent saw training begin")
    evaluations: int | None = Field(
        default=None, description="that the plan has of its steps, beside the one before the first; null: not known"
    )
    each: int | None = Field(default=None, description="its part of an evaluation")

    @property
    def wrong(self) -> str | None:
        """What shows that it had others than its part of the plan, or had them earlier or later."""
        if self.shown_before:
            return f"rank {self.rank} was shown {self.shown_before} samples before its training began; expected none"
        if self.before is not None and self.ahead is not None and self.before > self.ahead:
            return f"rank {self.rank} took {self.before} samples before its training began; at most {self.ahead} may be"
        if self.planned is None:
            return None
        if self.samples != self.planned:
            return f"rank {self.rank} took {self.samples} samples; expected {self.planned}, its part of the plan"
        if self.by_the_end is not None and self.by_the_end < self.planned:
            return f"rank {self.rank} was shown {self.by_the_end} samples before the end; it took {self.samples}"
        return self._unevaluated()

    def _unevaluated(self) -> str | None:
        """What shows that it was not evaluated as often as the plan has it, or not while its training's time ran."""
        if self.evaluated is None or self.evaluations is None or self.each is None:
            return None
        trained, of_steps = self.evaluated - (self.evaluated_before or 0), self.evaluations * self.each
        for given, when, planned in (
            (self.evaluated, "", of_steps + self.each),
            (trained, " while it trained", of_steps),
        ):
            if given < planned:
                given_it = f"rank {self.rank} was given {given} samples to be evaluated on{when}"
                return f"{given_it}; the plan has {planned} for it"
        return None


class HandedOut(Part):
    """What the ranks' feeders, processes without others' code, counted of what a training took."""

    claimed: int = Field(description="samples that rank 0 says it was trained on, in this process's time")
    samples: int = Field(description="that ranks took")
    by_the_end: int | None = Field(description="that lay ready at the first looks after the end; null: none saw it")
    tokens: int | None = Field(description="of those that were taken, padding left out; null: they are no text")
    ranks: tuple[Taken, ...] = Field(default=(), description="of each")
    after: int | None = Field(default=None, description="the step that rank 0 says it went on after; null: not known")

    @property
    def wrong(self) -> str | None:
        """What shows that ranks claim something else; None where they don't."""
        said = f"it says that it was trained on {self.claimed} samples, and its ranks"
        if self.claimed != self.samples:
            return f"{said} took {self.samples} from the processes that load them"
        if self.by_the_end is None:
            return f"{said} were shown nobody knows how many before its end: an agent did not see that"
        if self.claimed > self.by_the_end:
            return f"{said} were shown {self.by_the_end} before its end"
        begun = {each.began for each in self.ranks if each.began is not None}
        if len(begun) > 1:
            places = " and ".join(f"batch {batch} of epoch {epoch}" for epoch, batch in sorted(begun)[:2])
            return f"its ranks began at different places of the plan: {places}"
        elsewhere = [each.after for each in self.ranks if each.after not in (None, self.after)]
        if elsewhere and self.after is not None:
            return (
                f"it says that it went on after step {self.after}, and took samples from after step {elsewhere[0]} on"
            )
        return next((wrong for each in self.ranks if (wrong := each.wrong)), None)


class Standing(Part):
    """What a figure of a training rests on."""

    what: RestsOn
    verified: bool = Field(description="in a process that runs no vendor's code; otherwise it is claimed by the ranks")
    by: str = Field(description="who says so")
