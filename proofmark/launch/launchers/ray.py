"""Ray: a job is a task, wherever Ray places it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.launchers import TaskCluster, TaskLauncher


class _OnRay(TaskLauncher):
    options = {
        "--ray-address": {
            "metavar": "HOST:PORT",
            "help": "the Ray cluster that --launcher ray places trials on (one of this machine alone)",
        },
        "--ray-resource": {
            "metavar": "NAME",
            "help": "the resource that a trial's devices are there (GPU; CPU where the device is the processor)",
        },
    }

    def open(self, options: Mapping[str, Any], accelerated: bool, code: CodeTree) -> TaskCluster:
        from proofmark.launch.ray.cluster import GPU, PROCESSOR, RayCluster

        resource = options["ray_resource"] or (GPU if accelerated else PROCESSOR)
        return RayCluster(options["ray_address"], resource, code)


launcher = _OnRay()
