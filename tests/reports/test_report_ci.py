"""What goes to JUnit and Allure, and that no report gives a withheld speed away."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import allure_commons
import pytest
from allure_commons.utils import represent

from proofmark.inference.outcome.record import RunRecord
from proofmark.record.parts import Verdict
from reports.allure import correct, describe, label, listens
from reports.allure_tree import parameters
from reports.content import text
from reports.junit import properties
from reports.terminal import summary_lines
from reports.verdict_table import verdict_table
from tests.suites_there import SUITES, page_of


def speeds(record: RunRecord) -> list[str]:
    """A record's speeds, each as one report or another would show it."""
    figures = [9753.1, 8.642, 8.531, record.flops.counted * 415.4e-9]
    for measured in filter(None, (record.framework, record.engine)):
        figures += [measured.whole.value, measured.core.value]
        figures += [r.items / r.core_seconds for r in measured.rounds]
    shown = {form for figure in figures for form in (text.number(figure), f"{figure:.4g}", f"{figure:.6g}")}
    return [*shown, "30.2 %", "0.3019", "13,457", "13457", "2.496", "26.9 s"]


class Recorder:
    """Stands in for Allure's listener: keeps what it is told."""

    def __init__(self) -> None:
        self.labels: dict[str, tuple[str, ...]] = {}
        self.parameters: dict[str, str] = {}
        self.bodies: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.description = ""

    @allure_commons.hookimpl
    def attach_data(self, body, name, attachment_type, extension):
        self.bodies[name] = body

    @allure_commons.hookimpl
    def attach_file(self, source, name, attachment_type, extension):
        self.files[name] = source

    @allure_commons.hookimpl
    def add_label(self, label_type, labels):
        self.labels[str(label_type)] = labels

    @allure_commons.hookimpl
    def add_parameter(self, name, value, excluded, mode):
        self.parameters[name] = represent(value)

    @allure_commons.hookimpl
    def add_description(self, test_description):
        self.description = test_description


@pytest.fixture
def allure():
    """Allure recording to memory, and nowhere else."""
    manager = allure_commons.plugin_manager
    others = [impl.plugin for impl in manager.hook.attach_data.get_hookimpls()]
    for plugin in others:
        manager.unregister(plugin)
    recorder = Recorder()
    manager.register(recorder)
    yield recorder
    manager.unregister(recorder)
    for plugin in others:
        manager.register(plugin)


def everything(record, recorder: Recorder) -> dict[str, str]:
    """What each of the four reports says of a record."""
    label(record.suite, record.case, parameters(record), record.config_hash, "this")
    describe(record, None, SUITES["inference"].charts(record))
    return {
        "terminal": "\n".join(summary_lines([record])) + verdict_table([record], Path("run"), 80, False),
        "html": page_of([record]),
        "junit": str(properties(record)),
        "allure": html.unescape(str(vars(recorder))),
    }


def without_readings(record: RunRecord) -> RunRecord:
    """The record without series, whose many digits hold any speed by chance."""
    seen = record.monitoring and record.monitoring.model_copy(update={"series": ()})
    return record.model_copy(update={"monitoring": seen})


@pytest.mark.parametrize("name", ["fail_accuracy", "error", "unsupported", "cheated"])
def test_no_report_gives_a_withheld_speed_away(records, allure, name):
    record = without_readings(records[name])
    for report, content in everything(record, allure).items():
        assert [speed for speed in speeds(record) if speed in content] == [], report
        nothing_to_withhold = report == "junit" or (report == "terminal" and record.interrupted)
        assert f"withheld: {records[name].verdict.kind}" in content or nothing_to_withhold


def test_every_report_shows_a_valid_speed(records, allure):
    for report, content in everything(records["pass"], allure).items():
        assert any(speed in content for speed in ("415.4", "415.395")), report
        assert "withheld" not in content, report


def test_junit_properties_are_plain(records):
    found = dict(properties(records["pass"]))
    assert found["verdict"] == "PASS"
    assert found["core"] == "415.395"
    assert found["loader"] == "9753.1"
    assert found["mfu"] == "0.3019"
    assert found["accuracy_engine"] == "0.9816"
    assert found["bound_by"] == "compute"
    assert found["dataset_sha256"] == "da7a" * 16


def test_junit_has_energy_with_its_method(records):
    found = dict(properties(records["watched"]))
    assert (found["energy_joules"], found["energy_per_item"]) == ("13457.1", "2.4962")
    assert found["energy_method"] == "device energy counter"
    assert found["honesty"] == "8 of 8 checks passed"
    without = dict(properties(records["pass"]))
    assert without["energy_joules"] == without["energy_method"] == "null: there was no monitor"
    cheated = dict(properties(records["cheated"]))
    assert cheated["energy_joules"] == cheated["energy_method"] == "withheld: FAIL_HONESTY"


def test_junit_has_the_same_properties_for_every_run(records):
    names = {tuple(name for name, _ in properties(record)) for record in records.values()}
    assert len(names) == 1
    failed = dict(properties(records["fail_accuracy"]))
    assert failed["core"] == failed["mfu"] == failed["bound_by"] == "withheld: FAIL_ACCURACY"
    assert dict(properties(records["one_round"]))["mfu"] == "null: no peak for this chip at fp16"
    assert dict(properties(records["framework_only"]))["accuracy_engine"].startswith("null: ")


def test_allure_gets_labels_parameters_and_attachments(records, allure, tmp_path):
    log = tmp_path / "events.jsonl"
    log.write_text("{}\n")
    empty = tmp_path / "worker.log"
    empty.touch()
    label("inference", "resnet50", parameters(records["pass"]), "c0ffee", "this")
    correct(records["pass"])
    describe(records["pass"], {"events": log, "worker.log": empty}, SUITES["inference"].charts(records["pass"]))
    assert allure.labels["feature"] == ("inference",)
    assert allure.labels["story"] == ("resnet50",)
    assert allure.labels["configuration"] == ("c0ffee",) and allure.labels["session"] == ("this",)
    assert set(allure.parameters) == {"vendor", "chip", "compiler", "precision", "profile"}
    assert allure.parameters["compiler"] == "onnxruntime"
    assert json.loads(allure.bodies["run record"])["case"] == "resnet50"
    assert allure.bodies["throughput per round"].startswith("<svg")
    assert allure.files == {"events": str(log)}
    assert "**PASS**" in allure.description


def test_allure_gets_no_file_of_a_run_whose_speed_is_withheld(records, allure, tmp_path):
    """The referee's own lines in it say how many items rounds had."""
    log = tmp_path / "worker.log"
    log.write_text("engine round 1/3: 30/210 batches, 960 items\n")
    describe(records["fail_accuracy"], {"worker.log": log})
    assert allure.files == {} and "run record" in allure.bodies


def test_an_allure_that_does_not_listen_is_told_nothing(allure):
    assert listens()
    allure_commons.plugin_manager.unregister(allure)
    try:
        assert not listens()
    finally:
        allure_commons.plugin_manager.register(allure)


def test_allure_gets_no_markup_of_the_run(records, allure):
    reasons = ("<script>alert(1)</script>", "a < b & c", "![seen](http://acme.example/pixel)", "# large")
    describe(records["pass"].model_copy(update={"verdict": Verdict(kind="ERROR", reasons=reasons)}))
    _, *lines = allure.description.split("\n\n")
    assert [html.unescape(line) for line in lines[:4]] == list(reasons)
    assert not set("<>[]!#:") & set(re.sub(r"&#\d+;", "", allure.description))
