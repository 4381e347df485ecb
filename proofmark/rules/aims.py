"""What a case's metric is to come to: the names of its values, which way each is better, and what it must reach."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

Better = Literal["higher", "lower"]
Name = Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_.@-]{0,63}$")]

UNNAMED = "metric"
"""What a value is called where the parameters, a test's perhaps, have no name for it."""


class Aim(BaseModel):
    """One value of a metric: judged if it has a target, otherwise only shown."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    target: float | None = Field(None, description="in the value's unit, of either sign; null: it is only shown")
    better: Better = "higher"

    def reached(self, value: float) -> bool:
        """Whether a value is good enough; without a target any is. What is no number reaches nothing."""
        return self.target is None or reaches(value, self.target, self.better)


def _distinct_in_reports(named: dict[str, Aim]) -> dict[str, Aim]:
    known: dict[str, str] = {}
    for name in named:
        if (other := known.setdefault(slug(name), name)) != name:
            raise ValueError(f"{other} and {name} cannot be told apart in reports; rename one of them")
    return named


Aims = Annotated[dict[Name, Aim], AfterValidator(_distinct_in_reports)]
"""Values of a metric by their names, whose figures have keys of their own."""

_AIMS: TypeAdapter[dict[str, Aim]] = TypeAdapter(Aims)


class JudgedBy(BaseModel):
    """The parameters by which a case is judged: `metric`, `target` and `better`, or of several values `metrics`."""

    metric: str = Field(
        min_length=1, description="the value that is judged first: of `metrics` the first with a target"
    )
    target: float = Field(allow_inf_nan=False)
    better: Better | None = Field(None, description="null: higher")
    metrics: Aims | None = Field(
        None, description="in the place of metric and target: the values that are judged or shown"
    )

    @model_validator(mode="before")
    @classmethod
    def _has_a_headline(cls, values: Any) -> Any:
        return with_headline(values) if isinstance(values, dict) and values.get("metrics") is not None else values

    @field_validator("metrics")
    @classmethod
    def _are_judged(cls, metrics: dict[str, Aim] | None) -> dict[str, Aim] | None:
        if metrics is not None and all(aim.target is None for aim in metrics.values()):
            raise ValueError("none of them has a target; at least one must be judged")
        return metrics

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A task that is described as it always was keeps its hash."""
        lacking = {name for name in ("better", "metrics") if getattr(self, name) is None}
        return {name: value for name, value in whole(self).items() if name not in lacking}


def reaches(value: float, target: float, better: str) -> bool:
    """At least the target where higher is better, at most where lower is; no number reaches nothing."""
    return value >= target if better == "higher" else value <= target


def worst(values: Iterable[float], better: str) -> float:
    """The worst of some values."""
    return min(values) if better == "higher" else max(values)


def factor_kept(reference: float, share: float, better: str) -> float:
    """By what a reference is multiplied to give the worst value that still keeps a share of it.

    What may be lost is `1 - share` of the reference's size, in the direction that is worse: a share of 0.99 of an
    accuracy of 0.8 is 0.792, of a perplexity of 20 it is 20.2, of a log-likelihood of -5 it is -5.05. Nothing may be
    lost of a reference of 0.
    """
    return share if (better == "higher") == (reference >= 0) else 2 - share


def wrong_side(better: str) -> str:
    """On which side of its target a value lies that misses it."""
    return "below" if better == "higher" else "above"


def aims_of(parameters: Mapping[str, Any]) -> dict[str, Aim]:
    """The values that a case's parameters name, the headline first: the first that has a target."""
    named, headline = parameters.get("metrics"), parameters.get("metric") or UNNAMED
    if not named:
        return {headline: Aim(target=parameters.get("target"), better=parameters.get("better") or "higher")}
    aims = {name: Aim.model_validate(dict(aim)) for name, aim in named.items()}
    return {headline: aims.pop(headline), **aims} if headline in aims else aims


def judged(aims: Mapping[str, Aim]) -> list[str]:
    """The headline, and what else has a target."""
    return [name for number, (name, aim) in enumerate(aims.items()) if not number or aim.target is not None]


def with_headline(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that name several values, with `metric`, `target` and `better` as the first that has a target says.

    What is wrong with `metrics` itself is left to whoever reads it, and the three are made up then.

    Raises:
        ValueError: `metric` or `target` is given too.
    """
    for key in ("metric", "target"):
        if parameters.get(key) is not None:
            raise ValueError(f"`metrics` and `{key}` both say what is judged; keep one of them")
    given, usual = parameters["metrics"], parameters.get("better", "higher")
    named = given if isinstance(given, Mapping) else {}
    full = {name: {"better": usual, **aim} if isinstance(aim, Mapping) else aim for name, aim in named.items()}
    judged = [(name, aim) for name, aim in full.items() if isinstance(aim, Mapping) and _is_number(aim.get("target"))]
    name, aim = judged[0] if judged else (UNNAMED, {})
    better = aim.get("better", usual)
    return {
        **parameters,
        "metrics": full if isinstance(given, Mapping) else given,
        "metric": str(name),
        "target": aim.get("target", 0.0),
        "better": better if better in ("higher", "lower") else "higher",
    }


def shown_only(named: Mapping[str, Better]) -> dict[str, Aim]:
    """Values that somebody else's log has, without targets: as many of them as can be told apart, by their names."""
    found: dict[str, Aim] = {}
    for name, better in named.items():
        try:
            found = _AIMS.validate_python({**found, name: Aim(target=None, better=better)})
        except ValidationError:
            continue
    return found


def slug(name: str) -> str:
    """A value's name as a part of a figure's key."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _is_number(value: object) -> bool:
    return type(value) in (int, float)
