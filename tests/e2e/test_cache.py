"""The cache of weights that the suite trains: what is wrong with an entry is told, and it is made again."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.conftest import House, one_line_answer

TRAINS = "no cached weights"


def test_corrupt_and_stale_entries_are_told_and_made_again(tmp_path: Path) -> None:
    house = House(tmp_path / "house")
    cases = ("tiny", "stale")
    house.add_case("stale")
    first = house.run("-k", "framework")
    assert first.output.count(TRAINS) == 2, first.output
    entries = {case: house.cache / "weights/inference" / f"{case}-embedded.safetensors" for case in cases}
    weights = bytearray(entries["tiny"].read_bytes())
    weights[-1] ^= 1
    entries["tiny"].write_bytes(weights)
    recipe = house.case_yaml.with_name("stale.yaml")
    recipe.write_text(recipe.read_text().replace("learning_rate: 0.05", "learning_rate: 0.04"))

    again = house.run("-k", "framework")
    for case, expected in (("tiny", "are corrupt (checksum differs)"), ("stale", "are stale")):
        assert f"cached weights {entries[case]} {expected}" in again.output
    for case in cases:
        same = again.record(case).weights, first.record(case).weights
        assert same[0] is not None and same[1] is not None
        assert (same[0].sha256 == same[1].sha256) == (case != "stale")
        assert json.loads(entries[case].with_suffix(".json").read_text())["sha256"]


def test_two_sessions_at_once_train_once(tmp_path: Path) -> None:
    house = House(tmp_path / "house")
    sessions = [house.start("--vendor=fake", "--compiler=null", "--results-dir", name) for name in "ab"]
    rans = [house.end(session) for session in sessions]
    assert [ran.code for ran in rans] == [0, 0], rans
    assert sum(TRAINS in ran.output for ran in rans) == 1, [ran.output for ran in rans]


def test_cache_that_cannot_be_written(house: House) -> None:
    house.cache = house.root / "cache"
    house.cache.write_text("a file, not a directory")
    one_line_answer(house.run(), f"ERROR: --cache-dir {house.cache}: cannot be written: Not a directory")
