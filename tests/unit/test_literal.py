"""Names in messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.literal import short, some


@pytest.mark.parametrize(
    "names, expected",
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (["a", "b", "c"], "a, b and 1 more"),
        ([*"abcd"], "a, b and 2 more"),
    ],
)
def test_the_first_of_many_names_and_how_many_more_there_are(names: list[str], expected: str) -> None:
    assert some(names, 2) == expected
    assert some(names, 2, "; ") == expected.replace(",", ";")


def test_a_path_is_shown_from_where_its_reader_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert short(tmp_path / "a" / "b") == Path("a/b")
    assert short(tmp_path / "a" / "b", tmp_path / "a") == Path("b")
    assert short(tmp_path / "a", Path("/elsewhere")) == tmp_path / "a"
