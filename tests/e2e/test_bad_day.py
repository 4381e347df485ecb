"""One session over good and bad engines: each is answered by its own verdict, the others run all the same; and what it
leaves for others to read, benchmark JSON, JUnit, Allure, report.html, the terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proofmark.inference.outcome.rounds import WITHIN
from tests.e2e.conftest import House, Ran
from tests.reports.xunit2 import ended, properties, suites
from tests.waiting import PATIENCE

ENGINES = "honest slow foo_time declares reuses shapes nan random short".split()
FAULTS = {
    "raises_compiling": "compile=raise",
    "raises_running": "call=raise",
    "segfaults": "compile=SIGSEGV",
    "is_killed": "call=SIGKILL",
    "leaves": "call=exit",
    "dies_early": "data=SIGABRT",
}


@dataclass(frozen=True)
class BadDay:
    """One session over good and bad engines, with every report switched on."""

    house: House
    ran: Ran
    junit: dict[str, ET.Element]
    benchmark: dict[str, Any]
    allure: Path


@pytest.fixture(scope="module")
def bad_day(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> BadDay:
    """All engines of the fake vendor and all faults, each in a case of its own, in one session."""
    house = House(tmp_path_factory.mktemp("bad_day") / "house", trained)
    for engine in ENGINES[1:]:
        house.add_case(engine, {"compiler": engine})
    for case in FAULTS:
        house.add_case(case)
    house.add_case("hard", target=1.5)
    house.add_case("boast", flops=1000)
    trouble = ",".join(f"{case}.{fault}" for case, fault in FAULTS.items())
    ran = house.run("--junitxml=junit.xml", "--alluredir=allure", "--benchmark-json=benchmark.json", trouble=trouble)
    assert house.becomes_empty()
    return BadDay(
        house,
        ran,
        suites(house.root / "junit.xml"),
        json.loads((house.root / "benchmark.json").read_text()),
        house.root / "allure",
    )


EXPECTED = {
    "tiny": ("PASS", ""),
    "slow": ("PASS", ""),
    "foo_time": ("FAIL_HONESTY", "foo_time"),
    "declares": ("INSUFFICIENT", "s of compute, which nobody can check: it looks at the shape of each input anew"),
    "reuses": ("PASS", ""),
    "shapes": ("ERROR", "step engine_inference failed: output 0 has shape"),
    "nan": ("ERROR", "the engine's top1 is missing"),
    "random": ("FAIL_ACCURACY", "below the target"),
    "short": ("FAIL_ACCURACY", "is below 99.0% of the fp32 framework's"),
    "hard": ("FAIL_ACCURACY", "fp32 framework top1"),
    "boast": ("ERROR", "step data_and_model failed: the case declares 1000 FLOPs per point, counted were 64"),
    "raises_compiling": ("ERROR", "step compile failed: RuntimeError: trouble in compile (vendors/fake/"),
    "raises_running": ("ERROR", "step engine_inference failed: RuntimeError: trouble in call"),
    "segfaults": ("ERROR", "step compile failed: the engine's process died of signal 11 (SIGSEGV)"),
    "is_killed": ("ERROR", "step engine_inference failed: the engine's process died of signal 9 (SIGKILL)"),
    "leaves": ("ERROR", "step engine_inference failed: the engine's process ended with exit code 0"),
    "dies_early": ("ERROR", "step data_and_model failed: the case's process died of signal 6 (SIGABRT)"),
}


@pytest.mark.parametrize("case", EXPECTED)
def test_each_has_its_verdict(bad_day: BadDay, case: str) -> None:
    kind, expected = EXPECTED[case]
    found, reasons = bad_day.ran.verdict(case)
    assert found == kind, reasons
    assert expected in reasons


def test_wrong_flops_are_told_before_anything_is_measured(bad_day: BadDay) -> None:
    assert bad_day.ran.verdict("boast")[1].endswith("write 64 in suites/inference/boast.yaml: parameters.flops")
    assert bad_day.ran.record("boast").framework is None and bad_day.ran.record("boast").flops.counted == 64


def test_the_session_carries_the_gravest(bad_day: BadDay) -> None:
    assert bad_day.ran.code == 17, bad_day.ran.output
    assert bad_day.house.processes() == []


def test_the_session_ends_with_all_verdicts_and_their_reasons_whole(bad_day: BadDay) -> None:
    figures, _, verdicts = bad_day.ran.output.rpartition("\n====")
    text = " ".join(verdicts.split())
    for case in EXPECTED:
        kind, reasons = bad_day.ran.verdict(case)
        assert f"{kind} inference/{case} " in text
        for reason in reasons.splitlines():
            assert " ".join(reason.split()) in text
    assert verdicts.splitlines()[-1] == f"results in results/{bad_day.ran.run_dir.name}, exit code 17"
    assert "\nFAILED " not in figures and "\nSKIPPED " not in figures, "pytest cuts them off; all is told below"
    assert "Iterations" not in figures, "pytest-benchmark's tables are printed on request"


def test_only_an_engine_that_raises_has_a_traceback(bad_day: BadDay) -> None:
    assert "trouble in call" in (bad_day.ran.record("raises_running").step("engine_inference").detail or "")
    assert "INTERNALERROR" not in bad_day.ran.output
    log = bad_day.ran.case_dir("raises_compiling") / "worker.log"
    assert "Traceback" in log.read_text()
    expected = f"kept in {log.parent.relative_to(bad_day.house.root)}: events.jsonl (all that was measured), worker.log"
    assert expected in " ".join(bad_day.ran.output.split())


def test_the_first_failure_is_what_a_session_that_stops_there_is_judged_by(house: House) -> None:
    house.add_case("hard", target=1.5)
    ran = house.run("-k", "hard or overrides_legal", "-x")
    assert ran.code == 14 and ran.verdict("hard")[0] == "FAIL_ACCURACY", ran.output
    assert ran.record("hard").stopped and not ran.record("hard").partial
    assert "points/s" not in ran.output


def test_slow_engine_is_what_binds(bad_day: BadDay) -> None:
    slow, honest = bad_day.ran.record("slow").engine, bad_day.ran.record("tiny").engine
    assert slow is not None and honest is not None
    assert slow.loader is not None
    others = [slow.loader.min, *(timed.items / timed.evaluation_seconds for timed in slow.rounds)]
    stood_still = min(others) < slow.core.max / (1 - WITHIN)  # the machine, for as long, while it loaded or evaluated
    assert slow.bound_by == "compute" or stood_still
    assert slow.core.value < 16 / 0.05 * 1.01
    calls = zip(slow.rounds, honest.rounds, strict=True)
    assert all(timed.core_seconds >= 0.05 * timed.batches and timed.batches == other.batches for timed, other in calls)


def test_steps_after_a_failure_are_not_reached(bad_day: BadDay) -> None:
    assert bad_day.ran.steps("segfaults") == {
        "init": "done",
        "data_and_model": "done",
        "framework_validation": "done",
        "export": "skipped",
        "compile": "failed",
        "engine_inference": "not_reached",
        "summary": "done",
    }


def test_a_declared_foo_time_is_told_with_both_figures(bad_day: BadDay) -> None:
    record = bad_day.ran.record("declares")
    engine = record.engine
    assert engine is not None and engine.foo_seconds == pytest.approx(0.001 * sum(r.batches for r in engine.rounds))
    figures = {figure.key: figure for figure in record.figures}
    for name in ("whole", "core"):
        without, counted = figures[f"engine_{name}_without_foo_time"].value, figures[name].value
        assert isinstance(without, float) and isinstance(counted, float) and without > counted
    assert "engine core without foo_time" in bad_day.ran.output.partition("inference/declares")[2]
    assert "core without foo_time" in (bad_day.ran.run_dir / "report.html").read_text()
    assert not any("foo_time" in figure.key for figure in bad_day.ran.record("tiny").figures)


WITHHELD = ["random", "short", "hard", "foo_time", "nan"]


def benchmark_of(day: BadDay, case: str, figure: str) -> dict[str, Any]:
    (found,) = (
        entry
        for entry in day.benchmark["benchmarks"]
        if entry["extra_info"]["case"] == case and entry["extra_info"]["figure"] == figure
    )
    return dict(found)


class TestBenchmarkJson:
    def test_only_runs_with_a_valid_result_have_a_speed(self, bad_day: BadDay) -> None:
        found = {(e["extra_info"]["case"], e["extra_info"]["figure"]) for e in bad_day.benchmark["benchmarks"]}
        assert found == {
            (case, figure) for case in ("tiny", "slow", "declares", "reuses") for figure in ("whole", "core")
        }

    @pytest.mark.parametrize("figure", ["whole", "core"])
    def test_rounds_are_those_of_the_record(self, bad_day: BadDay, figure: str) -> None:
        entry = benchmark_of(bad_day, "tiny", figure)
        engine = bad_day.ran.record().engine
        assert engine is not None
        seconds = [getattr(r, f"{figure}_seconds") for r in engine.rounds]
        assert entry["stats"]["data"] == pytest.approx(
            [s / r.items for s, r in zip(seconds, engine.rounds, strict=True)]
        )
        info = entry["extra_info"]
        assert info["items_per_second"] == pytest.approx(getattr(engine, figure).value)
        assert info["unit"] == "point/s"
        assert info["items_per_round"] == [112, 112] and [r.filled for r in engine.rounds] == [12, 12]
        assert (info["vendor"], info["compiler"], info["verdict"]) == ("fake", "honest", "PASS")

    def test_compare_reads_it(self, bad_day: BadDay) -> None:
        done = subprocess.run(
            [Path(sys.executable).with_name("py.test-benchmark"), "compare", bad_day.house.root / "benchmark.json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=bad_day.house.root,
        )
        assert done.returncode == 0, done.stderr
        for figure in ("whole", "core"):
            for case in ("tiny", "slow", "reuses"):
                assert f"test_{figure}_throughput[{case}, fake, " in done.stdout


class TestJUnit:
    def test_figures_of_a_good_run(self, bad_day: BadDay) -> None:
        figures = properties(bad_day.junit["inference/tiny"])
        record = bad_day.ran.record()
        assert record.engine is not None
        assert figures["verdict"] == "PASS"
        assert float(figures["whole"]) == pytest.approx(record.engine.whole.value, rel=1e-4)
        assert float(figures["core"]) == pytest.approx(record.engine.core.value, rel=1e-4)
        assert figures["config_hash"] == record.config_hash

    @pytest.mark.parametrize("case", WITHHELD)
    def test_speed_is_withheld(self, bad_day: BadDay, case: str) -> None:
        figures = properties(bad_day.junit[f"inference/{case}"])
        for name in ("whole", "core", "loader", "bound_by"):
            assert figures[name] == f"withheld: {bad_day.ran.verdict(case)[0]}"
        assert not [each for each in bad_day.junit[f"inference/{case}"].iter() if "time" in each.attrib]

    def test_one_cause_is_one_failed_test(self, bad_day: BadDay) -> None:
        for case, (kind, _) in EXPECTED.items():
            failed = ended(bad_day.junit[f"inference/{case}"], "failure")
            assert len(failed) == (kind != "PASS"), failed
            for name, _ in failed:
                skipped = [why for _, why in ended(bad_day.junit[f"inference/{case}"], "skipped")]
                assert name == "test_verdict" or f"{name} says why inference/{case} failed" in skipped

    def test_the_one_that_fails_says_the_cause(self, bad_day: BadDay) -> None:
        (failed,) = ended(bad_day.junit["inference/segfaults"], "failure")
        assert "not reached: step compile failed: the engine's process died of signal 11" in failed[1]


class TestAllure:
    def results(self, day: BadDay, test_class: str) -> list[dict[str, Any]]:
        found = [json.loads(path.read_text()) for path in day.allure.glob("*-result.json")]
        return [entry for entry in found if test_class in entry["fullName"]]

    def test_histories_are_kept_apart(self, bad_day: BadDay) -> None:
        (verdict,) = (e for e in self.results(bad_day, "TestTiny#") if e["name"].startswith("tiny: verdict"))
        assert verdict["name"] == "tiny: verdict (fake, fake chip, honest, fp32, embedded)"
        assert verdict["titlePath"][:2] == ["inference", "tiny"]
        assert "run record" in {entry["name"] for entry in verdict["attachments"]}
        for result in self.results(bad_day, "TestTiny#"):
            parameters = {entry["name"]: entry["value"] for entry in result["parameters"]}
            assert parameters["vendor"] == "fake"
            assert parameters["chip"] == "fake chip"
            assert parameters["compiler"] == "honest"
            assert parameters["precision"] == "fp32"
            labels = {entry["name"]: entry["value"] for entry in result["labels"]}
            assert (labels["feature"], labels["story"]) == ("inference", "tiny")
        assert "vendor = fake" in (bad_day.allure / "environment.properties").read_text()
        assert json.loads((bad_day.allure / "executor.json").read_text())["name"]

    @pytest.mark.parametrize("case", ["tiny", *WITHHELD])
    def test_moments_are_withheld(self, bad_day: BadDay, case: str) -> None:
        results = self.results(bad_day, f"Test{case.title()}#")
        tests = {entry["uuid"] for entry in results}
        containers = [json.loads(path.read_text()) for path in bad_day.allure.glob("*-container.json")]
        around = [entry for entry in containers if tests.issuperset(entry.get("children", ["of the session"]))]
        begun = round(1000 * bad_day.ran.record(case).started)
        befores = [before for entry in around for before in entry.get("befores", ())]
        moments = {each[name] for each in (*results, *befores) for name in ("start", "stop")}
        assert befores and (moments == {begun}) is (case != "tiny")

    def test_a_record_is_attached_once_and_no_file_is_empty(self, bad_day: BadDay) -> None:
        attached = [result["name"] for result in self.results(bad_day, "TestTiny#") if "attachments" in result]
        assert [name.partition(" (")[0] for name in attached] == ["tiny: verdict"]
        assert all(path.stat().st_size for path in bad_day.allure.glob("*-attachment.*"))

    def test_teardowns_are_those_of_fixtures(self, bad_day: BadDay) -> None:
        containers = [json.loads(path.read_text()) for path in bad_day.allure.glob("*-container.json")]
        assert {after["name"] for container in containers for after in container.get("afters", ())} == {
            "benchmark",
            "case_run",
            "held_device",
        }

    @pytest.mark.parametrize("case", WITHHELD)
    def test_speed_is_withheld_in_what_is_attached(self, bad_day: BadDay, case: str) -> None:
        (verdict,) = (e for e in self.results(bad_day, f"Test{case.title()}#") if "#test_verdict" in e["fullName"])
        (record,) = (e for e in verdict["attachments"] if e["name"] == "run record")
        text = (bad_day.allure / record["source"]).read_text()
        shown = set(re.findall(r'"(?:whole|core)_seconds": (.*?),?\n', text))
        assert shown <= {f'"withheld: {bad_day.ran.verdict(case)[0]}"'}
        assert "points/s" not in verdict["description"]


class TestForPeople:
    def test_report_is_one_file_over_all_cases(self, bad_day: BadDay) -> None:
        html = (bad_day.ran.run_dir / "report.html").read_text()
        for case in ("tiny", "slow", *WITHHELD, "segfaults"):
            assert f"inference/{case}" in html
        assert not re.search(r"(src|href)=.https?:", html)

    @pytest.mark.parametrize("case", WITHHELD)
    def test_no_speed_of_a_refused_run_is_printed(self, bad_day: BadDay, case: str) -> None:
        section = bad_day.ran.output.partition(f"-- inference/{case},")[2].partition("\nVERDICT")[0]
        assert f"withheld: {bad_day.ran.verdict(case)[0]}" in section
        assert "points/s" not in section and "FLOP/s" not in section and " ms" not in section

    def test_latest_points_at_the_run(self, bad_day: BadDay) -> None:
        latest = bad_day.ran.results / "latest"
        assert latest.is_symlink()
        assert [path.resolve() for path in bad_day.ran.results.iterdir() if path != latest] == [latest.resolve()]
