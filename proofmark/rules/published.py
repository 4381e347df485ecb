"""The task of another suite that a profile stands for."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from proofmark.rules.yaml.arithmetic import parse_product


class Published(BaseModel):
    """The task of another suite that a profile stands for, to the number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: str | None = Field(min_length=1, description="suite and case, as they call them; null where it is our own")
    target: float | None = Field(None, description="theirs, in the unit of `metric`")
    flops: float | None = Field(None, gt=0, description="per item, as they count them")
    settings: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="their other numbers, by our names of parameters and configurations"
    )
    differs: tuple[str, ...] = Field((), strict=False, description="in what ours is not theirs, and why")

    @field_validator("flops", mode="before")
    @classmethod
    def _flops_is_a_product(cls, value: object) -> float | None:
        return None if value is None else parse_product(value)

    @model_validator(mode="after")
    def _says_why(self) -> Published:
        if self.task is None and not self.differs:
            raise ValueError("`differs` is missing: a task of our own says why it is")
        return self
