"""What a process behind a wall may read of programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.wall.python import needed


def test_a_sites_programs_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    named = "/apps/gcc/12/bin:/opt:/opt/bin:/home/me/bin:bin::/opt/../home/me/bin:/opt/acme/tools:/data/bin"
    monkeypatch.setenv("PATH", named)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/sw/cuda/lib64:/home/me/lib")
    monkeypatch.setenv("CC", "/cvmfs/llvm/bin/clang")
    monkeypatch.setenv("CXX", "c++")
    before = {"PATH", "LD_LIBRARY_PATH", "CC"}
    found = set(needed())
    for name in before:
        monkeypatch.delenv(name)
    read = {"/apps/gcc/12", "/opt/acme/tools", "/sw/cuda/lib64", "/cvmfs/llvm"}
    assert found - set(needed()) == {Path(place) for place in read}
