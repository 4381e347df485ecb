"""A second cloud is one module: this one keeps objects in a folder, and gives its nodes the variables of PAI-DLC."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.launch.job import Job
from proofmark.launch.job_file import AtService
from proofmark.launch.service.contract import (
    LogPart,
    ObjectStore,
    Places,
    Service,
    ServiceError,
    State,
    Stored,
    Task,
    Timing,
    View,
)
from proofmark.launch.service.handle import HandingOver, ServiceSetup
from proofmark.rules.scale import Scale
from tests.modelarts.bench import LEAVES, ROOT, Spec

BOOT = """
import os, pathlib, sys, tempfile, zipfile
store, ticket, results = map(pathlib.Path, sys.argv[1:4])
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    zipfile.ZipFile(pathlib.Path(__file__).with_name("code.zip")).extractall(work / "code")
    sys.path[:] = [str(work / "code"), *sys.path[1:]]
    from proofmark.launch.service.node import Node
    from proofmark.launch.service.platform import NodeVariables
    from proofmark.launch.service.ticket import Ticket, read_wire
    names = NodeVariables(node="RANK", nodes="WORLD_SIZE", devices="NPROC_PER_NODE", master="MASTER_ADDR")
    described = read_wire(ticket / "ticket.json", Ticket)
    sys.exit(Node(described, names.place(os.environ), work / "code", work, None).run(results))
"""


class Folder(ObjectStore):
    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, key: str, content: bytes) -> None:
        (self.root / key).parent.mkdir(parents=True, exist_ok=True)
        (self.root / key).write_bytes(content)

    def list(self, prefix: str) -> dict[str, Stored]:
        found = [path for path in (self.root / prefix).rglob("*") if path.is_file()]
        facts = {path: path.stat() for path in found}
        home = self.root / prefix
        return {path.relative_to(home).as_posix(): Stored(s.st_size, s.st_mtime) for path, s in facts.items()}

    def fetch(self, key: str, path: Path) -> None:
        path.write_bytes((self.root / key).read_bytes())


class Another(Service):
    timing = Timing(poll=(0.05, 0.2), budget=1.0)
    boot = {"start.py": BOOT.encode()}

    def __init__(self, root: Path) -> None:
        self.store_, self.nodes = Folder(root), list[subprocess.Popen[bytes]]()

    @property
    def store(self) -> ObjectStore:
        return self.store_

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def count(self) -> None:
        return None

    def examine(self, nodes: int, nproc: int) -> list[str]:
        return []

    def places(self, name: str, code: str) -> Places:
        return Places(f"code/{code}/", f"{name}/job/", f"{name}/results/")

    def create(self, name: str, nodes: int, places: Places) -> str:
        root, self.created = self.store_.root, time.time()
        for rank in range(nodes):
            own = {"RANK": str(rank), "WORLD_SIZE": str(nodes), "NPROC_PER_NODE": "1", "MASTER_ADDR": "127.0.0.1"}
            own["PYTHONPATH"] = "/opt/runtime"  # its image's
            given = [str(root), str(root / places.ticket), str(root / places.results)]
            command = [sys.executable, str(root / places.code / "start.py"), *given]
            (root / name).mkdir(exist_ok=True)
            with (root / name / f"node{rank}.log").open("wb") as log:
                environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
                self.nodes.append(subprocess.Popen(command, env=environment | own, stdout=log, stderr=log))
        return name

    def find(self, name: str) -> str | None:
        return None

    def look(self, identifier: str) -> View:
        codes = [node.poll() for node in self.nodes]
        state: State = "running" if None in codes else "failed" if any(codes) else "succeeded"
        tasks = [Task(f"node{rank}", code) for rank, code in enumerate(codes)]
        return View(state, state, tasks, created=self.created)

    def log(self, at: AtService, task: Task, since: int) -> LogPart:
        return LogPart(since, (self.store_.root / at.name / f"{task.name}.log").read_bytes()[since:])

    def log_name(self, at: AtService, task: Task) -> str:
        return f"{task.name}.log"

    def stop(self, identifier: str) -> None:
        for node in self.nodes:
            node.kill()


@pytest.mark.parametrize("refused", [False, True])
def test_a_job_of_another_cloud(tmp_path: Path, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    root, run = tmp_path / "tree", tmp_path / "run"
    for folder in (root, run, tmp_path / "store"):
        folder.mkdir()
    for name in ("proofmark", "vendors"):
        (root / name).symlink_to(ROOT / name)
    (root / "errand.py").write_bytes(Path(__file__).with_name("errand.py").read_bytes())
    service = Another(tmp_path / "store")
    if refused:

        def refuse(*_: object) -> str:
            raise ServiceError("no more nodes in your quota")

        monkeypatch.setattr(service, "create", refuse)
    described = DescribeRequest("cpu", "fp32", "", Scale.parse("2x1"), devices=False)
    setup = ServiceSetup("another", service, CodeTree.of(root, ("proofmark", "vendors")), ("pydantic",), described)
    handle = HandingOver(setup).submit(Job("errand", "errand", Spec(str(run), 2, {"0": "where"}), run, LEAVES, 2))
    handle._thread.join(120)
    if refused:
        assert handle.status() == "failed"
        assert handle.facts()["lost"] == [{"node": None, "reason": "no more nodes in your quota"}]
        return
    assert handle.status() == "succeeded", handle.facts()
    assert [host["name"] for host in handle.facts()["hosts"]] == ["node0", "node1"]
    assert sorted(path.name for path in run.glob("noderank*/result*.json")) == ["result0.json", "result1.json"]
    assert "/code:/opt/runtime\n" in (run / "noderank0/agent.log").read_text()
    assert handle.facts()["ended"] > handle.facts()["started"] and "instances" not in handle.facts()
