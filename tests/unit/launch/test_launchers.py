"""Launchers are found as vendors are: those of the suite by their module, others by an entry point."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proofmark.errors import UsageError
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.launchers import available_launchers, find_launcher, left_aside

ACME = """
from proofmark.launch.cluster.node import Node
from proofmark.launch.launchers import HostLauncher

class Acme(HostLauncher):
    keys = frozenset({"launcher_options"})

    def count(self, cluster):
        return 1

    def nodes(self, cluster, origin):
        raise NotImplementedError

launcher = Acme()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Make a package with a launcher installed, from its source."""
    monkeypatch.syspath_prepend(tmp_path)

    def do(name: str, source: str) -> None:
        (tmp_path / f"{name}_launcher.py").write_text(source)
        folder = tmp_path / f"{name}_cloud-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-cloud\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[proofmark.launchers]\n{name} = {name}_launcher\n")

    yield do
    for module in [name for name in sys.modules if name.endswith("_launcher")]:
        del sys.modules[module]


def test_the_suites_own(tmp_path: Path) -> None:
    assert {"local", "ssh", "slurm"} <= set(available_launchers())
    cluster = Cluster(work_dir="/w", hosts=["a", "b"])  # type: ignore[arg-type]
    counts = {name: find_launcher(name).count(cluster) for name in ("local", "ssh", "slurm")}
    assert counts == {"local": 1, "ssh": 2, "slurm": None}
    assert [find_launcher(name).elsewhere for name in counts] == [False, True, True]
    with pytest.raises(UsageError, match=r"unknown launcher 'slrum': there are .*; did you mean 'slurm'\?"):
        find_launcher("slrum")


def test_one_of_a_package(install: object) -> None:
    assert callable(install)
    install("acme", ACME)
    assert "acme" in available_launchers() and find_launcher("acme").elsewhere
    cluster = Cluster(work_dir="/w", partition="p", launcher_options={"region": "north"})
    assert left_aside(cluster, "acme") == ["partition"]
    assert left_aside(cluster, "slurm") == ["launcher_options"]


@pytest.mark.parametrize(
    "source, expected",
    [
        ("1/0", r"launcher 'bad' cannot be imported: ZeroDivisionError: .*bad_launcher.py:1\)"),
        (
            "launcher = 1",
            "bad_launcher.py: launcher 'bad': expected an attribute 'launcher', an instance of a",
        ),
        ("", "expected an attribute 'launcher'"),
    ],
)
def test_one_that_is_broken_harms_nobody_else(install: object, source: str, expected: str) -> None:
    assert callable(install)
    install("bad", source)
    with pytest.raises(UsageError, match=expected) as caught:
        find_launcher("bad")
    assert "\n" not in str(caught.value)
    assert left_aside(Cluster(work_dir="/w", partition="p"), "ssh") == ["partition"]


def test_a_name_that_is_taken(install: object) -> None:
    assert callable(install)
    install("ssh", ACME)
    with pytest.raises(UsageError, match="launcher 'ssh' is defined more than once: .*; remove all but one"):
        find_launcher("ssh")
