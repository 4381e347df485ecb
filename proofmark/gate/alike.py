"""Whether two results may be held against each other: refusals, each with what differs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from proofmark.errors import harmless
from proofmark.gate.session import Task
from proofmark.literal import some
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import VerdictKind
from proofmark.record.provenance import said_of

SHOWN = 8
"""Differences that are named; of more, how many there are."""

SOUND = {str(kind) for kind in VerdictKind if kind.shows_speed}

MENDS = (
    "a change that mends that is judged by its own verdict, in a session without --compare, and compared again from "
    "the next one on"
)
"""What to do where the base fails: no speed of it could be believed, whoever has made it fail."""


def other_task(base: Task, head: Task, configurations: Collection[str]) -> list[str]:
    """What makes the two sides different tasks, so that their speeds have nothing to do with each other.

    Args:
        base: what the base says of its task.
        head: likewise.
        configurations: keys that a vendor may set here; all others are the task's own. Of a key that the base has its
            own word decides, where it has one: a change could free what it then sets otherwise.
    """
    free = {key for key in configurations if base.parameters is None or key not in base.config}
    free |= {key for key in base.config if base.parameters is not None and key not in base.parameters}
    own = [_of_task(side.config, free) for side in (base, head)]
    found = list(differing(own[0], own[1]))
    whose = [{"vendor": side.vendor, "profile": side.profile} for side in (base, head)]
    found += differing(whose[0], whose[1])
    data = [side.dataset.sha256[:12] if side.dataset else None for side in (base, head)]
    return [*found, *differing({"data set": data[0]}, {"data set": data[1]})]


def other_settings(base: Task, head: Task, configurations: Collection[str]) -> list[str]:
    """What a vendor may well change, and what a reader wants to know of two sides whose task is the same."""
    config = [{key: side.config.get(key) for key in configurations} for side in (base, head)]
    weights = [side.weights.sha256[:12] if side.weights else None for side in (base, head)]
    return [
        *differing(config[0], config[1]),
        *differing({"precision": base.precision}, {"precision": head.precision}),
        *differing({"weights": weights[0]}, {"weights": weights[1]}),
        *differing(base.versions, head.versions),
        *other_files(base, head),
    ]


def other_files(base: Task | CaseRecord, head: Task | CaseRecord) -> list[str]:
    """Say that the files of the case differ, where both sides say which they are and the task is the same."""
    if None in (base.case_hash, head.case_hash) or base.case_hash == head.case_hash:
        return []
    return ["the case's files differ; the task that follows from them is the same"]


def unsound(name: str, task: Task) -> list[str]:
    """Why a side's speed does not count: accuracy, honesty and legality come first."""
    if task.verdict is None:
        return [f"the {name} was not judged"]
    if task.verdict.kind in SOUND:
        return []
    todo = [MENDS] if name == "base" else []
    return [f"the {name} has no speed: {task.verdict.kind}: {'; '.join([*task.verdict.reasons, *todo])}"]


def unsupported(task: Task | CaseRecord) -> str | None:
    """Why a side's vendor does not run the task, by its verdict; None where it does, or fails otherwise."""
    if task.verdict is None or task.verdict.kind != VerdictKind.UNSUPPORTED:
        return None
    return "; ".join(task.verdict.reasons) or "it gives no reason"


def new_by(why: str) -> str:
    """What is said of a case that the base does not support: there is nothing that the head could be slower than."""
    return harmless(f"the base does not support it: {why}; its speed is compared with nothing")


def unlike(base: CaseRecord, head: CaseRecord) -> list[str]:
    """How a record's machine, chip, driver, versions, weights or configuration are others than this session's.

    A base that does not support the case may have ended before it came to data and weights.
    """
    machine = _machine(base)
    if unsupported(base) is not None:
        machine |= {name: _machine(head)[name] for name in ("data set", "weights") if machine[name] is None}
    return [
        *differing(machine, _machine(head)),
        *differing(_versions(base), _versions(head)),
        *differing(base.config, head.config),
        *([] if base.config_hash == head.config_hash or base.config != head.config else ["the task itself"]),
    ]


def _machine(record: CaseRecord) -> dict[str, Any]:
    known = ("system", "processor", "cores", "kernel", "governor", "driver", "runtime", "firmware")
    return {
        "suite": record.suite,
        "profile": record.profile,
        "vendor": record.vendor,
        **{name: value for name, value in record.variant.items() if name not in record.config},  # which is told whole
        "precision": record.precision,
        "chip": record.chip.name,
        "chip units": record.chip.units,
        **{name: said_of(name, record.hosts) for name in known},
        "data set": record.dataset.sha256[:12] if record.dataset else None,
        "weights": record.weights.sha256[:12] if record.weights else None,
    }


def _versions(record: CaseRecord) -> dict[str, str]:
    """All versions but Proofmark's own: another version of it is what is compared."""
    return {name: version for name, version in record.versions.items() if name != "proofmark"}


def differing(base: Mapping[str, Any], head: Mapping[str, Any]) -> Iterator[str]:
    """Each key whose values are not alike."""
    for key in dict.fromkeys([*head, *base]):
        if _plain(base.get(key)) != _plain(head.get(key)):
            yield f"{key}: {_plain(base.get(key)):.80} there, {_plain(head.get(key)):.80} here"


def few(found: list[str]) -> str:
    """The first differences, in a line."""
    return some(found, SHOWN, "; ")


def _of_task(config: Mapping[str, Any], configurations: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in configurations}


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
