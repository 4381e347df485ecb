"""Who is ranked on the scoreboard, and why the others are not."""

from __future__ import annotations

from typing import Any

import pytest

from proofmark.record.figures import Figure, FigureKind
from reports.content.view import Shown, View
from reports.site.entry import Entry, _cell, entry_of
from reports.site.league import summary
from reports.site.ranking import standings
from tests.reports.records import make_record


def entry(identity: str, findings: tuple[str, ...] = (), **changes: Any) -> Entry:
    return entry_of(identity, View(make_record(**{"profile": "standard", **changes})), findings)


def paced(identity: str, value: float, **changes: Any) -> Entry:
    made = entry(identity, **changes)
    first = made.cells[0].model_copy(update={"value": value})
    return made.model_copy(update={"cells": (first, *made.cells[1:])})


def served(identity: str, value: float, **changes: Any) -> Entry:
    """In scenario latency, with the percentile that it asks for."""
    usual = make_record()
    assert usual.engine is not None
    engine = usual.engine.model_copy(update={"latency_ms": {"p99": 9.9}})
    return paced(identity, value, config={**usual.config, "scenario": "latency"}, engine=engine, **changes)


def ranks(*entries: Entry) -> dict[str, int | None]:
    return {identity: standing.rank for identity, standing in standings(entries).items()}


def test_the_fastest_is_first_and_equals_share_a_rank() -> None:
    runs = [paced("a", 10.0, vendor="a"), paced("b", 30.0, vendor="b"), paced("c", 10.0, vendor="c")]
    assert ranks(*runs, paced("d", 5.0, vendor="d")) == {"b": 1, "a": 2, "c": 2, "d": 4}


def test_the_newest_run_of_a_contender_is_ranked_and_not_its_best() -> None:
    found = standings([paced("old", 99.0, started=1.0), paced("new", 10.0, started=2.0)])
    assert found["new"].rank == 1 and found["new"].current
    assert found["old"].rank is None and found["old"].why == "a newer run of the same contender is ranked"
    assert not found["old"].current


def test_a_newer_run_that_failed_takes_no_rank_away_but_is_shown() -> None:
    failed = make_record(started=2.0, profile="standard", dishonest=("it answers from a cache",))
    found = standings([paced("old", 10.0, started=1.0), entry_of("new", View(failed), ())])
    assert found["old"].rank == 1 and found["old"].current and found["new"].current
    assert found["new"].why is not None and found["new"].why.startswith("FAIL_HONESTY")


@pytest.mark.parametrize(
    "figure, first",
    [
        ({"kind": FigureKind.COST}, "little"),
        ({"kind": FigureKind.SPEED}, "much"),
        ({"kind": FigureKind.QUALITY}, "much"),
        ({"kind": FigureKind.QUALITY, "lower_is_better": True}, "little"),
    ],
)
def test_what_is_better_is_first(figure: dict[str, Any], first: str) -> None:
    """Short times, and little of what the figure says less is better of: perplexity, say."""
    runs = []
    for identity, value in (("much", 30.0), ("little", 10.0)):
        known = Figure(key="k", label="l", unit="1", headline=True, value=value, **figure)
        runs.append(
            entry(identity, vendor=identity).model_copy(update={"cells": (_cell(known, Shown(str(value), value)),)})
        )
    assert [identity for identity, rank in ranks(*runs).items() if rank == 1] == [first]


def test_runs_of_unlike_figures_are_ranked_apart() -> None:
    other = paced("b", 1.0, vendor="b")
    other = other.model_copy(update={"cells": (other.cells[0].model_copy(update={"unit": "sequences/s"}),)})
    assert ranks(paced("a", 10.0, vendor="a"), other) == {"a": 1, "b": 1}


def test_what_serves_one_sample_at_a_time_is_ranked_apart() -> None:
    """By scenario a contender has two ranks, and two trends; the usual one is called nothing."""
    often = paced("a", 12_000.0, started=1.0, config={**make_record().config, "scenario": "throughput"})
    soon = served("b", 300.0, started=2.0)
    assert ranks(often, soon, paced("c", 200.0, vendor="c")) == {"a": 1, "b": 1, "c": 2}
    assert soon.variant == {"compiler": "onnxruntime", "scenario": "latency"}
    unsaid = entry("x")
    assert often.variant == unsaid.variant and often.series == unsaid.series != soon.series


def test_the_first_page_has_a_vendors_rank_in_the_usual_scenario_where_it_has_one() -> None:
    """Beside others' it would else show a rank among other runs than theirs, and a speed of another kind."""
    often, soon = paced("often", 12_000.0, started=1.0), served("soon", 300.0, started=2.0)
    runs = [often, soon, served("alone", 200.0, vendor="b"), paced("first", 20_000.0, vendor="c")]
    shown = summary(runs, standings(runs))["vendors"]
    assert {vendor: (cell["id"], cell["rank"]) for vendor, cell in shown.items()} == {
        "cpu": ("often", 2),
        "b": ("alone", 2),
        "c": ("first", 1),
    }


@pytest.mark.parametrize(
    "run, why",
    [
        (entry("x", profile="embedded"), "profile embedded is never ranked"),
        (entry("x", findings=("record.json: not as in the manifest",)), "record.json: not as in the manifest"),
        (
            entry("x").model_copy(update={"obstacles": ("its configuration is not resolved again",)}),
            "not resolved again",
        ),
        (entry("x").model_copy(update={"cells": ()}), "no figure to rank it by"),
        (entry("x", engine=None), "ERROR"),
    ],
)
def test_who_is_not_ranked_is_told_why(run: Entry, why: str) -> None:
    (standing,) = standings([run]).values()
    assert standing.rank is None and standing.why is not None and why in standing.why
