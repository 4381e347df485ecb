"""Nodes of a Slurm allocation, held as long as a pipe is.

`salloc` runs `cat` on a pipe of ours: when this process goes, whichever way, the pipe closes, and the allocation is
given back, unless the whole machine goes down. Each node's far end is then one step of `srun`, whose pipes lead to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import time
from asyncio.subprocess import PIPE

from proofmark.errors import UsageError
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.local_process import LocalProcess
from proofmark.launch.cluster.node import Node, Nodes, Tell
from proofmark.launch.launchers import HostLauncher
from proofmark.process.lifetime import die_with_parent

PROGRAMS = ("salloc", "srun", "scancel", "scontrol", "squeue")

END = signal.SIGHUP
"""What ends `salloc`, in the queue as well as after. A SIGTERM after the grant has it give the allocation back in its
signal handler, while its other thread may reap `cat`: then `salloc` waits for `cat` forever, on a whole core."""

POLL, LONGEST, GROWTH = 2.0, 15.0, 1.5
"""Seconds between two looks at the queue, which is the whole site's: the first two, the last ones, and the factor."""

HEED = 0.2
"""Seconds until it is noticed what `salloc` says."""

READYING = 1800.0
"""Seconds that nodes get to boot, and for their Prolog."""

COMPLETING = 60.0
"""Seconds that a job gets to free its nodes before it is told how it ended: Slurm's own limit for processes that don't
heed its SIGKILL."""

TRIES = 5
"""How often it is asked which nodes a job has got."""

_GRANTED = re.compile(r"Granted job allocation (\d+)")
_PENDING = re.compile(r"Pending job allocation (\d+)")


class Slurm:
    """An allocation of as many nodes as a job has."""

    stay = False

    def __init__(self, cluster: Cluster) -> None:
        """Queue up later.

        Raises:
            UsageError: Slurm's programs are not here.
        """
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        if missing:
            raise UsageError(
                f"--launcher slurm: {', '.join(missing)} not found in PATH: run this where jobs are submitted"
            )
        self._cluster = cluster
        self._holder: LocalProcess | None = None
        self._reader: asyncio.Task[None] | None = None
        self._said, self._job = "", ""
        self._named_by: float | None = None

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """Queue up, tell how that goes, and find out where the nodes are.

        Raises:
            HostError: Slurm refuses the job.
        """
        self._said, self._job, self._named_by = "", "", None
        self._holder = await LocalProcess.start(
            self._allocate(count), stdin=PIPE, stderr=PIPE, before=die_with_parent(END)
        )
        self._reader = asyncio.create_task(self._listen(self._holder))
        self._job = await self._granted(self._holder, self._reader, tell)
        for _ in range(TRIES):  # after hours in the queue a controller that is slow once is no reason
            names = await _output("squeue", "-h", "-j", self._job, "-o", "%N")
            nodes = (await _output("scontrol", "show", "hostnames", names)).split() if names else []
            if len(nodes) == count:
                break
            await asyncio.sleep(POLL)
        if len(nodes) != count:
            raise HostError(f"Slurm gives {len(nodes)} nodes where {count} are wanted: {names}")
        tell(f"Slurm job {self._job} runs on {', '.join(nodes)}")
        await self._ready(count, tell)
        return [await self._node(name) for name in nodes]

    async def _granted(self, holder: LocalProcess, reader: asyncio.Task[None], tell: Tell) -> str:
        """The job's number, once it has its nodes; meanwhile it is told how it stands in the queue."""
        shown, pause, due = "", POLL, time.monotonic()
        while not (granted := _GRANTED.search(self._said)):
            if holder.returncode is not None:
                await reader
                raise HostError(f"Slurm gives no nodes: {_short(self._said)}")
            if (pending := _PENDING.search(self._said)) and time.monotonic() >= due:
                self._job = pending[1]
                state = await _output("squeue", "-h", "-j", self._job, "-o", "%T (%r)")
                if state and state != shown:
                    tell(f"Slurm job {self._job}: {state}")
                    shown = state
                due, pause = time.monotonic() + pause, min(pause * GROWTH, LONGEST)
            await asyncio.sleep(HEED)
        return granted[1]

    async def _ready(self, count: int, tell: Tell) -> None:
        """Wait until programs start on all nodes: some boot first, or have a Prolog that takes minutes.

        A step of them all shows it: `scontrol wait_job` knows of no Prolog that only runs before a job's first step. If
        it fails, or neither starts nor fails in `READYING` seconds, the nodes' own steps say of which, and why.
        """
        until = time.monotonic() + READYING
        ready = asyncio.ensure_future(_output(*self._step(count), "true"))
        try:
            await asyncio.wait([ready], timeout=POLL)
            if not ready.done():
                tell(f"Slurm job {self._job}: its nodes are being made ready")
            while not ready.done() and time.monotonic() < until:
                if why := await self.gone():
                    raise HostError(why)
                await asyncio.wait([ready], timeout=HEED)
            if ready.done():
                await ready
        finally:
            ready.cancel()

    async def give_back(self) -> None:
        """Close the pipe; a job that is still in the queue is cancelled."""
        holder = self._holder
        if holder is None:
            return
        if holder.stdin:
            holder.stdin.close()
        if holder.returncode is None and not _GRANTED.search(self._said):
            holder.signal(END)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(holder.wait(), 10)
        if self._job:
            await _output("scancel", self._job)  # for a holder that was killed; nothing to it where the job has ended
        await holder.end()
        if self._reader:
            await self._reader
        self._holder = None

    async def gone(self) -> str | None:
        """Slurm's reason for having ended the allocation."""
        if self._holder is None or self._holder.returncode is None:
            return None
        if self._reader:
            await self._reader  # for its last words
        since = _GRANTED.split(self._said)[-1]
        return f"Slurm ended job {self._job} ({await self._state()}): {_short(since)}"

    async def _state(self) -> str:
        """How the job ended: until its nodes are free Slurm says COMPLETING of each, however it ended."""
        self._named_by = self._named_by or time.monotonic() + COMPLETING
        while state := re.search(r"JobState=(\S+)", await _output("scontrol", "show", "job", "-o", self._job)):
            if state[1] != "COMPLETING" or time.monotonic() >= self._named_by:
                return state[1]
            await asyncio.sleep(HEED)
        return "gone"

    def _allocate(self, count: int) -> list[str]:
        cluster = self._cluster
        asked = {"partition": cluster.partition, "account": cluster.account, "time": cluster.time_limit}
        options = [f"--{name}={value}" for name, value in asked.items() if value is not None]
        whole = [f"--nodes={count}", "--ntasks-per-node=1", "--exclusive", "--mem=0"]
        fixed = ["--job-name=proofmark", "--no-bell", "--kill-command=KILL"]
        return ["salloc", *whole, *fixed, *options, *cluster.slurm_options, "cat"]

    async def _node(self, name: str) -> Node:
        shown = await _output("scontrol", "show", "node", "-o", name)
        address = re.search(r"NodeAddr=(\S+)", shown)
        return Node(name, address[1] if address else name, (*self._step(1), f"--nodelist={name}"))

    def _step(self, nodes: int) -> list[str]:
        """What runs a program once on so many of the job's nodes."""
        step = ["srun", f"--jobid={self._job}", "--overlap", f"-N{nodes}", f"-n{nodes}", "--quiet"]
        step += ["--cpu-bind=none", "--mpi=none", "--export=PATH,HOME,USER,LANG"]
        return [*_without_the_sessions_job(), *step]

    async def _listen(self, holder: LocalProcess) -> None:
        assert holder.stderr
        while chunk := await holder.stderr.read(4096):
            self._said = (self._said + chunk.decode("utf-8", "replace"))[-4096:]
        await holder.wait()


def _without_the_sessions_job() -> list[str]:
    """What keeps `srun` from the bounds of a job that the session is itself in: it takes them for this one's."""
    given = (name for name in sorted(os.environ) if name.startswith(("SLURM_", "SRUN_")) and name != "SLURM_CONF")
    unset = [part for name in given for part in ("-u", name)]
    return ["env", *unset] if unset else []


async def _output(*command: str) -> str:
    """What a short command of Slurm's prints; nothing if it fails."""
    asked = await LocalProcess.start(command, stdout=PIPE)
    try:
        assert asked.stdout
        printed = await asked.stdout.read()
        await asked.wait()
    finally:
        await asked.end()
    return printed.decode("utf-8", "replace").strip()


def _short(said: str) -> str:
    lines = [line.removeprefix("salloc: ").removeprefix("error: ") for line in said.splitlines() if line.strip()]
    return "; ".join(lines)[-300:] or "salloc ended without a word"


class _UnderSlurm(HostLauncher):
    keys = frozenset({"partition", "account", "time_limit", "slurm_options"})

    def count(self, cluster: Cluster) -> None:
        return None

    def nodes(self, cluster: Cluster, origin: str) -> Nodes:
        return Slurm(cluster)


launcher = _UnderSlurm()
