"""A device is one session's at a time, whoever runs the others, and however they end."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.device_lock import holding
from fixtures.live.progress import TELL
from fixtures.settings import SETTINGS
from proofmark.errors import Problem, UsageError
from proofmark.vendor.hardware import device_lock
from proofmark.vendor.hardware.device_lock import held, names_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets without a file are Linux's")

HOLDS = """import sys; from proofmark.vendor.hardware.device_lock import held
with held([sys.argv[1]], 0, print): print(); sys.stdin.read()"""


@pytest.fixture
def device() -> str:
    """One that nobody else in the world has."""
    return f"device {secrets.token_hex(8)} of vendor acme"


@pytest.fixture
def other(device: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds it."""
    environment = {**os.environ, "PYTHONPATH": str(Path(device_lock.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        yield process
        process.kill()


def silent(note: str) -> None:
    raise AssertionError(note)


def test_a_free_device_is_taken_at_once_and_given_back(device: str) -> None:
    for _ in range(2):
        with held([device, device, f"{device} too"], 0, silent):
            pass


def test_a_device_in_use_is_refused_with_its_user(device: str, other: subprocess.Popen[bytes]) -> None:
    expected = rf"{device} is in use by process {other.pid} of \w+, and two sessions .* --device-wait"
    with pytest.raises(UsageError, match=expected), held([device], 0, silent):
        pass
    with held([f"{device} too"], 0, silent):
        pass


def test_one_waits_until_the_other_is_killed(
    device: str, other: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(device_lock.time, "sleep", lambda seconds: (other.kill(), other.wait()))
    with held([device], 600, notes.append):
        pass
    (message,) = notes
    assert f"is in use by process {other.pid} of " in message and message.endswith(
        ": waiting up to 600 s (--device-wait)"
    )


def test_all_or_none_are_held(device: str, other: subprocess.Popen[bytes]) -> None:
    free = f"a {device}"
    with pytest.raises(UsageError), held([device, free], 0, silent):
        pass
    with held([free], 0, silent):
        pass


def test_it_can_be_switched_off(device: str, other: subprocess.Popen[bytes]) -> None:
    with held([device], None, silent):
        pass


def test_a_long_name_is_told_apart_from_another(device: str) -> None:
    one, another = (device + "x" * length for length in (200, 201))
    with held([one], 0, silent), held([another], 0, silent), pytest.raises(UsageError), held([one], 0, silent):
        pass


@pytest.mark.parametrize("worker, raised", [(False, pytest.exit.Exception), (True, pytest.fail.Exception)])
def test_who_must_not_wait_ends_the_session_or_a_workers_case(
    device: str, other: subprocess.Popen[bytes], tmp_path: Path, worker: bool, raised: type[BaseException]
) -> None:
    config = session(device, tmp_path / "results")
    if worker:
        config.workerinput = {}
    with pytest.raises(raised, match=f"{device} is in use by process {other.pid}"), holding(config, "tiny", slice(1)):
        pass
    with holding(config, "tiny", slice(1), [Problem("", "", "is illegal")]):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("worker, raised", [(False, pytest.exit.Exception), (True, pytest.fail.Exception)])
def test_nobody_waits_for_a_device_whose_results_would_have_no_place(
    device: str, other: subprocess.Popen[bytes], tmp_path: Path, worker: bool, raised: type[BaseException]
) -> None:
    (tmp_path / "file").touch()
    config = session(device, tmp_path / "file/results")
    if worker:
        config.workerinput = {}
    with pytest.raises(raised, match="results cannot be written: .*Not a directory"):
        holding(config, "tiny", slice(1)).__enter__()


def session(device: str, results: Path) -> Any:
    """A session's configuration that must not wait for its only device."""
    vendor = SimpleNamespace(runs_on_processor=False, visible_devices_variable=None)
    name = device.removeprefix("device ").removesuffix(" of vendor acme")
    vendor.devices = lambda: [SimpleNamespace(index=name)]
    settings = SimpleNamespace(found=SimpleNamespace(name="acme", vendor=vendor), device_wait=0, results_dir=results)
    return SimpleNamespace(stash={SETTINGS: settings, TELL: None}, option=SimpleNamespace(results_dir=None))


def test_there_is_one_processor_whoever_compiles_for_it() -> None:
    assert names_of("cpu", True, ["0"]) == names_of("intel", True, ["1"])
    assert names_of("acme", False, ["0", "1"]) == ["device 0 of vendor acme", "device 1 of vendor acme"]
    assert names_of("acme", False, []) == []
