"""Commands that pages print can be run as they are."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


def after(words: list[str], option: str, default: str) -> str:
    return words[words.index(option) + 1] if option in words else default


def test_no_command_asks_for_the_compiler_that_its_vendor_has_anyway() -> None:
    """That is FAIL_LEGALITY: it does nothing."""
    found = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^    .*pytest (suites/inference .*?)(?:  +#.*)?$", text, re.MULTILINE):
            words = shlex.split(line)
            name = after(words, "--vendor", "cpu")
            if "--compiler" in words and (ROOT / "vendors" / name).is_dir():
                found += 1
                vendor = importlib.import_module(f"vendors.{name}").vendor
                assert words[words.index("--compiler") + 1] != vendor.default_compiler, f"{page.name}: {line}"
    assert found
