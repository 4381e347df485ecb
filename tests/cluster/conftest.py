"""Hosts, a Slurm cluster and a container engine, for the tests that need real ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.netns import Hosts
from tests.cluster.podman import Podman
from tests.cluster.slurm import Slurm


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Two hosts, for one test to do with as it likes."""
    with Hosts(2, tmp_path_factory.mktemp("hosts")) as started:
        yield started


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Two nodes. Whoever drains one resumes it."""
    with Slurm(tmp_path_factory.mktemp("slurm")) as started:
        yield started


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    """A container engine of the module's own."""
    with Podman() as started:
        yield started
