"""Ending what carries a mark, on a machine that leaves no time for it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess

import pytest

from proofmark.process.lifetime import MARK, end_marked
from tests.waiting import PATIENCE


@pytest.mark.parametrize("patience", [0.0, 5.0])
def test_what_carries_a_mark_is_killed_though_its_time_is_over_already(patience: float) -> None:
    mark = secrets.token_hex(16)
    with subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark}) as marked:
        try:
            end_marked(mark, patience)
            assert marked.wait(PATIENCE) == -signal.SIGKILL
        finally:
            marked.kill()
