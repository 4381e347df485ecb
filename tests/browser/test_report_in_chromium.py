"""The report as a browser shows it: complete, quiet, alone, and no wider than its reader's screen."""

from __future__ import annotations

import re

import pytest

TOO_WIDE = """[...document.querySelectorAll('body *')]
    .filter(e => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 0.5)
    .map(e => e.tagName + ': ' + e.textContent.slice(0, 40))"""

CUT_OFF = """[...document.querySelectorAll('svg text')]
    .filter(e => { const t = e.getBoundingClientRect(), s = e.ownerSVGElement.getBoundingClientRect();
                   return t.right > s.right + 1 || t.left < s.left - 1 || t.bottom > s.bottom + 1 || t.top < s.top - 1
                 })
    .map(e => e.textContent)"""

COLLIDING = """[...document.querySelectorAll('svg')].flatMap(svg => {
    const texts = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBBox()]);
    return texts.flatMap(([a, p], i) => texts.slice(i + 1)
        .filter(([b, q]) => p.x < q.x + q.width && q.x < p.x + p.width && p.y + 4 < q.y + q.height && q.y + 4 < p.y + p.height)
        .map(([b]) => a + ' | ' + b)) })"""  # noqa: E501


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_nothing_is_said_and_nothing_requested(browser, page, width):
    browser.open(page, width)
    assert browser.said == []
    assert browser.requested == [page.as_uri()]


def test_the_content_is_in_the_document(browser, page):
    browser.open(page)
    shown = browser.value("document.body.innerText")
    for content in ("6 of 8 checks passed; failed: no cached answers", "13,457 J", "power cap", "4711", "onerror="):
        assert content in shown
    assert browser.value("document.querySelectorAll('script, img, link, iframe').length") == 0
    titles = browser.value("[...document.querySelectorAll('section:first-of-type svg title')].map(e => e.textContent)")
    assert titles == ["Accuracy against target", "Throughput per round, images/s", "Over time", "Roofline"]


@pytest.mark.parametrize("width", [1280, 940, 600, 390, 320])
def test_no_reader_has_to_scroll_sideways(browser, page, width):
    browser.open(page, width)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value(TOO_WIDE) == []


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_labels_of_plots_are_neither_cut_off_nor_on_each_other(browser, page, width):
    browser.open(page, width)
    assert browser.value(CUT_OFF) == []
    assert browser.value(COLLIDING) == []


def test_letters_of_plots_can_be_read_on_a_phone(browser, page):
    browser.open(page, 390)
    assert browser.value("document.querySelector('svg text').getBoundingClientRect().height") >= 12


def test_it_prints_on_a4(browser, page, tmp_path):
    browser.open(page)
    paper = tmp_path / "report.pdf"
    browser.print(paper)
    document = paper.read_bytes()
    assert document.startswith(b"%PDF")
    sheets = re.findall(rb"/MediaBox \[0 0 ([.\d]+) ([.\d]+)", document)
    assert 5 <= len(sheets) <= 15, "nine cases, some of them long"
    assert all([float(side) for side in sheet] == pytest.approx([595.3, 841.9], abs=1) for sheet in sheets)


def test_dark_paper_has_light_ink(browser, page):
    browser.media(prefers_color_scheme="dark")
    try:
        browser.open(page)
        paper, ink = (
            sum(map(int, re.findall(r"\d+", browser.value(f"getComputedStyle(document.body).{name}"))))
            for name in ("backgroundColor", "color")
        )
    finally:
        browser.media()
    assert paper < 150 < 500 < ink


def test_the_browser_would_notice(browser, tmp_path):
    """The checks above are not empty: this page does all that a report must not."""
    bad = tmp_path / "bad.html"
    bad.write_text("<p style='width: 2000px'>wide</p><img src='missing.png'><script>console.error('bad')</script>")
    browser.open(bad, 390)
    assert "bad" in browser.said
    assert browser.requested[1:] == [(tmp_path / "missing.png").as_uri()]
    assert browser.value(TOO_WIDE) != []
