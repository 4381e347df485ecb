"""What a cluster file and a vendor's container.yaml may say, and the command lines that come of them."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proofmark.errors import ConfigurationError, UsageError
from proofmark.launch.cluster.cluster_file import Cluster, load_cluster
from proofmark.launch.cluster.connection import GRACE, HostError
from proofmark.launch.cluster.container.asking import Ask, all_there, run_on, without_disks
from proofmark.launch.cluster.container.image import ContainerImage, container_of
from proofmark.launch.cluster.container.settings import ContainerSettings, device_files
from proofmark.launch.cluster.link import HostLink, environment_on
from proofmark.launch.cluster.node import TRIES, Node
from proofmark.launch.launchers.slurm import Slurm
from proofmark.launch.launchers.ssh import Ssh
from proofmark.process.environment import passed_on
from tests.unit.launch.turning_away import turning_away

GOOD: dict[str, Any] = {"work_dir": "/scratch"}


def load(folder: Path, text: str) -> Cluster:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return load_cluster(path)


def test_a_path_below_nobodys_home_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a path begins with a home that is not there"):
        load(tmp_path, yaml.safe_dump({**GOOD, "hosts": ["one"], "key": "~nobody-of-this-name/id"}))


def test_a_full_file(tmp_path: Path) -> None:
    content = {
        "hosts": ["one", {"address": "10.0.0.2", "port": 2222, "user": "you"}, "fe80::1%eth0"],
        "work_dir": "/scratch",
        "time_limit": "1-02:03:04",
        "slurm_options": ["--gres=gpu:8"],
        "environment": {"NCCL_DEBUG": "WARN"},
    }
    cluster = load(tmp_path, yaml.safe_dump(content))
    assert [host.address for host in cluster.hosts] == ["one", "10.0.0.2", "fe80::1%eth0"]
    assert (cluster.hosts[1].port, cluster.port, cluster.slurm_options) == (2222, None, ("--gres=gpu:8",))


@pytest.mark.parametrize("hosts", [["::1"], ["fd00::2", "::ffff:10.0.0.1"], ["fe80::1%eth0"]])
def test_addresses_of_ipv6(tmp_path: Path, hosts: list[str]) -> None:
    assert [host.address for host in load(tmp_path, yaml.safe_dump({**GOOD, "hosts": hosts})).hosts] == hosts


@pytest.mark.parametrize("user", ["you", "y_o.u-2", "host$", "you@example.org", "CORP\\you"])
def test_users_as_directories_have_them(tmp_path: Path, user: str) -> None:
    assert load(tmp_path, yaml.safe_dump({**GOOD, "user": user})).user == user


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"work_dir": None}, "work_dir: "),
        ({"work_dir": "here"}, "work_dir: expected an absolute path, found 'here'"),
        ({"data_dir": "~/data"}, "data_dir: expected an absolute path"),
        ({"checkpoints": "c"}, "checkpoints: expected an absolute path"),
        ({"hosts": "one"}, "hosts: expected a list"),
        ({"hosts": ["one", "one"]}, "hosts: named more than once: one"),
        ({"hosts": ["-oProxyCommand=x"]}, "hosts.0.address: '-oProxyCommand=x' is not a valid host name or address"),
        ({"hosts": ["a b"]}, "is not a valid host name or address"),
        ({"hosts": ["fe80::1%eth0", "fe80::2%eth0"]}, "hosts: ranks meet on the first one, and torch takes no address"),
        ({"hosts": [{"address": "a", "user": "-x"}]}, "hosts.0.user: '-x' is not a valid user name"),
        ({"user": "-oProxyCommand=x"}, "user: '-oProxyCommand=x' is not a valid user name"),
        ({"user": "you -x"}, "user: 'you -x' is not a valid user name"),
        ({"user": "you\n"}, "user: 'you\\n' is not a valid user name"),
        ({"user": "you\\"}, "is not a valid user name"),
        ({"user": ""}, "user: '' is not a valid user name"),
        ({"python": "--task-prolog=x"}, "python: expected a program's name or path, found '--task-prolog=x'"),
        ({"python": ""}, "python: expected a program's name or path"),
        ({"python": "python3\n"}, "python: expected a program's name or path"),
        ({"hosts": [{"port": 22}]}, "hosts.0.address: is required and missing"),
        ({"hosts": [7]}, "hosts.0: "),
        ({"port": 0}, "port: "),
        ({"port": "22"}, "port: "),
        ({"master_port": 65536}, "master_port: "),
        ({"interface": "eth0; rm"}, "interface: 'eth0; rm' is not a valid name"),
        ({"partition": "--all"}, "partition: '--all' is not a valid name"),
        ({"account": ""}, "account: '' is not a valid name"),
        ({"time_limit": 10}, "time_limit: write it in quotes"),
        ({"slurm_options": ["-N4"]}, "slurm_options: expected a list of options, each beginning with --"),
        ({"slurm_options": "--gres=gpu:8"}, "slurm_options: expected a list of options"),
        ({"environment": {"A": True}}, "environment.A: "),
        ({"environment": {"A": 0.5}}, "environment.A: write it in quotes: the number 0.5 may"),
        ({"environment": ["A"]}, "environment: "),
        ({"hosts": ["a", {"address": "a", "port": 22}]}, "hosts: named more than once: a"),
        ({"requirements": "r.txt"}, "requirements: expected a list"),
        ({"requirements": ["vendors/.r.txt"]}, "requirements: expected a file's path"),
        ({"slurm_options": ["--nodes=1"]}, "slurm_options: --nodes is the suite's to say"),
        ({"slurm_options": ["--quiet"]}, "slurm_options: --quiet is the suite's to say"),
        ({"slurm_options": ["--clusters=b"]}, "slurm_options: --clusters is the suite's to say"),
        ({"slurm_options": ["--no-sh"]}, "slurm_options: --no-sh is the suite's to say"),
        ({"clear_caches": "yes"}, "clear_caches: "),
        ({"silence_timeout": 3}, "silence_timeout: "),
        ({"silence_timeout": 3600}, "silence_timeout: "),
        ({"worker_dir": "/scratch"}, "worker_dir: unknown key"),
        ({"hosts": []}, "hosts: expected at least one; remove the key"),
    ],
)
def test_what_a_cluster_file_may_not_say(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, yaml.safe_dump(GOOD | changes))
    (problem,) = caught.value.problems
    assert expected in str(problem) and str(problem).startswith(str(tmp_path / "cluster.yaml"))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, "port: 0\nhosts: {}\nnope: 1\n")
    assert {problem.key for problem in caught.value.problems} == {"port", "hosts", "nope", "work_dir"}


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
FIELDS = st.sampled_from(sorted({*Cluster.model_fields, *ContainerSettings.model_fields, "other"}))


@given(content=VALUES | st.dictionaries(FIELDS, VALUES, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_file_is_understood_or_refused(tmp_path: Path, content: Any) -> None:
    (tmp_path / "container.yaml").write_text(yaml.safe_dump(content))
    for read in (load_cluster, lambda path: container_of(vendor(path.parent), "image", "docker")):
        with contextlib.suppress(ConfigurationError):
            read(tmp_path / "container.yaml")


def vendor(directory: Path, *options: str) -> Any:
    return SimpleNamespace(name="any", directory=directory, vendor=SimpleNamespace(container_options=options))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("shm_size: 16", "shm_size: "),
        ("shm_size: 16 GB", "shm_size: "),
        ("privileged: 1", "privileged: "),
        ("mounts: [data:/data]", "mounts.0: 'data:/data' is not a mount: expected /opt/acme:/opt/acme:ro"),
        ("mounts: [/data]", "mounts.0: "),
        ("mounts: /data:/data", "mounts: "),
        (
            "mounts: ['/:/host']",
            "mounts.0: '/' is not visible to a vendor's container: drivers are below /usr, /opt",
        ),
        ("mounts: ['/:/host:ro']", "cluster.yaml, under mounts"),
        ("mounts: ['/var/run/docker.sock:/var/run/docker.sock:ro']", "'/var/run/docker.sock' is not visible"),
        ("mounts: ['/opt/../root:/opt/../root:ro']", "'/opt/../root' is not visible"),
        ("mounts: ['/opt/:/opt/:ro']", "'/opt/' is not visible"),
        ("mounts: ['/opt/x:/opt/x']", "is not read-only at its own place: write /opt/x:/opt/x:ro"),
        ("mounts: ['/opt/x:/opt/x:rw']", "write /opt/x:/opt/x:ro"),
        ("mounts: ['/opt/x:/srv:ro']", "write /opt/x:/opt/x:ro"),
        ("devices: ['']", "devices.0: "),
        ("devices: [acme]", "devices.0: 'acme' is not a device: expected a file (/dev/acme0) or a CDI name"),
        ("devices: [/dev]", "is not a device"),
        ("devices: [/dev/../etc]", "is not a device"),
        ("devices: [/dev/acme0:/etc/passwd]", "is not a device"),
        ("devices: [/dev/sda1]", "'/dev/sda1' is the host's own, not an accelerator"),
        *(
            (f"devices: [/dev/{name}]", f"'/dev/{name}' is the host's own")
            for name in (
                "zvol/tank/v",
                "md/home",
                "rbd0",
                "rbd/pool/image",
                "drbd1",
                "bcache0",
                "pmem0s",
                "bsg",
                *("hvc0", "xvc0", "ipmi0", "ipmidev/0", "cpu_dma_latency", "fb0", "gpiochip1", "hpet"),
                *("dma_heap", "dma_heap/system"),
            )
        ),
        ("devices: ['/dev/acme0:/dev/mem:rw']", "is the host's own"),
        ("options: [1]", "options.0: "),
        ("options: --pull=always", "options: "),
        (
            "options: [--pull=always]",
            "options.0: '--pull=always' is not among the options: --container says which image",
        ),
        ("options: [--pull, always]", "options.0: '--pull=always' is not among the options"),
        ("options: [--cap-add=ALL]", "is more than a device needs: --cap-add may be IPC_LOCK"),
        ("options: [--cap-add=SYS_NICE]", "is more than a device needs: --cap-add may be IPC_LOCK"),
        (
            "options: [--gpus, all, evil/image]",
            "options.1: 'evil/image' is not an option: --container says which image runs",
        ),
        ("options: [--privileged]", "write privileged: true, which cluster.yaml must allow, and the record says so"),
        ("options: ['-v/:/host']", "write it under mounts, as /opt/acme:/opt/acme:ro"),
        ("options: [--volume, '/var/run/docker.sock:/s']", "write it under mounts"),
        ("options: ['-e', A_VISIBLE_DEVICES=1]", "write it out, as --env=..."),
        ("options: ['-e', ACME=1]", "with its value; others go into environment.yaml"),
        ("options: [--env=TOKEN=geheim]", "--env may be a variable ..._VISIBLE_DEVICES or"),
        ("options: [--env, HF_TOKEN]", "is more than a device needs"),
        ("options: [--device=/dev/sda]", "is the host's own"),
        ("options: [--user=0:0]", "'--user=0:0' is not among the options: --gpus, "),
        ("options: [--entrypoint, /bin/evil]", "is not among the options"),
        ("options: [--runtime=/tmp/evil]", "--runtime may be a name that the engine's own configuration knows"),
        ("options: [--security-opt=seccomp=unconfined]", "--security-opt may be label=disable"),
        ("options: [--]", "is not among the options"),
        ("network: host", "network: unknown key"),
    ],
)
def test_what_a_container_yaml_may_not_say(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "container.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match="container.yaml") as caught:
        container_of(vendor(tmp_path), "image", "docker")
    (problem,) = caught.value.problems
    assert expected in str(problem)


def test_only_its_user_lets_a_container_be_privileged(tmp_path: Path) -> None:
    (tmp_path / "container.yaml").write_text("privileged: true\n")
    with pytest.raises(ConfigurationError, match="only its user may allow that, by privileged: true in cluster.yaml"):
        container_of(vendor(tmp_path), "image", "docker")
    assert container_of(vendor(tmp_path), "image", "docker", privileged=True).settings.privileged


def test_an_image_of_the_vendors_is_named_after_its_containerfile(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="vendor any has no Containerfile: write "):
        container_of(vendor(tmp_path), "vendor", "docker")
    (tmp_path / "Dockerfile").touch()
    with pytest.raises(UsageError, match="vendor any has no Containerfile: call its Dockerfile Containerfile, or name"):
        container_of(vendor(tmp_path), "vendor", "docker")
    names = []
    for content in ("FROM one\n", "FROM two\n", "FROM one\n"):
        (tmp_path / "Containerfile").write_text(content)
        built = container_of(vendor(tmp_path, "--gpus", "all"), "vendor", "docker")
        assert built.containerfile == content.encode() and built.settings.options == ("--gpus=all",)
        names.append(built.image)
    assert names[0] == names[2] != names[1]


def test_a_containerfile_that_is_a_link_to_another_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("geheim")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/Containerfile").symlink_to("../key")
    with pytest.raises(ConfigurationError, match="Containerfile: cannot be read: it is a link out of"):
        container_of(vendor(tmp_path / "acme"), "vendor", "docker")


@pytest.mark.parametrize("image, engine", [("--volume=/:/host", "docker"), ("image", "-x")])
def test_neither_image_nor_engine_is_an_option(tmp_path: Path, image: str, engine: str) -> None:
    with pytest.raises(UsageError, match="expected a name, found '-"):
        container_of(vendor(tmp_path), image, engine)


def test_a_containers_command_line() -> None:
    given = ContainerSettings(
        devices=("/dev/x",), mounts=("/opt/x:/opt/x:ro",), shm_size="16g", options=("--gpus", "all")
    )
    cluster = Cluster(work_dir="/scratch", checkpoints="/shared", mounts=("/srv:/srv",))
    command = ContainerImage("podman", "image", given).around(
        ["python3", "-c", "x y"], cluster, "/scratch/images/1", ["/data"], "7:8", "me"
    )
    proxies = [f"--env={name}_proxy=" for name in ("http", "https", "ftp", "all", "no")]
    assert command == [
        *("podman", "run", "--rm", "-i", "--pull=never", "--network=host"),
        *("--log-driver=none", "--no-healthcheck", "--entrypoint=", "--security-opt=no-new-privileges"),
        *(each for name in proxies for each in (name, f"--env={name[6:].upper()}")),
        *(
            "--volume=/scratch/images/1:/scratch",
            "--volume=/shared:/shared",
            "--volume=/data:/data:ro",
            "--volume=/srv:/srv",
        ),
        *("--volume=/opt/x:/opt/x:ro", "--device=/dev/x", "--shm-size=16g", "--gpus=all"),
        *("--user=7:8", "--name=me", "image", "python3", "-c", "x y"),
    ]
    rootless = ContainerImage("podman", "image", given).around(
        [], cluster, "/scratch/images/1", [], "7:8", "me", rootless=True
    )
    assert "--userns=keep-id" in rootless
    privileged = ContainerImage("podman", "image", ContainerSettings(privileged=True))
    assert "--privileged" in privileged.around([], cluster, "/scratch/images/1", [], "7:8", "me")


def asked(node: Node) -> Ask:
    return partial(run_on, node, 60.0)


def test_a_disk_by_any_name_is_not_given(tmp_path: Path) -> None:
    disk = next((path for path in Path("/dev").iterdir() if path.is_block_device()), None)
    if disk is None:
        pytest.skip("no block device below /dev")
    (tmp_path / "ctl").touch()
    node = asked(Node("here", "localhost"))
    asyncio.run(without_disks(node, [str(tmp_path)]))
    (tmp_path / "npu0").symlink_to(disk)
    for device in (tmp_path / "npu0", tmp_path):
        with pytest.raises(HostError, match="npu0 is a disk, not an accelerator"):
            asyncio.run(without_disks(node, [str(device)]))
    with pytest.raises(HostError, match="looking at the devices: .*gone"):
        asyncio.run(without_disks(node, [str(tmp_path / "gone")]))


def test_what_is_to_be_mounted_is_there(tmp_path: Path) -> None:
    (tmp_path / "it's there").touch()
    here = asked(Node("here", "localhost"))
    asyncio.run(all_there(here, []))
    asyncio.run(all_there(here, [str(tmp_path / "it's there")]))
    lacking = [str(tmp_path / name) for name in ("one", "an other")]
    far = asked(Node("far", "far", ("/bin/sh", "-c"), through_shell=True))
    with pytest.raises(HostError, match=f"missing, or not visible to the user: {', '.join(lacking)};"):
        asyncio.run(all_there(far, [*lacking, str(tmp_path)]))


def test_what_a_login_prints_is_no_answer(tmp_path: Path) -> None:
    greeting = 'echo Welcome; printf "to the cluster "; eval "$1"'
    far = asked(Node("far", "far", ("/bin/sh", "-c", greeting, "sh"), through_shell=True))
    asyncio.run(all_there(far, [str(tmp_path)]))
    asyncio.run(without_disks(far, [str(tmp_path)]))
    asks_nothing = asked(Node("far", "far", ("/bin/echo", "This account is closed"), through_shell=True))
    with pytest.raises(HostError, match="looking at what is mounted: something other than Proofmark answered"):
        asyncio.run(all_there(asks_nothing, []))


@pytest.mark.parametrize("times, runs", [(2, True), (9, False)])
def test_a_command_that_a_jump_host_turns_away_is_tried_again(
    times: int, runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda least, most: 0.01)
    host = Node("far", "far", turning_away(tmp_path, times))
    with contextlib.nullcontext() if runs else pytest.raises(HostError, match="^asking: Connection closed by UNKNOWN"):
        assert asyncio.run(run_on(host, 60.0, ["echo", "there"], "asking")) == "there\n"
    assert len((tmp_path / "tried").read_text()) == (3 if runs else TRIES)


def test_a_slow_container_engine_is_waited_for_as_long_as_a_host_is(tmp_path: Path) -> None:
    engine = tmp_path / "docker"
    engine.write_text("#!/bin/sh\nexec sleep 60\n")
    engine.chmod(0o755)
    image = ContainerImage(str(engine), "some", ContainerSettings())
    cluster = Cluster(work_dir=str(tmp_path / "work"), answer_timeout=0.5)
    with pytest.raises(HostError, match="no answer within 0.5 s, `answer_timeout`"):
        asyncio.run(image.prepare(Node("here", "localhost"), cluster, []))


def test_device_files_stand_under_either_key() -> None:
    given = ContainerSettings(
        devices=("/dev/x:/dev/y:rw", "acme.com/npu=0"), options=("--device=/dev/z", "--gpus", "all")
    )
    assert device_files(given) == ["/dev/x", "/dev/z"]


GIVEN = """\
devices: [/dev/acme0, "/dev/acme/ctl:/dev/acme/ctl:rw", acme.com/npu=all]
mounts: ["/usr/lib/acme:/usr/lib/acme:ro", "/opt/acme:/opt/acme:ro"]
options: [--gpus, all, --ulimit=memlock=-1, --env, "ACME_VISIBLE_DEVICES=0,1", --group-add=video, --cap-add=IPC_LOCK]
"""


def test_what_devices_need_is_given(tmp_path: Path) -> None:
    (tmp_path / "container.yaml").write_text(GIVEN)
    settings = container_of(vendor(tmp_path, "--runtime=acme"), "image", "docker").settings
    assert settings.options == (
        *("--runtime=acme", "--gpus=all", "--ulimit=memlock=-1", "--env=ACME_VISIBLE_DEVICES=0,1"),
        *("--group-add=video", "--cap-add=IPC_LOCK"),
    )


def test_all_that_a_vendor_may_not_have_is_told_at_once(tmp_path: Path) -> None:
    """What its package says of its containers too."""
    (tmp_path / "container.yaml").write_text("mounts: ['/:/host', '/etc:/etc']\noptions: [--pid=host, --cap-add=ALL]\n")
    with pytest.raises(ConfigurationError) as caught:
        container_of(vendor(tmp_path, "--privileged"), "image", "docker")
    places = [(Path(problem.where).name, problem.key) for problem in caught.value.problems]
    assert places == [
        *(("container.yaml", key) for key in ("mounts.0", "mounts.1", "options.0", "options.1")),
        ("__init__.py", "container_options.0"),
    ]


@given(program=st.lists(st.text(st.characters(blacklist_characters="\0", codec="utf-8")), max_size=4))
@settings(max_examples=50, deadline=None)
def test_a_far_shell_hands_on_every_word_as_it_is(program: list[str]) -> None:
    node = Node("far", "far", ("/bin/sh", "-c"), through_shell=True)
    command = node.command(["printf", "%s\\0", "first", *program])
    assert subprocess.run(command, capture_output=True, check=True).stdout.decode() == "\0".join(
        ["first", *program, ""]
    )


def test_a_command_line_over_ssh(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    cluster = Cluster.model_validate({**GOOD, "hosts": ["one"], "user": "you", "key": str(tmp_path / "key")})
    (node,) = Ssh(cluster, "cluster.yaml").all
    command = node.command(["echo", "a b"])
    (node,) = Ssh(cluster.model_copy(update={"silence_timeout": 10.0}), "cluster.yaml").all
    assert "ServerAliveInterval=5" in node.command(["echo"])
    assert command[0] == "ssh" and command[-3:] == ["--", "one", "echo 'a b'"]
    asked = dict(each.split("=", 1) for each in command if each.startswith("ServerAlive"))
    within = int(asked["ServerAliveInterval"]) * (int(asked["ServerAliveCountMax"]) + 1)
    assert within > cluster.silence_timeout + GRACE, "ssh itself is to give up no sooner"
    assert "StrictHostKeyChecking=yes" in command and command[-5:-3] == ["-l", "you"]
    with pytest.raises(UsageError) as caught:
        Ssh(cluster.model_copy(update={"hosts": (), "key": "/no", "known_hosts": "/nor"}), "cluster.yaml")
    none = "cluster.yaml: hosts: expected at least one for --launcher ssh"
    files = ["cluster.yaml: key: no such file: /no", "cluster.yaml: known_hosts: no such file: /nor"]
    assert str(caught.value).splitlines() == [none, *files]


def test_no_hosts_are_told_with_what_else_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, yaml.safe_dump(GOOD | {"hosts": [], "work_dir": "work"}))
    assert [problem.key for problem in caught.value.problems] == ["hosts", "work_dir"]


def test_a_port_that_no_file_names_is_sshs_own_to_choose() -> None:
    cluster = Cluster.model_validate({**GOOD, "hosts": ["one", {"address": "two", "port": 2222}]})
    assert ["-p" in node.lead for node in Ssh(cluster, "cluster.yaml").all] == [False, True]
    everywhere = cluster.model_copy(update={"port": 2200})
    ports = [node.lead[node.lead.index("-p") + 1] for node in Ssh(everywhere, "cluster.yaml").all]
    assert ports == ["2200", "2222"]


def test_hosts_behind_one_address_are_named_by_their_ports_too() -> None:
    hosts = ["one", {"address": "gate", "port": 2201}, {"address": "gate", "port": 2202}, "gate"]
    nodes = Ssh(Cluster.model_validate({**GOOD, "hosts": hosts}), "cluster.yaml").all
    assert [node.name for node in nodes] == ["one", "gate, port 2201", "gate, port 2202", "gate"]
    assert [node.address for node in nodes] == ["one", "gate", "gate", "gate"]


def test_slurm_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="salloc, srun, scancel, scontrol, squeue not found in PATH"):
        Slurm(Cluster(work_dir="/scratch"))


def test_what_a_cluster_file_sets_reaches_all_that_is_started_on_a_host() -> None:
    variables = {"NCCL_DEBUG": "WARN", "ACME_KEY": "k", "PROOFMARK_PASSES": "ACME_*"}
    link = cast(HostLink, SimpleNamespace(code="/code"))
    there = environment_on(link, Cluster(work_dir="/scratch", interface="eth0", environment=variables))
    of_children = passed_on({**there, "ACME_HOME": "/opt/acme", "UNASKED": "1"})
    assert of_children["NCCL_DEBUG"] == "WARN" and of_children["NCCL_SOCKET_IFNAME"] == "eth0"
    assert of_children["ACME_KEY"] == "k" and of_children["ACME_HOME"] == "/opt/acme" and "UNASKED" not in of_children


def test_what_passes_here_passes_on_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's own, as a scheduler sets there: else a rank would see devices that are others'."""
    monkeypatch.setenv("PROOFMARK_PASSES", "ACME_VISIBLE_DEVICES")
    there = environment_on(cast(HostLink, SimpleNamespace(code="/code")), Cluster(work_dir="/scratch"))
    assert "ACME_VISIBLE_DEVICES" in passed_on({**there, "ACME_VISIBLE_DEVICES": "4,5"})


def test_an_indexs_password_is_the_installers_alone() -> None:
    index = {"PIP_INDEX_URL": "https://us:geheim@index.example.org/simple"}
    link = cast(HostLink, SimpleNamespace(code="/code"))
    cluster = Cluster(work_dir="/scratch", environment={"NCCL_DEBUG": "WARN", **index})
    assert environment_on(link, cluster, installs=True)["PIP_INDEX_URL"] == index["PIP_INDEX_URL"]
    there = environment_on(link, cluster)
    assert there["NCCL_DEBUG"] == "WARN" and "geheim" not in str(there) and "PIP_" not in str(there)
