"""The policy that a record is judged by: bounds that a lab may set, as data. A record holds the whole of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationError, field_validator

from proofmark.errors import ConfigurationError, Problem
from proofmark.names import hint
from proofmark.record.parts import Part, VerdictKind
from proofmark.rules.yaml.strict import load_mapping
from proofmark.rules.yaml.typed import problems_of

DEFAULT = Path(__file__).with_suffix(".yaml")

OPTIONAL = (VerdictKind.UNSUPPORTED, VerdictKind.AMBIGUOUS, VerdictKind.INSUFFICIENT, VerdictKind.FAIL_PERF)
"""Verdicts that a policy may let pass by; the others say that a run is not one of its task."""

Share = Annotated[float, Field(ge=0, le=1)]

RestsOn = Literal["time", "samples", "tokens", "metric", "initial weights", "steps"]
"""What a figure may rest on. Each is verified, or claimed by a process with vendor's code or by another host."""

RESTS_ON: tuple[RestsOn, ...] = get_args(RestsOn)

TAILS = (90, 95, 99, 99.9)
"""Percentiles of latency that are ever recorded."""


class Strict(Part):
    """Nothing is taken for what it is not: no text for a number."""

    model_config = ConfigDict(strict=True)


_THROTTLED = 0.01


class Noise(Strict):
    """From where on a figure says too little. Shares."""

    scatter: Annotated[float, Field(gt=0, le=1)] | None = Field(
        description="of the rounds' core throughput, their standard deviation; null: what the case says"
    )
    contended: Annotated[float, Field(gt=0, le=1)] = Field(
        description="of that bound, what others may take of all cores. An engine on all cores waits for the slowest: "
        "where others took 2.3 % of two cores, its core throughput was 6 % lower"
    )
    idle: Share = Field(description="of all cores, that must have been idle if others' part is not to count")
    throttled: Share = Field(
        default=_THROTTLED,
        description="of a monitor's readings, those in which a device may have run slower than it could",
        exclude_if=lambda share: share == _THROTTLED,  # it is younger than records with hashes of all the others
    )


class Ranking(Strict):
    """What a run must have beside its PASS to be set among others. No verdict asks for it."""

    isolation: Literal["wall", "process"] = Field(
        default="process", description="what must have kept each process with vendor's code from the rest, at least"
    )
    verified: tuple[RestsOn, ...] = Field(
        default=(), strict=False, description="what must not be claimed alone, where a run has it"
    )


_NOTHING_ASKED = Ranking()


class Policy(Strict):
    """Bounds of a verdict. What is no policy's to set is a constant where it is used."""

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")
    version: int = Field(ge=1, lt=1 << 31)
    blocks: tuple[str, ...] = Field(
        strict=False, description="verdicts that decide a session's exit code, of those that need not"
    )
    accuracy_ratio: float = Field(gt=0, le=1, description="of the fp32 framework's accuracy, that an engine must keep")
    least_rounds: int = Field(ge=1, le=10_000, description="timed rounds without which a throughput is INSUFFICIENT")
    least_seeds: int = Field(ge=1, le=10_000, description="runs without which a training is INSUFFICIENT")
    failing_seeds: float = Field(ge=0, lt=1, description="of a training's runs, how many may miss the target")
    latency_percentile: float = Field(description="that a latency run must have samples enough for")
    gate_width: Annotated[float, Field(ge=0.001, le=0.5)] | None = Field(
        description="share by which two speeds may differ and still be the same; null: as the comparison asked for"
    )
    noise: Noise
    ranking: Ranking = Field(
        default=_NOTHING_ASKED,
        exclude_if=lambda ranking: (
            ranking == _NOTHING_ASKED
        ),  # it is younger than records with hashes of all the others
    )

    @field_validator("blocks")
    @classmethod
    def _are_optional(cls, blocks: tuple[str, ...]) -> tuple[str, ...]:
        strange = [kind for kind in blocks if kind not in OPTIONAL]
        if strange or len(set(blocks)) != len(blocks):
            found = ", ".join(f"{kind!r}{hint(kind, OPTIONAL)}" for kind in strange or blocks)
            known = f"any of {', '.join(OPTIONAL)}, each at most once (every other failure always blocks)"
            raise ValueError(f"expected {known}, found {found}")
        return blocks

    @field_validator("latency_percentile")
    @classmethod
    def _is_recorded(cls, percentile: float) -> float:
        if percentile not in TAILS:
            raise ValueError(f"expected one of {', '.join(map(str, TAILS))}, found {percentile:g}")
        return percentile

    @property
    def sha256(self) -> str:
        """The digest of all values, as canonical JSON."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def title(self) -> str:
        """Name, version and the beginning of the hash: two that differ are never told alike."""
        return f"{self.name} {self.version} ({self.sha256[:12]})"

    def lets_pass(self, kind: VerdictKind) -> bool:
        """Whether a verdict that is no PASS leaves a session's exit code alone."""
        return kind in OPTIONAL and kind not in self.blocks


@cache
def default_policy() -> Policy:
    """What is in force where nothing else is asked for, and of records that were made before there were policies."""
    return _made(load_mapping(DEFAULT), str(DEFAULT))


def load_policy(path: Path) -> Policy:
    """A policy of the user's, laid over the default one.

    Raises:
        ConfigurationError: with every problem in it.
    """
    values = load_mapping(path)
    nameless = [Problem(str(path), key, "is required and missing") for key in ("name", "version") if key not in values]
    try:
        made = _made(_over(default_policy().model_dump(mode="json"), values), str(path))
    except ConfigurationError as error:
        raise ConfigurationError([*nameless, *error.problems]) from None
    if nameless:
        raise ConfigurationError(nameless)
    if made != default_policy() and made.name == default_policy().name:
        what = f"{made.name!r} is the suite's own policy: expected another name for this one"
        raise ConfigurationError([Problem(str(path), "name", what)])
    return made


def _over(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **values}
    for key, inner in base.items():
        if isinstance(inner, dict) and isinstance(values.get(key), dict):
            merged[key] = _over(inner, values[key])
    return merged


def _made(values: Mapping[str, Any], where: str) -> Policy:
    try:
        return Policy.model_validate_json(json.dumps(values))  # as JSON: a list will do for a tuple
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, where, model=Policy)) from None
