"""What the service answers, in those fields that are read. Whatever else it says is let through."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from proofmark.launch.service.contract import ServiceError, State, Task, View
from proofmark.plain_json import first_of, parse_json

STATES: dict[str, State] = {
    "Creating": "waiting",
    "Pending": "waiting",
    "Running": "running",
    "Completed": "succeeded",
    "Failed": "failed",
    "Abnormal": "failed",
    "Terminating": "stopping",
    "Terminated": "stopped",
}

Milliseconds = Annotated[int, Field(ge=0, lt=1 << 53)]
Text = Annotated[str, Field(max_length=1 << 16)]
T = TypeVar("T")


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Metadata(_Answer):
    id: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$")]
    name: Text = ""
    create_time: Milliseconds | None = None


class _TaskStatus(_Answer):
    task: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$")]
    exit_code: int | None = None
    message: Text | None = None


class _Record(_Answer):
    """From one beginning of its nodes to their end, and what was done where that was none: mostly, begin anew."""

    recover_records: list[object] | None = None


class _Status(_Answer):
    phase: Text = "Creating"
    duration: Milliseconds | None = None
    start_time: Milliseconds | None = None
    tasks: list[Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$")]] | None = None
    task_statuses: list[_TaskStatus] | None = None
    running_records: list[_Record] | None = None


class Job(_Answer):
    """A training job."""

    metadata: _Metadata
    status: _Status = _Status()

    def view(self) -> View:
        """The job as any service's."""
        status = self.status
        codes = {each.task: each for each in status.task_statuses or ()}
        names = list(dict.fromkeys([*(status.tasks or ()), *codes]))
        records = status.running_records or []
        return View(
            phase=status.phase,
            state=STATES.get(status.phase, "running"),
            tasks=[_task(name, codes.get(name)) for name in sorted(names, key=_number)],
            created=_seconds(self.metadata.create_time),
            started=_seconds(status.start_time),
            seconds=_seconds(status.duration),
            restarts=max(0, len(records) - 1, sum(bool(each.recover_records) for each in records)),
        )


class Jobs(_Answer):
    """A page of jobs."""

    items: list[Job] | None = None


class LogPreview(_Answer):
    """The end of a task's log."""

    content: str = ""
    full_size: Annotated[int, Field(ge=0)] = 0


class _FlavorInfo(_Answer):
    max_num: int | None = None


class _Flavor(_Answer):
    flavor_id: Text
    flavor_info: _FlavorInfo = _FlavorInfo()


class Flavors(_Answer):
    """Kinds of nodes."""

    flavors: list[_Flavor] | None = None


class _Metric(_Answer):
    metric: Text
    value: list[float] | None = None


class Metrics(_Answer):
    """What the platform measured of a task, minute by minute; -1 where it has not."""

    metrics: list[_Metric] | None = None


def read(content: bytes | str, kind: type[T], what: str) -> T:
    """An answer's content.

    Raises:
        ServiceError: it is none of that kind.
    """
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    try:
        return TypeAdapter(kind).validate_python(parse_json(text))
    except ValidationError as error:
        raise ServiceError(f"{what}: the service sent an invalid answer: {first_of(error)}") from None
    except (ValueError, RecursionError) as error:
        raise ServiceError(f"{what}: the service sent an invalid answer: {error}"[:300]) from None


def _task(name: str, status: _TaskStatus | None) -> Task:
    return Task(name, status.exit_code if status else None, (status.message if status else None) or "")


def _number(name: str) -> tuple[int, str]:
    """`worker-10` comes after `worker-9`."""
    tail = name.rpartition("-")[2]
    return (int(tail) if tail.isdecimal() else 1 << 30), name


def _seconds(milliseconds: int | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None
