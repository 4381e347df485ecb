"""Putting on the wall: all of it, and what of it really holds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import itertools
import os
import re
import socket
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from proofmark.wall import landlock, privileges, python, renames, system_calls
from proofmark.wall.isolation import Isolation, Network
from proofmark.wall.system_calls import UnixSockets

SIGNALS, TCP, TRUNCATION = 6, 4, 3
"""Versions of Landlock before which it knows nothing of them."""


OPEN: dict[UnixSockets, list[str]] = {
    "none": [],
    "datagrams": ["datagrams: what takes them at a file or a name, as a system's log does, can be sent some"],
    "all": ["sockets in files: every daemon that listens at one can be spoken to, as processes here speak so"],
}
"""What is not closed, by the sockets between processes that are left."""

COMMANDED = ("/run/chrony/chronyd.sock", "/run/wpa_supplicant/*", "/run/hostapd/*")
"""Where daemons of a system's listen that do what they are told by datagram."""

THREADS = Path("/proc/self/task")
"""Where a thread's name is written, as a driver's own threads' are: CUDA is not to be had without."""

PACKETS = "packets: what listens for some, at a file from now on or at a name, can be spoken to"

PRINTED = (1, 2)
"""Descriptors of what a process prints."""

LOOKED_AT = 10_000
"""Entries of a directory, and of those in it, that are looked at."""

NAMED = 16
"""Files and folders that are named where more can be read: of links in data there may be thousands."""

UNIX = Path("/proc/net/unix")
"""Sockets between processes."""

_LISTENING = re.compile(rb"\w+: \w+ \w+ 00010000 0005 \w+ +\w+ (?P<name>[^@].*)", re.DOTALL)
"""A line of one for packets in sequence that is listened at; names that lie in no file begin with @."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (it is the system's)


@dataclass(frozen=True)
class Wall:
    """What others' code may reach beside what every Python process needs; all else is closed.

    Attributes:
        readable: files and directories, with all below them. One that isn't there is left out.
        writable: likewise; the process's own. It can remove one when it is empty, and what else is empty beside it.
        devices: character devices that it may use.
        network: whether it may use that.
        streams: whether it may use TCP: "own" to listen at a port of the kernel's choice, and connect to nobody (a
            process group of one needs that), "all" to connect as well, to be one of several ranks.
        unix_sockets: those between processes of one host that it may use beside pairs without a name: "datagrams", as
            ranks on devices of one host need (NCCL hands descriptors on so), or "all". Any daemon of its user's may
            listen at a stream that lies in a file: with "all" there is no wall.
        shared_memory: whether it may make some under a name of its own choice, and use others' whose name it knows.
        hidden: what it must not see, whatever the others say: tried, and a gap where it can be seen.
        largest_file: bytes that a file which it writes may have.
        kept: descriptors of files that it goes on writing, beside those of what it prints.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    network: bool = False
    streams: Literal["none", "own", "all"] = "none"
    unix_sockets: UnixSockets = "none"
    shared_memory: bool = False
    hidden: tuple[Path, ...] = ()
    largest_file: int = privileges.LARGEST_FILE
    kept: tuple[int, ...] = ()


def put_on(wall: Wall) -> Isolation:
    """Close this process in, and all that it starts, for good. It has one thread.

    Raises:
        RuntimeError: it has several threads; the others would stay outside.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("a wall is put on before any thread is started")
    _let_go({*PRINTED, *wall.kept})
    gaps = privileges.give_up(wall.largest_file)
    devices = tuple(device for device in wall.devices if _is_character_device(device))
    commanded = [place for pattern in COMMANDED for place in glob.glob(pattern)]
    version, without = _close_files(wall, devices)
    gaps += without
    if version == renames.FORBIDS:
        renames.bridge()
    outside = _filtered(wall, bool(devices), version)
    outside += _outside(wall) + [f"datagrams: {place} takes orders" for place in commanded if _takes_datagrams(place)]
    gaps += OPEN[wall.unix_sockets]
    if devices and _connects(wall) and wall.unix_sockets != "all":
        gaps.append(PACKETS)
        outside += _packets_taken()
    gaps += outside
    network = _network(wall, version)
    holds = version and network != "open" and not outside and wall.unix_sockets != "all"
    return Isolation(
        kind="wall" if holds else "process",
        landlock=version,
        network=network,
        devices=tuple(map(str, devices)),
        gaps=tuple(gaps),
    )


def _let_go(kept: Collection[int]) -> None:
    """Have no descriptor left by which a file outside is written: a library that was imported may have opened some, of
    which a variable of the vendor's says where they are."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing is gone
            if int(name) not in kept and _is_written(int(name)):
                os.dup2(nothing, int(name), inheritable=False)
    os.close(nothing)


def _is_written(descriptor: int) -> bool:
    """Whether a descriptor is of a file opened to be written; shared memory has no place in any folder."""
    status = os.fstat(descriptor)
    how = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 0 and how != os.O_RDONLY


def _close_files(wall: Wall, devices: Collection[Path]) -> tuple[int, list[str]]:
    """The version of Landlock that closes files, or 0; and what is not closed."""
    rules = dict.fromkeys((*python.needed(), *python.software(wall.hidden), *wall.readable), landlock.READ)
    rules |= dict.fromkeys((*map(Path, python.USABLE), *devices), landlock.USE)
    rules |= {THREADS: landlock.Access.WRITE_FILE | landlock.Access.TRUNCATE}
    with contextlib.suppress(OSError):  # for good: what nobody has open the kernel makes anew, without its rule
        os.open(THREADS, os.O_PATH | os.O_CLOEXEC)
    rules |= {Path("/dev"): landlock.Access.READ_DIR}  # devices are found by their names; no folder is left out
    rules |= {
        path.parent: landlock.Access.REMOVE_DIR | rules.get(path.parent, landlock.NOTHING) for path in wall.writable
    }
    sockets = landlock.Access.MAKE_SOCK if wall.unix_sockets == "all" else landlock.NOTHING
    rules |= dict.fromkeys(wall.writable, landlock.WRITE | sockets)
    rules |= {SHARED_MEMORY: landlock.SHARE} if wall.shared_memory else {}
    try:
        tcp = wall.network or wall.streams == "all"
        version = landlock.restrict(rules, tcp, wall.streams == "own", wall.unix_sockets != "none")
    except OSError as error:
        return 0, [f"files, signals, memory of other processes: no Landlock: {_why(error)}"]
    gaps = [f"signals to other processes: Landlock {version} knows nothing of them"] if version < SIGNALS else []
    if version < TCP and wall.streams == "own":
        gaps.append(f"network: Landlock {version} knows nothing of it, and one rank's process group needs TCP")
    return version, gaps


def _filtered(wall: Wall, devices: bool, version: int) -> list[str]:
    """Refuse system calls; what can be done with them where there is no filter."""
    cuts = not 0 < version < TRUNCATION
    try:
        system_calls.restrict(wall.network, wall.unix_sockets, wall.streams != "none", devices, cuts)
    except OSError as error:
        open_to_all = "network, modes and owners of files, cutting them off, keys"
        return [f"{open_to_all}: no filter of system calls: {error.strerror or error}"]
    return []


def _network(wall: Wall, version: int) -> Network:
    """What of the network can be reached."""
    if wall.network:
        return "asked for"
    if _opens_a_socket() or (wall.streams == "own" and version < TCP):
        return "open"
    return "between ranks" if wall.streams == "all" else "closed"


def _connects(wall: Wall) -> bool:
    return wall.network or wall.streams != "none" or wall.unix_sockets != "none"


def _packets_taken() -> list[str]:
    """Files of sockets that somebody listens at for packets, as the kernel lists them: proc_net_unix(5).

    It knows them by the name that they were bound by, which may mean nothing here: only one that is a socket here and
    can't be used says that it can't.
    """
    try:
        lines = UNIX.read_bytes().split(b"\n")[1:]
    except OSError as error:
        return [f"packets: who listens for some is not known: {error.strerror or error}"]
    names = (found["name"] for line in lines if (found := _LISTENING.fullmatch(line)))
    return [f"packets: {os.fsdecode(name)!r} takes some" for name in dict.fromkeys(names) if not _is_closed(name)]


def _is_closed(name: bytes) -> bool:
    """Whether a socket's file is there and can't be used; in /proc, another process's name leads elsewhere."""
    try:
        socket_there = name.startswith(b"/") and not name.startswith(b"/proc/") and stat.S_ISSOCK(os.stat(name).st_mode)
    except PermissionError:  # nor can the way to it be gone
        return True
    except OSError:
        return False
    return socket_there and not os.access(name, os.W_OK)


def _why(error: OSError) -> str:
    known = {
        errno.ENOSYS: "this kernel was built without",
        errno.EOPNOTSUPP: "this kernel was started without",
        errno.EPERM: "it is not permitted here",
    }
    return known.get(error.errno or 0, error.strerror or str(error))


def _is_character_device(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False


def linked_from(directory: str | Path | None) -> tuple[Path, ...]:
    """Where links lead that lie in a directory, if there is one, or in one there: of data that is hidden, to be hidden
    too. Not all, of very many entries."""
    near = list(_entries(directory)) if directory else []
    below = (_entries(entry.path) for entry in near if entry.is_dir(follow_symlinks=False))
    entries = itertools.islice(itertools.chain(near, *below), LOOKED_AT)
    return tuple(dict.fromkeys(Path(os.path.realpath(entry)) for entry in entries if entry.is_symlink()))


def _entries(path: str | Path) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        yield from itertools.islice(entries, LOOKED_AT)


def _outside(wall: Wall) -> list[str]:
    """What must not be readable, and still is."""
    read = [path for path in (Path("/"), *wall.hidden) if _can_be_read(path)]
    more = [f"files: so can {len(read) - NAMED:,} more"] if len(read) > NAMED else []
    return [f"files: {path} can be read" for path in read[:NAMED]] + more


def _can_be_read(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def _takes_datagrams(place: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            one.connect(place)
    except OSError:
        return False
    return True


def _opens_a_socket() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except OSError:
        return False
    return True
