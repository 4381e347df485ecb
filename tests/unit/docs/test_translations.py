"""Pages in two languages say the same: commands and code to the letter, tables by their rows."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHINESE = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("*.zh-CN.md"), *(ROOT / "docs").glob("*.zh-CN.md")])
PAGES = {Path("README.zh-CN.md"), Path("docs/from-flagperf.zh-CN.md"), Path("docs/vendor-first-day.zh-CN.md")}


def english_of(page: Path) -> Path:
    return page.with_name(page.name.replace(".zh-CN", ""))


def commands(text: str) -> list[str]:
    """Indented and fenced blocks, without what is remarked behind a command."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    indented = re.findall(
        r"^    (?! )(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return [*fenced, *(re.sub(r"  +# .*", "", line).rstrip() for line in indented)]


def tables(text: str) -> list[list[tuple[int, list[str]]]]:
    """Of each table each row's columns, and what it has in code, in whatever order."""
    groups = groupby(text.splitlines(), lambda line: line.startswith("|"))
    return [[(line.count("|"), sorted(code_in(line))) for line in lines] for is_table, lines in groups if is_table]


def code_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def links(text: str) -> set[str]:
    """Pages that it leads to; their headings have other names in another language."""
    found = re.findall(r"\]\(([^)]+)\)", text)
    return {link.partition("#")[0].replace(".zh-CN", "") for link in found}


def test_every_page_that_is_there_in_chinese_is_known() -> None:
    assert set(CHINESE) == PAGES


@pytest.mark.parametrize("page", CHINESE, ids=str)
def test_both_languages_say_the_same(page: Path) -> None:
    chinese, english = ((ROOT / each).read_text(encoding="utf-8") for each in (page, english_of(page)))
    assert commands(chinese) == commands(english)
    assert tables(chinese) == tables(english)
    other = {page.name.replace(".zh-CN", "")}
    assert links(chinese) - other == links(english) - other
    assert page.name in english and english_of(page).name in chinese, "each leads to the other"


def test_the_migration_page_is_short() -> None:
    assert len((ROOT / "docs/from-flagperf.md").read_text(encoding="utf-8").splitlines()) < 150
