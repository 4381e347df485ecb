"""Names in an answer: whole numbers, such as the word with the highest score beside that score."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch

Shortfall = Callable[["list[torch.Tensor]", "list[torch.Tensor]"], "list[torch.Tensor]"]
"""Of inputs and an answer: by how much what the answer names has less than the highest score, as a case says."""

BOTH = 2
"""Of two scores each may be off by what one may be, in opposite directions: so much less may that of a name have.

Seen in the embedded language model, in 51,200 places, in deviations of a place's scores: float16 0.0065 at most,
bfloat16 0.126, weights of int8 (one scale per tensor) 0.365; bounds are 0.04, 0.2 and 0.4. A label that the model
doesn't find likeliest has 0.48 less in the median, and more than 0.2 in 78 of 100 places."""

SPARED = 2e-4
"""The share of places in which a name may have less still: of tens of thousands some are far off, where scores are
coarse. Of the places of which a masked language model is scored (one in 13) it is 0.3 %."""

DEVIATIONS = 4
"""So many standard deviations above what is let differ may be what does, by chance."""


@runtime_checkable
class SaysHowNear(Protocol):
    """A reference that says of a name how near it was to being chosen."""

    def shortfall(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """As a case does; nothing, where that doesn't say."""


@dataclass
class _Output:
    """What was seen of one."""

    wrong: int = 0
    places: int = 0
    unlike: int = 0
    compared: int = 0
    short: list[float] = field(default_factory=list)


class Names:
    """All names of the rows that are looked at: how many are others than the reference's, and how near those were.

    Between two names there is no distance. Those whose scores are nearly equal change places at any precision, so as
    many may differ as an answer may be off by its precision, in units of how many do between samples: an answer that
    ignores its input is another. And where the reference says how near a name was to being chosen, each must be near.

    Seen to differ in the embedded language model: 0.1 % where it was computed in float16, 1 % in bfloat16, 2 % with
    weights of int8, 4 % of float8 (e4m3); before it was trained 0.2 %, 1.2 %, and of float8 8 %.
    """

    def __init__(self, shortfall: Shortfall | None = None) -> None:
        """Without `shortfall` nobody can say how near a name was."""
        self._shortfall = shortfall
        self._outputs: defaultdict[int, _Output] = defaultdict(_Output)

    def add(
        self,
        inputs: list[torch.Tensor],
        answer: list[torch.Tensor],
        wanted: list[torch.Tensor],
        among: list[torch.Tensor],
    ) -> None:
        """Rows as they were asked and answered, what the reference answers, and to others, by which samples differ."""
        import torch

        named = [number for number, output in enumerate(wanted) if not output.is_floating_point()]
        differ = {number: answer[number].to(torch.int64) != wanted[number].to(torch.int64) for number in named}
        for number, wrong in differ.items():
            seen, unlike = self._outputs[number], among[number] != among[number].roll(1, 0)
            seen.wrong, seen.places = seen.wrong + int(wrong.sum()), seen.places + wrong.numel()
            seen.unlike, seen.compared = seen.unlike + int(unlike.sum()), seen.compared + unlike.numel()
        rows = [row for row in range(len(inputs[0])) if any(wrong[row].any() for wrong in differ.values())]
        if self._shortfall is None or not rows:
            return
        found = self._shortfall(*([tensor[rows] for tensor in each] for each in (inputs, answer)))
        for number, short in zip(named, found, strict=False):  # none, where the case does not say
            self._outputs[number].short += short[differ[number][rows]].nan_to_num(math.inf, math.inf).tolist()

    def distance(self) -> float:
        """How far they are from the reference's, as the table of tolerances has it: the larger of both."""
        return max((max(_share(seen), _shortfall(seen)) for seen in self._outputs.values()), default=0.0)


def _share(seen: _Output) -> float:
    """The least share that is let differ of which chance makes as many, less one; in units of samples that differ."""
    if not seen.wrong:
        return 0.0  # nor is there any where an output has no places
    half = DEVIATIONS / 2
    likely = (math.sqrt(half**2 + max(0, seen.wrong - 1)) - half) ** 2
    return likely / seen.places / (seen.unlike / seen.compared if seen.unlike else 1.0)


def _shortfall(seen: _Output) -> float:
    """Of the name that is furthest from having been chosen, but for those that are spared."""
    worst, spared = sorted(seen.short, reverse=True), int(SPARED * seen.places)
    return worst[spared] / BOTH if len(worst) > spared else 0.0
