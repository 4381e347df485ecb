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
            "help": "the Ray cluster on which --launcher ray places trials (a new one on this machine)",
        },
        "--ray-resource": {
            "metavar": "NAME",
            "help": "that cluster's name for the devices of trials (GPU; CPU if the device is the processor)",
        },
    }

    def open(self, options: Mapping[str, Any], accelerated: bool, code: CodeTree) -> TaskCluster:
        from proofmark.launch.ray.cluster import GPU, PROCESSOR, RayCluster

        resource = options["ray_resource"] or (GPU if accelerated else PROCESSOR)
        return RayCluster(options["ray_address"], resource, code, accelerated)


launcher = _OnRay()
