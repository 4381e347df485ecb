"""A node's part of a job that a service runs: the same agent as everywhere, then what it leaves."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from proofmark.launch.far_end.facts import facts_of
from proofmark.launch.far_end.protocol import goes_home
from proofmark.launch.hosts import describe
from proofmark.launch.service.platform import Place
from proofmark.launch.service.ticket import (
    CACHE,
    CODE,
    DATA,
    MANIFEST,
    MASTER,
    RUN,
    LeftFile,
    Manifest,
    Ticket,
    filled,
    home_of,
)
from proofmark.process import wall_clock
from proofmark.process.child import Child

LEAVING = 10.0
"""Seconds that the agent gets to end when the platform ends the node."""

DESCRIBED = 300.0
"""Seconds that its devices get to describe themselves."""

ENDED = 128 + signal.SIGTERM
"""Exit code of an agent that the platform wanted no more of."""

TAIL = 4096
"""Bytes of each log that are printed where the agent failed: the platform's log is what a user sees first."""


class Node:
    """This node, with the folders that the platform gave it."""

    def __init__(self, ticket: Ticket, place: Place, code: Path, work: Path, data: str | None) -> None:
        """Take the job's ticket, and work in `work`.

        Raises:
            ValueError: the platform runs something else than what was asked for.
        """
        if place.nodes != ticket.nodes:
            raise ValueError(f"the platform runs {place.nodes} nodes, and {ticket.nodes} were asked for")
        self._ticket, self._place, self._code, self._work, self._data = ticket, place, code, work, data
        self._number = 0 if ticket.independent else place.node
        self.folder = work / "run" / f"noderank{self._number}"
        """Where the agent and its ranks leave their files."""

    @property
    def home(self) -> str:
        """What that folder is called among the job's results."""
        return home_of(self._place.node, self._ticket.independent)

    def run(self, results: Path) -> int:
        """Run the agent to its end, and lay what it leaves into `results`; its exit code.

        Raises:
            ValueError: the node is not what the job needs.
            OSError: a folder can't be written.
        """
        host = self._described()
        self.folder.mkdir(parents=True)
        spec = self.folder.parent / "spec.json"
        spec.write_text(filled(self._ticket.spec, self._places()), encoding="utf-8")
        began = wall_clock.now()
        code = self._agent(spec)
        ended = wall_clock.now()
        if code:
            self._print_tails()
        home = results / self.home
        files = dict(_laid_down(self.folder, self._ticket.leaves, home))
        manifest = Manifest(job=self._ticket.name, code=code, began=began, ended=ended, files=files, host=host)
        (home / MANIFEST).write_text(manifest.model_dump_json(), encoding="utf-8")
        return code

    def _places(self) -> dict[str, str]:
        data = {DATA: self._data} if self._data else {}
        own = {RUN: self.folder.parent, CODE: self._code, CACHE: self._work / "cache"}
        return {**{place: str(path) for place, path in own.items()}, MASTER: self._place.master, **data}

    def _agent(self, spec: Path) -> int:
        agent = Child(
            self._ticket.module,
            [str(spec), str(self._number)],
            log=self.folder / "agent.log",
            environment=self._ticket.environment,
            sys_path=[str(self._code), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))],
            everything=True,  # of the platform's, which says there where its runtime is
        )
        terminated = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: terminated.set())
        while not agent.has_ended(within=0.2) and not terminated.is_set():
            pass
        agent.end(LEAVING)
        return ENDED if terminated.is_set() else agent.returncode or 0

    def _described(self) -> dict[str, Any]:
        """What a record should say of this host; the vendor's words only of the first one, or where it has devices."""
        known = facts_of(self._work, list(self._ticket.packages), None, None, [], None, False)
        facts = {key: known[key] for key in ("hostname", "python")}
        facts["versions"] = {name: version for name, version in known["versions"].items() if version}
        asked = self._ticket.described
        if not asked.devices and self._number:
            return facts
        command = asked.command(sys.executable, str(self._code))
        try:
            done = subprocess.run(command, cwd=self._code, capture_output=True, text=True, timeout=DESCRIBED)
        except subprocess.TimeoutExpired:
            raise ValueError(f"its devices do not describe themselves in {DESCRIBED:g} s") from None
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise ValueError(f"its devices cannot be described: {why[0]}")
        found = describe.facts(done.stdout)
        if problems := asked.problems(found):
            raise ValueError("; ".join(problems))
        return {**facts, **{key: found[key] for key in ("chip", "host", "package")}}

    def _print_tails(self) -> None:
        for path in sorted(self.folder.glob("*.log")):
            if said := path.read_bytes()[-TAIL:].decode("utf-8", "replace").strip():
                print(f"==> {path.name} <==\n{said}", flush=True)


def _laid_down(folder: Path, leaves: Sequence[str], home: Path) -> Iterator[tuple[str, LeftFile]]:
    home.mkdir(parents=True, exist_ok=True)
    for path in _left(folder, leaves):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes()
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, home / name)
        yield name, LeftFile(size=len(content), sha256=hashlib.sha256(content).hexdigest())


def _left(folder: Path, leaves: Sequence[str]) -> Iterable[Path]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [path for path in files if goes_home(path.relative_to(folder).as_posix(), leaves)]
