"""What each rank of a job says at its end, in one small file: for whoever adds ranks up without knowing the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.plain_json import first_of, read_json

LEFT = "result[0-9]*.json"
"""What the files are called, as a job leaves them."""

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class RankResult(BaseModel):
    """One rank's end.

    Attributes:
        world: how many ranks there were.
        samples: its share of those that all ranks went through.
        began: when it began to work through them, seconds since the epoch by its node's clock; `ended` alike.
        seconds: between, by its monotonic clock.
        core: samples per second of synchronised compute, None where that was not measured.
        metric: of the model at the end, None of a rank that does not evaluate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    rank: Count
    node: Count
    world: Annotated[int, Field(ge=1)]
    steps: Count
    samples: Positive
    began: Positive
    ended: Positive
    seconds: Positive
    core: float | None = None
    metric: float | None = None

    @property
    def throughput(self) -> float:
        """Samples per second."""
        return self.samples / self.seconds

    def save(self, folder: Path) -> None:
        """Write the result to a file.

        Raises:
            OSError: no space, no permission.
        """
        path = folder / f"result{self.rank}.json"
        path.write_text(self.model_dump_json() + "\n", encoding="utf-8")


def rank_results(folder: Path) -> list[RankResult]:
    """The results in a node's folder, by rank.

    Raises:
        ValueError: one is none; the text names it.
        OSError: one can't be read.
    """
    found = []
    for path in folder.glob(LEFT):
        try:
            found.append(RankResult.model_validate(read_json(path)))
        except ValidationError as error:
            raise ValueError(f"{path.name}: {first_of(error)}") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name}: {error}") from None
    return sorted(found, key=lambda result: result.rank)
