"""Each case run has a process of its own: a crash, a leak or a stuck device stays inside it.

The parent sends the name of a step as a line and reads JSON lines: progress, then the step's outcome.
The child leads a process group, which ends with the parent, however that ends: the child sees its
command pipe close and kills the group. What it started in sessions of their own is known by a mark
in its environment, and ends then too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from proofmark.launch.engine_container import EngineContainer
from proofmark.process.answering.answers import LONGEST, read_answer
from proofmark.process.answering.pipe import AnswerPipe
from proofmark.process.answering.silence import OF_A_LOADER, Listener, Patience
from proofmark.process.child import Child
from proofmark.process.scratch.own_directory import remove
from proofmark.process.scratch.quota import Quota
from proofmark.rules.config import HostSettings
from proofmark.vendor.hardware.processor import too_many_loaders

DETAIL = 20_000
"""Bytes of its stacks that are kept."""

Progress = Callable[[dict[str, Any]], None]

LOOK = 1.0
"""Seconds after which this process looks at what the engine keeps, though nobody says anything."""

STANDSTILL = 5.0
"""Seconds between two looks after which this process has stood still, as in a job that is suspended: its child may have
done so too."""

SILENCE = 5.0
"""Seconds after which a child that says nothing is told to be still at its step."""


@dataclass(frozen=True)
class WorkerSpec:
    """What a child needs to rebuild the case; `own_directory` is its engines', and they are put into `engine_container`
    where there is one. All plain values."""

    case_module: str
    case_class: str
    vendor: str
    introduced: Mapping[str, Any]
    vendors_dir: str
    compiler: str | None
    config: dict[str, Any]
    run_dir: str
    own_directory: str
    sys_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    engine_container: EngineContainer | None = None


class WorkerLost(Exception):
    """The child died, or took too long and was killed; the text says which, in a full sentence.

    `detail` are Python's stacks in a child that did not answer any more.
    """

    def __init__(self, reason: str, detail: str | None = None) -> None:
        self.detail = detail
        super().__init__(reason)


class CaseWorker:
    """The parent's end of a case's process."""

    def __init__(
        self,
        spec: WorkerSpec,
        environment: Mapping[str, str],
        patience: Patience,
        imports: Sequence[str] = (),
    ) -> None:
        self._listener = Listener(patience)
        self._loaders = too_many_loaders(spec.config.get("configurations", {}))
        most = spec.config.get("host", {}).get("scratch_limit", HostSettings.scratch_limit) * (1 << 30)
        self._quota = Quota([Path(spec.own_directory)], most)
        self._answers = AnswerPipe(LONGEST)
        with self._answers.given_away() as descriptor:
            self.child = Child(
                "proofmark.inference.node.worker_main",
                log=Path(spec.run_dir) / "worker.log",
                passed=[descriptor],
                environment=environment,
                sys_path=spec.sys_path,
                imports=imports,
            )
        self._send(asdict(spec))

    def run(self, step: str, timeout: float | None, on_progress: Progress) -> dict[str, Any]:
        """Run one step and return its outcome: status, reason, kind, detail.

        `on_progress` gets what the child reports and, where that is nothing for a while, `{"silent": step, "seconds":
        since the step began}`.

        Raises:
            WorkerLost: the child died, or was killed, since it outlasted `timeout` seconds, was silent for too long or
                answered rubbish.
        """
        begun = last_heard = looked = time.monotonic()
        deadline = float("inf") if timeout is None else begun + timeout
        too_long = f"took longer than the {deadline - begun:g} s of --step-timeout and was ended"
        self._send({"step": step})
        self._listener.begin()
        while True:
            before, looked = looked, time.monotonic()
            self._listener.excuse(looked - before - STANDSTILL)
            left = self._listener.limit - self._listener.silence
            if full := self._quota.exceeded():
                self.kill()
                raise WorkerLost(f"the engine's process {full}, and was ended")
            try:
                answer = self._receive(min(deadline, time.monotonic() + min(LOOK, SILENCE, max(0.0, left))))
            except TimeoutError:
                if time.monotonic() >= deadline:
                    self._end_hung(too_long)
                if left <= 0:
                    self._end_silent()
                if time.monotonic() - last_heard >= SILENCE:
                    last_heard = time.monotonic()
                    on_progress({"silent": step, "seconds": last_heard - begun})
                continue
            except ValueError as error:
                self.kill()
                raise WorkerLost(f"the case's process sent an invalid answer, and was ended: {error}") from None
            if answer is None:
                raise self._lost()
            if "outcome" in answer:
                return dict(answer["outcome"])
            self._listener.hear(answer)
            if answer.get("alive") not in OF_A_LOADER:
                last_heard = time.monotonic()
            if time.monotonic() >= deadline:
                self._end_hung(too_long)
            on_progress(answer)

    def dismiss(self) -> None:
        """Have the child leave by itself, without waiting for that."""
        self._send({"step": None})

    def close(self) -> str | None:
        """Wait until the dismissed child has left, then end whatever it has left behind; why no result of it counts.

        What its engine laid down since anybody looked goes at once: whoever comes after it needs the disk.
        """
        self.child.has_ended(within=10)
        self.kill()
        full = self._quota.exceeded(at_once=True)
        if full:
            remove(self._quota.directories[0])
        return full and f"the engine's process {full}"

    def kill(self) -> None:
        """End the group now, and all that left it."""
        self.child.kill()
        self._answers.close()

    def _end_silent(self) -> NoReturn:
        loaders = self._loaders if self._listener.doing == "calls" else ""
        self._end_hung("; ".join(filter(None, (self._listener.verdict(), loaders))))

    def _end_hung(self, reason: str) -> NoReturn:
        """Let the child write its stacks into its log, then end it."""
        stacks = self.child.stacks()
        self.kill()
        raise WorkerLost(
            f"{reason}{self.child.left}; where it was is in worker.log",
            stacks[-DETAIL:].decode("utf-8", "replace") or None,
        )

    def _send(self, message: Mapping[str, Any]) -> None:
        self.child.say(json.dumps(message))

    def _receive(self, deadline: float) -> dict[str, Any] | None:
        """The next answer, None at the end of the child.

        Raises:
            TimeoutError: none came before `deadline` on the monotonic clock.
            ValueError: what came is no answer.
        """
        line = self._answers.receive(self.child, deadline)
        return None if line is None else read_answer(line)

    def _lost(self) -> WorkerLost:
        """An error that says that the child has ended, and how."""
        self.child.has_ended(within=10)
        self.kill()
        return WorkerLost(f"the case's process {self.child.cause_of_death()}; its output is in worker.log")
