"""What leads a session's jobs: links that wait, links that were lost meanwhile, and every way in which it ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from proofmark.launch.cluster import controller
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.container.image import ContainerImage
from proofmark.launch.cluster.container.settings import ContainerSettings
from proofmark.launch.cluster.controller import Controller, allow_files
from proofmark.launch.cluster.launcher import ClusterLauncher
from proofmark.launch.cluster.link import HostSetup
from proofmark.launch.cluster.node import Here, Node
from proofmark.launch.hosts.describe import Description
from proofmark.launch.hosts.request import DescribeRequest
from proofmark.record.provenance import Chip, Host
from tests.unit.launch.turning_away import turning_away
from tests.waiting import PATIENCE, until


def ends(work: Callable[[], object]) -> bool:
    """Whether some work does, whose defects are that it doesn't."""
    working = threading.Thread(target=work, daemon=True)
    working.start()
    working.join(2 * PATIENCE)
    return not working.is_alive()


ENGINE = """\
#!/bin/sh
echo "$1" >> "$0.asked"
case "$1" in
image) echo %064d ;;
info) echo false ;;
run) while [ "$1" != some ]; do shift; done; shift; exec "$@" ;;
esac
"""
"""A container's, whose containers are processes of this machine."""


class Site:
    """This machine as the one host, and the far ends on it."""

    def __init__(self, folder: Path) -> None:
        self.controller = Controller()
        (folder / "tree").mkdir()
        (folder / "tree" / "code.py").write_text("")
        (folder / "tree" / "gone.py").write_text("gone = False\n")
        self._others = psutil.Process().children()
        python = folder / "python"  # describes this host as any does
        host = Host(name="here", system="Linux", processor="cpu", cores=1, memory_bytes=1)
        is_this = Description(chip=Chip(name="cpu"), host=host, devices=1, busy=[], package={}).model_dump_json()
        python.write_text(f'#!/bin/sh\n[ "$1" = -m ] || exec python3 "$@"\necho \'{is_this}\'\n')
        python.chmod(0o755)
        cluster = Cluster(work_dir=str(folder / "work"), python=str(python))
        code = CodeTree.of(folder, ("tree",))
        self._setup = HostSetup(Here(), cluster, code, (), DescribeRequest("cpu", "fp32", "", None, False))

    def look(self, image: ContainerImage | None = None) -> list[str]:
        """What is wrong with the host, or with the inside of a container there."""
        launcher = ClusterLauncher(dataclasses.replace(self._setup, container=image), self.controller)
        problems: list[str] = []
        assert ends(lambda: problems.extend(launcher.examine(1, print)[0].problems))
        return problems

    def far_ends(self) -> list[psutil.Process]:
        """Those that live; a browser that other tests began is none."""
        children = [each for each in psutil.Process().children() if each not in self._others]
        return [each for each in children if _runs(each)]

    def closes(self) -> bool:
        """Whether it ends at all, and leaves nothing."""
        return ends(self.controller.close) and not self.far_ends()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One without far ends before and after."""
    built = Site(tmp_path)
    assert not built.far_ends()
    yield built
    for left in built.far_ends():
        with contextlib.suppress(psutil.NoSuchProcess):
            left.kill()


def test_a_far_end_waits_for_the_next_job(site: Site) -> None:
    assert site.look() == []
    (first,) = site.far_ends()
    assert site.look() == [] and site.far_ends() == [first]
    assert site.closes()


def test_one_outside_of_containers_is_no_containers(site: Site, tmp_path: Path) -> None:
    """As where a session has its engines alone in an image, and its trainings whole."""
    engine = tmp_path / "engine"
    engine.write_text(ENGINE % 1)
    engine.chmod(0o755)
    assert site.look() == []
    (outside,) = site.far_ends()
    assert site.look(ContainerImage(str(engine), "some", ContainerSettings())) == []
    assert "run" in (tmp_path / "engine.asked").read_text().split()
    assert not outside.is_running() and not site.far_ends()
    assert site.closes()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def test_one_that_was_lost_is_followed_by_another(site: Site, number: signal.Signals) -> None:
    assert site.look() == []
    (first,) = site.far_ends()
    (kept,) = site.controller._kept.values()
    kept.connection._patience = 1.0  # its alone: the next one may be as slow as any
    first.send_signal(number)
    assert site.look() == []
    (second,) = site.far_ends()
    assert second != first and site.closes()


def test_a_host_whose_jump_host_turns_ssh_away_is_reached_later(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has more logins under way than its sshd's `MaxStartups`."""
    monkeypatch.setattr("random.uniform", lambda least, most: 0.01)
    lead = turning_away(tmp_path, times=2)

    async def take(*_: object) -> list[Node]:
        return [Node("this machine", "127.0.0.1", lead)]

    monkeypatch.setattr(Here, "take", take)
    assert site.look() == [] and len((tmp_path / "tried").read_text()) == 3
    assert site.closes()


def test_a_host_that_refuses_is_not_asked_twice(site: Site, tmp_path: Path) -> None:
    assert site.look() == []
    (tmp_path / "work").rename(tmp_path / "gone")
    (tmp_path / "work").write_text("no directory")
    (message,) = site.look()
    assert message.startswith("`work_dir`: ") and not site.far_ends()
    assert site.closes()


def test_hosts_get_what_was_submitted_whatever_was_made_of_it_since(site: Site, tmp_path: Path) -> None:
    """They may come after hours in a queue."""
    (tmp_path / "tree" / "code.py").write_text("edited = True\n")
    (tmp_path / "tree" / "gone.py").unlink()
    assert site.look() == [] and site.closes()
    (tree,) = (tmp_path / "work/code").iterdir()
    assert [(tree / "tree" / name).read_text() for name in ("code.py", "gone.py")] == ["", "gone = False\n"]


def test_other_loops_in_the_main_thread_take_nothing_away(site: Site) -> None:
    """Python 3.11 has one watcher of processes, for whichever loop was begun last."""
    assert site.look() == []
    asyncio.run(asyncio.sleep(0))
    (first,) = site.far_ends()
    first.kill()
    until(lambda: not site.far_ends(), "its end")
    assert site.look() == [] and site.closes()


def test_what_never_ends_is_cancelled(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "ENDING", 1.0)
    assert site.look() == []
    endless = site.controller.lead(asyncio.sleep(1000))
    assert ends(site.controller.close)
    until(lambda: endless.done() and not site.far_ends(), "its end")  # for which nobody waits much longer than ENDING
    assert endless.cancelled()


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended after it was listed
        return False


def test_an_interrupt_waits_for_no_host(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.look() == []
    (far_end,) = site.far_ends()
    far_end.suspend()

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(site.controller._thread, "join", interrupted)
    site.controller.close()
    until(lambda: not site.far_ends(), "its end")


def test_too_few_open_files_are_named_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))

    allow_files(100)
    assert raised == []
    allow_files(900)
    assert raised == [(3856, 4096)]
    with pytest.raises(HostError, match=r"1024 hosts need 4352 open files on this machine; ulimit -n is 4096"):
        allow_files(1024)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, resource.RLIM_INFINITY))
    allow_files(1024)
    assert raised[1:] == [(4352, resource.RLIM_INFINITY)]
