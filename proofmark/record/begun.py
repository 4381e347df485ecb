"""What every suite's record takes from its log: from the event that its run began with, and how far the run came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from proofmark.record.events.log import Event
from proofmark.record.events.types import fields_of
from proofmark.record.parts import Identity
from proofmark.record.policy import Policy
from proofmark.rules.config import EffectiveConfig


def envelope_of(begin: Event, config: EffectiveConfig) -> dict[str, Any]:
    """The fields of a `CaseRecord` that say what was to be run, with what, and where; `config` is the event's."""
    plain = config.as_dict()
    policy = Policy.model_validate_json(json.dumps(begin["policy"])) if "policy" in begin else None
    return {
        **{name: getattr(config, name) for name in ("suite", "case", "profile", "vendor", "item", "seed")},
        "config_hash": config.hash,
        "case_hash": config.source,
        "config": {**plain["parameters"], **plain["configurations"]},
        "parameters": tuple(plain["parameters"]),
        "overrides": plain["overrides"],
        "started": begin["time"],
        **{name: begin[name] for name in ("precision", "versions", "host", "chip", "problems")},
        **{name: begin.get(name) for name in ("expected_unsupported", "provenance")},
        "isolation": begin.get("isolation", {}),
        **({"policy": policy, "policy_hash": policy.sha256} if policy else {}),
    }


def how_far(last: Mapping[str, Event]) -> dict[str, Any]:
    """The fields that say how far a run came, by the last event of each kind."""
    return {
        "interrupted": last["interrupted"]["step"] if "interrupted" in last else None,
        "partial": "partial" in last,
        "stopped": "stopped" in last,
    }


def identity_of(event: Event | None) -> Identity | None:
    """The data or the weights that an event identifies; None without an event."""
    return Identity.model_validate(fields_of(event, Identity)) if event else None
