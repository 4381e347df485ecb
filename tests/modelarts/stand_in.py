"""ModelArts on this machine: API v2 as the real clients speak it, every request's signature verified."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

from tests.modelarts.buckets import Buckets
from tests.modelarts.platform_job import PlatformJob
from tests.modelarts.signature import is_signed

AK, SK, PROJECT = "AKSTANDINFORTESTS", "sk-that-must-be-nowhere-0123456789", "0a1b2c3d4e5f"
TAIL = 5 << 20
"""Bytes of a log's preview at most."""

DROP = "drop"
"""The connection is closed without an answer."""

Answer = tuple[int, Any]


class StandIn:
    """The service, with jobs of its own, and faults that a test orders."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets, self.jobs = buckets, dict[str, PlatformJob]()
        self.asked: Counter[str] = Counter()
        self.faults: defaultdict[str, deque[int | str | Callable[[], int]]] = defaultdict(deque)
        """By operation, what the next requests get: a status, DROP, or what to call after it was carried out."""
        self.held: str | None = None
        self.fate: str | None = None
        self.key = (AK, SK)
        self.metrics: list[float] = [-1, 40, 60]
        self.max_nodes, self.preview_ready = 4, True
        self.after_export: Callable[[PlatformJob], None] = lambda job: None
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for job in self.jobs.values():
            job.close()

    @property
    def job(self) -> PlatformJob:
        """The only one."""
        (job,) = self.jobs.values()
        return job

    def answer(self, method: str, path: str, body: bytes) -> Answer | str:
        """One request's answer, with the fault that was ordered for it."""
        for pattern, (wanted, name) in ROUTES.items():
            if wanted == method and (matched := re.fullmatch(pattern, path)):
                self.asked[name] += 1
                fault = self.faults[name].popleft() if self.faults[name] else None
                if isinstance(fault, int):
                    return fault, _error("ModelArts.0001", "busy")
                if isinstance(fault, str):
                    return fault
                done = getattr(self, f"_{name}")(*matched.groups(), **_fields(body))
                return (fault(), _error("ModelArts.0001", "busy")) if fault else done
        return 404, _error("APIG.0101", "no such API")

    def _create(self, **body: Any) -> Answer:
        with self._lock:
            name = body["metadata"]["name"]
            if any(job.name == name for job in self.jobs.values()):
                return 400, _error("ModelArts.2751", "the job name is there already")
            algorithm = body["algorithm"]
            if not ("boot_file" in algorithm or "command" in algorithm):
                return 400, _error("ModelArts.2806", "neither boot_file nor command")
            if body["spec"]["resource"]["node_count"] > self.max_nodes:
                return 400, _error("ModelArts.2793", "too many nodes")
            job = PlatformJob(body, self.buckets, self.held, self.fate, lambda job: self.after_export(job))
            self.jobs[job.id] = job
        return 201, job.view()

    def _look(self, identifier: str) -> Answer:
        job = self.jobs.get(identifier)
        return (200, job.view()) if job else (400, _error("ModelArts.2775", "no such job"))

    def _stop(self, identifier: str, action_type: str) -> Answer:
        job = self.jobs.get(identifier)
        if job is None or action_type != "terminate":
            return 400, _error("ModelArts.2775", "no such job")
        if job.phase in ("Completed", "Failed", "Terminated"):
            return 400, _error("ModelArts.2812", "it has ended")
        job.terminate()
        return 202, job.view()

    def _search(self, filters: list[dict[str, Any]], workspace_id: str = "0", **_: Any) -> Answer:
        (wanted,) = [each["value"] for each in filters if each["key"] == "name"]
        there = [job for job in self.jobs.values() if job.body["metadata"]["workspace_id"] == workspace_id]
        found = [job.view() for job in there if any(part in job.name for part in wanted)]
        return 200, {"total": len(found), "count": len(found), "limit": 50, "offset": 0, "items": found}

    def _preview(self, identifier: str, task: str) -> Answer:
        path = self.jobs[identifier].log(task)
        if not self.preview_ready or not path.exists():
            return 204, None
        content = path.read_bytes()
        said = content[-TAIL:].decode("utf-8", "replace")
        return 200, {"content": said, "current_size": len(said), "full_size": len(content)}

    def _metrics(self, identifier: str, task: str) -> Answer:
        return 200, {"metrics": [{"metric": "cpuUsage", "value": self.metrics}, {"metric": "npuUtil", "value": [-1]}]}

    def _flavors(self) -> Answer:
        info = {"max_num": self.max_nodes, "cpu": {"arch": "x86", "core_num": 2}}
        return 200, {"total_count": 1, "flavors": [{"flavor_id": "modelarts.vm.cpu.2u", "flavor_info": info}]}


ROUTES = {
    rf"/v2/{PROJECT}/training-jobs": ("POST", "create"),
    rf"/v2/{PROJECT}/training-jobs/([0-9a-f-]+)": ("GET", "look"),
    rf"/v2/{PROJECT}/training-jobs/([0-9a-f-]+)/actions": ("POST", "stop"),
    rf"/v2/{PROJECT}/training-job-searches": ("POST", "search"),
    rf"/v2/{PROJECT}/training-jobs/([0-9a-f-]+)/tasks/([a-z0-9-]+)/logs/preview": ("GET", "preview"),
    rf"/v2/{PROJECT}/training-jobs/([0-9a-f-]+)/metrics/([a-z0-9-]+)": ("GET", "metrics"),
    rf"/v2/{PROJECT}/training-job-flavors": ("GET", "flavors"),
}


def _error(code: str, message: str) -> dict[str, str]:
    return {"error_code": code, "error_msg": message, "error_solution": ""}


def _fields(body: bytes) -> dict[str, Any]:
    return dict(json.loads(body)) if body else {}


class _Handler(BaseHTTPRequestHandler):
    service: ClassVar[StandIn]
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one piece

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not is_signed(self.command, self.path, self.headers, body, *self.service.key):
            self._send(401, _error("APIG.0301", "Incorrect IAM authentication information: verify aksk signature fail"))
            return
        answer = self.service.answer(self.command, self.path.partition("?")[0], body)
        if isinstance(answer, str):
            self.close_connection = True
            self.connection.close()
            return
        self._send(*answer)

    def _send(self, status: int, content: Any) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""
