"""What figures are called: one name each, everywhere."""

from __future__ import annotations

import pytest

from reports import labels
from reports.html import render
from reports.terminal import summary_lines
from tests.reports.records import make_record
from tests.training_records import make_training


@pytest.mark.parametrize("suite", labels.EXPLAINED)
def test_a_name_is_given_once_and_explained_in_a_sentence(suite: str) -> None:
    names = [label.name for label in labels.EXPLAINED[suite]]
    assert len(set(names)) == len(names)
    assert all(label.meaning.endswith(".") for label in labels.EXPLAINED[suite])


def test_flagperfs_names_stand_in_brackets(tmp_path) -> None:
    assert labels.throughput("engine", labels.CORE).full == "engine core (p_inference_core)"
    assert labels.throughput("framework", labels.WHOLE).full == "framework whole (p_validation_whole)"
    assert [label.full for label in labels.RATES.values()] == ["whole (p_whole)", "no eval (p_train)", "core (p_core)"]


@pytest.mark.parametrize("other", ["pure compute", "p_core, ", "*p_inference", "loader alone", "<th>raw<"])
def test_no_report_has_another_name(other: str, tmp_path) -> None:
    records = [make_record(), make_training()]
    assert other not in render(records)
    assert other not in "\n".join(summary_lines(records))
