"""Where a test stands in an Allure report: under its suite, case and run, and with the history of runs like it."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.record.envelope import CaseRecord
from reports.content.text import printable
from reports.content.variant import machine, variant
from reports.content.withholding import withheld

FIRST, LAST = ("vendor", "chip"), ("precision", "profile")
"""Parameters by which runs of a case are told apart, before and after those of the suite."""

CONFIGURATION = "configuration"
"""The label with the hash of a run's configuration."""

SESSION = "session"
"""The label with a session's token: another's results may be written into the same folder meanwhile."""

MOVED = ("parentSuite", "suite", "subSuite", "package")
"""Labels that Allure's pytest plugin gives by module."""


def parameters(record: CaseRecord) -> dict[str, str]:
    """What tells a run apart, by the record."""
    return in_order({**variant(record), "chip": record.chip.name})


def in_order(values: Mapping[str, str]) -> dict[str, str]:
    """Without what can't be seen, each time in the same order."""
    names = [*FIRST, *(name for name in values if name not in FIRST + LAST), *LAST]
    return {name: printable(values[name]) for name in names if name in values}


def arrange(result: Any) -> None:
    """Put a test's result (allure_commons' `TestResult`) where people look for it. One of no case is left alone."""
    labels = {label.name: label.value for label in result.labels}
    given = {parameter.name: parameter.value for parameter in result.parameters}
    suite, case, full_name = labels.get("feature"), labels.get("story"), result.fullName or ""
    if not suite or not case or not {"vendor", "chip", "precision"} <= given.keys():
        return
    test = full_name.rpartition("#")[2] or result.name
    run = list(in_order(given).values())
    result.name = f"{case}: {test.removeprefix('test_').replace('_', ' ')} ({', '.join(run)})"
    places = dict(zip(MOVED, (suite, case, ", ".join(run), f"{suite}.{case}"), strict=True))
    result.labels = [label for label in result.labels if label.name not in places]
    kind = type(result.labels[0])
    result.labels += [kind(name, value) for name, value in places.items()]
    result.titlePath = [suite, case, ", ".join(run)]
    result.testCaseId = _digest(suite, case, test)
    result.historyId = _digest(suite, case, test, *run, labels.get(CONFIGURATION, ""))


def _digest(*parts: str) -> str:
    return hashlib.md5("\n".join(parts).encode(), usedforsecurity=False).hexdigest()


def write_session(folder: Path, records: Sequence[CaseRecord], session: str, environ: Mapping[str, str]) -> None:
    """What the report says of the whole session: `environment.properties` and `executor.json`.

    Raises:
        OSError: no space, no permission.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{_escaped(name)} = {_escaped(value)}" for name, value in environment(records).items()]
    (folder / "environment.properties").write_text("".join(f"{line}\n" for line in lines), encoding="latin-1")
    (folder / "executor.json").write_text(json.dumps(executor(session, environ), indent=1), encoding="utf-8")


def forget_moments(folder: Path, records: Sequence[CaseRecord], session: str) -> None:
    """Have all tests and fixtures of cases whose speed is withheld begin and end when the run began.

    The moments of a fixture, and of the tests around it, tell how long it measured. Results without the token of this
    `session` are of others.

    Raises:
        OSError: a file can't be written.
    """
    kept = [record for record in records if withheld(record.verdict)]
    tests: dict[str, int] = {}
    for kind in ("result", "container"):  # tests first: fixtures are known by them
        for path in sorted(folder.glob(f"*-{kind}.json")) if kept else ():
            try:
                written = path.read_text(encoding="utf-8")
                if kind == "result" and session not in written:
                    continue
                content = json.loads(written)
            except (ValueError, OSError):  # another session's, half of it or by now gone: its own can be read
                continue
            moment = next((round(1000 * record.started) for record in kept if _is_of(content, record)), None)
            if kind == "container":
                moment = next((tests[child] for child in content.get("children", ()) if child in tests), None)
            elif moment is not None:
                tests[content["uuid"]] = moment
            if moment is not None:
                _move(content, moment)
                path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _is_of(content: Mapping[str, Any], record: CaseRecord) -> bool:
    """Whether a result is of a test of the run, as far as it says of which."""
    labels, given = (
        {each["name"]: each["value"] for each in content.get(kind, ())} for kind in ("labels", "parameters")
    )
    described = in_order(record.variant).items()
    of_case = (labels.get("feature"), labels.get("story")) == (record.suite, record.case)
    return of_case and all(given.get(name, value) == value for name, value in described)


def _move(content: dict[str, Any], moment: int) -> None:
    """Begin and end then, with all within."""
    content.update({name: moment for name in ("start", "stop") if name in content})
    for name in ("befores", "afters", "steps"):
        for each in content.get(name, ()):
            _move(each, moment)


def environment(records: Sequence[CaseRecord]) -> dict[str, str]:
    """Vendors, chips, machines and versions of all runs; what differs between them is listed."""
    found: dict[str, list[str]] = {}
    for record in records:
        host = record.host
        known: dict[str, Any] = {**variant(record), **machine(record), **record.versions}
        known |= {"host": host.name, "system": host.system} if host else {}
        for name, value in known.items():
            text = printable(str(value))
            if value is not None and text not in found.setdefault(name, []):
                found[name].append(text)
    return {name: ", ".join(values) for name, values in found.items() if values}


def _escaped(text: str) -> str:
    """For a Java properties file: ASCII, with escapes for the rest and for what separates."""
    escaped = text.replace("\\", "\\\\").replace(" ", "\\ ").replace(":", "\\:").replace("=", "\\=")
    return escaped.encode("ascii", "backslashreplace").decode("ascii").replace("\\x", "\\u00")


def executor(session: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Who ran it: a CI service that says so in the environment, or this machine. `session` is the run's folder."""
    if environ.get("GITHUB_ACTIONS"):
        server = environ.get("GITHUB_SERVER_URL", "https://github.com")
        page = f"{server}/{environ.get('GITHUB_REPOSITORY')}/actions/runs/{environ.get('GITHUB_RUN_ID')}"
        return _build(
            "GitHub Actions", "github", environ.get("GITHUB_WORKFLOW"), environ.get("GITHUB_RUN_NUMBER"), page
        )
    if environ.get("GITLAB_CI"):
        number, url = environ.get("CI_PIPELINE_IID"), environ.get("CI_JOB_URL")
        return _build("GitLab CI", "gitlab", environ.get("CI_JOB_NAME"), number, url)
    if environ.get("JENKINS_URL"):
        number, url = environ.get("BUILD_NUMBER"), environ.get("BUILD_URL")
        return _build("Jenkins", "jenkins", environ.get("JOB_NAME"), number, url)
    return {"name": socket.gethostname(), "type": "local", "buildName": session}


def _build(name: str, kind: str, job: str | None, number: str | None, url: str | None) -> dict[str, Any]:
    build: dict[str, Any] = {"name": name, "type": kind, "buildName": f"{job or 'build'} #{number or '?'}"}
    if number and number.isdecimal():
        build["buildOrder"] = int(number)
    if url:
        build["buildUrl"] = build["url"] = url
    return build
