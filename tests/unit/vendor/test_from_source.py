"""What is kept compiled of a vendor's package is never what runs."""

from __future__ import annotations

import marshal
import os
import py_compile
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

import pytest

from proofmark.vendor.introduction.asking import introduce
from proofmark.vendor.registry import find_vendor
from tests.unit.vendor.test_registry import add, vendors

__all__ = ["vendors"]

UNCHECKED = b"\1\0\0\0"
"""A flag of PEP 552: Python doesn't compare the source."""

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
    folder = tmp_path / "vendors"
    source = folder / "acme/__init__.py"
    source.parent.mkdir(parents=True)
    for name in ("__init__", "acme/anvil"):
        (folder / f"{name}.py").write_text("from elsewhere import InferModel\n" if "/" in name else "")
    source.write_text(VENDOR.format(said="other code"))
    os.utime(source, (1e9, 1e9))
    assert Path(py_compile.compile(str(source), doraise=True)).is_file()
    source.write_text(VENDOR.format(said="the source"))
    os.utime(source, (1e9, 1e9))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "vendors"]:
        monkeypatch.delitem(sys.modules, name)
    found = find_vendor("acme", folder)
    assert found.package.said == "the source"
    assert "vendors.acme" in sys.modules


def test_what_is_compiled_beside_all_vendors_is_not_run(vendors: Path) -> None:
    add(vendors, "acme")
    place, mark = Path(cache_from_source(str(vendors / "__init__.py"))), vendors.parent / "mark"
    place.parent.mkdir(exist_ok=True)
    code = compile(f"open({str(mark)!r}, 'w').close()", "vendors/__init__.py", "exec")
    place.write_bytes(MAGIC_NUMBER + UNCHECKED + bytes(8) + marshal.dumps(code))
    assert introduce("acme", vendors).name == "acme"
    assert not mark.exists()
