"""A session that only judges what another searched has that one's time to rank, if it is under the same conditions."""

from __future__ import annotations

from typing import Any

import pytest

from proofmark.automl.outcome.conditions import Drivers, conditions_of

SESSION = {"event": "run_begin", "time": 1.0, "clock": 1, "previous": "0" * 64, "versions": {"torch": "2"}}
SEEN = {"others": 0.25, "stolen": 0.0, "idle": 0.5}
BEGIN, TRIAL, END, CONTENTION = "driver_begin", "trial_begin", "search_end", "contention"
SEARCHED = (BEGIN, TRIAL, TRIAL, END, CONTENTION)
OTHER = {"conditions": "1" * 64}


def drivers(*events: str | dict[str, Any]) -> Drivers:
    """Those of a journal; a driver that is only named ran under the conditions of the session."""
    seen = Drivers()
    for event in events:
        more = event if isinstance(event, dict) else {"event": event, "conditions": conditions_of(SESSION)}
        seen.take({**SEEN, **more})
    return seen


def test_conditions_are_all_but_the_moment() -> None:
    assert conditions_of(SESSION) == conditions_of({**SESSION, "time": 2.0, "clock": 2, "previous": "1" * 64})
    assert conditions_of(SESSION) != conditions_of({**SESSION, "versions": {"torch": "3"}})


@pytest.mark.parametrize("then", [(), (BEGIN, END), (BEGIN, END, BEGIN, END)])
def test_who_only_judges_is_no_other_driver(then: tuple[str, ...]) -> None:
    """However often that breaks off."""
    seen = drivers(*SEARCHED, *then)
    assert seen.are_one(SESSION) and seen.contention is not None and seen.contention["others"] == 0.25


@pytest.mark.parametrize(
    "events",
    [
        (*SEARCHED, BEGIN, TRIAL, END, CONTENTION),
        (BEGIN, TRIAL, BEGIN, END, CONTENTION),
        (BEGIN, TRIAL, END, BEGIN, END),
        (*SEARCHED, {"event": BEGIN, **OTHER}, END),
        ({"event": BEGIN, **OTHER}, TRIAL, END, CONTENTION, BEGIN, END),
        ({"event": BEGIN}, TRIAL, END, CONTENTION),
        (BEGIN, END, CONTENTION),
    ],
    ids=["searched on", "killed before the end", "unwatched", "judged elsewhere", "searched elsewhere", "old", "none"],
)
def test_whatever_else_went_on_with_a_search_is_another(events: tuple[Any, ...]) -> None:
    assert not drivers(*events).are_one(SESSION)
