"""A launcher from outside: a package of its own, and nothing else is edited for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster.site import Site
from tests.e2e.conftest import House, one_line_answer

ACME = """
from proofmark.errors import UsageError
from proofmark.launch.cluster.node import Node
from proofmark.launch.launchers import HostLauncher


class Machines:
    stay = False

    def __init__(self, region):
        self.region, self.taken = region, 0

    async def take(self, count, tell):
        self.taken = count
        tell(f"{count} machines in {self.region}")
        return [Node(f"{self.region}-{number}", "127.0.0.1", ("env", "IN_ACME=1")) for number in range(count)]

    async def give_back(self):
        self.taken = 0

    async def gone(self):
        return None


class Acme(HostLauncher):
    keys = frozenset({"launcher_options"})

    def count(self, cluster):
        return None

    def nodes(self, cluster, origin):
        if "region" not in cluster.launcher_options:
            raise UsageError(f"{origin}: launcher_options: region is missing")
        return Machines(cluster.launcher_options["region"])


launcher = Acme()
"""


@pytest.fixture
def site(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A house whose sessions have the package."""
    package = tmp_path / "package"
    (package / "acme_cloud-1.dist-info").mkdir(parents=True)
    (package / "acme_cloud.py").write_text(ACME)
    (package / "acme_cloud-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: acme-cloud\nVersion: 1\n")
    (package / "acme_cloud-1.dist-info/entry_points.txt").write_text("[proofmark.launchers]\nacme = acme_cloud\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]))
    return Site(house, tmp_path, ("--launcher", "acme"), {"launcher_options": {"region": "north"}})


def test_a_case_runs_where_it_says(site: Site) -> None:
    ran = site.infer()
    assert ran.code == 0 and "1 machines in north" in ran.output, ran.output
    assert [host.name for host in ran.record().launched] == ["north-0"]
    assert list((site.work / "runs").iterdir()) == []


def test_what_it_lacks_is_told_in_its_words(site: Site) -> None:
    one_line_answer(site.infer("--preflight-only", launcher_options={}), "launcher_options: region is missing")
