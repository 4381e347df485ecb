"""Every rule of validity, with the search that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from proofmark.automl.logs.held import CHOSEN
from proofmark.automl.outcome.figures import figures
from proofmark.automl.outcome.record import Score
from proofmark.automl.outcome.verdict import judge, rules
from proofmark.record.parts import Check, Contention, Identity, Utilisation
from proofmark.record.provenance import Chip, Peak
from proofmark.vendor.hardware.machine import describe_host
from reports.terminal import summary_lines
from tests.automl.automl_records import epoch, record, trial

EVALUATED = epoch(3).model_copy(update={"evaluated": 11})
SKIMMED = epoch(3).model_copy(update={"evaluated": 1})
WRONG = Check("starts from the case's weights", False, 1.0, 0.0, "it begins from other weights")


def test_a_good_search_passes() -> None:
    assert judge(record()).kind == "PASS"
    assert not [rule for rule in rules(record()) if rule.broken]


@pytest.mark.parametrize(
    ("changed", "kind", "reason"),
    [
        ({"search_seconds": 59.0}, "INSUFFICIENT", "it must last at least 60 s and did not"),
        ({"held_out_accuracy": 0.69}, "FAIL_ACCURACY", "top1 0.69000 on held-out data is below the target 0.7"),
        ({"held_out_accuracy": 0.699999}, "FAIL_ACCURACY", "top1 0.699999 on held-out data is below the target 0.7"),
        ({"held_out_accuracy": None, "held_out_reason": "it hung"}, "ERROR", "held-out data: it hung"),
        ({"faults": ("event 3, trial_end, does not follow the one before it: it was edited",)}, "FAIL_HONESTY", "edit"),
        ({"corrupt_lines": 1, "damaged": ("journal.jsonl, line 3: not JSON",)}, "FAIL_HONESTY", "line 3"),
        ({"ended": False}, "ERROR", "the journal has no end"),
        ({"held_out": None}, "ERROR", "nothing identifies the held-out data"),
        ({"held_out": Identity(name="train", sha256="1" * 64)}, "ERROR", "is the data that was trained on"),
        ({"held_out": Identity(name="search", sha256="4" * 64)}, "ERROR", "is the data that trials were chosen by"),
        ({"dataset": None}, "ERROR", "nothing identifies the data set"),
        ({"chosen_on": None}, "ERROR", "nothing identifies the data that trials were chosen by"),
        ({"failure": "the disk is full"}, "ERROR", "the disk is full"),
        ({"interrupted": "the search"}, "ERROR", "interrupted in the search"),
        ({"partial": True}, "INSUFFICIENT", "only some tests"),
        ({"unsupported": "vendor acme does not train at bf16"}, "UNSUPPORTED", "does not train"),
        ({"contention": Contention(others=0.5, stolen=0.0, idle=0.1)}, "AMBIGUOUS", "run again on a quiet machine"),
        ({"contention": None}, "ERROR", "nothing says what else its machine did"),
        ({"examined": 1}, "ERROR", "trial 1 was judged on held-out data, and trial 0 is the best"),
        ({"examined": None}, "ERROR", "no trial was judged on held-out data, and trial 0 is the best"),
        ({"score": None}, "ERROR", "it has no score"),
        ({"score": Score(honest=None, regulated=None, compatible=1.0, compatible_regulated=1.0)}, "ERROR", "no score"),
        ({"adapted": ("train_step",)}, "FAIL_HONESTY", "trial 0: the honesty check 'computes the case's function' is"),
        ({"end_reason": "3 trials in a row have failed, the last one: it hung"}, "ERROR", "in a row"),
    ],
)
def test_a_search_that_breaks_a_rule_is_refused(changed: dict[str, Any], kind: str, reason: str) -> None:
    verdict = judge(record(**changed))
    assert verdict.kind == kind and any(reason in line for line in verdict.reasons), verdict


@pytest.mark.parametrize(
    ("changed", "kind", "reason"),
    [
        ({"dtypes": ("float32", "float8_e4m3fn")}, "FAIL_HONESTY", "trial 1 computed in float8_e4m3fn"),
        ({"dtypes": ()}, "FAIL_HONESTY", "nobody saw in which numbers"),
        ({"trained_on": "9" * 64}, "ERROR", "trial 1 trained on other data than the record identifies"),
        ({"trained_on": ""}, "ERROR", "trial 1 trained on nobody knows what"),
        ({"trained_on": None}, "ERROR", "trial 1 trained on nobody knows what"),
        ({"evaluated_on": "9" * 64}, "ERROR", "trial 1 was chosen by other data than the record identifies"),
        ({"counted": (10, 29)}, "FAIL_HONESTY", "credited 10 forward and 30 in a step per image, torch's counter has"),
        ({"counted": None}, "FAIL_HONESTY", "nothing counted its operations"),
        (
            {"epochs": (epoch(2), epoch(3))},
            "FAIL_HONESTY",
            "trial 1 says that it did 2 epochs, of which it was given 1",
        ),
        (
            {"epochs": (epoch(2, 0), epoch(3, 0), epoch(4))},
            "ERROR",
            "did 3 evaluations, of which it was given 2",
        ),
        ({"epochs": (epoch(3, 1000),)}, "FAIL_HONESTY", "did 1000 images in an epoch, of which it was given 100"),
        ({"epochs": (EVALUATED,)}, "FAIL_HONESTY", "did 11 images in an evaluation, of which it was given 10"),
        (
            {"epochs": (epoch(2, 0), epoch(3, 1))},
            "ERROR",
            "not after training on all; number 2 was of 10 of 10, after 1 of 100",
        ),
        (
            {"epochs": (epoch(2, 0), epoch(3, 100), SKIMMED, SKIMMED), "asked": 3},
            "ERROR",
            "2 of its 4 evaluations were not of all images, or not after training on all; number 3 was of 1 of 10",
        ),
        ({"epochs": (SKIMMED,)}, "ERROR", "trial 1 did not finish epochs that it tells of: 1 of its"),
        ({"epochs": (epoch(2, 0), epoch(2, 0))}, "ERROR", "trial 1 did not finish epochs that it tells of: 1 of its"),
        ({"train_seconds": 1e9}, "FAIL_HONESTY", "trial 1 says that it trained for 1e+09 s, and lasted 10 s"),
        ({"checks": (WRONG,)}, "FAIL_HONESTY", "trial 1: it begins from other weights"),
        ({"checks": ()}, "FAIL_HONESTY", "trial 1: the honesty check 'keeps the case's parameters' is missing"),
        ({"log_intact": False}, "FAIL_HONESTY", "the log of trial 1 is not the one"),
        ({"status": "none", "ended": None, "accuracy": None}, "ERROR", "trial 1 has no end"),
        ({"status": "running", "ended": None}, "ERROR", "trial 1 has no end"),
        ({"parent": 7}, "ERROR", "trial 1 is of trial 7, which is not finished"),
        ({"number": 2}, "ERROR", "the journal has no trial 1"),
        (
            {"number": 1 << 62},
            "ERROR",
            "the journal has no trial 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12",
        ),
    ],
)
def test_a_trial_that_breaks_a_rule_makes_the_search_invalid(changed: dict[str, Any], kind: str, reason: str) -> None:
    verdict = judge(record(trial(0), trial(**{"number": 1, "parent": 0, **changed})))
    assert verdict.kind == kind and any(reason in line for line in verdict.reasons), verdict


@pytest.mark.parametrize("peak, kind", [(640.0, "PASS"), (300.0, "FAIL_HONESTY")])
def test_no_trial_is_faster_than_its_devices(peak: float, kind: str) -> None:
    """3,200 FLOP in ten seconds; over all of the search that is a tenth of it."""
    chip = Chip(name="A1", peak=Peak(flops_per_second=peak, precision="fp32", source="a sheet"))
    verdict = judge(record(chip=chip, utilisation=Utilisation(mfu=0.1)))
    assert verdict.kind == kind and (kind == "PASS" or "its devices' peak gives 3000" in verdict.reasons[0]), verdict


@pytest.mark.parametrize("ran_on, kind", [("here", "FAIL_HONESTY"), ("elsewhere", "PASS")])
def test_no_trial_is_held_against_the_peak_of_another_machine(ran_on: str, kind: str) -> None:
    """The session's chip may be the least of them; what a trial was given beside that it is held against anywhere."""
    slow = Chip(name="A1", peak=Peak(flops_per_second=300.0, precision="fp32", source="a sheet"))
    host = describe_host().model_copy(update={"name": "here"})
    both = trial(0, host=ran_on), trial(1, host=ran_on)
    assert judge(record(*both, chip=slow, host=host)).kind == kind
    longer = trial(1, host=ran_on, train_seconds=1e9)
    assert judge(record(both[0], longer, chip=slow, host=host)).kind == "FAIL_HONESTY"


@pytest.mark.parametrize("share, kind", [(None, "PASS"), (1.0, "PASS"), (1.6, "FAIL_HONESTY")])
def test_trials_have_no_more_of_their_devices_time_than_there_was(share: float | None, kind: str) -> None:
    """One that says that it has let go of its device, and has not, has the next one beside it."""
    verdict = judge(record(training_share=share))
    expected = ("its trials say that they trained for 1.6 times as long as they had devices",)
    assert (str(verdict.kind), verdict.reasons) == (kind, expected if share == 1.6 else ())


def test_no_trial_is_credited_faster_than_its_devices_either() -> None:
    """By the original's formulas, of the images that it says it had: 6,400 FLOP in ten seconds."""
    chip = Chip(name="A1", peak=Peak(flops_per_second=330.0, precision="fp32", source="a sheet"))
    verdict = judge(record(chip=chip, utilisation=Utilisation(mfu=0.1)))
    assert verdict.kind == "FAIL_HONESTY"
    assert (
        verdict.reasons[0] == "trial 0 says that it did 6400 FLOP, by AIPerf's formulas, its devices' peak gives 3300"
    )


@pytest.mark.parametrize("devices, kind", [(1, "FAIL_HONESTY"), (2, "PASS")])
def test_ranks_that_share_a_processor_have_its_peak_together(devices: int, kind: str) -> None:
    chip = Chip(name="A1", peak=Peak(flops_per_second=400.0, precision="fp32", source="a sheet"))
    shared = {"config": {"devices_per_trial": 2}, "devices": devices, "utilisation": Utilisation(mfu=0.1)}
    assert judge(record(chip=chip, **shared)).kind == kind


@pytest.mark.parametrize(
    "passed, kind, text",
    [
        (True, "PASS", "5 of 5 checks passed"),
        (False, "FAIL_HONESTY", "4 of 5 checks passed; failed: as good as it was chosen for"),
    ],
)
def test_how_good_the_best_is_outside_its_trial_is_among_the_checks(passed: bool, kind: str, text: str) -> None:
    made = record(examination=Check(CHOSEN, passed, 0.13, 0.01, "its top1 is said to be 0.93"))
    (shown,) = (figure.value for figure in figures(made) if figure.key == "honesty")
    assert (str(judge(made).kind), shown) == (kind, text)


def test_trials_that_all_failed_hide_no_other_reason() -> None:
    lied: dict[str, Any] = {"status": "failed", "reason": "it lied", "accuracy": None, "checks": (WRONG,)}
    failed = [trial(number, parent=None, **lied) for number in range(2)]
    verdict = judge(record(*failed, held_out_accuracy=None))
    assert verdict.kind == "FAIL_HONESTY" and verdict.reasons[1:3] == ("trial 0: it lied", "trial 1: it lied"), verdict
    assert "trial 1: it begins from other weights" in verdict.reasons


def test_all_reasons_are_listed_under_the_gravest() -> None:
    verdict = judge(record(trial(0, counted=(1, 2)), search_seconds=1.0, held_out_accuracy=0.1))
    assert verdict.kind == "FAIL_HONESTY" and len(verdict.reasons) == 3


def test_a_failed_trial_is_accounted_for() -> None:
    failed = trial(1, status="failed", reason="it hung", accuracy=None, dtypes=(), counted=None)
    assert judge(record(trial(0), failed)).kind == "PASS"
    assert judge(record(trial(0, status="failed", reason="it hung", accuracy=None))).kind == "ERROR"


def test_what_nobody_ranks_needs_no_quiet_machine() -> None:
    assert judge(record(rankable=False, contention=Contention(others=0.5, stolen=0.0, idle=0.1))).kind == "PASS"
    assert judge(record(rankable=False, contention=None)).kind == "PASS"


def test_what_may_be_its_own_trials_is_no_disturbance_and_is_not_ranked() -> None:
    """Trials of a cluster that runs descend from that, and are others to the session."""
    busy, quiet = (Contention(others=0.6, stolen=0.0, idle=idle) for idle in (0.1, 0.9))
    apart = {"trials_among_others": True}
    (why,) = record(contention=busy, **apart).unrankable
    assert judge(record(contention=busy, **apart)).kind == "PASS" and "can't be told from its trials" in why
    assert record(contention=quiet, **apart).unrankable == []
    host = describe_host()
    here, there = trial(0, host=host.name), trial(1, host="elsewhere")
    assert judge(record(here, there, host=host, contention=busy)).kind == "PASS"
    assert judge(record(here, trial(1, host=host.name), host=host, contention=busy)).kind == "AMBIGUOUS"


def test_what_never_searched_is_not_ranked() -> None:
    why = "no trial came of another: it did not search"
    assert record(trial(0)).unrankable == [why] == record(trial(0), trial(1, status="failed")).unrankable
    untrained = trial(1, epochs=trial(1).epochs[:1])
    assert record(trial(0), untrained).unrankable == [why]
    assert record().unrankable == []


def test_what_nobody_can_hold_against_the_machine_is_not_ranked() -> None:
    host = describe_host()
    assert record(trial(0, host=host.name), trial(1, host=host.name), host=host).unrankable == []
    (why,) = record(trial(0, host=host.name), trial(1, host="elsewhere"), host=host).unrankable
    assert why.startswith("trials ran on other machines than the session's")
    (why,) = record(chip=Chip(name="A1", peak_missing="nobody knows")).unrankable
    assert why.startswith("nobody knows its devices' peak")


def test_a_record_of_before_says_nothing_of_a_trials_data_and_is_not_asked() -> None:
    before = {"trained_on": None, "evaluated_on": None}
    old = record(trial(0, **before), trial(1, **before), chosen_on=None)
    assert judge(old).kind == "PASS" and old.unrankable == []
    assert record(trial(0, **before), chosen_on=None).unrankable == []


def test_the_terminal_says_once_how_many_devices_and_why_it_is_not_ranked() -> None:
    made = record(trial(0))
    judged = made.model_copy(update={"verdict": judge(made)}).with_figures(list(figures(made)))
    text = " ".join(" ".join(summary_lines([judged])).split())
    assert text.count("devices 1 ") == 1
    assert text.count("it did not search") == 1 and text.count("(as above)") == 3


@pytest.mark.parametrize("lacking", ["train_items", "search_items"])
def test_a_search_whose_images_nobody_counted_is_an_error(lacking: str) -> None:
    """Every epoch would be taken for a whole one."""
    verdict = judge(record(trial(0), **{lacking: None}))
    assert str(verdict.kind) == "ERROR" and "how many images" in "\n".join(verdict.reasons)
