"""What a user has running from a checkout: `python -m proofmark.jobs list | status ID | logs ID | stop ID | fetch ID`.

Exit code 4, and one line, for an id that is no job of this user's, and for a cache that isn't there; 1 for a job that
did not succeed, or whose files have not all come home.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from proofmark.errors import ProofmarkError, UsageError, harmless
from proofmark.launch.job_file import JobFile, Status, index_in, known_jobs
from proofmark.launch.reattach import Reattached, reattach, reattached
from proofmark.process.command_line import Parser, command, reporting_errors


@reporting_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    if options.cache_dir is not None and not os.path.isdir(options.cache_dir):
        raise UsageError(f"--cache-dir {options.cache_dir}: no such directory; expected the sessions' own")
    index = index_in(options.cache_dir or ".cache")
    if options.command == "list":
        return _list(index, options.all)
    job = reattach(index, options.id)
    if options.command == "stop":
        job.stop()
        print(f"{job.id}  {job.status()}")
        return 0
    if options.command == "logs":
        return _logs(job, options.follow)
    if options.command == "fetch":
        return _fetch(job)
    return _status(job)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m proofmark.jobs", description="jobs of this checkout, of this user")
    _take_cache(parser, None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="list|status|stop|logs|fetch")
    listed = commands.add_parser("list", help="running jobs, and those that may be running")
    _take_cache(listed)
    listed.add_argument("--all", action="store_true", help="also jobs that have ended")
    for name, purpose in (
        ("status", "show a job's state"),
        ("stop", "stop a job"),
        ("logs", "show what its processes printed"),
        ("fetch", "bring home what a job at a service left, which its session has not"),
    ):
        one = commands.add_parser(name, help=purpose)
        one.add_argument("id", metavar="ID")
        _take_cache(one)
        if name == "logs":
            one.add_argument("--follow", action="store_true", help="until the job ends")
    return parser


def _take_cache(parser: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS) -> None:
    """Before a command as after it."""
    parser.add_argument(
        "--cache-dir",
        type=os.path.expanduser,
        default=default,
        metavar="DIR",
        help="the sessions' own --cache-dir (.cache)",
    )


def _list(index: Path, every: bool) -> int:
    (jobs, wrong), listed = known_jobs(index), 0
    for job in jobs:
        state = job.state()
        if state in ("lost", "unseen") and job.service is not None:
            try:
                state = reattached(job).status()
            except (ProofmarkError, OSError) as error:
                wrong.append(f"{job.id}: {error}")
        if every or state in ("running", "unseen"):
            print(_line(job, state))
            listed += 1
    if not listed:
        print("no job is known" if every else "no job is running", file=sys.stderr)
    for problem in wrong:
        print(f"WARNING: {problem}", file=sys.stderr)
    return 0


def _line(job: JobFile, state: Status) -> str:
    begun = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(job.started))
    none = "no host yet" if state in ("running", "unseen") else "no host"
    where = ", ".join(job.hosts) or (f"process {job.agent.pid}" if job.agent else none)
    where += f"; of host {job.host}, cannot be seen from here" if state == "unseen" else ""
    return harmless(f"{job.id}  {state:<9}  {begun}  {job.launcher:<6}  {job.name}  {where}")


def _status(job: Reattached) -> int:
    state = job.status()
    print(_line(job.file, state))
    print(harmless(f"{job.file.directory}, led by process {job.file.session.pid}"))
    return 0 if state in ("running", "succeeded") else 1


def _fetch(job: Reattached) -> int:
    """Into the run's folder, whose record says what it said before."""
    if wrong := job.fetch(job.leaves):
        print(harmless(f"ERROR: job {job.id}: {wrong}"), file=sys.stderr)
        return 1
    print(harmless(f"{job.id}  is in {job.file.directory}"))
    return 0


def _logs(job: Reattached, follow: bool) -> int:
    """Each piece after the name of its log."""
    seen: dict[str, int] = {}
    while True:
        running = job.status() in ("running", "unseen")
        added = list(job.logs(seen))
        for name, piece in added:
            seen[name] = seen.get(name, 0) + len(piece)
            print(f"==> {name} <==")
            print("".join(c if c.isprintable() or c in "\n\t" else "?" for c in piece.decode("utf-8", "replace")))
        if not added and not (follow and running):
            return 0
        time.sleep(0.0 if added else job.pace)


if __name__ == "__main__":
    command(main)
