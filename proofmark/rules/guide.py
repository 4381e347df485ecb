"""What a reader must bring to a profile. Nothing of it reaches a run."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Guide(BaseModel):
    """For a case's page, as Markdown. Where its data comes from is told with the data."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    weights: str = Field(min_length=1, description="where weights come from")
    resources: str = Field(min_length=1, description="what machine is expected, and for how long")
