"""Jobs of errands at the stand-in, submitted as a session does it."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.launch.job import HostLayout, Job
from proofmark.launch.job_file import index_in
from proofmark.launch.launchers import ServiceLauncher, find_launcher
from proofmark.launch.service.contract import Service
from proofmark.launch.service.handle import HandingOver, ServiceHandle, ServiceSetup
from proofmark.rules.scale import Scale
from tests.modelarts.buckets import BUCKET, Buckets, free_port
from tests.modelarts.stand_in import PROJECT, StandIn
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).parents[2]
LEAVES = ("agent.log", "rank[0-9]*.log", "result[0-9]*.json")


@dataclass(frozen=True)
class Spec:
    """What an errand is told."""

    directory: str
    world: int
    trouble: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(asdict(self))

    def save(self, path: Path) -> None:
        path.write_text(self.text())

    def moved(self, layout: HostLayout) -> Spec:
        return replace(self, directory=layout.directory)


class Bench:
    """A cloud file, and jobs by it."""

    def __init__(self, folder: Path, stand_in: StandIn, buckets: Buckets) -> None:
        self.folder, self.stand_in, self.buckets = folder, stand_in, buckets
        self.file = folder / "cloud.yaml"
        self.prefix = folder.name.replace("_", "-")
        self.content: dict[str, Any] = {
            "region": "cn-north-4",
            "project_id": PROJECT,
            "endpoint": stand_in.endpoint,
            "obs_endpoint": buckets.endpoint,
            "code_dir": f"/{BUCKET}/code/",
            "out_url": f"/{BUCKET}/{self.prefix}/runs/",
            "image": "team/proofmark:1",
            "python": sys.executable,
            "flavor": "modelarts.vm.cpu.2u",
            "nodes": 2,
            "master_port": free_port(),
            "environment": {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
            "poll": [0.1, 0.3],
            "error_budget": 300,
        }
        self.root = folder / "tree"
        self.root.mkdir()
        for name in ("proofmark", "vendors"):
            (self.root / name).symlink_to(ROOT / name)
        shutil.copy(Path(__file__).with_name("errand.py"), self.root)
        self.cache = folder / "cache"

    def write(self, **changes: Any) -> Path:
        """Write the cloud file; None leaves a key out."""
        content = {key: value for key, value in {**self.content, **changes}.items() if value is not None}
        self.file.write_text(yaml.safe_dump(content))
        return self.file

    def service(self, **changes: Any) -> Service:
        launcher = find_launcher("modelarts")
        assert isinstance(launcher, ServiceLauncher)
        return launcher.service({"cloud_config": str(self.write(**changes))})

    def submit(self, trouble: dict[str, str] | None = None, nnodes: int = 2, **changes: Any) -> ServiceHandle:
        """Hand an errand over."""
        directory = self.folder / f"run{len(list(self.folder.glob('run*')))}"
        directory.mkdir()
        service = self.service(**changes)
        setup = ServiceSetup(
            launcher="modelarts",
            service=service,
            code=CodeTree.of(self.root, ("proofmark", "vendors")),
            packages=("pydantic",),
            described=DescribeRequest("cpu", "fp32", "", Scale.parse(f"{nnodes}x1"), devices=False),
        )
        spec = Spec(str(directory), nnodes, trouble or {})
        job = Job("training/errand", "errand", spec, directory, LEAVES, nnodes, index=index_in(str(self.cache)))
        return HandingOver(setup).submit(job)

    def end(self, handle: ServiceHandle) -> str:
        """Wait for a job; how it ended."""
        deadline = time.monotonic() + PATIENCE
        while (status := handle.status()) == "running":
            assert time.monotonic() < deadline, handle.news()
            time.sleep(0.02)
        return status

    def run(self, trouble: dict[str, str] | None = None, nnodes: int = 2, **changes: Any) -> tuple[str, ServiceHandle]:
        handle = self.submit(trouble, nnodes, **changes)
        return self.end(handle), handle

    def until(self, true: Any, what: str) -> None:
        """Wait for something to become true."""
        until(true, what)


def reasons(handle: ServiceHandle) -> list[str]:
    """Why a job was lost."""
    return [each["reason"] for each in handle.facts()["lost"]]
