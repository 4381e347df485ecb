"""One side: a session of one case in a tree of its own, with that tree's whole code, in a process of its own.

Once its case is measured and loaded it says so, and answers each `round` with rates; it ends when told, and with the
session that leads it, whichever way that one ends.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import harmless
from proofmark.gate import SIDE
from proofmark.gate.race import SideLost
from proofmark.plain_json import first_of
from proofmark.process.lifetime import end_family, end_marked, marked, wait_without_reaping

PIPES = "PROOFMARK_GATE_PIPES"
"""The environment variable with the descriptor from which a side reads, and the one on which it answers where rounds
are wanted of it; without the latter it runs its case and ends."""

LONGEST = 16 << 20
"""Bytes of an answer, and of what a session printed last."""

GRACE = 3600.0
"""Seconds more that a side may take to load and to end: its steps have limits of their own."""

ASKED = 600.0
"""Seconds for what a version says of itself."""

LAST = 300
"""Characters that are told of what a session that failed printed last."""


class Judged(BaseModel):
    """The verdict in a side's record, whichever version wrote it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    kind: str
    reasons: tuple[str, ...] = ()


class Content(BaseModel):
    """The identity of a data set or weights, whichever version wrote it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    sha256: str


class Task(BaseModel):
    """What a side's record says of its task, read loosely: it may be of another version of this program."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    vendor: str
    profile: str
    precision: str
    config: dict[str, Any]
    parameters: tuple[str, ...] | None = None
    config_hash: str
    case_hash: str | None = None
    dataset: Content | None = None
    weights: Content | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    verdict: Judged | None = None
    compiler: str | None = None


class Answer(BaseModel):
    """A line of a side."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ready: Task | None = None
    rates: dict[str, Annotated[float, Field(gt=0, lt=1e300)]] | None = None
    lost: str | None = None


@dataclass(frozen=True)
class Tree:
    """A version of the house.

    Attributes:
        name: base or head.
        root: its folder.
        python: what runs it.
        directory: from where it is run, so that paths on the command line mean what the user meant.
    """

    name: str
    root: Path
    python: str
    directory: Path

    def command(self, module: Path, options: Sequence[str], results: Path) -> list[str]:
        """A session over a case's module."""
        ini = ["-c", str(self.root / "pytest.ini")] if (self.root / "pytest.ini").is_file() else []
        own = [*ini, f"--rootdir={self.root}", f"--results-dir={results}", "--device-wait=off", "-q"]
        return [self.python, "-P", "-m", "pytest", str(self.root / module), *options, *own]

    def environment(self, house: Path) -> dict[str, str]:
        """This process's, but for what leads to the modules or the tests of the session in `house` that leads."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_") or "XDIST" in key}
        others = [each for each in kept.get("PYTHONPATH", "").split(os.pathsep) if each]
        others = [each for each in others if not Path(each).resolve().is_relative_to(house.resolve())]
        return {**kept, "PYTHONPATH": os.pathsep.join([str(self.root), *others])}

    def says(self, program: Sequence[str], house: Path) -> str:
        """The last line that a program of Python prints which it runs; empty where that fails. The process ends with
        this one's session."""
        mark = secrets.token_hex(16)
        command, environment = [self.python, "-P", *program], self.environment(house) | marked(mark)
        try:
            with tempfile.TemporaryFile() as output:
                subprocess.run(
                    command,
                    cwd=self.root,
                    env=environment,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                    stdin=subprocess.DEVNULL,
                    timeout=ASKED,
                    check=True,
                )
                output.seek(0)
                lines = output.read(LONGEST).decode("utf-8", "replace").splitlines()
        except (OSError, subprocess.SubprocessError):
            return ""
        finally:
            end_marked(mark)
        return lines[-1] if lines else ""


class Session:
    """A process that runs one side's session."""

    def __init__(
        self,
        tree: Tree,
        command: Sequence[str],
        environment: Mapping[str, str],
        run: str,
        rounds: bool,
        seconds: float = GRACE,
    ) -> None:
        """Start the process, for `rounds` or for the whole of a run, and for so many seconds at most.

        Raises:
            SideLost: it can't be started.
        """
        self.tree, self._mark = tree, secrets.token_hex(16)
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        commands_read, commands_write = os.pipe()
        answers_read, answers_write = os.pipe()
        given = [commands_read, *([answers_write] if rounds else [])]
        own = {**marked(self._mark), SIDE: run, PIPES: " ".join(map(str, given))}
        try:
            self._process = subprocess.Popen(
                [*command],
                cwd=tree.directory,
                env={**environment, **own},
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                pass_fds=given,
                start_new_session=True,
            )
        except OSError as error:
            os.close(commands_write)
            os.close(answers_read)
            raise SideLost(f"the {tree.name}'s session cannot be started: {error.strerror}") from None
        finally:
            os.close(commands_read)
            os.close(answers_write)
        self._commands = os.fdopen(commands_write, "wb", buffering=0)
        self._answers = os.fdopen(answers_read, "rb", buffering=0)
        self._heard = b""

    def ready(self) -> Task:
        """Wait until its case is loaded and measured.

        Raises:
            SideLost: it is not; the text says why.
        """
        task = self._receive().ready
        if task is None:
            raise SideLost(f"the {self.tree.name}'s session answered out of turn")
        return task

    def rates(self) -> Mapping[str, float]:
        """Time one round."""
        try:
            self._commands.write(b"round\n")
        except OSError:
            raise self._lost() from None
        return self._receive().rates or {}

    def wait(self) -> str:
        """Wait until it has ended by itself; what it printed last.

        Raises:
            SideLost: it does not end.
        """
        while not wait_without_reaping(self._process.pid, max(0.0, min(1.0, self._deadline - time.monotonic()))):
            if time.monotonic() >= self._deadline:
                raise self._hangs()
        return self._last_words()

    @property
    def exit_code(self) -> int | None:
        """Of the process, negative for a signal; None until `end`."""
        return self._process.returncode

    def end(self, patience: float = 30.0) -> None:
        """Let the process end, then end all that is left of it. A second call does nothing."""
        if self._process.returncode is not None:
            return
        self._commands.close()
        wait_without_reaping(self._process.pid, patience)
        end_family(self._process)
        end_marked(self._mark)
        self._answers.close()
        self._printed.close()

    def _receive(self) -> Answer:
        try:
            answer = Answer.model_validate(json.loads(self._line().decode("utf-8", "replace")))
        except (ValueError, RecursionError) as error:
            what = first_of(error) if isinstance(error, ValidationError) else "not JSON"
            raise SideLost(harmless(f"the {self.tree.name}'s session sent an invalid answer: {what}")) from None
        if answer.lost is not None:
            raise SideLost(harmless(f"the {self.tree.name}: {answer.lost}"))
        return answer

    def _line(self) -> bytes:
        """The next line that the process says, or SideLost."""
        while b"\n" not in self._heard:
            left = max(0.0, self._deadline - time.monotonic())
            if not select.select([self._answers], [], [], left)[0]:
                raise self._hangs()
            more = self._answers.read(1 << 16)
            if not more or len(self._heard) > LONGEST:
                raise self._lost()
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def _hangs(self) -> SideLost:
        said = self._last_words()
        return SideLost(harmless(f"the {self.tree.name}'s session hangs: not over after {self._seconds:.0f} s: {said}"))

    def _lost(self) -> SideLost:
        wait_without_reaping(self._process.pid, 10.0)
        return SideLost(harmless(f"the {self.tree.name}'s session ended: {self._last_words()}"))

    def _last_words(self) -> str:
        """The last line that says something is wrong, or the last line."""
        printed = self._printed.fileno()
        start = max(0, os.fstat(printed).st_size - LONGEST)
        text = os.pread(printed, LONGEST, start).decode("utf-8", "replace")  # the session's own place stays
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        wrong = [line for line in lines if line.startswith(("ERROR", "E  ", "error:"))]
        return (wrong or lines or ["without a word"])[-1][:LAST]
