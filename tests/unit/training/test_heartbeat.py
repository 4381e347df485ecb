"""A rank's sign of life, and one that is half written."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from proofmark.training.heartbeat import Heartbeat, HeartbeatWriter, Silence, read_heartbeat


def test_what_is_written_is_read(tmp_path: Path) -> None:
    HeartbeatWriter(tmp_path / "beat")(7, "compute")
    beat = read_heartbeat(tmp_path / "beat")
    assert beat is not None and (beat.step, beat.phase) == (7, "compute") and beat.since > 0


def test_who_is_in_a_checkpoint_is_behind_who_computes_the_next_step() -> None:
    """As the signs of a rank that goes on from step 3 follow each other."""
    begins = [(0, "start"), (0, "init"), (3, "evaluation"), (3, "data"), (3, "recording"), (3, "compute")]
    goes_on = [(4, "evaluation"), (4, "scoring"), (4, "checkpoint"), (4, "data"), (4, "compute"), (5, "end")]
    positions = [Heartbeat(9, 3, *sign, 1.0).position for sign in begins + goes_on]
    assert positions == sorted(set(positions))


BEATS = """
import sys
from pathlib import Path
from proofmark.training.heartbeat import HeartbeatWriter
beat = HeartbeatWriter(Path(sys.argv[1]))
print("begun", flush=True)
while True:
    beat(7, "compute")
"""


def test_one_that_is_renewed_is_whole_whenever_it_is_looked_at(tmp_path: Path) -> None:
    """Who finds none believes that there was none yet: such a trial may be ended as one that hangs."""
    path = tmp_path / "beat"
    with subprocess.Popen([sys.executable, "-c", BEATS, str(path)], stdout=subprocess.PIPE) as rank:
        try:
            assert rank.stdout is not None and rank.stdout.readline() == b"begun\n"
            assert not [True for _ in range(20_000) if read_heartbeat(path) is None]
        finally:
            rank.kill()


@pytest.mark.parametrize(
    "pid, first, step, phase, since",
    [
        (99, 0, 0, 99, 1.0),
        (99, 0, 0, -1, 1.0),
        (-5, 0, 0, 0, 1.0),
        (1 << 40, 0, 0, 0, 1.0),
        (99, -1, 0, 0, 1.0),
        (99, 0, -1, 0, 1.0),
        (99, 0, 1 << 62, 0, 1.0),
        (99, 0, 0, 0, float("nan")),
        (99, 0, 0, 0, float("-inf")),
        (99, 0, 0, 0, float("inf")),
    ],
)
def test_what_can_be_no_sign_is_none(pid: int, first: int, step: int, phase: int, since: float, tmp_path: Path) -> None:
    (tmp_path / "beat").write_bytes(struct.pack("=qqqqd", pid, first, step, phase, since))
    assert read_heartbeat(tmp_path / "beat") is None


@pytest.mark.parametrize("content", [b"", bytes(40), struct.pack("=qqqqd", 99, 0, 0, 0, 0.0), b"short"])
def test_a_first_sign_that_is_not_whole_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "beat").write_bytes(content)
    assert read_heartbeat(tmp_path / "beat") is None


def test_silence_is_what_passes_while_somebody_looks() -> None:
    """However long the two of them stood still; and a sign says nothing of how long the one before lasted."""
    longest: dict[str, float] = {}
    silence = Silence(1.0, 10.0, longest)
    first, second = (Heartbeat(9, 0, step, "compute", since) for step, since in ((1, 11.0), (2, 1e9)))
    found = []
    for now, beat in ((11.0, first), (21.0, first), (3600.0, first), (3601.0, second), (3602.0, second)):
        silence.look(beat, now)
        found.append(silence.seconds)
    assert found == [0.0, 3.0, 6.0, 0.0, 1.0] and longest == {"compute": 7.0}
    assert silence.enough("compute", 5.0) == 21.0 and silence.enough("data", 5.0) == 5.0
