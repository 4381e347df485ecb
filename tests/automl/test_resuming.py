"""What a session goes on with is seen before anything runs; what can't be gone on with is refused and left alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proofmark.automl.outcome.collect import collect
from proofmark.automl.resuming import search_of, to_be_resumed
from proofmark.automl.search.journal import FILE, Journal
from proofmark.errors import UsageError
from proofmark.record.integrity.chain import LINK
from proofmark.rules.config import EffectiveConfig
from tests.fuzz import searches
from tests.fuzz.searches import ENDED, SESSION

CASE = "automl/numbers"
BEGUN = next(event for event in SESSION if event["event"] == "run_begin")
CONFIG = EffectiveConfig.from_dict(BEGUN["config"])
HOST = {"devices": 1, "places": 1, "host": BEGUN["host"]}
END: tuple[str, dict[str, Any]] = ("search_end", {"reason": "2 trials were begun"})
EXAMINED: tuple[str, dict[str, Any]] = (
    "examined",
    {"trial": 0, "accuracy": 0.8, "items": 10, "dataset": None, "reason": None, "data_items": None},
)


def session(
    folder: Path,
    *journal: tuple[str, dict[str, Any]],
    config: EffectiveConfig = CONFIG,
    ended: bool = True,
    status: str = "finished",
) -> Path:
    """A session's folder with a search of a trial, of which that stands in its journal."""
    case = folder / CASE
    held = Journal(case / "search")
    held.write("driver_begin", config_hash=config.hash, **HOST)
    held.write("trial_end", **{name: value for name, value in ENDED.items() if name != LINK} | {"status": status})
    for kind, fields in journal:
        held.write(kind, **fields)
    held.close()
    written = [event | {"folder": str(case / "search")} if event["event"] == "search" else event for event in SESSION]
    (case / "events.jsonl").write_text(
        "".join(f"{json.dumps(event)}\n" for event in written if ended or event["event"] != "run_end")
    )
    return folder


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "journal, ended", [((), True), ((END,), True), ((END, EXAMINED), False)], ids=["open", "unexamined", "no record"]
)
def test_what_has_something_left_to_do_is_gone_on_with(tmp_path: Path, journal: Sequence[Any], ended: bool) -> None:
    earlier = session(tmp_path, *journal, ended=ended)
    before = files(earlier)
    assert to_be_resumed(earlier, CASE, CONFIG) == earlier / CASE / "search"
    assert files(earlier) == before


def test_a_link_is_followed_by_what_it_led_to(tmp_path: Path) -> None:
    """`results/latest` leads to the session that resumes, as soon as that has begun."""
    earlier = session(tmp_path / "one", END)
    (tmp_path / "latest").symlink_to("one")
    assert to_be_resumed((tmp_path / "latest").resolve(), CASE, CONFIG) == earlier / CASE / "search"


def test_a_session_that_went_on_with_another_ones_leads_there(tmp_path: Path) -> None:
    earlier, later = session(tmp_path / "one", END), tmp_path / "two"
    (later / CASE).mkdir(parents=True)
    (later / CASE / "events.jsonl").write_bytes((earlier / CASE / "events.jsonl").read_bytes())
    assert search_of(later, CASE) == earlier / CASE / "search"
    assert to_be_resumed(later, CASE, CONFIG) == earlier / CASE / "search"


def test_what_is_over_is_left_as_it_is(tmp_path: Path) -> None:
    """It may be a result that was verified and signed."""
    earlier = session(tmp_path, END, EXAMINED)
    before = files(earlier)
    with pytest.raises(UsageError, match="there is nothing to resume"):
        to_be_resumed(earlier, CASE, CONFIG)
    assert files(earlier) == before


def test_a_search_without_a_network_is_over_when_it_has_ended(tmp_path: Path) -> None:
    earlier = session(tmp_path, END, status="failed")
    with pytest.raises(UsageError, match="no trial came to a good end: there is nothing to resume"):
        to_be_resumed(earlier, CASE, CONFIG)


def test_a_search_that_gave_up_is_gone_on_with(tmp_path: Path) -> None:
    """Whatever made its trials fail may be mended by now."""
    gave_up = ("search_end", {"reason": "3 trials in a row have failed, the last one: a disk is gone"})
    earlier = session(tmp_path, gave_up, EXAMINED)
    assert to_be_resumed(earlier, CASE, CONFIG) == earlier / CASE / "search"


def test_what_was_judged_before_a_better_one_came_is_not_the_end(tmp_path: Path) -> None:
    gave_up = ("search_end", {"reason": "3 trials in a row have failed, the last one: a disk is gone"})
    better = {name: value for name, value in ENDED.items() if name != LINK} | {"trial": 1, "accuracy": 0.99}
    on = ("driver_begin", {"config_hash": CONFIG.hash, **HOST})
    earlier = session(tmp_path, gave_up, EXAMINED, on, ("trial_end", better), END)
    assert to_be_resumed(earlier, CASE, CONFIG) == earlier / CASE / "search"
    journal = Journal(earlier / CASE / "search")
    journal.write("examined", **EXAMINED[1] | {"trial": 1})
    journal.close()
    with pytest.raises(UsageError, match="its best network is judged: there is nothing to resume"):
        to_be_resumed(earlier, CASE, CONFIG)


def test_another_configuration_is_told_by_its_settings(tmp_path: Path) -> None:
    earlier = session(tmp_path, END)
    before = files(earlier)
    other = replace(CONFIG, profile="standard", configurations={**CONFIG.configurations, "max_trials": 9})
    with pytest.raises(UsageError) as refused:
        to_be_resumed(earlier, CASE, other)
    message = str(refused.value)
    assert (
        "profile ('embedded' there, 'standard' here), max_trials (2 there, 9 here)" in message and "repeat" in message
    )
    assert files(earlier) == before


def test_a_trial_that_was_taken_out_with_its_chain_made_anew(tmp_path: Path) -> None:
    """The next trial would have a number that there is, and the search would go on without it for ever."""
    begun = {name: value for name, value in searches.BEGUN.items() if name != LINK}
    earlier = session(tmp_path, ("trial_begin", begun | {"trial": 1}))
    with pytest.raises(UsageError, match="trial 0 has no beginning: a search cannot be resumed from it"):
        to_be_resumed(earlier, CASE, CONFIG)


def test_an_edited_journal_and_one_that_is_held(tmp_path: Path) -> None:
    earlier = session(tmp_path, END)
    journal = Journal(earlier / CASE / "search")
    with pytest.raises(UsageError, match="is searching there; only one driver at a time"):
        to_be_resumed(earlier, CASE, CONFIG)
    journal.close()
    path = earlier / CASE / "search" / FILE
    path.write_bytes(path.read_bytes().replace(b"2 trials were", b"3 trials were") + b'{"torn": ')
    assert to_be_resumed(earlier, CASE, CONFIG), "the last line is held by none after it"
    path.write_bytes(path.read_bytes().replace(b'"devices":1', b'"devices":2').partition(b'{"torn')[0])
    with pytest.raises(UsageError, match="does not follow the one before it: it was edited"):
        to_be_resumed(earlier, CASE, CONFIG)


def test_a_record_whose_journal_is_gone_says_so(tmp_path: Path) -> None:
    """And not that its figures are others."""
    earlier, later = session(tmp_path / "one", END), tmp_path / "two"
    (later / CASE).mkdir(parents=True)
    log = (earlier / CASE / "events.jsonl").read_text().replace('"resumed": false', '"resumed": true')
    (later / CASE / "events.jsonl").write_text(log)
    assert collect(later / CASE).drivers == 2
    (earlier / CASE / "search" / FILE).unlink()
    with pytest.raises(ValueError, match="whose journal is missing"):
        collect(later / CASE)


def test_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"there is no search of {CASE} there"):
        to_be_resumed(tmp_path, CASE, CONFIG)
