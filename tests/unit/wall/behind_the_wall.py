"""A program that puts a wall on and then tries to get past it: `python behind_the_wall.py ORDERS`, answers as JSON."""

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofmark.wall import landlock, privileges, system_calls
from proofmark.wall import wall as wall_module
from proofmark.wall.wall import Wall, put_on


def tried(attempt: Callable[[], Any]) -> str:
    """What came of it: `done`, or the name of the error."""
    try:
        answer = attempt()
    except subprocess.SubprocessError as error:
        return type(error).__name__
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "done" if answer is None or answer is True else str(answer)


def called(name: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def called_by_name(name: str, *arguments: Any) -> None:
    """A system call that the C library has no function for."""
    called("syscall", ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name(name.encode()), *arguments)


def connected(family: int, kind: int, address: Any) -> None:
    with socket.socket(family, kind) as one:
        one.connect(address)
        one.send(b"x")


def numbered(make: str, size: int | None, remove: str, *rest: Any) -> None:
    """Something that others find by its number, and that stays until somebody removes it."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = getattr(libc, make)(0, *([] if size is None else [size]), 0o600)
    if number < 0:
        raise OSError(ctypes.get_errno(), make)
    getattr(libc, remove)(number, *rest)


def write_what_is_open(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise PermissionError(errno.EPERM, "it is another")
    os.write(descriptor, b"x")


def watched(directory: bytes) -> None:
    """Who opens what there."""
    libc = ctypes.CDLL(None, use_errno=True)
    if (watch := libc.inotify_init1(0)) < 0 or libc.inotify_add_watch(watch, directory, 0x20) < 0:
        raise OSError(ctypes.get_errno(), "inotify")


def leave_the_group(leave: Callable[[], Any]) -> None:
    """In a child, which would outlive whoever ends this process's group."""
    group = os.getpgid(0)
    if (child := os.fork()) == 0:
        leave()
        os._exit(os.getpgid(0) != group)
    if not os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise PermissionError(errno.EPERM, "it is still in it")


def outlive_the_parent(option: int) -> None:
    """Choose another signal by which its parent's end is told; the kernel looks at an option's lower half."""
    number = ctypes.c_int()
    called_by_name("prctl", ctypes.c_ulong(option), ctypes.c_ulong(signal.SIGURG))
    called("prctl", 2, ctypes.byref(number))
    if number.value != signal.SIGURG:
        raise PermissionError(errno.EPERM, "it is as before")


def cut_by_new_ways(path: Path) -> None:
    how = (ctypes.c_uint64 * 3)(os.O_RDONLY | os.O_TRUNC)
    called("syscall", 437, -100, str(path).encode(), ctypes.byref(how), ctypes.c_size_t(24))  # openat2


def listening(name: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind(name)
    one.listen()
    return one


def connected_to_itself() -> None:
    name = f"\0proofmark-{os.getpid()}-itself"
    with listening(name), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.connect(name)


def accepted() -> None:
    with listening(f"\0proofmark-{os.getpid()}-accepts") as one:
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.accept()


def named() -> None:
    """As a driver's library names a thread of its own."""
    failed: list[OSError] = []

    def name_itself() -> None:
        comm = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
        try:
            comm.write_text("driver")
            assert comm.read_text() == "driver\n"
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=name_itself)
    thread.start()
    thread.join()
    for error in failed:
        raise error


def bound(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path)


def listened() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()


def sent_at_once(address: tuple[str, int]) -> None:
    """Without a call that connects."""
    with socket.socket() as one:
        one.sendto(b"x", socket.MSG_FASTOPEN, address)


def begin_other() -> tuple[int, int]:
    """A process outside with no more capabilities than one behind the wall, which may be slowed where nothing else
    forbids it, and a descriptor with whose end it ends too."""
    heard, kept = os.pipe()
    ready, answer = os.pipe()
    if (other := os.fork()) == 0:
        os.close(kept)
        privileges.give_up()
        os.write(answer, b"x")
        os.read(heard, 1)
        os._exit(0)
    os.read(ready, 1)
    for descriptor in heard, ready, answer:
        os.close(descriptor)
    return other, kept


def sent_by_a_pair(kind: int, address: str) -> None:
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    with one, other:
        one.sendto(b"x", address)


def attempts(orders: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    outside, own = Path(orders["outside"]), Path(orders["own"])
    secret, parent, other = outside / "secret", os.getppid(), orders["other"]
    pages, nice = (ctypes.c_ulong * 2)(1), os.getpriority(os.PRIO_PROCESS, 0)
    turns = (ctypes.c_uint32 * 12)(48, os.SCHED_OTHER, 0, 0, nice)

    def print_memory() -> None:
        with open(f"/proc/{parent}/mem", "rb") as memory:
            memory.seek(orders["address"])
            memory.read(8)

    def move_other() -> None:
        before = os.sched_getaffinity(other)
        os.sched_setaffinity(other, {min(before)})
        if os.sched_getaffinity(other) == before:  # what is asked for is answered as if it were done
            raise PermissionError(errno.EPERM, "not moved")

    def shared() -> None:
        path = Path("/dev/shm") / f"proofmark-{os.getpid()}"
        path.write_bytes(b"x")
        path.unlink()

    return {
        "read outside": lambda: secret.read_bytes() and None,
        "list outside": lambda: os.listdir(outside) and None,
        "list home": lambda: os.listdir(Path.home()) and None,
        "list root": lambda: os.listdir("/") and None,
        "list temporary": lambda: os.listdir("/tmp") and None,
        "watch outside": lambda: watched(str(outside).encode()),
        "shadow": lambda: Path("/etc/shadow").read_bytes() and None,
        "write outside": lambda: secret.write_bytes(b"x") and None,
        "make outside": lambda: (outside / "new").write_bytes(b"x") and None,
        "remove outside": secret.unlink,
        "cut outside": lambda: os.truncate(secret, 0),
        "cut outside by reading": lambda: os.close(os.open(secret, os.O_RDONLY | os.O_TRUNC)),
        "cut outside by doing nothing": lambda: os.close(os.open(secret, os.O_WRONLY | os.O_RDWR | os.O_TRUNC)),
        "cut outside by new ways": lambda: cut_by_new_ways(secret),
        "open to public": lambda: secret.chmod(0o777),
        "give away": lambda: os.chown(secret, 1, 1),
        "date back": lambda: os.utime(secret, (0, 0)),
        "mark outside": lambda: os.setxattr(secret, "user.x", b"x"),
        "link from outside": lambda: os.link(secret, own / "link"),
        "through a symbolic link": lambda: (
            os.symlink(secret, own / "symbolic"),
            (own / "symbolic").read_bytes(),
        )[0],
        "write own": lambda: (own / "new").write_bytes(b"x") and None,
        "read own": lambda: (own / "new").read_bytes() and None,
        "make a pipe": lambda: os.mkfifo(own / f"pipe{os.getpid()}"),
        "make a socket": lambda: bound(str(own / f"s{os.getpid()}")),
        "null": lambda: Path("/dev/null").write_bytes(b"x") and None,
        "random": lambda: Path("/dev/urandom").open("rb").read(1) and None,
        "shared memory": shared,
        "memory by number": lambda: numbered("shmget", 4096, "shmctl", 0, None),
        "a lock by number": lambda: numbered("semget", 1, "semctl", 0, 0),
        "letters by number": lambda: numbered("msgget", None, "msgctl", 0, None),
        "letters by name": lambda: called_by_name("mq_open", f"p{os.getpid()}".encode(), 0o100 | 2, 0o600, None),
        "a file left open": lambda: write_what_is_open(orders["descriptor"]),
        "list devices": lambda: os.listdir("/dev") and None,
        "import": lambda: __import__("xml.dom.minidom") and None,
        "tcp": lambda: connected(socket.AF_INET, socket.SOCK_STREAM, tuple(orders["tcp"])),
        "listen": lambda: listened(),
        "fast open": lambda: sent_at_once(tuple(orders["tcp"])),
        "another protocol": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close(),
        "udp": lambda: connected(socket.AF_INET, socket.SOCK_DGRAM, tuple(orders["udp"])),
        "abstract": lambda: connected(socket.AF_UNIX, socket.SOCK_STREAM, orders["abstract"].encode()),
        "socket in a file": lambda: connected(socket.AF_UNIX, socket.SOCK_STREAM, orders["socket"]),
        "abstract datagram": lambda: connected(socket.AF_UNIX, socket.SOCK_DGRAM, orders["datagrams"].encode()),
        "datagram to a file": lambda: connected(socket.AF_UNIX, socket.SOCK_DGRAM, orders["letters"]),
        "a pair's datagram": lambda: sent_by_a_pair(socket.SOCK_DGRAM, orders["letters"]),
        "a raw pair's": lambda: sent_by_a_pair(socket.SOCK_RAW, orders["letters"]),
        "letters": lambda: connected(socket.AF_UNIX, socket.SOCK_SEQPACKET, orders["socket"]),
        "raw, in a file": lambda: connected(socket.AF_UNIX, socket.SOCK_RAW, orders["socket"]),
        "packets to a file": lambda: connected(socket.AF_UNIX, socket.SOCK_SEQPACKET, orders["packets"]),
        "listen for packets": lambda: listening(f"\0proofmark-{os.getpid()}").close(),
        "packets to itself": connected_to_itself,
        "packets from somebody": accepted,
        "name a thread": named,
        "name another's": lambda: Path(f"/proc/{parent}/task/{parent}/comm").write_text("x") and None,
        "another's end first": lambda: Path(f"/proc/{parent}/oom_score_adj").write_text("1000") and None,
        "pair": lambda: [one.close() for one in socket.socketpair()] and None,
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
        "vsock": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close(),
        "signal": lambda: os.kill(parent, signal.SIGCONT),
        "signal to all": lambda: os.kill(-1, signal.SIGCONT),
        "signal to its group, by number": lambda: os.killpg(os.getpgrp(), signal.SIGCONT),
        "signal around itself": lambda: os.killpg(0, signal.SIGCONT),
        "signal itself": lambda: os.kill(os.getpid(), signal.SIGCONT),
        "attach": lambda: called("ptrace", 16, parent, None, None),
        "memory": print_memory,
        "environment": lambda: Path(f"/proc/{parent}/environ").read_bytes() and None,
        "descriptors": lambda: os.readlink(f"/proc/{parent}/fd/0") and None,
        "its directory": lambda: os.listdir(f"/proc/{parent}/cwd/") and None,
        "its limits": lambda: resource.prlimit(parent, resource.RLIMIT_CORE) and None,
        "its processors": move_other,
        "its turns": lambda: os.sched_setscheduler(other, os.SCHED_OTHER, os.sched_param(0)),
        "its turns by attributes": lambda: called_by_name("sched_setattr", other, ctypes.byref(turns), 0),
        "its turns' order": lambda: os.sched_setparam(other, os.sched_param(0)),
        "its priority": lambda: os.setpriority(os.PRIO_PROCESS, other, nice),
        "its group's priority": lambda: os.setpriority(os.PRIO_PGRP, 0, nice),
        "its user's priority": lambda: os.setpriority(os.PRIO_USER, 0, nice),
        "its disk's priority": lambda: called_by_name("ioprio_set", 1, other, 0),
        "its user's disk's priority": lambda: called_by_name("ioprio_set", 3, 0, 0),
        "its pages' place": lambda: called_by_name("migrate_pages", other, 64, pages, pages),
        "its page's place": lambda: called_by_name("move_pages", other, 0, None, None, None, 0),
        "own processors": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
        "own turns": lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)),
        "own priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, nice),
        "mount": lambda: called("mount", b"none", str(own).encode(), b"tmpfs", 0, None),
        "own user namespace": lambda: called("unshare", 0x10000000 | 0x20000),
        "mount there": lambda: called("mount", b"none", str(own).encode(), b"tmpfs", 0, None),
        "clock": lambda: called("settimeofday", (ctypes.c_long * 2)(1, 0), None),
        "a timer of real time": lambda: signal.setitimer(signal.ITIMER_REAL, 0) and None,
        "own processors' timer": lambda: signal.setitimer(signal.ITIMER_PROF, 0) and None,
        "leave the group": lambda: leave_the_group(os.setsid),
        "begin a group": lambda: leave_the_group(lambda: os.setpgid(0, 0)),
        "outlive its parent": lambda: outlive_the_parent(1),
        "outlive its parent by half an option": lambda: outlive_the_parent(1 << 32 | 1),
        "priority": lambda: os.nice(-5) and None,
        "ring": lambda: called("syscall", 425, 1, None),
        "exec": lambda: subprocess.run(["cat", secret], check=True, capture_output=True) and None,
        "exec own": lambda: subprocess.run(["cat", own / "new"], check=True, capture_output=True) and None,
        "child's signal": lambda: (
            subprocess.run(["sh", "-c", f"kill -CONT {parent}"], check=True, capture_output=True) and None
        ),
        "large file": lambda: os.truncate(own / "new", 1 << 40),
    }


def main() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    orders = json.loads(sys.argv[1])
    if number := orders.get("without_landlock"):

        def refused(*_: Any) -> int:
            raise OSError(number, os.strerror(number))

        landlock._call = refused
    if version := orders.get("landlock"):
        landlock.version = lambda: version
    if orders.get("without_filter"):
        system_calls.LIBRARY = "libnothing.so.9"
    paths = {key: tuple(map(Path, orders.get(key, ()))) for key in ("readable", "devices", "hidden")}
    wall = Wall(
        **paths,
        writable=(Path(orders["own"]),),
        network=orders.get("network", False),
        streams=orders.get("streams", "none"),
        unix_sockets=orders.get("unix_sockets", "none"),
        shared_memory=orders.get("shared_memory", False),
        largest_file=1 << 20,
    )
    wall_module.UNIX = Path(orders.get("without_list", wall_module.UNIX))
    wall_module.COMMANDED = tuple(orders.get("commanded", ()))
    orders["other"], kept = begin_other()
    orders["descriptor"] = os.open(Path(orders["outside"]) / "left", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    isolation = put_on(wall)
    only = orders.get("only")
    found = {name: tried(attempt) for name, attempt in attempts(orders).items() if only is None or name in only}
    os.close(kept)
    print(json.dumps({"isolation": isolation.model_dump(mode="json"), "tried": found}))


if __name__ == "__main__":
    main()
