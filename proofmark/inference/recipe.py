"""How an embedded profile's weights are trained: read with the case's other numbers, before anything runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer


class Recipe(BaseModel):
    """The parameter `training` of an embedded profile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    weight_decay: float = Field(0.01, ge=0)
    schedule: Literal["one_cycle", "linear", "constant"] = "one_cycle"
    channels_last: bool = False

    @model_serializer(mode="wrap")
    def _as_it_is_given(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A task keeps its hash, whatever comes to be possible here."""
        return {name: value for name, value in whole(self).items() if name in self.model_fields_set}
