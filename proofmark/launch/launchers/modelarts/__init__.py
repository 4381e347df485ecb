"""Huawei Cloud's ModelArts, API v2: `--launcher modelarts --cloud-config cloud.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofmark.errors import UsageError
from proofmark.launch.launchers import ServiceLauncher
from proofmark.launch.service.contract import Service

OPTION = "--cloud-config"


class _ModelArts(ServiceLauncher):
    """What takes long to import is imported where it is asked for."""

    options = {OPTION: {"metavar": "FILE", "help": "region, flavor, buckets and image of --launcher modelarts"}}

    def service(self, options: Mapping[str, Any]) -> Service:
        from proofmark.launch.launchers.modelarts.cloud_file import load_cloud
        from proofmark.launch.launchers.modelarts.jobs import ModelArts

        file = options["cloud_config"]
        if file is None:
            raise UsageError(f"--launcher modelarts needs {OPTION} FILE: docs/cloud.md")
        return ModelArts(load_cloud(Path(file)), Path(file).parent)

    def recalled(self, settings: Mapping[str, Any]) -> Service:
        from proofmark.launch.launchers.modelarts.cloud_file import Cloud
        from proofmark.launch.launchers.modelarts.jobs import ModelArts

        return ModelArts(Cloud.recalled(settings), None)


launcher = _ModelArts()
