"""What a case is measured with, all of its targets alike: its data, its metric, the vendor's device, and the log."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofmark.measuring.drawn import Order
from proofmark.metric import Scoring
from proofmark.record.events.log import Log
from proofmark.vendor.contract import Vendor

if TYPE_CHECKING:
    import torch

    from proofmark.case import Loader
    from proofmark.rules.config import EffectiveConfig

Form = list[tuple[tuple[int, ...], bool]]
"""Of each output: its shape without the batch, and whether it is a floating-point one."""


@dataclass
class Bench:
    """Everything but the target.

    Attributes:
        first: the inputs of the data's first batch.
        scoring: makes a metric that is fed with nothing yet.
        form: what the first target's answers look like; None before it has answered.
        accused: whether the present target was seen to do what an honest one does not.
        attempt: how often the present target was measured before, and disturbed.
        order: in which the data comes; None where that is the loader's own affair.
        accuracy: the metric's headline in the last timed round, by the present target; None before there was one, or
            where it is no number.
    """

    config: EffectiveConfig
    loader: Loader
    first: list[torch.Tensor]
    scoring: Callable[[], Scoring]
    vendor: Vendor
    log: Log
    report: Callable[..., None]
    form: Form | None = field(default=None)
    accused: bool = False
    attempt: int = 0
    order: Order | None = None
    accuracy: float | None = None

    @property
    def remainder(self) -> int:
        """Size of the data's last short batch; 0 if there is none, or no other."""
        return len(self.loader.dataset) % len(self.first[0]) if len(self.loader) > 1 else 0

    @property
    def short(self) -> int:
        """That of a pass of a timed round; where the order is ours its passes run on into each other."""
        return self.remainder if self.order is None else 0

    def running_on(self, passes: int = sys.maxsize) -> AbstractContextManager[None]:
        """A round of so many passes, or of as many as are walked."""
        return nullcontext() if self.order is None else self.order.running_on(passes)

    def at_most(self, batches: int) -> AbstractContextManager[None]:
        """Passes that begin now have no more batches, where the order is ours: workers load none for nobody."""
        return nullcontext() if self.order is None else self.order.at_most(batches)

    def batches(self, passes: int) -> int:
        """How many batches such a round has."""
        if self.order is None:
            return len(self.loader) * passes
        return math.ceil(len(self.loader.dataset) * passes / len(self.first[0]))

    def full(self, passes: int) -> Sequence[int]:
        """Places of its batches that are not short."""
        each = len(self.loader)
        return [place for place in range(self.batches(passes)) if not self.short or (place + 1) % each]

    def filled(self, passes: int) -> int:
        """Samples that come once more in it, so that its last batch is a full one."""
        if self.order is None:
            return 0
        return self.batches(passes) * len(self.first[0]) - len(self.loader.dataset) * passes

    def accuse(self, name: str, what: str) -> None:
        """Write down what the target called `name` did."""
        self.accused = True
        self.log.write("dishonest", what=f"the {name} {what}")

    def strange(self, outputs: list[torch.Tensor]) -> list[str]:
        """What is wrong with an answer, apart from its values."""
        found = ["answers NaN" for output in outputs if output.is_floating_point() and output.isnan().any()]
        return [*found, *filter(None, [self.other_form(outputs)])]

    def other_form(self, outputs: list[torch.Tensor]) -> str | None:
        """How an answer differs in form from what is expected."""
        if self.form is None or form_of(outputs) == self.form:
            return None
        return f"answers in another form than expected: {_shown(form_of(outputs))}, not {_shown(self.form)}"


def form_of(outputs: list[torch.Tensor]) -> Form:
    """What an answer looks like, whatever the size of its batch."""
    return [(tuple(output.shape[1:]), output.is_floating_point()) for output in outputs]


def _shown(form: Form) -> str:
    return ", ".join(
        f"{'float' if floating else 'integer'} (batch, {', '.join(map(str, shape))})" for shape, floating in form
    )
