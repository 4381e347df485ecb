"""What the machine's own speed is told from."""

from __future__ import annotations

import pytest

from proofmark.measuring.yardstick import LOOKS, Yardstick


def test_a_share_is_of_the_best_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = [100.0, 50.0, 200.0, 100.0]
    looks = iter([speed for speed in speeds for _ in range(LOOKS)])
    monkeypatch.setattr(Yardstick, "_products", lambda _: next(looks))
    yardstick = Yardstick()
    assert [yardstick.share() for _ in speeds] == [1.0, 0.5, 1.0, 0.5]


def test_a_look_that_others_broke_into_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([100.0] * LOOKS + [100.0, 1.0, 100.0, 2.0, 100.0])
    monkeypatch.setattr(Yardstick, "_products", lambda _: next(looks))
    yardstick = Yardstick()
    assert [yardstick.share() for _ in range(2)] == [1.0, 1.0]


def test_it_takes_a_product_however_long_that_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofmark.measuring.yardstick.LOOK", 1e-9)
    assert 0 < Yardstick().share() <= 1
