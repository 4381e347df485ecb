"""Triplets are held against what the ranks themselves said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proofmark.launch.launchers.modelarts import triplet
from proofmark.launch.rank_result import RankResult
from proofmark.launch.service.contract import ServiceError
from tests.modelarts.test_parts import result


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, None),
        ({"rank": 0}, r"ranksize\.json: ranks \[0, 0\] left what they came to, of 2"),
        ({"rank": 2}, r"ranksize\.json: ranks \[0, 2\] left"),
        ({"world": 3}, r"ranksize\.json: ranks \[0, 1\] left"),
        ({"steps": 2}, r"ranksize\.json: its ranks have not taken equally many steps"),
        ({"seconds": 4.0000001}, r"throughput_1\.json: it says 2\.5, and its rank said 2\.49"),
    ],
)
def test_what_another_rank_said(tmp_path: Path, changes: dict[str, Any], expected: str | None) -> None:
    written = [result(0), result(1)]
    triplet.write(tmp_path, written, None)
    said: list[RankResult] = [written[0], result(**{"rank": 1, **changes})]
    if expected is None:
        triplet.hold_against(tmp_path, [said], 2, None)
    else:
        with pytest.raises(ServiceError, match=f"result {expected}"):
            triplet.hold_against(tmp_path, [said], 2, None)


def test_a_servers_accuracy_is_its_own(tmp_path: Path) -> None:
    by_server = [[result(0, world=1)], [result(0, world=1, metric=0.5)]]
    for server, results in enumerate(by_server):
        triplet.write(tmp_path, results, server)
    triplet.hold_against(tmp_path, by_server, 1, 2)
    (tmp_path / "1/accuracy.json").write_text("0.75")
    with pytest.raises(ServiceError, match=r"result 1/accuracy\.json: it says 0\.75, and its rank said 0\.5"):
        triplet.hold_against(tmp_path, by_server, 1, 2)


def test_a_number_with_more_behind_it_is_none(tmp_path: Path) -> None:
    triplet.write(tmp_path, [result(0, world=1)], None)
    (tmp_path / "accuracy.json").write_text("0.75" + 70 * " " + "junk")
    with pytest.raises(ServiceError, match=r"result accuracy\.json: it has 65 bytes, and a number has 64 at most"):
        triplet.hold_against(tmp_path, [[result(0, world=1)]], 1, None)
