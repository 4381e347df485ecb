"""One cause is one failed test, also where a test is run again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fixtures import causes


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fail tests of one run, by their names."""
    monkeypatch.setattr(causes, "run_of", lambda item: "suite/case")
    stash: dict[Any, Any] = {}

    def fail(*names: str) -> list[str]:
        found = []
        for name in names:
            item: Any = SimpleNamespace(name=name, config=SimpleNamespace(stash=stash))
            item.get_closest_marker = lambda mark, name=name: mark if name == f"marked {mark}" else None
            running = causes.pytest_runtest_call(item)
            next(running)
            try:
                running.throw(pytest.xfail.Exception("so") if name == "xfails" else ValueError("the cause"))
            except (ValueError, pytest.skip.Exception, pytest.xfail.Exception) as error:
                found.append(str(error))
        return found

    return fail


def test_the_first_says_it_also_again_and_the_others_name_the_first(outcomes: Any) -> None:
    skipped = "one says why suite/case failed"
    assert outcomes("one", "one", "two") == ["the cause", "the cause", skipped]


def test_a_failure_that_is_expected_is_nobodys_cause(outcomes: Any) -> None:
    found = ["so", "the cause", "the cause", "two says why suite/case failed"]
    assert outcomes("xfails", "marked xfail", "two", "three") == found
