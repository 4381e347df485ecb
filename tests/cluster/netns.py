"""Several hosts on this machine, each a cell with its own network, name and sshd, on one switch."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from tests.cluster.cell import Cell, kill
from tests.services import program
from tests.waiting import until

PORT = 2222
SSHD_OPTIONS = {
    "Port": str(PORT),
    "StrictModes": "no",  # the test session's directories may be anybody's
    "PasswordAuthentication": "no",
    "KbdInteractiveAuthentication": "no",
    "PermitRootLogin": "prohibit-password",
    "UseDNS": "no",
    # this machine's own login files are not for its hosts; what one leaves when it is switched off goes with it
    "SetEnv": "HOME=/nonexistent TMPDIR=/run/tmp",
}
SETUP = """
hostname "$1"
mount --bind "$2" /etc/hosts
mount --bind "$3" "$4"
mount -t tmpfs tmpfs /run
mkdir /run/sshd /run/tmp
"""


@dataclass(frozen=True)
class Client:
    """What a client needs to reach the hosts: an unencrypted private key, and the hosts' pinned public keys."""

    key: Path
    known_hosts: Path


@dataclass
class Host:
    """One host. Its files are the machine's; its work directory is nobody else's."""

    name: str
    """Its address: what a client connects to."""
    hostname: str
    """What it calls itself; the hosts know one another by these names, the test session does not."""
    work: Path
    key: Path
    link: str
    """The switch's end of its cable."""
    cell: Cell | None = None
    port: int = PORT


class Hosts:
    """Hosts 10.77.X.11, 10.77.X.12, ... The test session is 10.77.X.1, with an X that no other session has."""

    def __init__(self, number: int, folder: Path, **options: str) -> None:
        """Boot them. `options` are their sshd's, beside SSHD_OPTIONS."""
        self._options = SSHD_OPTIONS | options
        self._sshd = program("sshd", "apt-get install openssh-server")
        program("ip", "apt-get install iproute2")
        self.folder = folder
        self.work = folder / "work"
        """Where every host has its own work directory."""
        self.work.mkdir()
        self.hosts: list[Host] = []
        self._touched = set[int]()
        self.uplink = ""
        """The test session's end of its cable."""
        self._switch = Cell("--net")
        try:
            self.uplink = self._connect()
            self._client = Client(_new_key(folder / "client"), folder / "known_hosts")
            self.hosts = [self._host(index) for index in range(number)]
            names = [f"{host.name} {host.hostname}\n" for host in self.hosts]
            (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
            for index in range(number):
                self.start(index)
            self._client.known_hosts.write_text("".join(self._known(host) for host in self.hosts))
        except BaseException:
            self.close()
            raise

    def client_config(self) -> Client:
        """The files that a client needs."""
        return self._client

    def ssh(self, index: int, *options: str) -> list[str]:
        """The command line of ssh up to the remote command."""
        host, client = self.hosts[index], self._client
        checked = f"-oStrictHostKeyChecking=yes -oUserKnownHostsFile={client.known_hosts} -oBatchMode=yes".split()
        return ["ssh", "-Fnone", f"-i{client.key}", f"-p{host.port}", *checked, *options, f"root@{host.name}"]

    def start(self, index: int) -> None:
        """Boot a host that does not run."""
        host = self.hosts[index]
        arguments = (host.hostname, str(self.folder / "hosts"), str(host.work), str(self.work))
        host.cell = Cell("--net", "--uts", setup=SETUP, arguments=arguments)
        # The hardware address outlives the host, as in life: else whoever remembers it would talk to nobody.
        address = f"02:00:0a:4d:{self._network:02x}:{11 + index:02x}"
        cable = f"link add eth0 address {address} type veth peer name {host.link} netns {self._switch.pid}"
        _ip(host.cell, cable, f"address add {host.name}/24 dev eth0", "link set lo up", "link set eth0 up")
        _ip(self._switch, f"link set {host.link} master br0 up")
        self.start_sshd(index)

    def start_sshd(self, index: int) -> None:
        """Let a host listen again."""
        host = self.hosts[index]
        ready = host.work.with_suffix(".sshd")  # sshd writes it once it listens
        ready.unlink(missing_ok=True)
        files = {"HostKey": host.key, "AuthorizedKeysFile": f"{self._client.key}.pub", "PidFile": ready}
        options = [word for key, value in {**self._options, **files}.items() for word in ("-o", f"{key}={value}")]
        command = self._running(index).inside(self._sshd, "-f", "/dev/null", *options)
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, cwd="/")
        until(ready.exists, f"the sshd of {host.name}")

    def processes(self, index: int) -> list[psutil.Process]:
        """What runs on a host for anybody: all but its first process and the sshd that listens."""
        if (cell := self.hosts[index].cell) is None:
            return []
        listeners = _listeners(cell)
        return [found for found in cell.processes("net") if found not in listeners]

    def kill_sshd(self, index: int) -> None:
        """Kill -9 a host's sshds and everything that they started and that is still below them."""
        self.touch(index)
        sshds = _sshds(self._running(index))
        kill([*sshds, *(below for sshd in sshds for below in _below(sshd))])

    def link_down(self, index: int) -> None:
        """Pull a host's cable: nothing arrives and nobody is told."""
        self.touch(index)
        _ip(self._switch, f"link set {self.hosts[index].link} down")

    def link_up(self, index: int) -> None:
        """Put a host's cable back."""
        _ip(self._switch, f"link set {self.hosts[index].link} up")

    def delete(self, index: int) -> None:
        """Switch a host off: its processes are killed and its network is gone. `start` boots it again."""
        self.touch(index)
        self._running(index).close()
        self.hosts[index].cell = None
        cut = self._switch.inside("ip", "link", "delete", self.hosts[index].link, only="--net")
        subprocess.run(cut, check=False, stderr=subprocess.DEVNULL)  # the kernel would remove it, but later

    def new_host_key(self, index: int) -> None:
        """Give a host another key than the one that is pinned."""
        self.touch(index)
        cell, host = self._running(index), self.hosts[index]
        kill(_listeners(cell))
        host.key.unlink()
        _new_key(host.key)
        self.start_sshd(index)

    def touch(self, index: int) -> None:
        """Note that something is done to a host that is not to last."""
        self._touched.add(index)

    def mend(self) -> None:
        """Boot the hosts anew to which something was done."""
        for index in sorted(self._touched):
            if self.hosts[index].cell is not None:
                self.delete(index)
            shutil.rmtree(self.hosts[index].work / "runs", ignore_errors=True)
            self.start(index)
        self._touched.clear()
        self._client.known_hosts.write_text("".join(self._known(host) for host in self.hosts))

    def close(self) -> None:
        """Switch everything off."""
        for host in self.hosts:
            if host.cell is not None:
                host.cell.close()
        if self.uplink:  # the kernel would remove it, but later
            subprocess.run(["ip", "link", "delete", self.uplink], check=False, stderr=subprocess.DEVNULL)
        self._switch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connect(self) -> str:
        """Lay a cable from the test session to a new switch. Its name, unique on the machine, reserves the network."""
        for attempt in range(256):
            self._network = (os.getpid() + attempt) % 256
            name = f"hosts{self._network}"
            cable = ["ip", "link", "add", name, "type", "veth", "peer", "name", "up0", "netns", str(self._switch.pid)]
            laid = subprocess.run(cable, check=False, capture_output=True, text=True)
            if laid.returncode == 0:
                break
            assert "File exists" in laid.stderr, laid.stderr
        else:
            raise AssertionError("all 256 networks 10.77.X.0 are in use")
        _ip(self._switch, "link add br0 type bridge", "link set up0 master br0 up", "link set br0 up")
        _ip(None, f"address add 10.77.{self._network}.1/24 dev {name}", f"link set {name} up")
        return name

    def _host(self, index: int) -> Host:
        hostname = f"host{index + 1}"
        work = self.folder / hostname
        work.mkdir()
        key = _new_key(self.folder / f"{hostname}.key")
        return Host(f"10.77.{self._network}.{11 + index}", hostname, work, key, f"cable{index}")

    def _known(self, host: Host) -> str:
        return f"[{host.name}]:{host.port} {Path(f'{host.key}.pub').read_text()}"

    def _running(self, index: int) -> Cell:
        cell = self.hosts[index].cell
        assert cell is not None, f"{self.hosts[index].name} is switched off"
        return cell


def _new_key(path: Path) -> Path:
    generate = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(generate, check=True)
    return path


def _ip(cell: Cell | None, *lines: str) -> None:
    """Commands of ip, in a cell's network or in the test session's."""
    batch = ["ip", "-batch", "-"]
    command = batch if cell is None else cell.inside(*batch, only="--net")
    done = subprocess.run(command, input="\n".join(lines) + "\n", check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"ip {'; '.join(lines)}: {done.stderr}"


def _sshds(cell: Cell) -> list[psutil.Process]:
    return [process for process in cell.processes() if process.info["name"] == "sshd"]


def _listeners(cell: Cell) -> list[psutil.Process]:
    return [sshd for sshd in _sshds(cell) if "[listener]" in " ".join(sshd.info["cmdline"] or ())]


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
