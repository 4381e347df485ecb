"""Readers of what other processes say: an engine, a rank, a vendor's package, a session that is compared, a job."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import xxhash
from hypothesis import strategies as st

from proofmark.errors import StepError, UsageError
from proofmark.gate.alike import other_settings, other_task, unsound, unsupported
from proofmark.gate.race import SideLost
from proofmark.gate.session import Session
from proofmark.inference.engine import protocol
from proofmark.inference.engine.remote_engine import RemoteEngine
from proofmark.launch.cluster.preflight import HostReport, HostRequirements, compare, question, table
from proofmark.launch.hosts import describe
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.launch.job_file import read_job
from proofmark.launch.rank_result import rank_results
from proofmark.process.output.dictation import Dictation
from proofmark.rules.scale import Scale
from proofmark.training.heartbeat import read_heartbeat
from proofmark.training.node.stopwatch import Stopwatch
from proofmark.training.ranks.checkpoint import verify
from proofmark.training.ranks.left import read_left
from proofmark.vendor.introduction import asking as introduction
from tests.fuzz import inputs, samples
from tests.host_facts import FACTS
from tests.unit.inference.test_remote_engine import Peer

ISOLATION = {"kind": "wall", "landlock": 6, "network": "closed", "devices": [], "gaps": []}
NUMBER = b"\x07SECRET\x07"
"""In the place of a call's number, which nobody can know before."""

LAYOUT = struct.pack("<BBQQ", 0, 2, 2, 10)
REPLIES: list[Any] = [
    {"isolation": ISOLATION},
    {"done": {"foo_time_reason": None}},
    {"done": [10, 100]},
    {"failed": "RuntimeError: no memory", "detail": "Traceback"},
]


def _reply(content: Any) -> st.SearchStrategy[bytes]:
    return inputs.jsons(content).map(bytes([protocol.REPLY]).__add__)


def _answer(layout: bytes, foo_seconds: float) -> bytes:
    return struct.pack("<B7x8sd", protocol.ANSWER, NUMBER, foo_seconds) + layout


_DIMENSIONS = st.sampled_from((0, 1, 2, 10, 1 << 31, 1 << 62, (1 << 64) - 1))
_LAYOUTS = st.lists(st.tuples(st.integers(0, 12), st.lists(_DIMENSIONS, max_size=4)), max_size=3).map(
    lambda tensors: b"".join(struct.pack(f"<BB{len(s)}Q", code, len(s), *s) for code, s in tensors)
)
_FOO = st.sampled_from((0.0, -0.0, 1e-3, -1.0, 1e300, float("nan"), float("inf")))
_ANSWERS = st.one_of(
    st.builds(_answer, inputs.damaged_text(LAYOUT) | _LAYOUTS, _FOO),
    st.integers(0, (1 << 64) - 1).map(lambda size: struct.pack("<B7x8sQ", protocol.LARGER, NUMBER, size)),
    inputs.damaged_text(_answer(LAYOUT, 0.0)).filter(bool),
    st.one_of(map(_reply, REPLIES)),
)
ENGINE = st.tuples(_reply(REPLIES[0]), _reply(REPLIES[1]), _ANSWERS, _ANSWERS, _reply(REPLIES[2])).map(list)
"""What it says when it is made, when it is called, and when it is asked for its memory."""


def _said(message: bytes) -> Callable[[bytes], bytes]:
    """The message, as an answer to the call that was made."""

    def answer(asked: bytes) -> bytes:
        size = {protocol.CALL: protocol.CALL_FORM.size, protocol.GO_ON: protocol.GO_ON_FORM.size}.get(asked[0], 8)
        return message.replace(NUMBER, asked[size - 8 : size])

    return answer


def engine(folder: Path, messages: list[bytes]) -> None:
    import torch

    process: Any = Peer(*map(_said, messages))
    remote = RemoteEngine(process)
    remote.make({})
    outputs, foo_seconds = remote([torch.zeros(2, 3)])
    assert isinstance(foo_seconds, float) and all(isinstance(each, torch.Tensor) for each in outputs)
    remote.device_memory()


def rank(folder: Path, said: bytes) -> None:
    """What a rank writes into its pipe: its log has it to the byte, and its agent's clock follows that."""
    written = Dictation(folder / "rank0.jsonl")
    with open(written.descriptor, "wb", buffering=0, closefd=False) as pipe:
        pipe.write(said[: 1 << 15])  # what a pipe holds
    assert not written.finish() and (folder / "rank0.jsonl").read_bytes() == said[: 1 << 15]
    watch = Stopwatch(folder / "rank0.jsonl")
    watch.look()
    assert 0 <= watch.least <= watch.most


def heartbeat(folder: Path, content: bytes) -> None:
    (folder / "rank0.heartbeat").write_bytes(content)
    beat = read_heartbeat(folder / "rank0.heartbeat")
    assert beat is None or (beat.pid > 0 and beat.step >= 0)


INTRODUCTION: dict[str, Any] = {
    "module": "acme",
    "file": "FOLDER/__init__.py",
    "distribution": None,
    "compilers": {
        "fast": {"precisions": ["fp32"], "consumes": "onnx", "loads_compiled": False, "package": None},
    },
    "default_compiler": "fast",
    "framework_precisions": ["fp32"],
    "training_precisions": ["fp32"],
    "visible_devices_variable": "ACME_VISIBLE_DEVICES",
    "runs_on_processor": False,
    "distributed_backend": "gloo",
    "training_scales": ["1x1"],
    "container_options": ["--device=/dev/acme0"],
    "chip": "Acme One",
    "chip_units": 1,
    "torch_device": "cpu",
    "training_adapter": ["convert_model"],
    "case_adapters": {"training/bert": []},
    "devices": [[0, "Acme One", "ACME-1"]],
    "devices_sought": [],
    "software": {"driver": "1", "runtime": None, "firmware": None, "reason": "nobody asked"},
    "failures": {},
}


def introduced(folder: Path, line: bytes) -> None:
    """The last line of a vendor's introduction."""
    try:
        report = dict(json.loads(line.replace(b"FOLDER", str(folder).encode())))
    except (TypeError, ValueError, RecursionError):
        return  # as it is refused there
    if not isinstance(report.get("answers"), dict):
        return
    answers = introduction._understood("acme", report, folder)
    found = introduction._of("acme", answers, folder)
    json.dumps(found.vendor.answers)  # type: ignore[attr-defined]
    with contextlib.suppress(UsageError):
        found.vendor.devices()


TASK: dict[str, Any] = {
    "vendor": "acme",
    "profile": "embedded",
    "precision": "fp32",
    "config": {"batch_size": 4, "lr": 0.1},
    "config_hash": "0" * 64,
    "dataset": {"sha256": "1" * 64},
    "weights": {"sha256": "2" * 64},
    "versions": {"torch": "2"},
    "verdict": {"kind": "PASS", "reasons": []},
    "compiler": None,
}
SIDE: list[Any] = [{"ready": TASK}, {"rates": {"core": 10.0, "whole": 9.0}}, {"lost": "it died"}]


class _Side(Session):
    def __init__(self, line: bytes) -> None:
        self.tree: Any = SimpleNamespace(name="base")
        self._said = line

    def _line(self) -> bytes:
        return self._said


def side(folder: Path, line: bytes) -> None:
    """A line of a session whose speed is compared."""
    answer = _Side(line)._receive()
    if answer.ready is not None:
        complaints = [*unsound("base", answer.ready), unsupported(answer.ready)]
        complaints += [
            *other_task(answer.ready, answer.ready, ["lr"]),
            *other_settings(answer.ready, answer.ready, ["lr"]),
        ]
        assert all(isinstance(each, str | None) for each in complaints)


DESCRIPTION: dict[str, Any] = {
    "chip": samples.BEGIN["chip"],
    "host": samples.HOST_FACTS,
    "devices": 8,
    "busy": ["device 3 is busy: 50%"],
    "package": {"vendor_version": {"value": "1"}, "vendor_sha256": {"reason": "no files"}},
}


def description(folder: Path, content: bytes) -> None:
    """What a host says of its devices, and what is asked of that."""
    found = describe.facts(content.decode("utf-8", "replace"))
    problems = DescribeRequest("acme", "fp32", "", Scale.parse("2x8"), devices=True).problems(found)
    assert all(line.isprintable() for line in problems)


def facts(folder: Path, content: bytes) -> None:
    """What a host answers before a job begins, beside another that is as it should be."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return  # as it is refused there

    async def ask(order: str, **_: object) -> Any:
        return {"time": 0.0} if order == "time" else answer

    both, host = [HostReport(0, "one", dict(FACTS)), HostReport(1, "two")], SimpleNamespace(ask=ask)
    asyncio.run(question(host, both[1], HostRequirements(("torch",))))  # type: ignore[arg-type]
    compare(both)
    table(both)


JOB: dict[str, Any] = {
    "id": "0123456789ab",
    "name": "training/bert/1x2",
    "launcher": "ssh",
    "directory": "results/latest",
    "user": 0,
    "started": 1.79e9,
    "session": {"pid": 7, "ticks": 1, "boot": "b"},
    "agent": None,
    "mark": "0" * 32,
    "hosts": ["one"],
    "service": {"name": "proofmark", "id": None, "nodes": 1, "settings": {}},
    "status": "running",
    "ended": None,
}


def job(folder: Path, content: bytes) -> None:
    (folder / "job.json").write_bytes(content)
    read_job(folder / "job.json").state()


RESULT: dict[str, Any] = {
    "rank": 0,
    "node": 0,
    "world": 2,
    "steps": 4,
    "samples": 64.0,
    "began": 1.0,
    "ended": 2.0,
    "seconds": 1.0,
    "core": 70.0,
    "metric": 0.9,
}


def result(folder: Path, content: bytes) -> None:
    (folder / "result0.json").write_bytes(content)
    assert all(each.throughput >= 0 for each in rank_results(folder))


def checkpoint(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    (folder / "progress.json").write_bytes(b"{}")
    verify(folder)


def weights(folder: Path, content: bytes) -> None:
    (folder / "weights.safetensors").write_bytes(content)
    read_left(folder / "weights.safetensors")


HEADER = json.dumps({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
TENSORS = struct.pack("<Q", len(HEADER)) + HEADER + bytes(16)
MANIFEST = {"progress.json": xxhash.xxh3_128(b"{}").hexdigest()}
BEAT = struct.pack("=qqqqd", 7, 0, 3, 2, 1e4)

WIRES = {
    "an engine's messages": (ENGINE, engine, (StepError,)),
    "a rank's events by pipe": (inputs.logs(samples.rank(0)), rank, ()),
    "a host's description": (inputs.jsons(DESCRIPTION), description, (ValueError,)),
    "a host's facts": (inputs.jsons(FACTS), facts, (ValueError,)),
    "a heartbeat": (inputs.damaged_text(BEAT) | st.binary(min_size=40, max_size=40), heartbeat, ()),
    "a vendor's introduction": (inputs.jsons({"answers": INTRODUCTION}), introduced, (UsageError,)),
    "a compared session's answer": (st.one_of(map(inputs.jsons, SIDE)), side, (SideLost,)),
    "a job's file": (inputs.jsons(JOB), job, (UsageError,)),
    "a rank's result": (inputs.jsons(RESULT), result, (ValueError,)),
    "a checkpoint's manifest": (inputs.jsons(MANIFEST), checkpoint, (StepError,)),
    "weights that a rank left": (inputs.damaged_text(TENSORS), weights, (StepError,)),
}
"""By name: inputs, what reads them, and how it may refuse."""
