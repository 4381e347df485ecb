"""The frozen configuration: a mapping, what identifies it, and what does not."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import pytest

from proofmark.rules.config import EffectiveConfig, HostSettings, comes_to
from proofmark.rules.legality import Override

PARAMETERS: dict[str, Any] = {"metric": "top1", "seed": 7, "sizes": [1, {"a": None}]}
CONFIGURATIONS: dict[str, Any] = {"batch_size": 4, "precision": None, "fp16": False, "ü": "é"}


def config(**changes: Any) -> EffectiveConfig:
    values = {"suite": "inference", "case": "net", "profile": "embedded", "vendor": "acme"}
    values |= {"parameters": PARAMETERS, "configurations": CONFIGURATIONS}
    return EffectiveConfig(**{**values, **changes})


def test_it_is_a_mapping_of_parameters_and_configurations() -> None:
    made = config()
    assert len(made) == 7 and list(made) == [*PARAMETERS, *CONFIGURATIONS]
    assert made["batch_size"] == made.batch_size == 4 and made["seed"] == 7
    assert made.sizes == (1, {"a": None})
    assert config(parameters={"fp16": 1}, configurations={"fp16": 2})["fp16"] == 2


def test_what_it_lacks_is_named_and_nothing_is_made_up() -> None:
    with pytest.raises(AttributeError, match=r"^case net has no parameter or configuration 'colour'$"):
        _ = config().colour
    with pytest.raises(AttributeError, match="^__deepcopied__$"):
        config().__getattr__("__deepcopied__")
    assert copy.copy(config()).hash == config().hash


def test_the_host_has_defaults() -> None:
    assert HostSettings() == HostSettings(None, None, ".cache", None, None) == config().host
    host = config().host
    assert (host.isolation, host.scratch_limit, host.flops_convention) == ("wall", 256.0, "counted")


def test_the_hash_is_of_the_task_alone() -> None:
    task = {"suite": "inference", "case": "net", "profile": "embedded", "vendor": "acme"}
    whole = {**task, "parameters": PARAMETERS, "configurations": CONFIGURATIONS}
    canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert config().hash == hashlib.sha256(canonical.encode()).hexdigest()
    elsewhere = config(host=HostSettings(cache_dir="x"), overrides=(Override("a", 1, 2, "o", "changed"),))
    assert elsewhere.hash == config().hash != config(vendor="other").hash
    turned = dict(reversed(CONFIGURATIONS.items()))
    assert config(configurations=turned).hash == config().hash


@pytest.mark.parametrize(
    "values, settled",
    [
        ({"compiler": "default"}, {"compiler": "engine"}),
        ({"scenario": "latency", "batch_size": 8}, {"scenario": "latency", "batch_size": 1}),
        ({"fp16": True, "precision": None}, {"fp16": True, "precision": "fp16"}),
        ({"fp16": True, "precision": "fp16"}, {"fp16": True, "precision": "fp16"}),
        ({"fp16": False, "precision": "fp16"}, {"fp16": True, "precision": "fp16"}),
        ({"fp16": False, "precision": "bf16"}, {"fp16": False, "precision": "bf16"}),
        ({"fp16": True, "precision": "bf16"}, {"fp16": True, "precision": "bf16"}),
        ({"fp16": True}, {"fp16": True, "precision": "fp16"}),
        ({"fp16": False}, {"fp16": False, "precision": "fp32"}),
    ],
)
def test_what_says_the_same_comes_to_the_same(values: dict[str, Any], settled: dict[str, Any]) -> None:
    assert comes_to("engine", values) == settled


@pytest.mark.parametrize(
    "precision, fp16, expected", [(None, False, "fp32"), (None, True, "fp16"), ("bf16", True, "bf16")]
)
def test_the_precision_that_is_in_force(precision: str | None, fp16: bool, expected: str) -> None:
    assert config(configurations={"precision": precision, "fp16": fp16}).effective_precision == expected


def test_it_comes_back_from_plain_values() -> None:
    made = config(overrides=(Override("a", 1, 2, "o", "changed"),), host=HostSettings(data_dir="d"))
    plain = json.loads(json.dumps(made.as_dict()))
    assert set(plain) == {
        *("suite", "case", "profile", "vendor", "parameters", "configurations", "overrides", "host", "source")
    }
    assert plain["parameters"] == PARAMETERS and plain["configurations"] == CONFIGURATIONS
    back = EffectiveConfig.from_dict(plain)
    assert (back.hash, back.overrides, back.host) == (made.hash, made.overrides, made.host)
