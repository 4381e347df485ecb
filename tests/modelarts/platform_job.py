"""A training job of the stand-in: its command once per node, as real processes with the platform's variables."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.modelarts.buckets import BUCKET, Buckets

SECRETS = ("HUAWEICLOUD_", "AWS_")
"""How variables begin that no node is to see."""

GRACE = 30.0
"""Seconds from SIGTERM to SIGKILL, and from one node's failure to the others' end: those that end by
themselves have the time to say of what, on a busy machine too."""


class PlatformJob:
    """One job, from its creation on. A test may hold it in a phase, or have it end in one."""

    def __init__(
        self,
        body: dict[str, Any],
        buckets: Buckets,
        held: str | None = None,
        fate: str | None = None,
        after_export: Callable[[PlatformJob], None] = lambda job: None,
    ) -> None:
        self._after_export = after_export
        self.id, self.body, self._buckets = str(uuid.uuid4()), body, buckets
        self.created, self.started, self.ended = time.time(), 0.0, 0.0
        self.phase, self._held, self._fate = "Creating", held, fate
        self.codes: dict[str, int | None] = dict.fromkeys(self.tasks)
        self.records: list[dict[str, Any]] = []
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._terminated = threading.Event()
        self.folder = Path(tempfile.mkdtemp(prefix="platform-"))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def tasks(self) -> list[str]:
        return [f"worker-{index}" for index in range(self.body["spec"]["resource"]["node_count"])]

    def view(self) -> dict[str, Any]:
        """As the platform shows it. Environments are left out: the client's own model does not read them."""
        ran = (self.ended or time.time()) - self.started if self.started else 0
        statuses = [{"task": task, "exit_code": code} for task, code in self.codes.items() if code is not None]
        status = {"phase": self.phase, "duration": int(ran * 1000), "tasks": self.tasks, "task_statuses": statuses}
        status |= {"start_time": int(self.started * 1000)} if self.started else {}
        status |= {"running_records": self.records} if self.started else {}
        metadata = {"id": self.id, "name": self.name, "create_time": int(self.created * 1000)}
        return {"kind": "job", "metadata": metadata, "status": status}

    def terminate(self) -> None:
        """As the service's API does."""
        if self.phase not in ("Completed", "Failed", "Terminated", "Abnormal"):
            self.phase = "Terminating"
            self._terminated.set()

    def log(self, task: str) -> Path:
        """Where a node's output goes."""
        return self.folder / f"{task}.log"

    def close(self) -> None:
        """End all of it, and leave nothing."""
        self._held = None
        self._terminated.set()
        self._thread.join(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        self.phase = "Pending"
        self._hold("Pending")
        if not self._terminated.is_set():
            self.started, self.phase = time.time(), "Running"
            self.records.append({"start_at": int(self.started), "start_type": "init_or_rescheduled"})
            if self._held != "Running" and self._fate is None:
                self._nodes = [self._start(index) for index in range(len(self.tasks))]
            self._hold("Running")
            self._wait()
            self._export()
            self._after_export(self)
        self.ended = time.time()
        good = all(code == 0 for code in self.codes.values())
        self.phase = "Terminated" if self._terminated.is_set() else self._fate or ("Completed" if good else "Failed")

    def _hold(self, phase: str) -> None:
        while self._held == phase and not self._terminated.wait(0.02):
            pass

    def _wait(self) -> None:
        """Until all nodes have ended; one that fails, or a termination, takes the others with it."""
        deadline, passed_on = float("inf"), False
        while None in [node.poll() for node in self._nodes]:
            self._note_codes()
            ending = self._terminated.is_set() or any(node.returncode for node in self._nodes)
            if ending and deadline == float("inf"):
                deadline = time.monotonic() + GRACE
            if self._terminated.is_set() and not passed_on:
                passed_on = True
                self._signal(signal.SIGTERM)
            if time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
            self._export_logs()
            time.sleep(0.1)
        self._signal(signal.SIGKILL)
        self._note_codes()

    def _signal(self, number: int) -> None:
        for node in self._nodes:
            if number == signal.SIGKILL or node.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(node.pid, number)

    def _note_codes(self) -> None:
        for task, node in zip(self.tasks, self._nodes, strict=False):
            if node.returncode is not None:
                self.codes[task] = node.returncode if node.returncode >= 0 else 128 - node.returncode

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        home, algorithm = self.folder / f"node{index}", self.body["algorithm"]
        given = {}
        for channel in algorithm["inputs"]:
            self._buckets.download(channel["remote"]["obs"]["obs_url"], home / channel["name"])
            given[channel["name"]] = (str(home / channel["name"]), channel["access_method"])
        for channel in algorithm["outputs"]:
            (home / channel["name"]).mkdir(parents=True)
            given[channel["name"]] = (str(home / channel["name"]), channel["access_method"])
        tree = algorithm["code_dir"].rstrip("/").rpartition("/")[2]
        self._buckets.download(algorithm["code_dir"], home / "job" / tree)
        parameters = [f"--{name}={path}" for name, (path, how) in given.items() if how == "parameter"]
        variables = {name: path for name, (path, how) in given.items() if how == "env"}
        command = ["/bin/bash", "-c", algorithm.get("command", "")]
        if "boot_file" in algorithm:
            boot = home / "job" / tree / algorithm["boot_file"].removeprefix(algorithm["code_dir"])
            command = [sys.executable, str(boot), *parameters]
        with self.log(self.tasks[index]).open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**self._environment(index, home), **variables},
                start_new_session=True,
                cwd=home,
            )

    def _environment(self, index: int, home: Path) -> dict[str, str]:
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith((*SECRETS, "PYTEST_", "PROOFMARK_"))
        }
        (home / "home").mkdir()
        (home / "tmp").mkdir()
        platform = {
            "MA_NUM_HOSTS": str(len(self.tasks)),
            "MA_NUM_GPUS": "0",
            "VC_TASK_INDEX": str(index),
            "VC_WORKER_NUM": str(len(self.tasks)),
            "VC_WORKER_HOSTS": ",".join(["127.0.0.1"] * len(self.tasks)),
            "MA_TASK_NAME": self.tasks[index],
            "MA_JOB_DIR": str(home / "job"),
        }
        own = {"HOME": str(home / "home"), "TMPDIR": str(home / "tmp")}
        return {**kept, **self.body["algorithm"].get("environments", {}), **platform, **own}

    def _export(self) -> None:
        for index in range(len(self._nodes)):
            for channel in self.body["algorithm"]["outputs"]:
                url = channel["remote"]["obs"]["obs_url"]
                self._buckets.upload(self.folder / f"node{index}" / channel["name"], url)
        self._export_logs()

    def _export_logs(self) -> None:
        prefix = self.body["spec"]["log_export_path"]["obs_url"].removeprefix(f"/{BUCKET}/")
        for task in self.tasks:
            if self.log(task).exists():
                self._buckets.write(f"{prefix}modelarts-job-{self.id}-{task}.log", self.log(task).read_bytes())
