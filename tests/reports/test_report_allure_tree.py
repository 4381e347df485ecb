"""Where tests stand in an Allure report, and what it says of the session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from allure_commons import model2
from allure_commons.model2 import Label, Parameter

from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Verdict, VerdictKind
from reports.allure_tree import arrange, environment, executor, forget_moments, parameters, write_session
from tests.reports.records import make_record
from tests.training_records import make_training


def arranged(record: CaseRecord, test: str = "test_engine_accuracy", module: str = "suites.x") -> Any:
    """A result as Allure's plugin makes it, then put where it belongs."""
    result = model2.TestResult(name=test, fullName=f"{module}.TestX#{test}")
    result.labels = [Label(name, f"{module} {name}") for name in ("parentSuite", "suite", "subSuite", "package")]
    result.labels += [Label("feature", record.suite), Label("story", record.case), Label("tag", "cpu")]
    result.labels += [Label("configuration", record.config_hash)]
    result.parameters = [Parameter(name=name, value=value) for name, value in parameters(record).items()]
    arrange(result)
    return result


def test_the_tree_is_by_suite_case_and_run() -> None:
    result = arranged(make_record())
    run = "cpu, Xeon 8481C, onnxruntime, fp16, embedded"
    assert result.name == f"resnet50: engine accuracy ({run})"
    assert result.titlePath == ["inference", "resnet50", run]
    labels = {label.name: label.value for label in result.labels}
    assert (labels["parentSuite"], labels["suite"], labels["subSuite"]) == ("inference", "resnet50", run)
    assert labels["package"] == "inference.resnet50" and labels["tag"] == "cpu"
    assert len(result.labels) == len(labels)


def test_histories_are_those_of_like_runs() -> None:
    chip = make_record().chip
    records = [
        make_record(),
        make_record(case="bert"),
        make_record(vendor="acme"),
        make_record(chip=chip.model_copy(update={"name": "another"})),
        make_record(compiler="inductor"),
        make_record(precision="bf16"),
        make_record(profile="standard"),
        make_record(config_hash="c0ffee"),
        make_training(),
        make_training(scale="1x8"),
    ]
    histories = [arranged(record).historyId for record in records]
    assert len(set(histories)) == len(records)
    again = arranged(make_record(started=1.0), module="suites.elsewhere")
    assert again.historyId == histories[0], "moments and modules change, and it is the same history"
    assert arranged(make_record(), "test_verdict").historyId != histories[0]
    assert len({arranged(record).testCaseId for record in records}) == 3


def test_a_test_of_no_case_is_left_alone() -> None:
    result = model2.TestResult(name="test_own", fullName="own#test_own")
    result.labels = [Label("suite", "own")]
    arrange(result)
    assert result.name == "test_own" and [label.value for label in result.labels] == ["own"]


def laid(folder: Path, name: str, content: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(json.dumps({"start": 5_000, "stop": 9_000, **content}))
    return path


def test_where_speed_is_withheld_no_moment_tells_it(tmp_path: Path) -> None:
    """Neither of the test, nor of the fixture that measured, nor of what began right after it."""
    passed, failed = make_record(), make_record(case="bert", started=1.25)
    failed = failed.model_copy(update={"verdict": Verdict(kind=VerdictKind.FAIL_ACCURACY)})
    another, *tests = [
        laid(tmp_path, f"{n}-result.json", {"uuid": str(n), "labels": labels("inference", case, session)})
        for n, (case, session) in enumerate([("bert", "another"), ("resnet50", "this"), ("bert", "this")])
    ]
    moments = {"start": 5_500, "stop": 8_500}
    fixtures = [
        laid(tmp_path, f"{n}-container.json", {"children": [str(n)], "befores": [{**moments, "steps": [moments]}]})
        for n in (1, 2)
    ]
    (tmp_path / "3-result.json").write_text('{"uuid": "half of another ses')
    (tmp_path / "4-result.json").symlink_to("removed-by-another")
    forget_moments(tmp_path, [passed, failed], "this")
    texts = [path.read_text() for path in (another, tests[0], fixtures[0], tests[1], fixtures[1])]
    assert all("5000" in each and "9000" in each for each in texts[:3])
    for each in texts[3:]:
        assert {*re.findall(r'"(?:start|stop)": (\d+)', each)} == {"1250"}


def test_of_a_case_at_two_scales_the_one_that_passed_keeps_its_moments(tmp_path: Path) -> None:
    failed = make_training(scale="1x2", started=1.25)
    failed = failed.model_copy(update={"verdict": Verdict(kind=VerdictKind.FAIL_ACCURACY)})
    for scale in ("1x1", "1x2"):
        content = {"uuid": scale, "parameters": [named("scale", scale)], "labels": labels(failed.suite, failed.case)}
        laid(tmp_path, f"{scale}-result.json", content)
    forget_moments(tmp_path, [make_training(scale="1x1"), failed], "this")
    kept = {path.name[:3]: json.loads(path.read_text())["stop"] for path in tmp_path.iterdir()}
    assert kept == {"1x1": 9_000, "1x2": 1_250}


def named(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


def labels(suite: str, case: str, session: str = "this") -> list[dict[str, str]]:
    return [named("feature", suite), named("story", case), named("session", session)]


def test_what_cannot_be_seen_is_shown_as_escapes() -> None:
    chip = make_record().chip.model_copy(update={"name": "a\x1b[31mred"})
    assert "a\\x1b[31mred" in arranged(make_record(chip=chip)).name


def test_the_environment_is_that_of_all_runs(tmp_path: Path) -> None:
    records = [make_record(), make_record(case="bert", precision="bf16")]
    found = environment(records)
    assert found["precision"] == "fp16, bf16" and found["vendor"] == "cpu"
    assert {"chip", "cores", "processor", "host", "system", *records[0].versions} <= found.keys()
    write_session(
        tmp_path / "allure", [make_record(chip=records[0].chip.model_copy(update={"name": "A: b=\u00fc"}))], "s", {}
    )
    text = (tmp_path / "allure/environment.properties").read_text(encoding="ascii")
    assert "chip = A\\:\\ b\\=\\u00fc\n" in text
    assert json.loads((tmp_path / "allure/executor.json").read_text())["buildName"] == "s"


@pytest.mark.parametrize(
    "environ, expected",
    [
        (
            {"GITHUB_ACTIONS": "true", "GITHUB_WORKFLOW": "gate", "GITHUB_RUN_NUMBER": "7", "GITHUB_RUN_ID": "99",
             "GITHUB_REPOSITORY": "a/b"},
            {"type": "github", "buildOrder": 7, "buildName": "gate #7",
             "buildUrl": "https://github.com/a/b/actions/runs/99"},
        ),
        (
            {"GITLAB_CI": "true", "CI_PIPELINE_IID": "8", "CI_JOB_URL": "https://g/1", "CI_JOB_NAME": "gate"},
            {"type": "gitlab", "buildOrder": 8, "buildName": "gate #8", "buildUrl": "https://g/1"},
        ),
        (
            {"JENKINS_URL": "https://j", "BUILD_NUMBER": "9", "BUILD_URL": "https://j/9", "JOB_NAME": "gate"},
            {"type": "jenkins", "buildOrder": 9, "buildName": "gate #9", "buildUrl": "https://j/9"},
        ),
        ({"GITLAB_CI": "true"}, {"type": "gitlab", "buildName": "build #?"}),
        ({}, {"type": "local", "buildName": "20260101-000000"}),
    ],
)  # fmt: skip
def test_the_executor_is_who_ran_it(environ: dict[str, str], expected: dict[str, Any]) -> None:
    found = executor("20260101-000000", environ)
    assert {key: found[key] for key in expected} == expected and found["name"]
    assert ("buildUrl" in found) == ("buildUrl" in expected)
