"""This machine, as one host: for a container on it."""

from __future__ import annotations

from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.node import Here, Nodes
from proofmark.launch.launchers import HostLauncher


class _Local(HostLauncher):
    elsewhere = False

    def count(self, cluster: Cluster) -> int:
        return 1

    def nodes(self, cluster: Cluster, origin: str) -> Nodes:
        return Here()


launcher = _Local()
