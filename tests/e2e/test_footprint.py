"""What a run leaves behind outside its own folders: nothing."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, House
from tests.services import missing
from tests.waiting import PATIENCE

COMPILERS = {"onnxruntime": "cpu", "inductor": "cpu", "openvino": "intel"}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home and an empty directory for temporary files, under a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name, variable in (("home", "HOME"), ("tmp", "TMPDIR")):
            (root / name).mkdir()
            monkeypatch.setenv(variable, str(root / name))
        for variable in ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "DO_NOT_TRACK", "CI"):
            monkeypatch.delenv(variable, raising=False)
        yield root


def left_in_the_end(bare: Path) -> list[str]:
    """What is there when whoever outlives a kill has cleared away: on a busy machine the last of them may still be at
    it when nobody is known by a house's environment any more."""
    deadline = time.monotonic() + PATIENCE
    while (left := _all_names(bare)) != ["home", "tmp"] and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _all_names(folder: Path) -> list[str]:
    """Of all that lies there, parts of which may be going meanwhile."""
    return sorted(name for _, folders, files in os.walk(folder) for name in (*folders, *files))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_nothing_is_left_in_home_and_temporary_directory(house: House, bare: Path, compiler: str) -> None:
    vendor = COMPILERS[compiler]
    if compiler != "inductor" and not find_spec(compiler):  # to import it here would leave traces
        missing(f"the package {compiler}")
    if vendor != "cpu":
        (house.root / "vendors" / vendor).symlink_to(ROOT / "vendors" / vendor)
    asked = ("--compiler", compiler) if compiler == "inductor" else ()  # the others are their vendor's defaults
    ran = house.run(*asked, vendor=vendor)
    assert ran.code == 0, ran.output
    assert house.becomes_empty()
    assert left_in_the_end(bare) == ["home", "tmp"]
    assert (house.cache / "torchinductor").is_dir() or compiler != "inductor"


def test_a_killed_process_leaves_nothing_either(house: House, bare: Path) -> None:
    house.home_is_new = True
    ran = house.run("--set=num_workers=1", trouble="tiny.call=SIGKILL")
    assert ran.verdict()[0] == "ERROR"
    assert house.becomes_empty()
    assert left_in_the_end(bare) == ["home", "tmp"]


def test_a_killed_session_leaves_nothing_either(house: House, bare: Path) -> None:
    house.home_is_new = True
    session = house.start("--vendor", "fake", trouble="tiny.call=sleep")
    house.wait_for_trouble(session)
    session.kill()
    session.communicate()
    assert house.becomes_empty()
    assert left_in_the_end(bare) == ["home", "tmp"]


@pytest.mark.parametrize("killed", ["nothing", "rank", "agent", "session"])
def test_a_training_leaves_nothing_whoever_is_killed(house: House, bare: Path, killed: str) -> None:
    house.home_is_new = killed != "nothing"
    trouble = {"nothing": "", "rank": "tiny.rank0.step12=SIGKILL"}.get(killed, "tiny.rank0.step12=sleep")
    options = "--vendor cpu --set checkpoint_steps=10 --set num_workers=1 -k 1x1".split()
    session = house.start(*options, suite="training", trouble=trouble)
    if killed in ("agent", "session"):
        house.wait_for_trouble(session)
        agent = house.agent()
        (agent if killed == "agent" else session).kill()
    session.communicate()
    assert house.becomes_empty()
    assert left_in_the_end(bare) == ["home", "tmp"]


def test_sockets_fit_where_the_temporary_directory_has_a_long_path(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ("long" * 20)).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / ("long" * 20)))
    for suite in ("training", "inference"):
        ran = house.run("--set=num_workers=1", "-k", "tiny and not 1x2", vendor="cpu", suite=suite)
        assert ran.code == 0, ran.output
