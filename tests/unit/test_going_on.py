"""The command by which one goes on with what a session has begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.outputs.terminal import going_on


@pytest.mark.parametrize("before", [[], ["--resume", "results/one"], ["--resume=results/one"]])
def test_it_is_the_sessions_own_with_its_folder(before: list[str]) -> None:
    given = ["suites/training", *before, "-k", "net and 1x2", "--set", "checkpoint_steps=20"]
    own = "python -m pytest suites/training -k 'net and 1x2' --set checkpoint_steps=20"
    assert going_on(given, Path("results/two")) == f"{own} --resume results/two"
