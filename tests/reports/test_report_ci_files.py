"""What CI services show: no text of others breaks a table, a tag or a command."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from proofmark.record.figures import Figure, FigureKind
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.rules.yaml.key_lines import line_of
from reports.ci.annotations import Annotation, github, gitlab
from reports.ci.markdown import LONGEST, MOST, Section, escaped, markdown
from reports.ci.summary import slower_or_faster, verdicts
from reports.content.text import printable
from tests.reports.records import make_record

HOSTILE = [
    "a | b || c \\| d",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "[x](javascript:alert(1)) ![i](http://evil/x.png) <http://evil> http://evil www.evil.com",
    "`code` ``` **bold** _it_ ~~no~~ # head\n## head\n\n- item\n/close\n@everyone #12 !3 &lt; &#124; $x$",
    "| --- |\n| a |",
    "\u202eevil \x1b[31m \u200b",
]
TEXTS = st.one_of(st.text(max_size=60), st.text(alphabet="|\\`*_[]()<>#&;:!@~\n $-x", max_size=30))


class Read(HTMLParser):
    """Tags, and the text of cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "td":
            self.cells[-1] += data


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
@example([(one, other) for one in HOSTILE for other in HOSTILE[:2]])
def test_a_table_stays_a_table_and_its_cells_say_what_they_said(rows: list[tuple[str, str]]) -> None:
    text = markdown([Section("x", ("one", "other"), rows)])
    read = Read(MarkdownIt("commonmark").enable("table").render(text))
    assert set(read.tags) <= {"h2", "table", "thead", "tbody", "tr", "th", "td"}
    assert [cell.replace("\u200b", "").strip() for cell in read.cells] == [
        printable(cell).replace("\u200b", "").strip() for row in rows for cell in row
    ]


@given(TEXTS)
def test_what_is_escaped_has_nothing_left_that_means_anything(text: str) -> None:
    shown = escaped(text)
    assert not set(re.sub(r"&#\d+;", "", shown)) & set("|\\`*_[]<>#!@~:/$.-\n")
    assert html.unescape(shown).replace("\u200b", "") == printable(text).replace("\u200b", "")


def test_a_summary_is_bounded_and_says_how_much_it_leaves_out() -> None:
    text = markdown([Section("many", ("a",), [("x" * 9999,)] * (MOST + 7), ["line"] * (MOST + 1))])
    assert "and 7 more" in text and "and 1 more" in text
    assert len(text) < (MOST + 9) * (LONGEST + 50) + MOST * 20
    assert markdown([Section("empty", ("a",))]) == "\n"


def test_the_gravest_verdict_comes_first_and_a_speed_that_is_withheld_is_not_there() -> None:
    good, bad = make_record(), make_record()
    good = good.model_copy(update={"verdict": Verdict(kind=VerdictKind.PASS)})
    bad = bad.model_copy(update={"verdict": Verdict(kind=VerdictKind.FAIL_HONESTY, reasons=("it | cheats",))})
    section = verdicts([good, bad], 15)
    assert section.title == "Proofmark: 2 runs, exit code 15"
    assert [row[0] for row in section.rows] == ["✗ FAIL_HONESTY", "✓ PASS"]
    assert section.rows[0][-1] == "it | cheats"
    assert "engine core" in section.rows[1][-1]
    assert verdicts([], 4).lines == ("no run has left a record",)


def test_what_was_compared_stands_with_its_interval_unless_speed_is_withheld() -> None:
    expected = "REGRESSION: 0.9 times the baseline's (0.88 to 0.92, 7 pairs)"
    figure = Figure(key="compared_core", label="core compared", unit="text", kind=FigureKind.SPEED, value=expected)
    good = make_record().with_figures([figure])
    assert slower_or_faster([good]).rows == [(good.run_name, "core compared", expected)]
    bad = good.model_copy(update={"verdict": Verdict(kind=VerdictKind.FAIL_HONESTY)})
    assert slower_or_faster([bad]).rows == [(good.run_name, "core compared", "withheld: FAIL_HONESTY")]


def test_an_annotation_is_one_command_whatever_it_says() -> None:
    found = Annotation("a,b:c%.yaml", 3, "not: legal", "100 %\n::stop-commands::x\r::error::y")
    (line,) = github([found]).splitlines()
    assert line.startswith("::error file=a%2Cb%3Ac%25.yaml,line=3,title=not%3A legal::100 %25 ::stop")
    (entry,) = json.loads(gitlab([found]))
    assert entry["location"] == {"path": "a,b:c%.yaml", "lines": {"begin": 3}}
    assert entry["severity"] == "blocker" and len(entry["fingerprint"]) == 64
    assert json.loads(gitlab([])) == []


TEXT = "batch_size: 4\nprofiles:\n  embedded:\n    seed: 1\nlisted:\n  - {case: a}\n  - case: b\n    odd.name: 2\n"


@pytest.mark.parametrize(
    "key, line",
    [
        ("batch_size", 1), ("profiles.embedded.seed", 4), ("profiles.standard", 2), ("listed.1", 7),
        ("listed.1.case", 7), ("listed.1.odd.name", 8), ("listed.9", 5), ("nothing", 1), ("", 1),
    ],
)  # fmt: skip
def test_a_key_is_found_on_its_line_or_its_nearest_parent(key: str, line: int) -> None:
    assert line_of(TEXT, key) == line


def test_a_text_that_is_no_yaml_has_the_line_where_reading_ended() -> None:
    assert line_of("a: 1\nb: [\n", "b") == 3
    assert line_of("", "a") == 1
    assert line_of("- a", "a") == 1
