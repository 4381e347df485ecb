"""The real hosts, Slurm and container engine for tests of launching: they serve, they fail as told, they go."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

import psutil
import pytest

from tests.cluster.cell import Cell, mentioned, until
from tests.cluster.netns import Hosts
from tests.cluster.podman import Podman
from tests.cluster.slurm import Slurm

ROOT = Path(__file__).parents[2]
BYTES = bytes(range(256)) * 4096
REDUCE = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=f"tcp://{sys.argv[1]}", rank=int(sys.argv[2]), world_size=2)
number = torch.ones(3)
dist.all_reduce(number)
print(number.sum().item())
"""
EVERYTHING = """
import subprocess, sys
from pathlib import Path
from tests.cluster.netns import Hosts
from tests.cluster.podman import Podman
from tests.cluster.slurm import Slurm
folder = Path(sys.argv[1])
for name in ("hosts", "slurm"):
    (folder / name).mkdir()
hosts, slurm, podman = Hosts(1, folder / "hosts"), Slurm(folder / "slurm", 1), Podman()
subprocess.run([*hosts.ssh(0), "setsid sleep 1000 > /dev/null 2>&1 < /dev/null &"], check=True)
subprocess.Popen([*podman.run("--name=endless"), "/usr/bin/sleep", "1000"])
while not podman.containers():
    pass
print(hosts.uplink, podman.path.parent, flush=True)
input()
"""


@contextmanager
def running(command: list[str], environment: dict[str, str] | None = None) -> Iterator[Popen[bytes]]:
    """A program with pipes."""
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=os.environ | (environment or {})) as process:
        try:
            yield process
        finally:
            process.kill()


def pipe(of: IO[bytes] | None) -> IO[bytes]:
    assert of is not None
    return of


def names(processes: list[psutil.Process]) -> list[str]:
    return [process.info["name"] for process in processes]


def sums(*commands: list[str], environment: dict[str, str] | None = None) -> list[str]:
    """What several programs print that run at the same time."""
    with_variables = os.environ | (environment or {})
    started = [
        Popen(command, stdin=subprocess.DEVNULL, stdout=PIPE, text=True, env=with_variables) for command in commands
    ]
    return [process.communicate(timeout=60)[0].strip() for process in started]


def test_a_host_has_a_name_a_network_and_pinned_keys(hosts: Hosts) -> None:
    for index, host in enumerate(hosts.hosts):
        command = [*hosts.ssh(index), "hostname; getent hosts host1 host2; cat"]
        said = subprocess.run(command, input=BYTES, check=True, capture_output=True).stdout
        table = [word for other in hosts.hosts for word in (other.name, other.hostname)]
        assert said.removesuffix(BYTES).decode().split() == [host.hostname, *table]
        assert said.endswith(BYTES)
        assert hosts.processes(index) == []


def test_hosts_reduce_over_their_network(hosts: Hosts) -> None:
    script = hosts.folder / "reduce.py"
    script.write_text(REDUCE)
    where = f"{hosts.hosts[0].name}:29500"
    run = "GLOO_SOCKET_IFNAME=eth0"
    assert sums(*([*hosts.ssh(rank), run, sys.executable, str(script), where, str(rank)] for rank in (0, 1))) == [
        "6.0",
        "6.0",
    ]


def test_a_dropped_session_ends_the_input_of_what_it_started(hosts: Hosts) -> None:
    with running([*hosts.ssh(0), f"cat; touch {hosts.hosts[0].work}/ended; sleep 1000"]) as session:
        until(lambda: "cat" in names(hosts.processes(0)), "cat")
        hosts.drop_sessions(0)
        assert session.wait(30) == 255
    until((hosts.hosts[0].work / "ended").exists, "the end of cat's input")
    until(lambda: names(hosts.processes(0))[-1:] == ["sleep"], "sleep")
    assert subprocess.run([*hosts.ssh(0), "true"], check=False).returncode == 0


def test_a_killed_sshd_takes_what_is_below_it_and_listens_no_more(hosts: Hosts) -> None:
    with running([*hosts.ssh(0), "cat"]) as session:
        until(lambda: "cat" in names(hosts.processes(0)), "cat")
        hosts.kill_sshd(0)
        assert session.wait(30) == 255
    assert hosts.processes(0) == []
    refused = subprocess.run([*hosts.ssh(0), "true"], check=False, capture_output=True)
    assert b"Connection refused" in refused.stderr
    hosts.start_sshd(0)
    assert subprocess.run([*hosts.ssh(0), "true"], check=False).returncode == 0


def test_a_pulled_cable_is_silent(hosts: Hosts) -> None:
    with running([*hosts.ssh(0), "cat"]) as session:
        pipe(session.stdin).write(b"before\n")
        pipe(session.stdin).flush()
        assert pipe(session.stdout).readline() == b"before\n"
        hosts.link_down(0)
        unreachable = subprocess.run([*hosts.ssh(0, "-oConnectTimeout=1"), "true"], check=False, capture_output=True)
        assert unreachable.returncode == 255
        assert session.poll() is None
        hosts.link_up(0)
        assert session.communicate(b"after\n", timeout=60)[0] == b"after\n"


def test_a_host_that_is_switched_off_boots_with_nothing_running(hosts: Hosts) -> None:
    subprocess.run([*hosts.ssh(1), "setsid sleep 1000 > /dev/null 2>&1 < /dev/null &"], check=True)
    assert names(hosts.processes(1)) == ["sleep"]
    hosts.delete(1)
    assert hosts.processes(1) == []
    assert (
        subprocess.run([*hosts.ssh(1, "-oConnectTimeout=1"), "true"], check=False, capture_output=True).returncode
        == 255
    )
    hosts.start(1)
    assert subprocess.run([*hosts.ssh(1), "true"], check=False).returncode == 0
    assert hosts.processes(1) == []


def test_a_host_with_another_key_is_refused(hosts: Hosts) -> None:
    hosts.new_host_key(1)
    refused = subprocess.run([*hosts.ssh(1), "true"], check=False, capture_output=True)
    assert refused.returncode == 255
    assert b"Host key verification failed" in refused.stderr
    assert subprocess.run([*hosts.ssh(0), "true"], check=False).returncode == 0


@contextmanager
def allocation(slurm: Slurm) -> Iterator[int]:
    """Both nodes, for as long as the allocation's input is open."""
    command = ["salloc", "--nodes=2", "--ntasks-per-node=1", "--kill-command", "cat"]
    with running(command, slurm.environment) as salloc:
        line = pipe(salloc.stderr).readline()
        while b"Granted" not in line:
            assert line, "no allocation"
            line = pipe(salloc.stderr).readline()
        yield int(line.split()[-1])
        salloc.communicate(timeout=30)
        assert salloc.returncode == 0
    until(lambda: slurm.jobs() == [], "the allocation to end")
    assert slurm.processes() == []


def step(job: int, node: str, *command: str) -> list[str]:
    one = ("--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}")
    return ["srun", f"--jobid={job}", *one, *command]


def test_a_slurm_step_is_a_pipe(slurm: Slurm) -> None:
    with allocation(slurm) as job:
        assert [(found.number, found.state) for found in slurm.jobs()] == [(job, "RUNNING")]
        for node in slurm.nodes:
            with running(step(job, node, "cat"), slurm.environment) as cat:
                assert cat.communicate(BYTES, timeout=60)[0] == BYTES
            assert cat.returncode == 0


def test_a_killed_srun_kills_its_step(slurm: Slurm) -> None:
    with allocation(slurm) as job:
        with running(step(job, "n1", "cat"), slurm.environment):
            until(lambda: names(slurm.processes()) == ["cat"], "the step")
        until(lambda: slurm.processes() == [], "the step to end")


def test_slurm_nodes_reduce_over_loopback(slurm: Slurm) -> None:
    script = slurm.folder / "reduce.py"
    script.write_text(REDUCE)
    with allocation(slurm) as job:
        run = (sys.executable, str(script), "127.0.0.1:29501")
        steps = [step(job, node, *run, str(rank)) for rank, node in enumerate(slurm.nodes)]
        assert sums(*steps, environment={**slurm.environment, "GLOO_SOCKET_IFNAME": "lo"}) == ["6.0", "6.0"]


def test_a_drained_node_takes_no_job(slurm: Slurm) -> None:
    slurm.drain("n2")
    with running(["salloc", "--nodes=2", "cat"], slurm.environment):
        until(lambda: [job.state for job in slurm.jobs()] == ["PENDING"], "a job that waits")
        slurm.cancel_all()
    slurm.resume("n2")
    assert slurm.jobs() == []


def test_a_failed_node_ends_its_job(slurm: Slurm) -> None:
    with running(["salloc", "--nodes=2", "--kill-command", "cat"], slurm.environment) as salloc:
        until(lambda: [job.state for job in slurm.jobs()] == ["RUNNING"], "the job")
        slurm.fail("n2")
        assert salloc.wait(30) == 1
        assert b"revoked" in pipe(salloc.stderr).read()
    slurm.resume("n2")


@pytest.mark.parametrize("user", ["0:0", "1234:1234"])
def test_this_python_and_torch_run_in_a_container(podman: Podman, user: str) -> None:
    program = "import os, torch; print(torch.ones(2).sum().item(), os.getuid())"
    command = [*podman.run(f"--user={user}"), sys.executable, "-c", program]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.split() == ["2.0", user.split(":")[0]]
    assert podman.containers() == []


def test_a_container_is_a_pipe(podman: Podman) -> None:
    done = subprocess.run([*podman.run(), "/usr/bin/cat"], input=BYTES, check=True, capture_output=True)
    assert done.stdout == BYTES


def test_every_host_has_images_and_containers_of_its_own(hosts: Hosts, podman: Podman) -> None:
    for index, host in enumerate(hosts.hosts):
        build = f"{podman.path} build --quiet --tag={podman.image} {podman.context}"
        command = f"{build} > /dev/null && {shlex.join(podman.run('--name=same'))} /usr/bin/sh -c 'hostname; cat'"
        with running([*hosts.ssh(index), command]) as session:
            assert pipe(session.stdout).readline().decode().strip() == host.hostname, pipe(session.stderr).read()
            assert podman.containers() == []
            assert session.communicate(BYTES, timeout=60)[0] == BYTES
    until(lambda: not hosts.processes(0) + hosts.processes(1), "the containers to end")


def test_a_killed_client_ends_the_input_of_its_container(podman: Podman, tmp_path: Path) -> None:
    options = ("--name=orphan", f"--volume={tmp_path}:{tmp_path}")
    shell = ("/usr/bin/sh", "-c", f"cat; touch {tmp_path}/ended; exec sleep 1000")
    with running([*podman.run(*options), *shell]) as client:
        pipe(client.stdin).write(b"x")
        pipe(client.stdin).flush()
        assert pipe(client.stdout).read(1) == b"x"
    until((tmp_path / "ended").exists, "the end of cat's input")
    assert podman.containers() == ["orphan"]
    podman.ask("rm", "--force", "--time=0", "orphan")
    assert podman.containers() == []


def test_an_image_is_named_by_what_it_is_made_of(podman: Podman, tmp_path: Path) -> None:
    def built(text: str) -> str:
        (tmp_path / "Containerfile").write_text(text)
        return podman.ask("build", "--quiet", f"--file={tmp_path}/Containerfile", str(tmp_path)).strip()

    one, other = "FROM scratch\nENV A=1\n", "FROM scratch\nENV A=2\n"
    assert built(one) == built(one) != built(other)


def test_nothing_is_left_of_a_session_that_is_killed(tmp_path: Path) -> None:
    with running([sys.executable, "-c", EVERYTHING, str(tmp_path)], {"PYTHONPATH": str(ROOT)}) as session:
        told = pipe(session.stdout).readline().decode().split()
        assert len(told) == 2, pipe(session.stderr).read().decode()
        link, engine = Path("/sys/class/net", told[0]), Path(told[1])
        assert link.is_symlink()
        serving = {*names(mentioned(str(tmp_path))), *names(mentioned(str(engine)))}
        assert {"unshare", "sshd", "slurmctld", "conmon"} <= serving
    until(lambda: not link.is_symlink() and not engine.exists(), "links and files to go")
    until(lambda: not mentioned(str(tmp_path)) and not mentioned(str(engine)), "processes to end")


@pytest.mark.parametrize("service", [Hosts, Slurm, Podman])
def test_a_machine_without_the_programs_skips(service: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PROOFMARK_SKIPS_FAIL", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^missing: \w+ \(apt-get install .*\)$"):
        {Hosts: lambda: Hosts(1, tmp_path), Slurm: lambda: Slurm(tmp_path), Podman: Podman}[service]()


def test_a_user_without_namespaces_skips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unshare").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("PROOFMARK_SKIPS_FAIL", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^missing: root with CAP_SYS_ADMIN"):
        Cell()
