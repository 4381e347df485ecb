"""The scoreboard as a browser shows it, opened as files: filtered, sorted and shared, by mouse and by keyboard."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulated.records import VENDORS, synthetic
from reports.site.build import build
from reports.site.reading import Seen
from tests.browser.chromium import Chromium, WentAway
from tests.browser.conftest import EVIL
from tests.browser.test_report_in_chromium import TOO_WIDE
from tests.reports.records import make_record, watched_record
from tests.suites_there import SUITES
from tests.waiting import PATIENCE

PAGES = ("index.html", "league.html", "league.html#show=all", "trends.html", "compare.html")
ROWS = "[...document.querySelectorAll('.league tbody tr')]"
SORTED_BY = "document.querySelector('[aria-sort]:not([aria-sort=none])')?.textContent"


INHERITED = ("__proto__", "constructor", "toString", "valueOf")


class Address:
    """A page with what stands behind the #."""

    def __init__(self, path: Path, view: str = "") -> None:
        self._uri = path.as_uri() + view

    def as_uri(self) -> str:
        """As a browser asks for it."""
        return self._uri


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 120 runs of one case, and some whose names are hostile and too long, or those of what every object has."""
    folder = tmp_path_factory.mktemp("scoreboard")
    seed = json.loads(make_record(profile="standard").text())
    hostile = {**json.loads(watched_record().text()), "case": f"z{EVIL * 3}", "compiler": EVIL}
    records = [
        *synthetic(seed, 120, cases=1),
        *(
            {**hostile, "vendor": vendor, "config": {**hostile["config"], vendor: "set", "scenario": scenario}}
            for vendor, scenario in {EVIL: "latency", **dict.fromkeys(INHERITED, "throughput")}.items()
        ),
    ]
    for number, record in enumerate(records):
        run = folder / "results" / str(number)
        run.mkdir(parents=True)
        (run / "record.json").write_text(json.dumps(record))
    build([folder / "results"], folder / "site", SUITES, lambda session, suites: Seen((), {}))
    return folder / "site"


def show(browser: Chromium, page: Path, view: str = "", width: int = 1280) -> None:
    """Open a page and wait until it is filled."""
    browser.open(page.parent / "no-such-page", width)  # another address behind the # alone would load nothing
    browser.open(Address(page, view), width)  # type: ignore[arg-type]
    until(browser, "!(document.getElementById('about')?.textContent ?? '').startsWith('Loading')")


def until(browser: Chromium, script: str) -> Any:
    """What an expression is, once it is true; while one page gives way to another it isn't."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(WentAway):
            if value := browser.value(script):
                return value
        time.sleep(0.02)
    raise AssertionError(f"{script}: {browser.said}")


def press(browser: Chromium, key: str, code: int = 0, text: str = "") -> None:
    """Press and release a key."""
    about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    browser.ask("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
    browser.ask("Input.dispatchKeyEvent", type="keyUp", **about)


@pytest.mark.parametrize("width", [1280, 768, 360])
@pytest.mark.parametrize("page", PAGES)
def test_pages_say_nothing_ask_the_network_nothing_and_fit(browser, site, page, width):
    name, _, view = page.partition("#")
    show(browser, site / name, f"#{view}", width)
    assert browser.said == []
    assert all(url.startswith("file:") for url in browser.requested)
    assert browser.value("document.documentElement.scrollWidth") <= width
    inside = "e.closest('.scroll') === null"
    assert browser.value(TOO_WIDE.replace(".filter(e =>", f".filter(e => {inside} && ")) == []


@pytest.mark.parametrize("width", [1280, 360])
def test_hostile_names_are_text(browser, site, width):
    show(browser, site / "index.html", width=width)
    names = browser.value("[...document.querySelectorAll('.matrix tbody th a')].map(each => each.textContent)")
    (hostile,) = [name for name in names if "onerror" in name]
    assert "onerror=" in browser.value("document.body.innerText") and browser.said == []
    show(browser, site / "league.html", width=width)
    browser.value(f"scoreboard.show({{ case: {json.dumps(hostile)} }})")
    until(browser, "document.getElementById('title').textContent.includes('onerror=')")
    assert browser.said == [] and browser.value("document.querySelectorAll('img').length") == 0
    assert browser.value("document.documentElement.scrollWidth") <= width


def test_a_vendor_may_be_called_as_what_every_object_has(browser, site):
    show(browser, site / "index.html")
    assert browser.value("[...document.querySelectorAll('.matrix thead th')].map(th => th.textContent)")[1:] == sorted(
        [*VENDORS, EVIL, *INHERITED]
    )
    for vendor in INHERITED:
        cells = f"[...document.querySelectorAll('td[data-name={vendor}]')].map(td => td.textContent)"
        known, lacking = sorted(browser.value(cells), key=lambda text: text == "no run")
        assert lacking == "no run" and known != "no run", vendor


def test_a_label_may_be_called_as_what_every_object_has(browser, site):
    scripts = {path.stem: path.read_text() for path in (site / "runs").glob("*.js")}
    of = {vendor: next(run for run, text in scripts.items() if f'"{vendor}\\"' in text) for vendor in INHERITED}
    show(browser, site / "compare.html", f"#a={of['__proto__']}&b={of['constructor']}")
    rows = browser.value("[...document.querySelectorAll('.compare tr.differs')].map(row => row.innerText)")
    by_label = {row.split("\t")[0].removeprefix("≠ ").strip(): row.split("\t")[1:] for row in rows}
    assert by_label["__proto__"] == ['"set"', "– (not there)"] and by_label["constructor"] == ["– (not there)", '"set"']


def test_the_league_is_sorted_by_the_keyboard_and_says_so(browser, site):
    show(browser, site / "league.html")
    assert until(browser, SORTED_BY).startswith("rank")
    browser.value("document.getElementById('by-core').focus()")
    press(browser, "Enter", 13, "\r")
    until(browser, "location.hash === '#sort=-core'")
    assert browser.value("document.querySelector('[aria-sort=descending]').textContent").startswith("core")
    assert browser.value("document.activeElement.id") == "by-core", "the focus stays"
    cores = browser.value(f"{ROWS}.map(row => parseFloat(row.cells[3].textContent.replace(/,/g, '')))")
    known = [core for core in cores if core is not None and core == core]
    assert known == sorted(known, reverse=True) and len(known) > 5
    assert "largest first" in browser.value("document.getElementById('about').textContent")


def test_a_view_is_shared_by_its_address(browser, site):
    show(browser, site / "league.html")
    browser.value("""{ const select = [...document.querySelectorAll('#filters label')]
        .find(label => label.textContent.startsWith('vendor')).querySelector('select');
        select.value = '=gamma'; select.dispatchEvent(new Event('change')) }""")
    browser.value("""{ const box = document.querySelector('input[type=search]');
        box.value = 'fp16'; box.dispatchEvent(new Event('input')) }""")
    shown = browser.value(f"{ROWS}.map(row => row.cells[1].textContent + row.cells[2].textContent)")
    assert shown and all("gamma" in row and "fp16" in row for row in shown)
    view = browser.value("location.hash")
    show(browser, site / "league.html", view)
    assert browser.value(f"{ROWS}.map(row => row.cells[1].textContent + row.cells[2].textContent)") == shown
    assert browser.value("document.querySelector('input[type=search]').value") == "fp16"


def test_a_filter_that_only_another_case_can_meet_is_shown_and_undone(browser, site):
    show(browser, site / "index.html")
    names = browser.value("[...document.querySelectorAll('.matrix tbody th a')].map(each => each.textContent)")
    case = next(name for name in names if "onerror" in name)  # all of its runs have one precision
    show(browser, site / "league.html", "#f.precision=%3Dbf8")
    browser.value(f"scoreboard.show({{ case: {json.dumps(case)} }})")
    until(browser, "document.getElementById('title').textContent.includes('onerror=')")
    assert browser.value("document.getElementById('about').textContent").startswith("0 of 5 runs")
    browser.value("""{ const select = [...document.querySelectorAll('#filters label')]
        .find(label => label.textContent.startsWith('precision')).querySelector('select');
        if (select.value !== '=bf8') throw new Error(select.value);
        select.value = ''; select.dispatchEvent(new Event('change')) }""")
    until(browser, f"{ROWS}.length === 5")


def test_what_some_runs_are_not_told_apart_by_can_be_chosen_too(browser, site):
    """Only another scenario than the usual one is named."""
    show(browser, site / "index.html")
    names = browser.value("[...document.querySelectorAll('.matrix tbody th a')].map(each => each.textContent)")
    case = next(name for name in names if "onerror" in name)
    show(browser, site / "league.html", "#f.scenario=%3D")
    browser.value(f"scoreboard.show({{ case: {json.dumps(case)} }})")
    until(browser, "document.getElementById('about').textContent.startsWith('4 of 5 runs')")
    chosen = """[...document.querySelectorAll('#filters label')]
        .find(label => label.textContent.startsWith('scenario')).querySelector('select')"""
    assert browser.value(f"[...{chosen}.options].map(option => option.textContent)") == ["all", "–", "latency"]
    assert browser.value(f"{chosen}.selectedOptions[0].textContent") == "–"


def test_a_figure_that_a_case_lacks_sorts_nothing(browser, site):
    show(browser, site / "league.html", "#sort=-nothing")
    assert ", by rank, smallest first;" in browser.value("document.getElementById('about').textContent")
    assert browser.value(SORTED_BY).startswith("rank")


def test_all_runs_are_turned_over_in_pages(browser, site):
    show(browser, site / "league.html", "#show=all")
    assert browser.value(f"{ROWS}.length") == 50
    browser.value("document.getElementById('next').click()")
    until(browser, "location.hash.includes('page=2')")
    assert browser.value("document.activeElement.id") == "next"
    show(browser, site / "league.html", "#show=all&page=99")
    assert "page 3 of 3" in browser.value("document.getElementById('about').textContent")


def test_the_first_tab_leads_past_the_head_and_focus_can_be_seen(browser, site):
    show(browser, site / "league.html")
    press(browser, "Tab", 9)
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_tables_have_heads_and_controls_have_names(browser, site):
    for page in ("index.html", "league.html", "trends.html"):
        show(browser, site / page)
        assert browser.value("[...document.querySelectorAll('thead th')].every(th => th.scope === 'col')")
        assert browser.value("[...document.querySelectorAll('tbody tr')].every(row => row.querySelector('th'))")
        unnamed = (
            "[...document.querySelectorAll('select, input')].filter(e => !e.labels?.length && !e.ariaLabel).length"
        )
        assert browser.value(unnamed) == 0


def test_a_plot_tells_its_values_to_the_keyboard(browser, site):
    show(browser, site / "trends.html")
    until(browser, "document.querySelector('#plot canvas') !== null")
    browser.value("document.getElementById('plot').focus()")
    press(browser, "ArrowRight", 39)
    first = until(browser, "document.querySelector('#reading strong')?.parentElement.textContent")
    assert "commit" in first
    press(browser, "ArrowRight", 39)
    until(browser, f"document.getElementById('reading').textContent !== {json.dumps(first)}")
    assert browser.value("document.querySelectorAll('#changes tbody tr').length") >= 1


def test_a_plot_tells_its_values_to_the_mouse(browser, site):
    show(browser, site / "trends.html")
    until(browser, "document.querySelector('#plot canvas') !== null")
    place = browser.value("(({ x, y, width, height }) => [x + width / 2, y + height / 2])"
                          "(document.querySelector('.u-over').getBoundingClientRect())")  # fmt: skip
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    assert "commit" in until(browser, "document.querySelector('#reading strong')?.parentElement.textContent")


def test_runs_of_one_moment_lie_in_the_middle_of_their_plot(browser, site):
    show(browser, site / "trends.html")
    names = browser.value("[...document.querySelectorAll('#filters option')].map(option => option.value)")
    (hostile,) = [name for name in names if "onerror" in name]
    browser.value(f"scoreboard.show({{ case: {json.dumps(hostile)} }})")
    until(browser, "document.getElementById('title').textContent.includes('onerror=') && plot !== null")
    assert browser.value("plot.data[0].length") == 1
    days, place = browser.value(
        "(({ min, max }) => [(max - min) / 86400, (plot.data[0][0] - min) / (max - min)])(plot.scales.x)"
    )
    assert days == pytest.approx(2) and place == pytest.approx(0.5)


def test_series_are_told_apart_without_colour(browser, site):
    show(browser, site / "trends.html")
    signs = browser.value("[...document.querySelectorAll('.box')].map(each => each.textContent.trim()[0]).slice(0, 4)")
    assert signs == ["●", "■", "▲", "◆"]
    assert browser.value("new Set(plot.series.slice(1).map(each => each.dash.join())).size") == 4


def test_two_runs_are_chosen_in_the_league_and_differ_where_they_do(browser, site):
    show(browser, site / "league.html")
    browser.value("[...document.querySelectorAll('table.league input')].slice(0, 2).forEach(box => box.click())")
    until(browser, "location.pathname.endsWith('compare.html') && document.querySelector('.compare') !== null")
    few = browser.value("document.querySelectorAll('.compare tr.differs').length")
    assert 0 < few == browser.value("document.querySelectorAll('.compare tbody th[scope=row]').length")
    browser.value("scoreboard.show({ show: 'all' })")
    until(browser, "document.querySelectorAll('.compare tbody th[scope=row]').length > 60")
    assert browser.value("document.querySelectorAll('.compare tr.differs').length") == few


@pytest.mark.parametrize("view", ["#a=../../etc&b=x", "#a=0123456789abcdef&b=0123456789abcdef"])
def test_runs_that_are_not_there_are_said_to_be_missing(browser, site, view):
    show(browser, site / "compare.html", view)
    about = until(browser, "document.getElementById('about').textContent")
    assert "sixteen digits" in about or "is not there" in about


def test_a_case_that_is_not_there_is_said_to_be_missing(browser, site):
    show(browser, site / "league.html", "#case=constructor")
    assert "no case is called constructor" in browser.value("document.getElementById('about').textContent")


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_of_a_run_needs_no_script(browser, site, width):
    page = next((site / "runs").glob("*.html"))
    browser.open(page, width)
    assert browser.said == [] and browser.value("document.scripts.length") == 0
    assert "Effective configuration" in browser.value("document.body.innerText")
    assert browser.value("document.documentElement.scrollWidth") <= width
