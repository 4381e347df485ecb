"""Requests that make something slower, or leave it out, and are compared with the base: no success comes of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.cheats.corpus import files, named
from tests.e2e.conftest import House
from tests.e2e.test_gate import git

DEFAULT = """
Fake.compilers["legacy"] = Compiler(frozenset({"bf16"}), consumes="model")
Fake.default_compiler = "legacy"
"""


@pytest.mark.parametrize("path", files("revisions"), ids=lambda path: path.stem)
def test_a_request(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house, package = House(tmp_path / "house"), tmp_path / "house/vendors/fake"
    house.add_case("dropped")
    (house.root / ".gitignore").write_text("results/\n.cache/\n__pycache__/\n")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        git(house.root, *arguments)
    (package / "legacy.py").write_text(path.read_text())
    (package / "unsupported.yaml").write_text(f"unsupported: [{named(path)['LISTED']}]\n")
    house.vendor_yaml("tiny").write_text("compiler: honest\n")
    with (package / "__init__.py").open("a") as stream:
        stream.write(DEFAULT)
    with tempfile.TemporaryDirectory() as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        ran = house.run("--compare", "HEAD", "--gate-budget", "10s")
    verdict = ran.record("dropped").verdict
    assert verdict is not None
    assert not verdict.expected or "NOT COMPARED inference/dropped" in ran.output, ran.output[-900:]
