"""What a training's batch is at a scale."""

from __future__ import annotations

from typing import Any

import pytest

from proofmark.rules.config import EffectiveConfig, Resolution
from proofmark.rules.legality import Override
from proofmark.rules.scale import Scale
from proofmark.training.run import at_scale


def settled(scale: str, *overrides: Override, **settings: Any) -> Resolution:
    configurations = {"global_batch_size": 64, "train_batch_size": None, "gradient_accumulation_steps": 1, **settings}
    config = EffectiveConfig("training", "net", "embedded", "acme", {}, configurations, overrides)
    return at_scale(Resolution(config, ()), Scale.parse(scale), "net.yaml")


def test_what_a_process_takes_at_once_settles_the_global_batch() -> None:
    found = settled("1x8", train_batch_size=4, gradient_accumulation_steps=3)
    assert not found.problems and found.config.global_batch_size == 96
    assert [override.key for override in found.config.overrides] == ["global_batch_size"]


@pytest.mark.parametrize(
    ("scale", "parts", "most"), [("1x1", 64, 64), ("1x8", 8, 8), ("1x8", 9, 8), ("2x8", 200_000, 4), ("8x16", 2, 1)]
)
def test_no_micro_batch_is_of_nothing(scale: str, parts: int, most: int) -> None:
    """A vendor's file could ask for as many as fill the memory of who lists them."""
    problems = [str(problem) for problem in settled(scale, gradient_accumulation_steps=parts).problems]
    each = f"expected {most} at most, a global batch of 64 has no more for each of {Scale.parse(scale).world} processes"
    assert problems == ([f"net.yaml: gradient_accumulation_steps: {parts}: {each}"] if parts > most else [])


def test_more_processes_than_samples_have_one_each() -> None:
    assert not settled("8x16").problems


def test_what_contradicts_is_told_of_who_set_it_last() -> None:
    """The case's own file is none of a vendor's to mend."""
    each = Override("train_batch_size", None, 8, "acme.yaml", "changed")
    together = Override("global_batch_size", 64, 100, "--set", "changed")
    (problem,) = settled("1x8", each, together, train_batch_size=8, global_batch_size=100).problems
    assert (problem.where, problem.key) == ("--set", "train_batch_size")
    parts = Override("gradient_accumulation_steps", 1, 9, "acme.yaml", "changed")
    threads = Override("num_workers", 0, 2, "--set", "changed")
    (problem,) = settled("1x8", parts, threads, gradient_accumulation_steps=9).problems
    assert (problem.where, problem.key) == ("acme.yaml", "gradient_accumulation_steps")
