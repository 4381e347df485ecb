"""Cheats of the corpus that need no session: what a vendor's files ask for, what its package does as it introduces
itself, and what its monitor says.

An introduction and a monitor are what stands after a vendor's own module, and name the REASON why it is refused, if it
is. A file in YAML says that in its first line, and a configuration which file it is in its second. A package is two
that differ in what the file says, and must not have one digest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from proofmark.errors import ConfigurationError, ProofmarkError
from proofmark.launch.cluster.container.image import container_of
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.summary import summarise
from proofmark.monitoring.watch import Watch
from proofmark.record.parts import Utilisation
from proofmark.rules.config import resolve
from proofmark.rules.legality import OverrideLayer
from proofmark.rules.yaml.strict import load_mapping
from proofmark.rules.yaml.typed import load_model
from proofmark.vendor.environment import load_environment
from proofmark.vendor.hardware.chips import describe_chip
from proofmark.vendor.hardware.provenance import content_of, foreign_files
from proofmark.vendor.introduction.asking import introduce
from proofmark.vendor.isolation import IsolationSettings
from proofmark.vendor.monitor_log import read_samples
from proofmark.vendor.registry import FoundVendor
from proofmark.vendor.unsupported import load_expected
from proofmark.verdict.stages import impossible_utilisation
from tests.cheats.corpus import files, named
from tests.unit.rules.test_legality import case_file
from tests.unit.vendor.test_registry import GOOD, add, vendors
from tests.unit.wall.test_wall import behind
from tests.waiting import PATIENCE

__all__ = ["vendors"]

LINES = 6
"""Of a monitor's log, before it is asked to end."""

CONTAINERS, CHIPS, CONFIGURATIONS, INTRODUCTIONS, MONITORS, PACKAGES, LINKS = map(
    files, ("containers", "chips", "configurations", "introductions", "monitors", "packages", "links")
)


@pytest.mark.parametrize("path", INTRODUCTIONS, ids=lambda path: path.stem)
def test_an_introduction(path: Path, vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(vendors, "acme", f"{GOOD}\n{path.read_text()}")
    add(vendors, "honest")
    monkeypatch.setenv("PROOFMARK_CORPUS", str(vendors))
    message, before = "", _written(vendors)
    try:
        found = introduce("acme", vendors)
        describe_chip(found.vendor.chip(), found.vendor.chip_units(), "fp32", found.chips_file)
        assert found.directory == vendors / "acme"
    except ProofmarkError as error:
        message = str(error)
    assert named(path)["REASON"] in message and bool(message) == bool(named(path)["REASON"]), message
    assert len(message.splitlines()) < 2 and message.isprintable()
    assert _written(vendors) == before
    left = [process for process in psutil.process_iter() if _began_with(process, str(vendors))]
    psutil.wait_procs(left, timeout=PATIENCE)  # they were killed: on a busy machine that takes a while
    assert not [process for process in left if process.is_running()]


def _written(folder: Path) -> list[Path]:
    """All in it but what the session's own interpreter keeps of modules that it has read."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def _began_with(process: psutil.Process, marker: str) -> bool:
    try:
        return process.pid != psutil.Process().pid and process.environ().get("PROOFMARK_CORPUS") == marker
    except psutil.Error:
        return False


@behind
@pytest.mark.parametrize("path", MONITORS, ids=lambda path: path.stem)
def test_a_monitor(path: Path, vendors: Path, tmp_path: Path) -> None:
    """Its readings are a vendor's word: what can't be is none, and told."""
    add(vendors, "acme", f"{GOOD}\n{path.read_text()}\nAcme.monitor = lambda self: Monitor()\n")
    (tmp_path / "events.jsonl").write_text("kept")
    log, deadline = tmp_path / "monitor.jsonl", time.monotonic() + PATIENCE
    process = MonitorProcess(Watch("acme", str(vendors), os.getpgid(0), None, str(log), interval=0.02))
    while not log.exists() or log.read_bytes().count(b"\n") < LINES:
        assert time.monotonic() < deadline, (tmp_path / "monitor.err").read_text()
        time.sleep(0.02)
    failure = process.stop()
    assert failure in (None, named(path)["REASON"])
    times = [sample.time for sample in read_samples(log)[0]]
    seen = summarise(log, (times[1], times[-1]) if len(times) > 2 else None, 1, [failure] if failure else [])
    assert seen is not None and any(named(path)["REASON"] in failure for failure in seen.failures), seen
    assert seen.energy_joules is None or seen.energy_joules > 0
    assert seen.isolation is not None and seen.isolation.landlock < 99
    assert (tmp_path / "events.jsonl").read_text() == "kept"


def reason_of(path: Path) -> str:
    """What a cheat in YAML is told."""
    return path.read_text().partition("\n")[0].removeprefix("# told: ")


@pytest.mark.parametrize("path", CHIPS, ids=lambda path: path.stem)
def test_a_chip(path: Path, tmp_path: Path) -> None:
    (tmp_path / "chips.yaml").write_text(path.read_text())
    try:
        chip = describe_chip("fake chip", 1, "fp32", tmp_path / "chips.yaml")
        assert chip.peak is not None
        texts = impossible_utilisation(Utilisation(mfu=1e9 / chip.peak.flops_per_second), chip)
    except ConfigurationError as error:
        texts = [str(problem) for problem in error.problems]
    assert any(reason_of(path) in line for line in texts), texts


def _overrides(directory: Path) -> None:
    path = directory / "configs/inference/net.yaml"
    held = resolve(
        case_file(), "acme", [OverrideLayer(str(path), load_mapping(path, directory), vendors_own=True)], "engine"
    )
    if held.problems:
        raise ConfigurationError(held.problems)


READERS: dict[str, Callable[[Path], object]] = {
    "environment.yaml": load_environment,
    "isolation.yaml": lambda directory: load_model(directory / "isolation.yaml", IsolationSettings, directory),
    "unsupported.yaml": lambda directory: load_expected(directory / "unsupported.yaml"),
    "configs/inference/net.yaml": _overrides,
}


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_a_configuration(path: Path, tmp_path: Path) -> None:
    name = path.read_text().splitlines()[1].removeprefix("# file: ")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(path.read_text())
    with pytest.raises(ConfigurationError) as refused:
        READERS[name](tmp_path)
    (problem,) = refused.value.problems
    assert reason_of(path) in str(problem)


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.stem)
def test_a_container(path: Path, tmp_path: Path) -> None:
    (tmp_path / "container.yaml").write_text(path.read_text())
    vendor: Any = SimpleNamespace(name="any", directory=tmp_path, vendor=SimpleNamespace(container_options=()))
    with pytest.raises(ConfigurationError) as caught:
        container_of(vendor, "image", "docker")
    (problem,) = caught.value.problems
    assert reason_of(path) in str(problem)


def _packages(told: Mapping[str, Any], directory: Path) -> Iterator[Path]:
    """Two that differ in what is told alone."""
    ((what, both),) = told.items()
    for number, each in enumerate(both):
        package = directory / str(number)
        package.mkdir()
        (package / "__init__.py").touch(0o644)
        if what == "links":
            for name, target in each.items():
                (package / name).symlink_to(target)
        elif what == "names":
            Path(os.fsdecode(os.fsencode(package / "x") + bytes.fromhex(each))).touch()
        else:
            (package / "__init__.py").chmod(int(each, 8))
        yield package


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.stem)
def test_a_package(path: Path, tmp_path: Path) -> None:
    """What its code can read is in the digest that a record has of it, or it is refused."""
    one, other = _packages(load_mapping(path), tmp_path)
    assert foreign_files(one) or content_of(one).value != content_of(other).value


@pytest.mark.parametrize("path", LINKS, ids=lambda path: path.stem)
def test_a_configuration_that_is_a_link(path: Path, tmp_path: Path) -> None:
    """What a change reaches is told by files' paths: a case's settings lie in its own file, or are refused."""
    ((place, target),) = load_mapping(path).items()
    link, (suite, case) = tmp_path / place, Path(place).with_suffix("").parts[1:3]
    link.parent.mkdir(parents=True)
    link.with_name(target).write_text("repeat: 4\n")
    link.symlink_to(target)
    (tmp_path / "__init__.py").touch()
    module: Any = SimpleNamespace(__name__="vendors.any", __file__=str(tmp_path / "__init__.py"))
    found, scaled = FoundVendor("any", module, module, tmp_path.parent), suite == "training"
    problems = found.stray_overrides({f"{suite}/{case}": scaled, f"{suite}/vit": scaled})
    assert [problem for problem in problems if problem.where == str(link) and "is a link" in problem.what]
