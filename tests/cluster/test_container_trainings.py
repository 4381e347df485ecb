"""Runs in real containers: images found and built, rights on record, and no container left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import Campus
from tests.cluster.declared import declare, reached
from tests.cluster.engines import Engine, Podman, on_podman
from tests.cluster.site import Site, failure, recorded
from tests.e2e.conftest import House, Ran, clean, one_line_answer
from tests.waiting import until

MIDWAY = "tiny.pause=0.05, tiny.rank1.step10="


class Contained(Site):
    """A house whose trainings run in containers on this machine."""

    def __init__(self, house: House, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.mounts = [f"{path}:{path}:ro" for path in engine.mounts] + [f"{house.root}:{house.root}"]
        always = ("--container-engine", str(engine.path))
        super().__init__(house, folder, always, {"interface": "lo", "mounts": self.mounts})

    def give(self, **content: Any) -> None:
        """Write the vendors' container.yaml."""
        for vendor in ("cpu", "fake"):
            (self.house.root / f"vendors/{vendor}/container.yaml").write_text(yaml.safe_dump(content))

    @property
    def containerfile(self) -> Path:
        """What `--container vendor` is built from."""
        return self.house.root / "vendors/cpu/Containerfile"

    def images(self) -> set[str]:
        """Names of the images built for vendors."""
        listed = self.engine.ask("images", "--format={{.Repository}}:{{.Tag}}").split()
        return {name for name in listed if "proofmark" in name}

    def runs(self) -> list[Path]:
        """What is left of runs in the images' own folders; nothing of a container's lies in any other of these."""
        assert [path.name for path in self.work.iterdir()] == ["images"]
        (own,) = (self.work / "images").iterdir()
        return list((own / "runs").iterdir())


@pytest.fixture
def contained(house: House, engine: Engine, tmp_path: Path) -> Contained:
    """One machine, no container of ours on it."""
    return Contained(house, engine, tmp_path)


def nothing_is_left(engine: Engine) -> None:
    until(lambda: not engine.containers(), "no containers", every=0.2)


def refused(ran: Ran, *expected: str) -> None:
    """Exit code 4 and all of `expected`, no traceback, nothing left."""
    assert ran.code == 4, ran.output
    clean(ran)
    for words in expected:
        assert words in ran.output, ran.output


def test_a_training_in_a_container(contained: Contained, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(contained.house, monkeypatch)
    contained.give(shm_size="64m")
    ran = contained.run("--container", engine.image, scale="1x2")
    assert ran.code == 0, ran.output
    record = recorded(ran, "1x2")
    assert record.verdict is not None and record.verdict.kind == "PASS"
    (container,) = [host.container for host in record.runs[0].launched]
    assert container is not None
    (image,) = engine.ask("image", "inspect", "--format={{.Id}}", engine.image).split()
    assert (container.engine, container.image, container.id) == (str(engine.path), engine.image, image)
    assert (container.user, container.privileged, container.vendors) == ("0:0", False, False)
    assert container.command[:2] == (str(engine.path), "run") and container.command[-1] == engine.image
    assert {"--pull=never", "--shm-size=64m", f"--volume={contained.house.root}:{contained.house.root}"} <= {
        *container.command
    }
    folder = ran.run_dir / "training/tiny/1x2/round1/noderank0"
    reached(ran, record, *(folder / f"rank{rank}.log" for rank in (0, 1)))
    nothing_is_left(engine)
    assert contained.runs() == []


@on_podman
def test_a_vendors_image_is_built_once_and_anew_when_its_file_changes(contained: Contained) -> None:
    options = ("--container", "vendor", "--preflight-only")
    one_line_answer(contained.run(*options, scale="1x1"), "vendor cpu has no Containerfile")
    contained.containerfile.write_text("FROM scratch\nLABEL made=1\n")
    assert contained.run(*options, scale="1x1").code == 0
    (first,) = contained.images()
    created = contained.engine.ask("image", "inspect", "--format={{.Id}} {{.Created}}", first)
    assert contained.run(*options, scale="1x1").code == 0
    assert contained.engine.ask("image", "inspect", "--format={{.Id}} {{.Created}}", first) == created
    contained.containerfile.write_text("FROM scratch\nLABEL made=2\n")
    assert contained.run(*options, scale="1x1").code == 0
    assert len(contained.images()) == 2 and first in contained.images()
    contained.containerfile.write_text("FROM scratch\nCOPY absent /\n")
    refused(contained.run(*options, scale="1x1"), "building proofmark-cpu:", "absent")


THEIRS = """\
#!/usr/bin/sh
[ -z "$https_proxy$HTTPS_PROXY" ] || exit 1
/usr/bin/touch {work}/theirs
exec {python} "$@"
"""


@on_podman
def test_an_image_changes_nothing_that_others_are_given(
    contained: Contained, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its interpreter is its maker's, who may change what it is shown: a package that another's run imports, say."""
    (tmp_path / "python3").write_text(THEIRS.format(work=contained.work, python=sys.executable))
    (tmp_path / "python3").chmod(0o755)
    lines = ("FROM scratch", "COPY python3 /theirs/python3", "ENV PATH=/theirs:/usr/bin", 'ENTRYPOINT ["/theirs/none"]')
    (tmp_path / "Dockerfile").write_text("\n".join(lines))
    (tmp_path / ".dockerignore").write_text("*\n!python3\n")
    engine.ask("build", "--quiet", "--tag=localhost/theirs", str(tmp_path))
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://us:geheim@proxy.example.org")
    for image, python in (("localhost/theirs", "python3"), (engine.image, sys.executable)):
        ran = contained.run("--container", image, "--preflight-only", scale="1x1", python=python)
        assert ran.code == 0, ran.output
    folders = list((contained.work / "images").iterdir())
    assert len(folders) == 2 and sum((folder / "theirs").exists() for folder in folders) == 1
    assert [path.name for path in contained.work.iterdir()] == ["images"]


@on_podman  # each would need a daemon of its own
def test_containers_on_two_hosts(new_campus: Campus, engine: Engine, tmp_path: Path) -> None:
    campus = new_campus
    (tmp_path / "own").mkdir()
    contained = Contained(campus.house, engine, tmp_path / "own")
    contained.containerfile.write_text("FROM scratch\nLABEL made=there\n")
    ran = campus.run("--container", "vendor", "--container-engine", str(engine.path), mounts=contained.mounts)
    assert ran.code == 0, ran.output
    containers = [host.container for host in recorded(ran).runs[0].launched if host.container]
    assert len(containers) == 2
    assert len({container.image for container in containers}) == 1
    assert campus.is_empty(), [campus.hosts.processes(0), campus.hosts.processes(1)]


@on_podman
def test_what_is_missing_or_wrong_is_told(contained: Contained, engine: Engine) -> None:
    look = ("--preflight-only", "--container")
    refused(contained.run(*look, "no-such-image", scale="1x1"), "no-such-image", f"have {engine.path} pull or load")
    elsewhere = (engine.image, "--container-engine", "/no/engine")
    refused(contained.run(*look, *elsewhere, scale="1x1"), "/no/engine: ")
    refused(contained.run(*look, engine.image, python="/no/python", scale="1x1"), "/no/python")
    absent = contained.house.root / "absent"
    mounts = [*contained.mounts, f"{absent}:/srv:ro"]
    refused(contained.run(*look, engine.image, mounts=mounts, scale="1x1"), f"not visible to the user: {absent};")
    assert not absent.exists()
    contained.give(mounts=["here:there"], shm_size="much", privileged="yes", device=["/dev/x"])
    expected = ("mounts.0: ", "shm_size: ", "privileged: ", "device: unknown key")
    refused(contained.run(*look, engine.image, scale="1x1"), *expected)
    refused(contained.run("--container", engine.image, "--launcher", "ssh"), "hosts: expected at least one")


def test_a_container_that_is_killed_is_named(contained: Contained, engine: Engine) -> None:
    privileged = isinstance(
        engine, Podman
    )  # docker then asks for every capability, and not every machine's root has all
    contained.give(privileged=privileged)
    settings: dict[str, Any] = {"trouble": MIDWAY + "sleep", "scale": "1x2", "privileged": privileged}
    session = contained.start("--container", engine.image, **settings)
    contained.house.wait_for_trouble(session)
    (name,) = engine.containers()
    engine.ask("kill", name)
    ran = contained.house.end(session)
    assert ran.code == 17, ran.output
    assert failure(ran, "1x2") == f"this machine, container {name}: was killed by signal 9"
    (host,) = recorded(ran, "1x2").runs[0].launched
    assert host.container is not None and host.container.privileged == privileged
    nothing_is_left(engine)


STAYS = """\
#!/usr/bin/sh
trap "" HUP INT TERM
while :; do /usr/bin/sleep 1; done
"""
"""Instead of an interpreter: it does not look whether anybody is there."""


def test_nor_does_one_that_would_stay(contained: Contained, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "python3").write_text(STAYS)
    (tmp_path / "python3").chmod(0o755)
    lines = ("FROM scratch", "COPY python3 /theirs/python3", "ENV PATH=/theirs:/usr/bin")
    (tmp_path / "Dockerfile").write_text("\n".join(lines))
    (tmp_path / ".dockerignore").write_text("*\n!python3\n")
    engine.ask("build", "--quiet", "--tag=localhost/stays", str(tmp_path))
    session = contained.start("--container", "localhost/stays", scale="1x1", python="python3")
    until(engine.containers, "its container", every=0.2)
    session.kill()
    contained.house.end(session)
    nothing_is_left(engine)
    assert contained.house.becomes_empty()


def test_no_container_outlives_its_session(contained: Contained, engine: Engine) -> None:
    session = contained.start("--container", engine.image, trouble=MIDWAY + "hang", scale="1x2")
    contained.house.wait_for_trouble(session)
    session.kill()
    contained.house.end(session)
    nothing_is_left(engine)
    assert contained.house.becomes_empty()


@on_podman
def test_all_of_an_inference_in_a_container(
    contained: Contained, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(contained.house, monkeypatch)
    monkeypatch.setenv("HTTPS_PROXY", "http://us:geheim@proxy.example.org")
    ran = contained.infer("--container", engine.image)
    assert ran.code == 0, ran.output
    record = ran.record()
    assert record.verdict is not None and record.verdict.kind == "PASS"
    (host,) = record.launched
    assert host.container is not None and host.container.image == engine.image
    assert not host.container.vendors and not host.container.engines_alone
    assert record.claimed
    assert record.monitoring is not None and record.monitoring.samples and record.device == 0
    reached(ran, record, ran.case_dir() / "noderank0/worker.log")
    nothing_is_left(engine)
    assert contained.runs() == []


@on_podman
def test_a_container_that_is_killed_in_the_middle_of_inference_is_named(contained: Contained, engine: Engine) -> None:
    session = contained.start_inference("--container", engine.image, trouble="tiny.data=sleep")
    contained.house.wait_for_trouble(session)
    (name,) = engine.containers()
    engine.ask("kill", name)
    ran = contained.house.end(session)
    reason = ran.record().step("data_and_model").reason
    assert ran.code == 17 and reason == f"this machine, container {name}: was killed by signal 9", ran.output
    nothing_is_left(engine)


@on_podman
def test_no_container_outlives_its_inference_session(contained: Contained, engine: Engine) -> None:
    session = contained.start_inference("--container", engine.image, trouble="tiny.data=hang")
    contained.house.wait_for_trouble(session)
    session.kill()
    contained.house.end(session)
    nothing_is_left(engine)
    assert contained.house.becomes_empty()
