"""The wall, by real attempts to get past it."""

import contextlib
import errno
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proofmark.wall import landlock
from proofmark.wall.isolation import Isolation
from proofmark.wall.wall import Wall, linked_from, put_on
from tests.unit.wall import behind_the_wall

Answer = tuple[Isolation, dict[str, str]]

MAY = {"write own", "read own", "null", "random", "import", "pair", "signal itself", "signal around itself", "exec own"}
MAY |= {"own processors", "own processors' timer", "own turns", "own priority", "name a thread", "list devices"}
"""All that can be done behind a wall, of what is tried."""

HARMLESS = {"own user namespace"}
"""It gives nothing that the wall doesn't take."""

CONTROLS = [
    *("read outside", "list outside", "list home", "list root", "list temporary", "open to public", "date back"),
    *(
        "make a pipe",
        "make a socket",
        "tcp",
        "udp",
        "abstract",
        "socket in a file",
        "signal",
        "child's signal",
        "its limits",
        "exec",
    ),
    *("watch outside", "leave the group", "begin a group", "a timer of real time"),
    *("outlive its parent", "outlive its parent by half an option"),
    *("memory by number", "a lock by number", "letters by number"),
    *("its turns", "its turns by attributes", "its turns' order", "its priority", "its disk's priority"),
]
"""What succeeds where nothing holds: that it fails behind the wall is the wall's doing."""


PAIRS = ("a pair's datagram", "a raw pair's")


def has_landlock() -> bool:
    with contextlib.suppress(OSError):
        return landlock.version() >= 6
    return False


behind = pytest.mark.skipif(not has_landlock(), reason="needs a kernel with Landlock 6, as Linux 6.12")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Something secret outside, a directory inside, and who listens outside."""
    root = tmp_path_factory.mktemp("wall")
    for name in ("outside", "own"):
        (root / name).mkdir()
    (root / "outside" / "secret").write_text("labels")
    abstract = f"\0{secrets.token_hex(8)}"
    families = (socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)
    with contextlib.ExitStack() as stack:
        tcp, udp = (stack.enter_context(socket.socket(*family)) for family in families)
        unix, in_a_file = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        datagrams, letters = (stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) for _ in range(2))
        for one, address in (tcp, ("127.0.0.1", 0)), (udp, ("127.0.0.1", 0)):
            one.bind(address)
        unix.bind(abstract.encode())
        in_a_file.bind(name := f"/tmp/{secrets.token_hex(8)}")
        stack.callback(Path(name).unlink)
        datagrams.bind(f"{abstract}d".encode())
        letters.bind(f"{name}d")
        stack.callback(Path(f"{name}d").unlink)
        packets = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        packets.bind(f"{name}p")
        stack.callback(Path(f"{name}p").unlink)
        for one in (tcp, unix, in_a_file, packets):
            one.listen()
        yield {
            "outside": str(root / "outside"),
            "own": str(root / "own"),
            "tcp": tcp.getsockname(),
            "udp": udp.getsockname(),
            "abstract": abstract,
            "socket": name,
            "datagrams": f"{abstract}d",
            "letters": f"{name}d",
            "packets": f"{name}p",
            "address": id(root),
        }


def behind_a_wall(orders: dict[str, Any]) -> Answer:
    ran = subprocess.run(
        [sys.executable, behind_the_wall.__file__, json.dumps(orders)],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    return Isolation.model_validate_json(json.dumps(answer["isolation"])), answer["tried"]


@behind
def test_others_code_can_reach_nothing_outside(place: dict[str, Any]) -> None:
    isolation, tried = behind_a_wall({**place, "hidden": [place["outside"]]})
    assert {name for name, what in tried.items() if what == "done"} - HARMLESS == MAY, tried
    assert isolation.kind == "wall" and isolation.network == "closed" and isolation.gaps == ()
    assert isolation.landlock >= 6 and isolation.devices == ()
    assert (Path(place["outside"]) / "secret").read_text() == "labels"
    assert (Path(place["outside"]) / "left").read_bytes() == b""


@behind
def test_only_what_is_asked_for_is_open(place: dict[str, Any]) -> None:
    (Path(place["outside"]) / "disk").touch()
    isolation, tried = behind_a_wall(
        {
            **place,
            "network": True,
            "unix_sockets": "all",
            "readable": [place["outside"], "/opt/nothing/here"],
            "devices": ["/dev/full", "/dev/nothing0", place["outside"] + "/disk"],
            "only": ["read outside", "write outside", "tcp", "udp", "abstract", "socket in a file", "netlink", "vsock"],
        }
    )
    opened = {"read outside", "tcp", "udp", "socket in a file", "abstract", "netlink"}
    assert {name for name, what in tried.items() if what == "done"} == opened, tried
    assert (isolation.network, isolation.devices) == ("asked for", ("/dev/full",))


@behind
@pytest.mark.parametrize(
    "asked, opened, network",
    [
        ({"streams": "own"}, {"listen"}, "closed"),
        ({"streams": "all"}, {"listen", "tcp"}, "between ranks"),
        (
            {"unix_sockets": "all"},
            {"abstract", "socket in a file", "make a socket", "abstract datagram", "datagram to a file", *PAIRS},
            "closed",
        ),
        ({"unix_sockets": "datagrams"}, {"abstract datagram", "datagram to a file", *PAIRS}, "closed"),
        ({"shared_memory": True}, {"shared memory"}, "closed"),
    ],
)
def test_ranks_have_what_they_need_to_speak(
    place: dict[str, Any], asked: dict[str, Any], opened: set[str], network: str
) -> None:
    tried_here = ["listen", "tcp", "udp", "fast open", "another protocol", "vsock", "abstract", "socket in a file"]
    tried_here += ["abstract datagram", "datagram to a file", *PAIRS, "letters", "raw, in a file"]
    tried_here += ["shared memory", "read outside", "make a pipe", "make a socket"]
    isolation, tried = behind_a_wall({**place, **asked, "only": tried_here})
    assert {name for name, what in tried.items() if what == "done"} == opened, tried
    reached = asked.get("unix_sockets")
    kind = "process" if reached == "all" else "wall"
    assert (isolation.kind, isolation.network) == (kind, network), "a daemon was spoken to"
    expected = {"all": ["sockets in files"], "datagrams": ["datagrams"], None: []}
    assert [gap.partition(":")[0] for gap in isolation.gaps] == expected[reached]


HOW = {
    "as a container's attach": lambda one, place: one.bind(f"/proc/self/fd/{os.open(place.parent, os.O_PATH)}/attach"),
    "relative": lambda one, place: (os.chdir(place.parent), one.bind(place.name)),
    "renamed": lambda one, place: (one.bind(f"{place}1"), os.rename(f"{place}1", place)),
    "a line's end": lambda one, place: one.bind(f"{place}\n1"),
    "no text": lambda one, place: one.bind(os.fsencode(place) + b"\xff"),
    "abstract": lambda one, place: one.bind(f"\0{secrets.token_hex(8)}"),
    "abstract, with lines": lambda one, place: one.bind(b"\0\nx x x zz zz x x /x\n0: 2 0 1 0005 zz\n\n"),
}


@behind
@pytest.mark.parametrize("how", HOW)
def test_who_listens_for_packets_is_not_missed_by_its_name(place: dict[str, Any], how: str, tmp_path: Path) -> None:
    here, there = socket.socketpair()
    if (child := os.fork()) == 0:
        try:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            HOW[how](one, tmp_path / "attach")
            one.listen()
            there.send(b"x")
            there.recv(1)
        finally:
            os._exit(0)
    there.close()
    assert here.recv(1) == b"x"
    orders = {**place, "devices": ["/dev/full"], "streams": "all", "only": []}
    try:
        gaps = behind_a_wall(orders)[0].gaps
    finally:
        here.send(b"x")
        os.waitpid(child, 0)
    elsewhere = behind_a_wall(orders)[0].gaps  # of other tests, that run beside this one
    others = [gap for gap in gaps if gap.endswith(" takes some") and gap not in elsewhere]
    assert bool(others) == ("abstract" not in how), gaps


@behind
def test_where_it_is_not_known_who_listens_nobody_is_behind_a_wall(place: dict[str, Any]) -> None:
    orders = {**place, "devices": ["/dev/full"], "streams": "all", "only": [], "without_list": "/nowhere/at/all"}
    isolation, _ = behind_a_wall(orders)
    assert isolation.kind == "process"
    assert "packets: who listens for some is not known: No such file or directory" in isolation.gaps


PACKETS = ["listen for packets", "packets to itself", "packets from somebody", "packets to a file"]


@behind
@pytest.mark.parametrize(
    "asked, opened",
    [
        ({}, set()),
        ({"devices": ["/dev/full"]}, {"listen for packets"}),
        ({"streams": "all"}, set()),
        ({"devices": ["/dev/full"], "streams": "all"}, set(PACKETS)),
        ({"devices": ["/dev/full"], "network": True}, set(PACKETS)),
        ({"devices": ["/dev/full"], "unix_sockets": "datagrams"}, set(PACKETS)),
    ],
)
def test_who_uses_a_device_may_listen_for_packets_and_meets_nobody(
    place: dict[str, Any], asked: dict[str, Any], opened: set[str]
) -> None:
    isolation, tried = behind_a_wall({**place, **asked, "only": [*PACKETS, "abstract", "socket in a file"]})
    assert {name for name, what in tried.items() if what == "done"} == opened, tried
    met = f"packets: {place['packets']!r} takes some"
    assert (isolation.kind == "process") == (met in isolation.gaps) == ("packets to a file" in opened)
    assert any(gap.startswith("packets: what listens") for gap in isolation.gaps) == (met in isolation.gaps)


@behind
def test_a_daemon_that_takes_orders_by_datagram_is_a_gap(place: dict[str, Any]) -> None:
    orders = {**place, "commanded": [place["letters"], "/nowhere/at/all"], "only": []}
    assert behind_a_wall(orders)[0].kind == "wall", "without datagrams nobody is reached"
    isolation, _ = behind_a_wall({**orders, "unix_sockets": "datagrams"})
    assert isolation.kind == "process" and f"datagrams: {place['letters']} takes orders" in isolation.gaps


@behind
def test_no_link_leads_the_referee_elsewhere(place: dict[str, Any]) -> None:
    _, tried = behind_a_wall({**place, "readable": [place["outside"]], "only": ["through a symbolic link"]})
    assert tried == {"through a symbolic link": "EACCES"}


@behind
def test_what_is_hidden_and_can_be_seen_is_a_gap(place: dict[str, Any]) -> None:
    isolation, _ = behind_a_wall(
        {**place, "readable": [place["outside"]], "hidden": [place["outside"] + "/secret"], "only": []}
    )
    assert isolation.kind == "process"
    assert isolation.gaps == (f"files: {place['outside']}/secret can be read",)


@behind
def test_of_very_many_that_can_be_seen_some_are_named(place: dict[str, Any]) -> None:
    """As of data that is nothing but links: a message has no room for all of them."""
    seen = [f"{place['outside']}/{number:04}" for number in range(2000)]
    for name in seen:
        Path(name).touch()
    isolation, _ = behind_a_wall({**place, "readable": [place["outside"]], "hidden": seen, "only": []})
    assert isolation.kind == "process" and "files: so can 1,984 more" in isolation.gaps[-1]
    assert isolation.gaps[0] == f"files: {seen[0]} can be read" and len(isolation.gaps) == 17


@behind
@pytest.mark.parametrize("below", ["", "train"])
def test_what_links_in_hidden_data_lead_to_is_hidden(place: dict[str, Any], below: str) -> None:
    folder = Path(place["outside"], "data", below)
    folder.mkdir(parents=True)
    for name, leads_to in {"left out": "../left", "round": "round", "known": "/usr/bin/env"}.items():
        (folder / name).symlink_to(leads_to)
    data = folder.parent if below else folder
    isolation, _ = behind_a_wall({**place, "hidden": [str(data), *map(str, linked_from(data))], "only": []})
    assert isolation.kind == "process"
    assert isolation.gaps == (f"files: {Path('/usr/bin/env').resolve()} can be read",)


@pytest.mark.parametrize(
    "number, expected", [(errno.ENOSYS, "was built without"), (errno.EOPNOTSUPP, "was started without")]
)
def test_a_kernel_without_is_said(place: dict[str, Any], number: int, expected: str) -> None:
    isolation, tried = behind_a_wall({**place, "without_landlock": number, "only": ["read outside", "tcp"]})
    assert (isolation.kind, isolation.landlock, isolation.network) == ("process", 0, "closed")
    assert isolation.gaps[0] == f"files, signals, memory of other processes: no Landlock: this kernel {expected}"
    assert tried == {"read outside": "done", "tcp": "EACCES"}


@behind
@pytest.mark.parametrize("version", [1, 2])
def test_an_older_kernel_lets_no_file_outside_be_cut_off(place: dict[str, Any], version: int) -> None:
    cuts = ["cut outside", "cut outside by reading", "cut outside by doing nothing", "cut outside by new ways"]
    orders = {**place, "readable": [place["outside"]], "landlock": version, "only": [*cuts, "write own", "read own"]}
    isolation, tried = behind_a_wall(orders)
    assert (isolation.kind, isolation.landlock) == ("wall", version)
    assert {tried.pop(name) for name in cuts} == {"EACCES", "ENOSYS"} and set(tried.values()) == {"done"}
    assert (Path(place["outside"]) / "secret").read_text() == "labels"


@pytest.mark.parametrize("network, expected", [(False, "open"), (True, "asked for")])
def test_a_system_without_the_filter_is_said(place: dict[str, Any], network: bool, expected: str) -> None:
    orders = {**place, "without_filter": True, "network": network, "only": ["udp", "tcp"]}
    isolation, tried = behind_a_wall(orders)
    assert (isolation.kind, isolation.network, tried["udp"]) == ("process", expected, "done")
    assert any("no filter of system calls: libnothing.so.9" in gap for gap in isolation.gaps)
    assert tried["tcp"] == ("done" if network or not isolation.landlock else "EACCES")


def test_without_either_all_is_open(place: dict[str, Any]) -> None:
    orders = {**place, "without_landlock": errno.ENOSYS, "without_filter": True, "only": CONTROLS}
    isolation, tried = behind_a_wall(orders)
    assert (isolation.kind, len(isolation.gaps)) == ("process", 3)
    assert set(tried.values()) == {"done"}, tried


def test_threads_would_stay_outside() -> None:
    done = threading.Event()
    waits = threading.Thread(target=done.wait)
    waits.start()
    with pytest.raises(RuntimeError, match="before any thread"):
        put_on(Wall())
    done.set()
    waits.join()


BOUND = """
import os, sys
from proofmark.vendor.torch_extensions import import_without
from proofmark.wall.wall import Wall, put_on
whole = os.sched_getaffinity(0)
import_without()
import torch
put_on(Wall())
torch.set_num_threads(2)
torch.ones(1 << 20).exp()
tasks = os.listdir("/proc/self/task")
print(len(tasks) > 1 and all(os.sched_getaffinity(int(task)) == whole for task in tasks))
"""


@behind
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is all that there is")
def test_threads_that_are_to_be_bound_have_all_cores() -> None:
    """torch's OpenMP binds the first thread when it is loaded; it can't bind those that this one starts."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "OMP_PROC_BIND": "true"}
    assert subprocess.check_output([sys.executable, "-c", BOUND], env=environment, text=True) == "True\n"
