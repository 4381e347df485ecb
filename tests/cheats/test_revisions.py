"""Requests that make something slower, or leave it out, and are compared with the base: no success comes of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.cheats.corpus import files, named
from tests.e2e.conftest import House, Ran
from tests.e2e.test_gate import git

COMPILER = """
Fake.compilers["legacy"] = Compiler(frozenset({"bf16"}), consumes="model")
"""
DEFAULT = 'Fake.default_compiler = "legacy"\n'


class Project:
    """A house under version control, with one case that its vendor may list as unsupported, and one that it keeps."""

    def __init__(self, folder: Path) -> None:
        self.house, self.package = House(folder), folder / "vendors/fake"
        self.house.add_case("dropped")
        (folder / ".gitignore").write_text("results/\n.cache/\n__pycache__/\n")

    def lists(self, path: Path) -> None:
        """By a compiler of its own, which nobody runs yet."""
        (self.package / "legacy.py").write_text(path.read_text())
        (self.package / "unsupported.yaml").write_text(f"unsupported: [{named(path)['LISTED']}]\n")
        self.adds(COMPILER)

    def drops(self) -> None:
        self.house.vendor_yaml("tiny").write_text("compiler: honest\n")
        self.adds(DEFAULT)

    def adds(self, text: str) -> None:
        with (self.package / "__init__.py").open("a") as stream:
            stream.write(text)

    def commit(self) -> None:
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
            git(self.house.root, *arguments)

    def compared(self, monkeypatch: pytest.MonkeyPatch) -> Ran:
        with tempfile.TemporaryDirectory() as temporary:
            monkeypatch.setenv("TMPDIR", temporary)
            return self.house.run("--compare", "HEAD", "--gate-budget", "10s")


@pytest.mark.parametrize("listed_before", [False, True])
@pytest.mark.parametrize("path", files("revisions"), ids=lambda path: path.stem)
def test_a_request(tmp_path: Path, path: Path, listed_before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one, or in two, of which the first is merged: it changes what nobody runs."""
    project = Project(tmp_path / "house")
    if listed_before:
        project.lists(path)
    project.commit()
    if not listed_before:
        project.lists(path)
    project.drops()
    ran = project.compared(monkeypatch)
    verdict = ran.record("dropped").verdict
    assert verdict is not None
    assert not verdict.expected or "NOT COMPARED inference/dropped" in ran.output, ran.output[-900:]
    assert ran.code != 0


def test_what_the_base_did_not_support_is_not_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path / "house")
    project.lists(next(iter(files("revisions"))))
    project.drops()
    project.commit()
    project.adds("# no change in what it does\n")
    ran = project.compared(monkeypatch)
    verdict = ran.record("dropped").verdict
    assert verdict is not None and verdict.expected
    assert "NOT COMPARED" not in ran.output, ran.output[-900:]


def test_what_parallel_workers_drop_is_told_beside_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path / "house")
    monkeypatch.setenv("FAKE_DEVICES", "2")
    base = project.house.run("--results-dir", "base", "-k", "dropped")
    assert base.code == 0, base.output
    project.lists(next(iter(files("revisions"))))
    project.drops()
    ran = project.house.run("-n", "2", "--compare", "base/latest", "--compare-unlike", "-k", "dropped")
    assert ran.code == 12 and "NOT COMPARED inference/dropped" in ran.output, ran.output[-900:]
