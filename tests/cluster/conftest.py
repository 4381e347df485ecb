"""Hosts, a Slurm cluster and a container engine, for the tests that need real ones."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.engines import Docker, Engine, Podman
from tests.cluster.imaged import Imaged
from tests.cluster.netns import Hosts
from tests.cluster.site import Site
from tests.cluster.slurm import Slurm
from tests.e2e.conftest import House, ask_jobs, house, trained
from tests.waiting import PATIENCE

__all__ = ["ask_jobs", "house", "trained"]


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Two hosts that have never been used."""
    with Hosts(2, tmp_path_factory.mktemp("hosts")) as started:
        yield started


@pytest.fixture(scope="session")
def lasting_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Two hosts for all tests: with the code of earlier ones, and weights that were trained there."""
    with Hosts(2, tmp_path_factory.mktemp("hosts")) as started:
        yield started


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Two nodes. Whoever drains one resumes it."""
    with Slurm(tmp_path_factory.mktemp("slurm")) as started:
        yield started


@pytest.fixture(scope="module", params=[Podman, Docker], ids=["podman", "docker"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A container engine of the module's own."""
    with request.param() as started:
        yield started


@pytest.fixture
def imaged(house: House, engine: Engine, tmp_path: Path) -> Imaged:
    """One machine whose engines are in an image, no container of ours on it."""
    return Imaged(house, engine, tmp_path)


class Campus(Site):
    """Hosts for a house's trainings over ssh. Each host has a disk of its own."""

    def __init__(self, house: House, hosts: Hosts, folder: Path) -> None:
        client = hosts.client_config()
        content = {
            "hosts": [host.name for host in hosts.hosts],
            "port": hosts.hosts[0].port,
            "user": "root",
            "key": str(client.key),
            "known_hosts": str(client.known_hosts),
            "interface": "eth0",
        }
        super().__init__(house, folder, ("--launcher", "ssh"), content, hosts.work)
        self.hosts = hosts

    def on(self, index: int, *command: str, check: bool = True) -> None:
        """Run a command as a host's administrator, to which that is not to last."""
        self.hosts.touch(index)
        cell = self.hosts.hosts[index].cell
        assert cell is not None
        subprocess.run(cell.inside(*command), check=check, capture_output=True)

    def is_empty(self, seconds: float = PATIENCE) -> bool:
        """Whether nothing of ours runs on any host any more, within `seconds`. A cut-off sshd may linger."""
        deadline = time.monotonic() + seconds
        running = [host for host in range(len(self.hosts.hosts)) if self.hosts.hosts[host].cell is not None]
        while any(process.info["name"] != "sshd" for host in running for process in self.hosts.processes(host)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True


@pytest.fixture
def new_campus(house: House, hosts: Hosts, tmp_path: Path) -> Campus:
    """Two new hosts for the tiny case."""
    return Campus(house, hosts, tmp_path)


@pytest.fixture
def campus(house: House, lasting_hosts: Hosts, tmp_path: Path) -> Iterator[Campus]:
    """Two hosts for the tiny case, as good as new, but for what earlier cases left in their work directories."""
    lent = Campus(house, lasting_hosts, tmp_path)
    yield lent
    for index in range(len(lasting_hosts.hosts)):
        if lasting_hosts.processes(index):
            lasting_hosts.touch(index)
    lasting_hosts.mend()
