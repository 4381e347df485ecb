"""torch is imported ahead where a session will want it, and only there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.sessions import torch_ahead
from proofmark.gate import SIDE

HOUSE = Path(torch_ahead.__file__).parents[2]
SUITE = ["suites/inference"]


@pytest.mark.parametrize(
    "known, begins",
    [
        ({"file_or_dir": SUITE}, True),
        ({"file_or_dir": ["docs", "suites/inference/test_bert.py::TestBert"]}, True),
        ({"file_or_dir": []}, False),
        ({"file_or_dir": ["tests/unit"]}, False),
        ({"file_or_dir": SUITE, "side": True}, False),
        ({"file_or_dir": SUITE, "help": True}, False),
        ({"file_or_dir": SUITE, "collectonly": True}, False),
        ({"file_or_dir": SUITE, "numprocesses": 2}, False),
    ],
)
def test_torch_is_imported_ahead_where_cases_are_to_run(
    known: dict[str, Any], begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    if known.get("side"):
        monkeypatch.setenv(SIDE, "inference/tiny")
    monkeypatch.setattr(torch_ahead, "warm_up", lambda *asked: begun.append(asked))
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=HOUSE),
        known_args_namespace=SimpleNamespace(**{"help": False, "collectonly": False, **known}),
    )
    manager: Any = SimpleNamespace(get_plugin=lambda name: config)
    torch_ahead.pytest_addoption(manager)
    assert [modules for modules, _ in begun] == ([("torch",)] if begins else [])
