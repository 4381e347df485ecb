"""A node's agent: `python -m proofmark.training.node.agent SPEC NODE` runs torchrun and watches over its ranks.

It ends with its parent: standard input closes, whichever way that one goes. A rank that hangs is found by its
heartbeat; the stacks of all ranks are taken before they are ended. The node's monitor runs as long as it does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from proofmark.launch.spec import temporary_of
from proofmark.process.environment import let_pass
from proofmark.process.lifetime import leave, outlived, tidy_at_exit
from proofmark.process.output.capped_log import CappedLog
from proofmark.process.output.dictation import Dictation
from proofmark.process.scratch.own_directory import lay_open, remove
from proofmark.process.scratch.quota import Quota
from proofmark.process.scratch.temporary import remove_own_temporary_directory
from proofmark.process.signalled import ask_for_stacks
from proofmark.process.threads import threads_of_quota
from proofmark.process.warm.main import THREADS
from proofmark.training.drawn_steps import draw
from proofmark.training.heartbeat import SETUP, Heartbeat, Silence
from proofmark.training.node.agent_forks import Ends, fork_ranks
from proofmark.training.node.agent_log import AgentLog
from proofmark.training.node.feeders import Feeders
from proofmark.training.node.network import choose_interface, resolved
from proofmark.training.node.node_monitor import NodeMonitor
from proofmark.training.node.rank_processes import RankProcesses
from proofmark.training.node.rank_results import leave_results
from proofmark.training.node.rendezvous import alone
from proofmark.training.node.stopwatch import Stopwatch
from proofmark.training.node.waiting import waits
from proofmark.training.outcome.event_types import DRAWN, OUTLIVED
from proofmark.training.outside.examination import examine
from proofmark.training.spec import AGENT, CHANCES, EVENTS, OUTPUTS, TrainingSpec
from proofmark.vendor.environment import declared_of, referee_environment_of
from proofmark.vendor.hardware.machine import describe_host
from proofmark.vendor.hardware.processor import too_many_loaders, usable_cores

LENIENCY = {"recording": 10.0, "checkpoint": 10.0}
"""How much more silence than elsewhere is no hang: what is as large as a model waits for a disk."""

FED = ("init", "data", "evaluation")
"""Phases in which a rank may wait for the process that loads its data."""

ELSEWHERE = 5.0
"""Seconds that other nodes get to name their ranks at fault, when all of this one's wait."""

SHOWING = 10.0
"""Seconds that they get to print where they are: by their stacks it is told who waits, and who is waited for."""


def main() -> int:
    """Run the node's ranks to their end; exit code 0 if all of them ended well."""
    spec, node = TrainingSpec.load(Path(sys.argv[1])), int(sys.argv[2])
    os.environ |= {AGENT: str(os.getpid()), **(given := referee_environment_of(spec.config["host"]))}
    let_pass([THREADS, *given])
    ends: Ends = {}
    watch = Watch(spec, node, fork_ranks(declared_of(spec.config["host"]), ends))
    shared = THREADS not in os.environ
    os.environ.setdefault(THREADS, _share(spec))  # now: what ranks are forked from computes as this process does
    fed = watch.feeders.start(Path(sys.argv[1]), ends)
    watch.log.write("agent_begin", **describe_host().model_dump())
    for name, pipes in ((OUTPUTS, watch.outputs), (EVENTS, watch.events)):
        os.environ[name] = ",".join(str(pipe.descriptor) for pipe in pipes.values())
    if spec.audited and node == 0:
        watch.log.write(DRAWN, chances=(chances := draw()))
        os.environ[CHANCES] = ",".join(map(repr, chances))
    tidy_at_exit(leaves_results=True)
    threading.Thread(target=watch.parent, daemon=True).start()
    threading.Thread(target=watch.heartbeats, daemon=True).start()
    threading.Thread(target=watch.stopwatch.run, daemon=True).start()
    try:
        return _run(spec, node, watch, fed, shared)
    finally:
        watch.clear()


def _run(spec: TrainingSpec, node: int, watch: Watch, fed: bool, shared: bool) -> int:
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    try:
        if not fed:
            return 1
        torchrun.run(torchrun.parse_args(_arguments(spec, node)))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        for rank, failure in sorted(error.failures.items()):
            code = failure.exitcode
            watch.log.write("rank_died", rank=rank, code=code, died=failure.timestamp)
        return 1
    finally:
        watch.processes.end()
        watch.feeders.end()
        watch.end_outputs()
        watch.stopwatch.stop()
        watch.feeders.tell()
        watch.monitor.stop()
    if shared:
        del os.environ[THREADS]  # no rank runs any more: the examiner has all cores
        os.environ |= threads_of_quota()
    if node == 0:
        ended = watch.stopwatch
        examine(Path(sys.argv[1]), spec, node, watch.log, ended.weights, ended.steps, watch.feeders.data())
    first = node * spec.nproc
    leave_results(spec.node_directory(node), node, range(first, first + spec.nproc), spec.nnodes * spec.nproc)
    return 0


def _share(spec: TrainingSpec) -> str:
    """Processes of one node share its cores, unless the user says otherwise."""
    return str(max(1, usable_cores() // spec.nproc))


def _arguments(spec: TrainingSpec, node: int) -> list[str]:
    """torchrun's command line."""
    if spec.master is None:
        network = alone()
    else:
        address, port = resolved(spec.master[0]), spec.master[1]
        if spec.nnodes > 1:
            choose_interface(address)
        static = ["--rdzv-backend", "static", "--master-addr", address, "--master-port", str(port)]
        network = ["--nnodes", str(spec.nnodes), "--node-rank", str(node), *static, "--log-dir", os.devnull]
    return [*network, "--nproc-per-node", str(spec.nproc), "-m", "proofmark.training.ranks.rank", *sys.argv[1:3]]


class Watch:
    """The agent's eyes on its parent and its ranks.

    Args:
        started: the process of each rank, as far as it was this one that started it.
    """

    def __init__(self, spec: TrainingSpec, node: int, started: Mapping[int, int]) -> None:
        self._directory = spec.node_directory(node)
        self._ranks = range(node * spec.nproc, (node + 1) * spec.nproc)
        self.processes = RankProcesses(self._directory, self._ranks, started)
        self._nnodes, self._timeout, self._setup_timeout = spec.nnodes, spec.hang_timeout, spec.setup_timeout
        self._loaders = too_many_loaders(spec.config.get("configurations", {}), spec.nproc)
        self.outputs = {rank: CappedLog(self._directory / f"rank{rank}.log") for rank in self._ranks}
        self.events = {rank: Dictation(self._directory / f"rank{rank}.jsonl") for rank in self._ranks}
        self._own = [spec.own_directory(node, local) for local in range(spec.nproc)]
        most = spec.config["host"]["scratch_limit"] * (1 << 30)
        # a shared folder is the user's, and may have earlier sessions' checkpoints
        self._checkpoints = [] if spec.checkpoints else [spec.checkpoint_directory]
        kept = {rank: [own, temporary_of(own)] for rank, own in zip(self._ranks, self._own, strict=True)}
        kept[self._ranks.start] += self._checkpoints
        self._quotas = {rank: Quota(directories, most) for rank, directories in kept.items()}
        self._open = [output.descriptor for output in self.outputs.values()]
        self._closing = threading.Lock()
        self.log = AgentLog(self._directory / "agent.jsonl")
        self.feeders = Feeders({rank: output.descriptor for rank, output in self.outputs.items()}, self.log)
        fed, first = self.feeders, self._ranks.start
        path, said = self._directory / f"rank{first}.jsonl", self.events[first].take
        self.stopwatch = Stopwatch(path, self.log, said=said, count=fed.now, on_begin=fed.begun, on_end=fed.ended)
        self.monitor = NodeMonitor(spec, self._directory, self.log)

    def parent(self) -> None:
        """End everything when the parent closes standard input or is gone."""
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        self.processes.end()
        self.log.write("stopped")
        self._end_all_else()
        remove_own_temporary_directory()
        os.killpg(0, signal.SIGKILL)

    def _end_all_else(self) -> None:
        self.feeders.end(patience=2)  # nobody waits for what they counted, nor for what the monitor saw
        self.monitor.stop(patience=5)
        self.end_outputs()
        with contextlib.suppress(OSError):
            self.clear()

    def heartbeats(self) -> None:
        """Find ranks that make no progress, once; what hangs is named, shown and ended. Torchrun would wait for good
        for those that go on though they were killed: this process ends without them."""
        self._find_fault()
        self.processes.end()
        if left := self.processes.outlived():
            self.log.write(OUTLIVED, rank=min(left), reason=outlived([*left.values()]))
            self._end_all_else()
            os._exit(1)

    def _find_fault(self) -> None:
        """Look until a rank keeps too much on disk, or they hang: that is told."""
        every, longest = min(1.0, self._timeout / 4, self._setup_timeout / 4), dict[str, float]()
        silences = {rank: Silence(every, 0.0, longest) for rank in self._ranks}
        while True:
            time.sleep(every)
            if self._is_full():
                return
            found = {
                rank: heartbeat for rank in self._ranks if (heartbeat := self.processes.heartbeat(rank)) is not None
            }
            now = time.monotonic()
            for rank, heartbeat in found.items():
                silences[rank].look(heartbeat, now)
            watched = {rank: each for rank, each in found.items() if each.phase != "end" or self.processes.lives(rank)}
            hang = watched and all(self._hangs(each, silences[rank]) for rank, each in watched.items())
            if hang and not any(map(self.processes.has_died, watched)):  # else torchrun tells of that
                self._tell_hang(watched, now)
                return

    def _is_full(self) -> bool:
        """Whether a rank keeps more on disk than it may: then it is named."""
        full = {rank: what for rank, quota in self._quotas.items() if (what := quota.exceeded())}
        for rank, what in full.items():
            self.log.write("rank_ended", rank=rank, reason=f"{what}, and was ended")
        return bool(full)

    def _hangs(self, heartbeat: Heartbeat, silence: Silence) -> bool:
        if heartbeat.phase in (*SETUP, "scoring", "end") or heartbeat.step == heartbeat.first:
            return silence.seconds > self._setup_timeout
        hang = LENIENCY.get(heartbeat.phase, 1.0) * self._timeout
        return silence.seconds > silence.enough(heartbeat.phase, hang)

    def _tell_hang(self, heartbeats: dict[int, Heartbeat], now: float) -> None:
        """Note how far each rank came and whether it waits: those behind the others are at fault. On this node none may
        be; then the other nodes' agents come first, since their ranks are not to die of these ones' end."""
        before = {rank: self.outputs[rank].received for rank in heartbeats}
        ask_for_stacks(filter(None, map(self.processes.of, heartbeats)), SHOWING)
        for rank in heartbeats:
            self.outputs[rank].catch_up()
        stacks = {rank: self.outputs[rank].since(before[rank]).decode("utf-8", "replace") for rank in heartbeats}
        position = {rank: (*heartbeat.position, waits(stacks[rank])) for rank, heartbeat in heartbeats.items()}
        fed = {rank: beat.phase for rank, beat in heartbeats.items() if beat.phase in FED and not position[rank][-1]}
        self.feeders.stacks(fed)  # after the ranks' own, by which it is told who waits
        for rank, heartbeat in heartbeats.items():
            last_sign = {"step": heartbeat.step, "phase": heartbeat.phase, "seconds": now - heartbeat.since}
            loaders = {"loaders": self._loaders} if self._loaders and heartbeat.phase in FED else {}
            self.log.write("hang", rank=rank, **last_sign, position=position[rank], **loaders)
        if self._nnodes > 1 and all(waiting for _, _, waiting in position.values()):
            time.sleep(ELSEWHERE)

    def end_outputs(self) -> None:
        """Put the end of what each rank has printed and told into its logs."""
        with self._closing:
            while self._open:
                os.close(self._open.pop())
            for rank, events in self.events.items():
                if events.finish():
                    self.log.write("rank_ended", rank=rank, reason=f"OSError: {events.failure}")
        for output in self.outputs.values():
            output.finish()

    def clear(self) -> None:
        """Remove what the ranks have left in their own directories; beside checkpoints they may have left what nobody
        could look into. Then there is room for what a full disk kept from being told.

        Raises:
            OSError: there is none.
        """
        for own in self._own:
            remove(own)
        for folder in self._checkpoints:
            lay_open(folder)
        self.log.finish()


if __name__ == "__main__":
    leave(main())
