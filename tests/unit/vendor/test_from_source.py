"""What lies compiled beside vendors' packages is run by nobody, the session least of all."""

from __future__ import annotations

import marshal
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

from proofmark.vendor.introduction.asking import introduce
from tests.unit.vendor.test_registry import add, vendors

__all__ = ["vendors"]

UNCHECKED = b"\1\0\0\0"
"""A flag of PEP 552: Python doesn't compare the source."""


def test_what_is_compiled_beside_all_vendors_is_not_run(vendors: Path) -> None:
    add(vendors, "acme")
    place, mark = Path(cache_from_source(str(vendors / "__init__.py"))), vendors.parent / "mark"
    place.parent.mkdir(exist_ok=True)
    code = compile(f"open({str(mark)!r}, 'w').close()", "vendors/__init__.py", "exec")
    place.write_bytes(MAGIC_NUMBER + UNCHECKED + bytes(8) + marshal.dumps(code))
    assert introduce("acme", vendors).name == "acme"
    assert not mark.exists()
