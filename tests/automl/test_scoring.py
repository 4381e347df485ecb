"""The score: by hand, at the edges, and by what the original gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.automl.outcome.figures import figures
from proofmark.automl.outcome.record import Items, TrialRecord
from proofmark.automl.outcome.scoring import EVALUATED, LEAST_ERROR, MOST_MARKS, TRAINED, marks_of, regulated, score_of
from tests.automl.automl_records import epoch, record, trial

GOLDEN = {
    "forward_flops": 7_715_946_496,
    "training_flops": 22_911_811_584,
    "compatible_forward_flops": 7_806_583_495,
    "compatible_training_flops": 23_053_458_315,
}
"""Of ResNet-50 v1 on one image of ImageNet (torch's counter, and the original's)."""


def test_a_score_by_hand() -> None:
    score = score_of([trial(0), trial(1)], 100.0, 0.1)
    assert score.flops == 2 * (100 * 30 + 2 * 10 * 10)
    assert score.honest == score.flops / 100
    assert score.regulated == pytest.approx(score.flops / 100 * -math.log(0.1))
    assert score.compatible == 2 * (TRAINED * 60 + EVALUATED * 20) / 100


def test_images_are_those_of_all_trials_that_earn_over_all_seconds() -> None:
    failed = trial(1, status="failed", accuracy=None)
    for item, unit in (("image", "images/s"), ("pixels", "pixels/s")):
        made = record(trial(0), failed, item=item, search_seconds=50.0)
        (images,) = [figure for figure in figures(made) if figure.key == "images"]
        assert (made.trained_images, images.value, images.unit) == (100, 2.0, unit)


def test_what_failed_takes_time_and_earns_nothing() -> None:
    failed = trial(1, status="failed", accuracy=None, energy_joules=5.0)
    one, both = score_of([trial(0)], 100.0, 0.1), score_of([trial(0), failed], 100.0, 0.1)
    assert (both.flops, both.honest, both.compatible) == (one.flops, one.honest, one.compatible)
    assert list(marks_of([trial(0), failed], 25.0, 4.0, 2)) == list(marks_of([trial(0)], 25.0, 4.0, 2))
    before = failed.model_copy(update={"trained_on": None})
    assert score_of([trial(0), before], 100.0, 0.1).flops == 2 * one.flops, "in records of before it did"


def test_an_epoch_that_was_not_of_all_images_earns_nothing() -> None:
    """Neither by what was computed nor the original's way; the evaluation before the first step does."""
    items, whole = Items(100, 10), trial(0)
    short = epoch(9, images=1)
    skimmed = epoch(9).model_copy(update={"evaluated": 1})
    again = epoch(9, images=0)
    for unfinished in (short, skimmed, again):
        made = trial(0, epochs=(*whole.epochs, unfinished))
        assert score_of([made], 100.0, 0.1, items) == score_of([whole], 100.0, 0.1, items)
        seen, expected = (list(marks_of([each], 25.0, 4.0, 2, items)) for each in (made, whole))
        assert seen == expected
        assert record(made).trained_images == 100
    only = trial(0, epochs=(whole.epochs[0], *[epoch(9, images=1)] * 1000))
    assert score_of([only], 100.0, 0.1, items).compatible is None


def test_the_original_s_worked_example() -> None:
    """Two trials of four epochs of 600 s, the second 300 s later, best 0.71: 88588.9 and 109661.9 GFLOP/s."""
    epochs = [tuple(epoch(start + 600.0 * n, accuracy=0.71) for n in range(1, 5)) for start in (0.0, 300.0)]
    trials = [trial(number, epochs=each, **GOLDEN) for number, each in enumerate(epochs)]
    score = score_of(trials, 2700.0, 0.29)
    assert score.compatible == pytest.approx(88588.9e9, rel=1e-6)
    assert score.compatible_regulated == pytest.approx(109661.9e9, rel=1e-6)


def test_no_error_at_all_has_a_score() -> None:
    assert regulated(2.0, 0.0) == pytest.approx(-2 * math.log(LEAST_ERROR))
    assert regulated(2.0, 1.0) == 0.0
    assert regulated(None, 0.1) is None and regulated(2.0, None) is None


def test_nothing_has_no_score() -> None:
    for score in (score_of([], 10.0, 0.1), score_of([trial(epochs=())], 10.0, 0.1), score_of([trial()], 0.0, 0.1)):
        assert score.honest is None and score.regulated is None


def test_energy_is_known_only_of_all_trials() -> None:
    known = trial(0, energy_joules=5.0, energy_reason=None)
    assert score_of([known], 10.0, None).joules_per_teraflop == pytest.approx(5.0 / (3200 / 1e12))
    score = score_of([known, trial(1)], 10.0, None)
    assert score.joules_per_teraflop is None and score.energy_reason == "trial 1: nothing read the power"


def test_what_an_attempt_took_that_ended_with_its_driver_is_not_known() -> None:
    """Its seconds are among those of the search; the reading of its energy ended with it."""
    score = score_of([trial(0, energy_joules=5.0, energy_reason=None, attempts=2)], 10.0, None)
    assert score.joules_per_teraflop is None
    assert score.energy_reason == "trial 0: an earlier attempt ended with its driver, and its reading with it"


def test_at_a_mark_counts_what_was_over() -> None:
    marks = list(marks_of([trial(0), trial(1)], 25.0, 4.0, 2))
    assert [mark.seconds for mark in marks] == [8.0, 12.0, 16.0, 20.0, 24.0, 25.0]
    assert [(mark.score or 0.0) * mark.seconds for mark in marks] == pytest.approx([100, 3200, 3300, 6400, 6400, 6400])
    assert marks[-1].score == score_of([trial(0), trial(1)], 25.0, None).honest


def test_of_more_marks_than_curves_are_drawn_of_some_are_left_out() -> None:
    moments = [mark.seconds for mark in marks_of([trial(0)], 2.5 * MOST_MARKS, 1.0, 2)]
    assert moments[:3] == [2.0, 5.0, 8.0] and moments[-1] == 2.5 * MOST_MARKS and len(moments) <= MOST_MARKS + 1


@given(
    ends=st.lists(st.floats(0, 1000), max_size=30),
    seconds=st.floats(1, 1000),
    every=st.floats(5, 500),
    first=st.integers(1, 3),
)
def test_marks_are_in_order_and_end_with_the_search(
    ends: list[float], seconds: float, every: float, first: int
) -> None:
    marks = list(marks_of([trial(epochs=tuple(map(epoch, ends)))], seconds, every, first))
    moments = [mark.seconds for mark in marks]
    assert moments == sorted(moments) and moments[-1] == seconds
    errors = [mark.error for mark in marks if mark.error is not None]
    assert errors == sorted(errors, reverse=True)


def test_of_parts_that_a_record_has_millions_of_what_was_given_is_kept_once() -> None:
    """And a copy with other values leaves theirs alone."""
    first, second = trial(0), trial(1)
    assert first.model_fields_set is second.model_fields_set == set(TrialRecord.model_fields)
    assert first.epochs[0].model_fields_set is second.epochs[1].model_fields_set
    changed = first.model_copy(update={"number": 7})
    assert (changed.number, first.number) == (7, 0) and changed.model_fields_set is not first.model_fields_set
    assert TrialRecord.model_validate_json(first.model_dump_json()) == first
