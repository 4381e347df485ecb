"""No input from a disk or a wire ends in a traceback, a hang, or more memory than a reader needs.

`make fuzz` runs PROOFMARK_FUZZ inputs in all, `make test` a few hundred.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.bounds import bounded
from tests.fuzz.readers import READERS, shown
from tests.training_records import make_training
from tests.unit.records import record

INPUTS = int(os.environ.get("PROOFMARK_FUZZ", "300"))
PHASES = (Phase.generate,)
"""A failure is told as it was found: to shrink it takes minutes, since each input is large."""


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All modules are imported, and all templates read, before memory is bounded."""
    import scipy.stats  # noqa: F401

    folder = tmp_path_factory.mktemp("whole")
    shown(record(), folder)
    shown(make_training(), folder)


@pytest.mark.parametrize("name", READERS)
@settings(
    max_examples=-(-INPUTS // len(READERS)),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
)
@given(data=st.data())
def test_any_input_is_read_or_refused(name: str, data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    reader = READERS[name]
    content = data.draw(reader.inputs)
    folder = tmp_path_factory.mktemp("fuzz")
    with bounded():
        try:
            reader.read(folder, content)
        except reader.refusal as refusal:
            lines = str(refusal).splitlines()
            assert lines and len(lines) <= 50 and all(line.isprintable() and len(line) < 4000 for line in lines), lines
