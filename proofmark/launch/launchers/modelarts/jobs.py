"""Training jobs of ModelArts, API v2: created, looked at, listened to, ended, and what they leave added up."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from importlib.resources import files
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from proofmark.errors import UsageError
from proofmark.launch.job_file import AtService
from proofmark.launch.launchers.modelarts import triplet, wire
from proofmark.launch.launchers.modelarts.access import Access, Buckets, keys_for
from proofmark.launch.launchers.modelarts.cloud_file import Cloud, refuse_secrets
from proofmark.launch.launchers.modelarts.credentials import credentials_file, find_credentials
from proofmark.launch.launchers.modelarts.obs import Obs
from proofmark.launch.launchers.modelarts.sdk import asked, modelarts_client, sdk_module
from proofmark.launch.launchers.modelarts.train_result_info import Measured
from proofmark.launch.rank_result import RankResult, rank_results
from proofmark.launch.service.contract import (
    Ended,
    LogPart,
    ObjectStore,
    Places,
    Service,
    ServiceError,
    Task,
    Timing,
    View,
)
from proofmark.launch.service.patience import Patience
from proofmark.launch.service.ticket import DATA, home_of
from proofmark.launch.service.transfer import is_stale

BOOT = "boot.py"
RESULTS = "results"
"""The folder of a run that the job's triplets come to."""

UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""What a text has in the place of bytes that are none of it."""

NOTHING_YET = 204
ENDED_ALREADY = ("Completed", "Failed", "Abnormal", "Terminated", "Terminating")

METRICS = 30.0
"""Seconds that metrics are asked for again: no run fails for lack of them."""

OUTLIVED = (
    "WARNING the access key is a temporary one, and has to be good for longer than the job, which may run for {} h "
    "(`auto_stop`): put a new one into {} before it ends, or the job can be neither followed nor ended from here"
)

LIMIT = "the platform ends a job that has run for {} h (`auto_stop`)"
STOPPED = "as somebody asked for, or as it had run for {} h (`auto_stop`)"

OF_CARDS, OF_PROCESSOR = ("npuUtil", "gpuUtil"), ("cpuUsage",)
"""The platform's metrics in percent."""


class ModelArts(Service):
    """One project's jobs."""

    data_from = "`data_url` in the file of --cloud-config"

    def __init__(self, cloud: Cloud, home: Path | None) -> None:
        """Prepare; nothing is asked yet.

        Args:
            cloud: what cloud.yaml says.
            home: its folder, None where no job is to be created.

        Raises:
            UsageError: the clients are not installed, or there is no access key, or it stands in the cloud file.
        """
        self._cloud = cloud
        who = find_credentials(cloud.keyring)
        refuse_secrets(cloud, who.is_in)
        known = partial(keys_for, cloud)
        self._clients = Access(who, lambda each: (each, modelarts_client(cloud, each)), known)
        self._obs = Buckets(Access(who, partial(Obs, cloud), known))
        outlived = [OUTLIVED.format(cloud.auto_stop, credentials_file())] if who.token else []
        self.notes = [*outlived, LIMIT.format(cloud.auto_stop)]
        self._theirs = sdk_module("huaweicloudsdkmodelarts.v1")
        self._from_bucket = set[str]()
        """Logs of which all that is here came from the bucket, by this session; others may begin with a preview."""
        self.timing = Timing(cloud.poll, cloud.error_budget, cloud.queue_timeout, life=3600.0 * cloud.auto_stop)
        self.servers = cloud.servers
        self.data_dir = DATA if cloud.data_url else None
        self.environment, self.master_port = cloud.environment, cloud.master_port
        self.boot = {BOOT: (files(__package__) / BOOT).read_bytes()}
        if cloud.boot_name and home:
            self.boot[cloud.boot_name] = (home / cloud.boot_name).read_bytes()

    @property
    def store(self) -> ObjectStore:
        """The buckets."""
        return self._obs

    @property
    def settings(self) -> dict[str, Any]:
        """The cloud file as it was understood."""
        return self._cloud.model_dump(mode="json")

    def count(self) -> int:
        """How many nodes a job may have; independent servers are one each."""
        return 1 if self.servers else self._cloud.nodes

    def examine(self, nodes: int, nproc: int) -> list[str]:
        """Whether there is such a flavor, with so many nodes and cards, and whether the bucket is ours to use."""
        cloud, nodes = self._cloud, self.servers or nodes
        cards = cloud.cards_of_node
        if cards and nproc > cards:
            raise UsageError(
                f"flavor {cloud.flavor} has {cards} cards, and the scale wants {nproc} processes on a node"
            )
        kinds = wire.read(
            self._asked("flavors", "show_training_job_flavors", "ShowTrainingJobFlavors")[1], wire.Flavors, "flavors"
        )
        known = {each.flavor_id: each.flavor_info.max_num for each in kinds.flavors or ()}
        if cloud.pool_id is None and cloud.flavor not in known:
            raise UsageError(f"there is no flavor {cloud.flavor} here; there are {', '.join(sorted(known)) or 'none'}")
        most = known.get(cloud.flavor)
        if most is not None and nodes > most:
            raise UsageError(f"{nodes} nodes of {cloud.flavor}, and a job may have {most} of them")
        self._obs.list(cloud.out_url[1:] + "proofmark-probe/")
        return [f"{cloud.region}: {nodes} x {cloud.flavor} can be asked for; {cloud.out_url} is there", *self.notes]

    def places(self, name: str, code: str) -> Places:
        """Code by its content and that of the files beside it, and a folder for each job."""
        home = f"{self._cloud.out_url[1:]}{name}/"
        content = [code, *(f"{file} {hashlib.sha256(self.boot[file]).hexdigest()}" for file in sorted(self.boot))]
        tree = hashlib.sha256("\n".join(content).encode()).hexdigest()
        return Places(f"{self._cloud.code_dir[1:]}{tree}/", f"{home}job/", f"{home}results/")

    def create(self, name: str, nodes: int, places: Places) -> str:
        """Create a job. An answer that can't be read is one that was lost: the job may be there."""
        body = self._body(name, nodes, places)
        return self._job(f"creating job {name}", "create_training_job", "CreateTrainingJob", body=body).metadata.id

    def find(self, name: str) -> str | None:
        """Find a job by its exact name: the service's search would take a part of it."""
        what = f"looking for job {name}"
        body = {"limit": 50, "offset": 0, "filters": [{"key": "name", "operator": "in", "value": [name]}]}
        body["workspace_id"] = self._cloud.workspace_id  # else the service looks in the default one
        found = wire.read(self._asked(what, "list_training_jobs", "ListTrainingJobs", body=body)[1], wire.Jobs, what)
        return next((job.metadata.id for job in found.items or () if job.metadata.name == name), None)

    def look(self, identifier: str) -> View:
        """A job's phase, tasks and times."""
        what, method = f"looking at job {identifier}", "show_training_job_details"
        view = self._job(what, method, "ShowTrainingJobDetails", training_job_id=identifier).view()
        return replace(view, message=STOPPED.format(self._cloud.auto_stop)) if view.state == "stopped" else view

    def log(self, at: AtService, task: Task, since: int) -> LogPart:
        """A task's log from a position on, from the bucket; before it is there, from the service's preview, which has
        its end.

        A preview is a text, and no more than shown: once the bucket has the log, it is had from its first byte.
        """
        name = self.log_name(at, task)
        begins = since if name in self._from_bucket else 0
        found = self._obs.log(f"{self._cloud.out_url[1:]}{at.name}/log/{name}", begins)
        if found is not None:
            self._from_bucket.add(name)
            return LogPart(begins, found)
        return LogPart(since, self._previewed(at, task, since))

    def log_name(self, at: AtService, task: Task) -> str:
        """A log's name in the bucket, as the platform gives it."""
        return f"modelarts-job-{at.id}-{task.name}.log"

    def stop(self, identifier: str) -> None:
        """Terminate a job by its id."""
        what, body = f"ending job {identifier}", {"action_type": "terminate"}
        try:
            self._asked(what, "stop_training_job", "StopTrainingJob", training_job_id=identifier, body=body)
        except ServiceError:
            if self.look(identifier).phase not in ENDED_ALREADY:
                raise

    def conclude(self, ended: Ended) -> dict[str, Any]:
        """The instances of the original's triplets, and its `train_result_info`, into a file too."""
        ranks = ended.nproc if self.servers else ended.nodes * ended.nproc
        keys = triplet.keys_of(ended.listed, ranks, self.servers)
        folder = ended.folder / RESULTS
        for key in keys:
            triplet.refuse_large(key, ended.listed[key].size)
            if older := is_stale(ended.listed[key], ended.view.created):
                raise ServiceError(f"result {key} {older}")
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            self._obs.fetch(f"{self.places(ended.at.name, '').results}{key}", folder / key)
        results = [_rank_results(ended.folder / home_of(node, self.servers is not None)) for node in range(ended.nodes)]
        triplet.hold_against(folder, results if self.servers else [list(chain(*results))], ranks, self.servers)
        utilisation, why_not = self._utilisation(ended)
        measured = Measured(
            ended=ended,
            mode=self._cloud.aggregate,
            instances=triplet.read(folder, keys, ranks, self.servers),
            results=list(chain(*results)),
            utilisation=utilisation,
            no_utilisation=why_not,
        )
        measured.save()
        return {"instances": measured.instances_fact()}

    def _previewed(self, at: AtService, task: Task, since: int) -> bytes:
        what = f"the log of {task.name} of job {at.id}"
        method, kind = "show_training_job_logs_preview", "ShowTrainingJobLogsPreview"
        status, content = self._asked(what, method, kind, training_job_id=at.id, task_id=task.name)
        if status == NOTHING_YET:
            return b""
        preview = wire.read(content, wire.LogPreview, what)
        said = preview.content.encode("utf-8", "surrogatepass")
        begins = preview.full_size - len(said)
        if begins < 0 or UNREADABLE in preview.content:
            return b""  # bytes were lost when it was made a text: the bucket's has them
        return said[since - begins :] if begins <= since else b""  # what lies between comes with the bucket's

    def _utilisation(self, ended: Ended) -> tuple[float | None, str]:
        """The mean over tasks, devices and minutes, as a share of 1; or None, and why. The processor's of a flavor
        without cards alone."""
        names = OF_PROCESSOR if self._cloud.cards_of_node == 0 else OF_CARDS
        seen: dict[str, list[float]] = {}
        patience = Patience(Timing(self.timing.poll, min(self.timing.budget, METRICS)))
        for task in ended.view.tasks:
            try:
                metrics = patience.ask(partial(self._metrics, ended.at, task))
            except ServiceError as error:
                return None, str(error)
            for each in metrics.metrics or ():
                seen.setdefault(each.metric, []).extend(value for value in each.value or () if 0 <= value <= 100)
        if values := [value for name in names for value in seen.get(name, ())]:
            return fmean(values) / 100, ""
        return None, f"the platform has measured no {' or '.join(names)}: its metrics are means of whole minutes"

    def _metrics(self, at: AtService, task: Task) -> wire.Metrics:
        what = f"metrics of {task.name}"
        method, kind = "show_training_job_metrics", "ShowTrainingJobMetrics"
        status, content = self._asked(what, method, kind, training_job_id=at.id, task_id=task.name)
        return wire.read(content, wire.Metrics, what) if status != NOTHING_YET else wire.Metrics()

    def _asked(self, what: str, method: str, kind: str, **fields: Any) -> tuple[int, bytes]:
        """Status and content of an answer. One that can't be read is one that was lost: the next may be whole."""
        request = getattr(self._theirs, f"{kind}Request")(**fields)
        try:
            answer = self._clients.ask(lambda each: asked(what, each[0], lambda: getattr(each[1], method)(request)))
        except (TypeError, ValueError) as error:  # their client reads an answer before it hands it out
            invalid = f"{what}: the service sent an invalid answer: {type(error).__name__}"
            raise ServiceError(invalid, transient=True) from None
        return answer.status_code, answer.raw_content

    def _job(self, what: str, method: str, kind: str, **fields: Any) -> wire.Job:
        """What is said of a job, which may be read at the next try where it can't be now."""
        content = self._asked(what, method, kind, **fields)[1]
        try:
            return wire.read(content, wire.Job, what)
        except ServiceError as error:
            raise ServiceError(str(error), transient=True) from None

    def _body(self, name: str, nodes: int, places: Places) -> dict[str, Any]:
        cloud, home = self._cloud, f"{self._cloud.out_url}{name}/"
        resource = {"flavor_id": cloud.flavor, "node_count": nodes}
        spec: dict[str, Any] = {
            "resource": resource | ({"pool_id": cloud.pool_id} if cloud.pool_id else {}),
            "log_export_path": {"obs_url": f"{home}log/"},
            "auto_stop": {"time_unit": "HOURS", "duration": cloud.auto_stop},
        }
        if cloud.priority is not None:
            spec["schedule_policy"] = {"priority": cloud.priority}
        metadata = {"name": name, "workspace_id": cloud.workspace_id, "description": cloud.description}
        return {"kind": "job", "metadata": metadata, "algorithm": self._algorithm(places), "spec": spec}

    def _algorithm(self, places: Places) -> dict[str, Any]:
        """With an image of the user's a command, with one of the platform's a boot file."""
        cloud, boot = self._cloud, self._cloud.boot_name or BOOT
        method = "env" if cloud.image else "parameter"

        def channel(name: str, folder: str) -> dict[str, Any]:
            return {"name": name, "access_method": method, "remote": {"obs": {"obs_url": folder}}}

        data = [channel("data_url", cloud.data_url)] if cloud.data_url else []
        common = {
            "code_dir": f"/{places.code}",
            "inputs": [*data, channel("job_url", f"/{places.ticket}")],
            "outputs": [channel("train_url", f"/{places.results}")],
            "environments": cloud.environment,
        }
        if cloud.engine:
            engine = {"engine_name": cloud.engine.name, "engine_version": cloud.engine.version}
            return {**common, "engine": engine, "boot_file": f"/{places.code}{boot}"}
        tree = places.code.rstrip("/").rpartition("/")[2]
        command = f"{cloud.python} ${{MA_JOB_DIR}}/{tree}/{boot}"
        return {**common, "engine": {"image_url": cloud.image}, "command": command}


def _rank_results(home: Path) -> list[RankResult]:
    """What the ranks of a node said."""
    try:
        return rank_results(home)
    except ValueError as error:
        raise ServiceError(f"result {home.parent.name}/{home.name}/{error}") from None
