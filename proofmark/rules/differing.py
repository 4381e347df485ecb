"""How a configuration differs from the one that something was begun with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from proofmark.literal import some
from proofmark.rules.config import EffectiveConfig

NAMED = 4
"""Settings that are named where they differ."""


def differing(begun: Mapping[str, Any], config: EffectiveConfig, aside: Collection[str] = ()) -> str:
    """The settings that differ, each with both values, in part of a line; empty where none does.

    Args:
        begun: the earlier configuration, as `EffectiveConfig.as_dict` gave it.
        config: the one of now.
        aside: settings that may differ.
    """
    then, now = dict(_settings(begun)), dict(_settings(config.as_dict()))
    differ = [key for key in {**now, **then} if key not in aside and then.get(key) != now.get(key)]
    return some([f"{key} ({then.get(key)!r} there, {now.get(key)!r} here)" for key in differ], NAMED)


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in ("profile", "vendor"):
        yield key, config.get(key)
    for kind in ("parameters", "configurations"):
        yield from config.get(kind, {}).items()
