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
    seconds: float | None = Field(default=None, description="that it took, outside of training")
    reason: str | None = Field(default=None, description="why there is none")

    @property
    def whole(self) -> bool:
        """Whether it is of all the data: then it is the run's metric."""
        return self.metric is not None and self.samples == self.of


class HandedOut(Part):
    """What the ranks' feeders, processes without others' code, counted of what a training took."""

    claimed: int = Field(description="samples that rank 0 says it was trained on, in this process's time")
    samples: int = Field(description="that ranks took")
    by_the_end: int | None = Field(description="that lay ready when its agents saw training end; null: they did not")
    tokens: int | None = Field(description="of those that were taken, padding left out; null: they are no text")

    @property
    def wrong(self) -> str | None:
        """What shows that ranks claim something else; None where they don't."""
        said = f"it says that it was trained on {self.claimed} samples, and its ranks"
        if self.claimed != self.samples:
            return f"{said} took {self.samples} from the processes that load them"
        if self.by_the_end is not None and self.claimed > self.by_the_end:
            return f"{said} were shown {self.by_the_end} before its end"
        return None


class Standing(Part):
    """What a figure of a training rests on."""

    what: RestsOn
    verified: bool = Field(description="in a process that runs no vendor's code; otherwise it is claimed by the ranks")
    by: str = Field(description="who says so")
