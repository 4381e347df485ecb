"""A vendor as it introduces itself: imported and asked in a process of its own, so that pytest's runs none of its code.

Whatever its package does when it is imported or asked (ends the process, hangs, crashes in a driver), the session goes
on and says so.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from proofmark.errors import ConfigurationError, UsageError, harmless, reason
from proofmark.process.answering.pipe import AnswerPipe
from proofmark.process.child import Child
from proofmark.process.environment import let_pass, passed_on
from proofmark.rules.yaml.typed import problems_of
from proofmark.vendor.environment import assigned, load_environment
from proofmark.vendor.hardware.provenance import foreign_files
from proofmark.vendor.introduction.answers import Answers, IntroducedVendor
from proofmark.vendor.isolation import NOT_ASKED_FOR, VendorPlace
from proofmark.vendor.registry import EVERY_CASE, FoundVendor, target_of
from proofmark.wall.isolation import Isolation

PATIENCE = 120.0
"""Seconds that a vendor may take for its import, and for each answer."""

ALTOGETHER = 600.0
"""Seconds that all of it may take: the vendor's code has the pipe too, and could ask for patience without end."""

LONGEST = 1 << 20
"""Bytes of an answer."""

MOST = 64
"""Steps, each told of once."""

SOUGHT, LONGEST_TEXT = 64, 4096
"""Lines of what devices were looked for, and characters of any text that stands in records."""


def introduce(
    name: str,
    vendors_dir: Path,
    device: str | None = None,
    wall: bool = True,
    suites: Collection[str] = (),
    busy: bool = False,
) -> FoundVendor:
    """Find a vendor as `find_vendor` does, in a process of its own, behind a wall if it is to be. Variables that
    its file names pass to what this process starts. `suites` are those whose cases train; with `busy` its monitor is
    asked which devices are used.

    Raises:
        UsageError: as of `find_vendor`; or it ended its process, took too long, or an answer is not what the contract
            asks for.
        ConfigurationError: all that is wrong with its isolation.yaml, its environment.yaml, or its files.
    """
    place = VendorPlace.of(name, vendors_dir)
    if problems := foreign_files(place.directory):
        raise ConfigurationError(problems)
    let_pass(place.passing)
    orders: dict[str, Any] = {"vendor": name, "vendors_dir": str(vendors_dir), "selected": device, "wall": wall}
    orders |= {"suites": list(suites), "busy": busy}
    answers, isolation = _heard(name, orders, place.directory)
    if variable := answers.visible_devices_variable:  # who started this session may have limited it to some devices
        if problems := assigned(place.directory, variable):
            raise ConfigurationError(problems)
        passed = variable not in os.environ or variable in passed_on(os.environ)
        let_pass([variable])
        if not passed:  # what it said was of others too
            answers, isolation = _heard(name, orders, place.directory)
            if answers.visible_devices_variable != variable:  # it would neither be looked at nor pass
                what = f"{variable}, and where that is set {answers.visible_devices_variable}; expected one"
                raise UsageError(f"vendor '{name}': visible_devices_variable: {what} ({answers.file})")
    _, distribution = target_of(name, vendors_dir)
    # devices are asked for where they are needed
    failures = {what: failure for what, failure in answers.failures.items() if what != "devices"}
    if failures:
        failed = "; ".join(f"{what}(){failure}" for what, failure in failures.items())
        raise UsageError(f"vendor '{name}': {failed} ({answers.file})")
    known = None if distribution is None else distribution.name
    return _of(name, answers.model_copy(update={"distribution": known}), vendors_dir, isolation)


def introduced(name: str, answers: Mapping[str, Any], vendors_dir: Path) -> FoundVendor:
    """A vendor by what it answered in another process (`IntroducedVendor.answers`)."""
    return _of(name, Answers.model_validate(answers), vendors_dir)


def _heard(name: str, orders: dict[str, Any], directory: Path) -> tuple[Answers, Isolation]:
    """What a vendor answers, in a process of its own, and how that was kept from the rest.

    Raises:
        UsageError, ConfigurationError: as of `introduce`.
    """
    line, isolation = _ask(name, orders, load_environment(directory).variables)
    return _understood(name, line, directory), isolation


def _of(name: str, answers: Answers, vendors_dir: Path, isolation: Isolation | None = None) -> FoundVendor:
    package = ModuleType(answers.module)
    package.__file__ = answers.file
    vendor = IntroducedVendor(name, answers)
    adapted = {EVERY_CASE: answers.training_adapter, **answers.case_adapters}
    return FoundVendor(name, package, vendor, vendors_dir, answers.distribution, adapted, isolation)


def _understood(name: str, line: dict[str, Any], directory: Path) -> Answers:
    """What it answered, if it says of its package what was known before: chips, configurations and hashes are read
    where that lies.

    Raises:
        UsageError: it is not what the contract asks for.
    """
    if "error" in line:
        raise UsageError("\n".join(map(harmless, line["error"].splitlines())))
    try:
        answers = Answers.model_validate(line["answers"])
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise UsageError(f"vendor '{name}': its answers are nested too deeply") from None
        problems = problems_of(error, harmless(f"vendor '{name}' ({line['answers'].get('file')})"))
        raise UsageError("\n".join(map(str, problems))) from None
    if _folder_of(answers.file) != directory.resolve():
        raise UsageError(harmless(f"vendor '{name}': it says that its package is {answers.file}; it is in {directory}"))
    answers = answers.model_copy(
        update={
            "failures": {harmless(what): harmless(failure) for what, failure in answers.failures.items()},
            "devices_sought": tuple(map(harmless, answers.devices_sought[:SOUGHT])),
            "monitor": tuple(map(harmless, answers.monitor)),
            "software": replace(answers.software, reason=harmless(answers.software.reason)),
        }
    )
    if drawn := next(_no_lines(answers.model_dump(mode="json")), None):
        raise UsageError(f"vendor '{name}': {drawn}: expected one line of text ({directory})")
    return answers


def _folder_of(file: str) -> Path | None:
    """Where a file lies; None of what is no file's name."""
    try:
        return Path(file).resolve().parent
    except (OSError, RuntimeError, ValueError):  # a loop of links; a null byte, half a character
        return None


def _no_lines(value: Any, key: str = "") -> Iterator[str]:
    """Where there is text that is none to be shown on a terminal or a page."""
    if isinstance(value, str) and not (value.isprintable() and len(value) <= LONGEST_TEXT):
        yield harmless(key)
    for name, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _no_lines(name, f"{key} (names)".strip())
        yield from _no_lines(each, f"{key}.{name}".strip("."))


def _ask(name: str, orders: dict[str, Any], variables: Mapping[str, str]) -> tuple[dict[str, Any], Isolation]:
    """The last line of the child's answer, and how it was kept from the rest: told before any vendor's code ran.

    Raises:
        UsageError: there is none.
    """
    try:
        pipe = AnswerPipe(LONGEST)
        with pipe.given_away() as descriptor:
            child = Child("proofmark.vendor.introduction.child", passed=[descriptor], environment=variables)
    except OSError as error:
        raise UsageError(f"vendor '{name}': its process can't be started: {reason(error)}") from None
    asking, isolation = "its import", Isolation.none(NOT_ASKED_FOR)
    first, asked, until = True, set[str](), time.monotonic() + ALTOGETHER
    try:
        child.say(json.dumps(orders))
        while (answer := pipe.receive(child, min(until, time.monotonic() + PATIENCE))) is not None:
            line: dict[str, Any] = dict(json.loads(answer))
            if "isolation" in line and first and orders["wall"]:
                isolation = Isolation.model_validate_json(json.dumps(line["isolation"]))
            elif isinstance(line.get("answers"), dict) or isinstance(line.get("error"), str):
                return line, isolation
            else:
                asking = _next_step(line, asked)
            first = False
        child.has_ended(within=5)
        child.kill()
        raise UsageError(f"vendor '{name}': {asking} {child.cause_of_death()}{_last_words(child)}")
    except TimeoutError:
        what, seconds = (asking, PATIENCE) if time.monotonic() < until else ("its introduction", ALTOGETHER)
        raise UsageError(f"vendor '{name}': {what} did not end within {seconds:g} s") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"vendor '{name}': {asking} gave {error}") from None
    finally:
        child.kill()
        pipe.close()


def _next_step(line: Mapping[str, Any], asked: set[str]) -> str:
    """What is asked from here on. What vendor's code writes here shall not renew anybody's patience for ever."""
    step = line.get("asking")
    if not isinstance(step, str):
        raise ValueError("an invalid answer")
    if step in asked:
        raise ValueError("a step that was asked before")
    if len(asked) == MOST:
        raise ValueError(f"more than {MOST} steps")
    asked.add(step)
    return harmless(step[:200])


def _last_words(child: Child) -> str:
    lines = child.printed[-2000:].decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last}" if last else ""
