"""The HTML page: complete, contained, escaped, and silent about speeds that mean nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from proofmark.inference.outcome.record import Step
from proofmark.record.parts import Check, Verdict, VerdictKind
from proofmark.record.provenance import Chip, Peak
from proofmark.rules.legality import Override
from reports.html import write_html
from tests.reports.records import make_record, watched
from tests.suites_there import page_of

VOID = {"meta", "br", "link", "img", "input", "hr", "wbr"}


class Outline(HTMLParser):
    """Checks that tags are balanced and collects the text and the attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def page(records):
    return page_of(list(records.values()))


def test_the_page_is_well_formed(page):
    outline = Outline(page)
    assert outline.open == []
    names = [value for key, value in outline.attributes if key == "id"]
    assert len(names) == len(set(names))


def test_the_page_needs_nothing_but_itself(page):
    without_namespace = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|<link|<script|<img|<iframe|@import|url\(", without_namespace)
    assert "default-src 'none'" in page
    links = [value for key, value in Outline(page).attributes if key in ("href", "src")]
    assert links and all(link.startswith("#") for link in links)


def test_a_valid_run_is_all_there(records):
    shown = Outline(page_of([records["pass"]])).text
    for content in ("415.4 ± 2.9 images/s", "0.98160 ≥ 0.97", "30.2 %", "8.531 ms", "32 -> 64", "da7a" * 16):
        assert content in shown
    for content in ("bench-7", "onnxruntime 1.23.2", "training.epochs", "engine core", "engine's floor 0.98152"):
        assert content in shown


@pytest.mark.parametrize("name", ["cheated", "error", "unsupported", "framework_only", "one_round", "long_names"])
def test_every_kind_of_run_has_its_verdict_and_reasons(records, name):
    shown = Outline(page_of([records[name]])).text
    assert records[name].verdict.kind in shown
    assert all(reason in shown for reason in records[name].verdict.reasons)


def test_a_failed_step_shows_its_reason_and_traceback(records):
    shown = Outline(page_of([records["error"]])).text
    assert "✗ failed" in shown and "killed" in shown and "Traceback:\n  x" in shown
    assert "· not reached" in shown


def test_a_name_in_the_table_is_broken_between_its_words(make_record):
    page = page_of([make_record(item="long_sequence")])
    assert re.search(r'data-name="core[^"]*"><span>[0-9.± ]+ long_<wbr>sequences/s', page)


def test_a_missing_figure_has_a_footnote(records):
    page = page_of([records["one_round"]])
    assert "–<sup>2</sup>" in page
    assert "<li>one round</li>\n<li>no peak for this chip at fp16</li>" in page


def test_names_are_escaped_wherever_they_come_from(make_record):
    bad = "<script>alert('x')</script>\x1b[31m\x00"
    record = make_record(
        case=bad,
        vendor=bad,
        precision=bad,
        item=bad,
        config={bad: bad},
        overrides=(Override(key=bad, old=None, new=bad, origin=bad, kind="changed"),),
        versions={bad: bad},
        verdict=Verdict(kind=VerdictKind.FAIL_PERF, reasons=(bad,)),
        chip=Chip(name=bad, memory_bandwidth=1e11, peak=Peak(flops_per_second=1e12, precision=bad, source=bad)),
        checks=(Check(name=bad, passed=False, figure=None, bound=None, meaning=bad),),
        monitoring=watched(energy_method=bad, throttled=(bad,), failures=(bad,)),
    )
    page = page_of([record])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 10
    assert "\x1b" not in page and "\x00" not in page


def test_every_check_has_its_figure_bound_and_meaning(records):
    page = page_of([records["cheated"]])
    assert page.count("✗ failed</td>") == 2 and page.count("✓ passed</td>") == 6
    shown = " ".join(Outline(page).text.split())
    for content in ("7.31 1.10 a repeat takes it less time", "– (not a finite number) 0.0200", "5 checks"):
        assert (content in shown) == (content != "5 checks")
    assert "no check was run: no compiler" in Outline(page_of([records["framework_only"]])).text
    assert "checks passed" not in Outline(page_of([records["error"]])).text, "those are the framework's"


def test_what_the_monitor_found_is_named(make_record):
    seen = watched(throttled=("power cap",), foreign_processes=(4711, 4712), failures=("it was killed",), samples=0)
    shown = Outline(page_of([make_record(monitoring=seen)])).text
    for content in ("throttled in the timed window: power cap", "4711, 4712", "the monitor failed: it was killed"):
        assert content in shown
    assert "the monitor took no sample" in shown


def test_energy_is_a_column_with_its_method(records):
    page = page_of([records["watched"], records["pass"]])
    assert "2.496 J/image<sup>1</sup>" in page
    assert "<li>device energy counter</li>\n<li>there was no monitor</li>" in page


@pytest.mark.parametrize("kind", VerdictKind)
def test_every_verdict_has_a_mark_of_its_own_kind(make_record, kind):
    page = page_of([make_record(verdict=Verdict(kind=kind))])
    assert re.search(rf'<span class="verdict (pass|open|fail)">[✓○?✗] {kind}</span>', page)


def test_no_case():
    assert "No case was run" in page_of([])


def test_the_file_is_written_whole_and_the_same_every_time(records, tmp_path):
    path = tmp_path / "report.html"
    write_html([records["pass"]], path)
    first = path.read_bytes()
    write_html([records["pass"]], path)
    assert path.read_bytes() == first
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("status", ["failed", "done"])
def test_an_audit_is_among_the_steps(status):
    why = {"reason": "RuntimeError: no such model", "detail": "Traceback <of the audit>"} if status == "failed" else {}
    shown = page_of([make_record(audit=Step(name="audit", status=status, seconds=7.25, **why))])
    outline = Outline(shown)
    assert re.search(r'<th scope="row">audit</th><td>. ' + status, shown)
    assert ("7.25" in outline.text) == (status == "done"), "its seconds tell of a speed"
    assert ("Traceback of step audit" in shown) == ("Traceback <of the audit>" in outline.text) == bool(why)


def test_without_an_audit_there_is_no_row_of_it(page):
    assert 'row">audit' not in page and "step audit" not in page
