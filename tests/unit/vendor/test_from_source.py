"""What is kept compiled of a vendor's package is never what runs."""

from __future__ import annotations

import os
import py_compile
import sys
from pathlib import Path

import pytest

from proofmark.vendor.registry import find_vendor

VENDOR = """
from proofmark.vendor import Compiler
from proofmark.vendor.contract import Processor

class Acme(Processor):
    compilers, default_compiler = {{"anvil": Compiler(consumes="model", precisions=("fp32",))}}, "anvil"

vendor, said = Acme(), {said!r}
"""


def test_a_cache_that_says_otherwise_than_its_source_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendors = tmp_path / "vendors"
    source = vendors / "acme/__init__.py"
    source.parent.mkdir(parents=True)
    for name in ("__init__", "acme/anvil"):
        (vendors / f"{name}.py").write_text("from elsewhere import InferModel\n" if "/" in name else "")
    source.write_text(VENDOR.format(said="other code"))
    os.utime(source, (1e9, 1e9))
    assert Path(py_compile.compile(str(source), doraise=True)).is_file()
    source.write_text(VENDOR.format(said="the source"))
    os.utime(source, (1e9, 1e9))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "vendors"]:
        monkeypatch.delitem(sys.modules, name)
    found = find_vendor("acme", vendors)
    assert found.package.said == "the source"
    assert "vendors.acme" in sys.modules
