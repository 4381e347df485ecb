"""A filter of system calls by libseccomp, for what Landlock has no rule for: seccomp(2)."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Set
from typing import Literal

from proofmark.process.lifetime import PR_SET_PDEATHSIG

UnixSockets = Literal["none", "datagrams", "all"]
"""Sockets between processes of one host."""

LIBRARY = "libseccomp.so.2"

ALLOW = 0x7FFF0000
REFUSE = 0x00050000
"""To which the error number is added."""

UNKNOWN = -1
"""What libseccomp answers for a name that it doesn't know."""

NOT_EQUAL, EQUAL, GREATER, MASKED = 1, 4, 6, 7

ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "file_setattr"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
"""Landlock leaves them alone, wherever the file is."""

OTHER_PROCESSES = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "perf_event_open"),
    *("add_key", "keyctl", "request_key", "setns"),
)

WATCHES = ("inotify_init", "inotify_init1", "inotify_add_watch", "fanotify_init", "fanotify_mark")
"""Of files that can't be read: which of them is opened next says what a loader brings, and a log's growth who looks."""

BETWEEN_PROCESSES = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl"),
    *("msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink"),
)
"""Memory, locks and letters under a number or a name: they outlive who made them, and another's may be opened."""

OF_A_PROCESS = (
    *("prlimit64", "sched_setattr", "sched_setparam", "sched_setscheduler"),
    *("migrate_pages", "move_pages"),
)
"""Their first argument is whose limits, turns or memory they change: only 0, the caller, may be."""

CLONE_NEWUSER = 0x10000000
"""Makes a namespace of users: who is in one has every capability there."""

F_SETLEASE = 1024
"""Whoever opens a leased file waits until the lease is given up, for 45 seconds at most."""

ITIMER_REAL = 0
"""The timer of setitimer(2) that runs while its process is stopped."""

OUT_OF_THE_GROUP = ("setsid", "setpgid")
"""What a process starts is ended with its group, and may have cleared its environment, by which it would be known."""

AN_INT = (1 << 32) - 1
"""What the kernel looks at of an argument that is one."""

A_GROUP = 1 << 31
"""The sign of whom a signal is for: it says that a group is meant by its number, or all."""

PRIORITY_OF_A_PROCESS = {"setpriority": 0, "ioprio_set": 1}
"""Their first argument is whether the second is a process, as here, or a group or a user."""

OPENS = {"open": 1, "openat": 2}
"""Which argument of theirs has the flags."""

READ_NOTHING = os.O_WRONLY | os.O_RDWR
"""With these flags together a file can be neither read nor written, but cut off."""

PAST_THE_FILTER = ("io_uring_setup", "io_uring_enter", "io_uring_register")
"""They open sockets without the calls for it."""

SINCE = {"clone3": 435, "openat2": 437, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469}
"""Numbers, the same everywhere, of those that are younger than many a libseccomp."""

FAMILIES = 64
"""Above all socket families that there are."""

KINDS, FASTOPEN = 0xF, 0x20000000
"""The bits of a socket's type that say its kind; what has a send connect, past Landlock."""

MEETS = ("connect", "accept", "accept4")
"""By which two sockets come together."""

_LEFT: dict[UnixSockets, Set[int]] = {"none": set(), "datagrams": {socket.SOCK_DGRAM}, "all": set(range(KINDS + 1))}
"""The kinds that stay."""

SENDS = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
"""Which argument of theirs has the flags."""


class _Argument(ctypes.Structure):
    _fields_ = [
        ("number", ctypes.c_uint),
        ("comparison", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    ]


def restrict(network: bool, unix_sockets: UnixSockets, streams: bool, packets: bool, cuts: bool = True) -> None:
    """Refuse this thread, and all that it starts, those calls; calls of another architecture end it.

    Args:
        network: whether sockets of the Internet stay.
        streams: whether TCP's alone do, which Landlock knows.
        unix_sockets: which of those stay that may have a place in the file system, behind which a daemon may listen
            (Landlock knows none of them). Pairs of streams without a name always stay.
        packets: whether those of them stay that are of packets in sequence: a driver may want to listen at one, as
            CUDA's does. Where nothing else connects, none can, and none is answered.
        cuts: whether files may be cut off without being written, since Landlock knows which may be.

    Raises:
        OSError: there is no libseccomp, or the kernel refuses.
    """
    rules = _Filter()
    _refuse_others(rules)
    if not cuts:
        _refuse_cuts(rules)
    _refuse_sockets(rules, network, unix_sockets, streams, packets)
    rules.load()


def _refuse_others(rules: _Filter) -> None:
    """Refuse all calls that reach other processes, or lead out of reach of those that watch this one."""
    for name in (*ATTRIBUTES, *OTHER_PROCESSES, *WATCHES, *BETWEEN_PROCESSES, *PAST_THE_FILTER):
        rules.refuse(name, errno.EPERM)
    for name in OF_A_PROCESS:
        rules.refuse(name, errno.EPERM, _Argument(0, NOT_EQUAL, 0))
    # answered as if done: an OpenMP that may not bind a thread that it has started ends the process
    rules.refuse("sched_setaffinity", 0, _Argument(0, NOT_EQUAL, 0))
    for name in ("unshare", "clone"):
        rules.refuse(name, errno.EPERM, _Argument(0, MASKED, CLONE_NEWUSER, CLONE_NEWUSER))
    rules.refuse("clone3", errno.ENOSYS)  # a filter sees no flags of its: glibc takes clone then
    rules.refuse("fcntl", errno.EPERM, _Argument(1, MASKED, AN_INT, F_SETLEASE))
    rules.refuse("timerfd_create", errno.EMFILE)  # of which no limit bounds how many there are
    # each process has one, and no limit bounds how many processes there are
    rules.refuse("setitimer", errno.EPERM, _Argument(0, MASKED, AN_INT, ITIMER_REAL))
    rules.refuse("alarm", 0)  # answered as if none had been set: it can't fail
    for name in OUT_OF_THE_GROUP:  # likewise: who starts a daemon is told that it left
        rules.refuse(name, 0)
    # and who no longer ends with its parent
    rules.refuse("prctl", 0, _Argument(0, MASKED, AN_INT, PR_SET_PDEATHSIG))
    # and who would end what it takes for another's group would end itself: it is told, and not ended
    rules.refuse("kill", errno.EPERM, _Argument(0, MASKED, A_GROUP, A_GROUP))
    for name, process in PRIORITY_OF_A_PROCESS.items():
        rules.refuse(name, errno.EPERM, _Argument(0, NOT_EQUAL, process))
        rules.refuse(name, errno.EPERM, _Argument(1, NOT_EQUAL, 0))


def _refuse_sockets(rules: _Filter, network: bool, unix_sockets: UnixSockets, streams: bool, packets: bool) -> None:
    """Refuse the sockets that do not stay, by their families and kinds."""
    kept = {socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK} if network or streams else set()
    left = _LEFT[unix_sockets] | ({socket.SOCK_SEQPACKET} if packets else set())
    kept |= {socket.AF_UNIX} if left else set()
    rules.refuse("socketpair", errno.EACCES, _Argument(0, NOT_EQUAL, socket.AF_UNIX))
    if unix_sockets == "none":  # an end of such a pair sends to whom it likes
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
            rules.refuse("socketpair", errno.EACCES, _Argument(1, MASKED, KINDS, kind))
    if left:
        _leave_kinds(rules, socket.AF_UNIX, left)
    if packets and not (network or streams or unix_sockets != "none"):
        for name in MEETS:
            rules.refuse(name, errno.EACCES)
    if streams and not network:
        _leave_streams(rules)
    for family in range(FAMILIES):
        if family not in kept:
            rules.refuse("socket", errno.EACCES, _Argument(0, EQUAL, family))
    rules.refuse("socket", errno.EACCES, _Argument(0, GREATER, FAMILIES - 1))


def _refuse_cuts(rules: _Filter) -> None:
    """Refuse all calls that truncate a file which wasn't opened to be written, for which Landlock has a rule."""
    rules.refuse("truncate", errno.EACCES)
    for name, flags in OPENS.items():
        for how in (os.O_RDONLY, READ_NOTHING):
            rules.refuse(name, errno.EACCES, _Argument(flags, MASKED, os.O_ACCMODE | os.O_TRUNC, how | os.O_TRUNC))
    rules.refuse("openat2", errno.ENOSYS)  # a filter sees no flags of its; who uses it does without on older kernels


def _leave_streams(rules: _Filter) -> None:
    """Of the Internet's sockets allow only TCP, and the kernel's own answers on what interfaces there are."""
    for family in (socket.AF_INET, socket.AF_INET6):
        of_it = _Argument(0, EQUAL, family)
        _leave_kinds(rules, family, {socket.SOCK_STREAM})
        for protocol in range(1, socket.IPPROTO_TCP):
            rules.refuse("socket", errno.EACCES, of_it, _Argument(2, EQUAL, protocol))
        rules.refuse("socket", errno.EACCES, of_it, _Argument(2, GREATER, socket.IPPROTO_TCP))
    rules.refuse("socket", errno.EACCES, _Argument(0, EQUAL, socket.AF_NETLINK), _Argument(2, NOT_EQUAL, 0))
    for name, flags in SENDS.items():
        rules.refuse(name, errno.EACCES, _Argument(flags, MASKED, FASTOPEN, FASTOPEN))


def _leave_kinds(rules: _Filter, family: int, kept: Set[int]) -> None:
    """Allow only some kinds of a family's sockets."""
    for kind in range(KINDS + 1):
        if kind not in kept:
            rules.refuse("socket", errno.EACCES, _Argument(0, EQUAL, family), _Argument(1, MASKED, KINDS, kind))


class _Filter:
    """A filter that allows what it doesn't refuse."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)  # an OSError where there is none
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._rules = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(ALLOW)))
        if not self._rules:
            raise OSError(errno.ENOMEM, f"{LIBRARY}: seccomp_init")

    def refuse(self, name: str, error: int, *where: _Argument) -> None:
        """Answer a call with an error, where all its arguments match."""
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number == UNKNOWN:
            number = SINCE.get(name, UNKNOWN)
        if number == UNKNOWN:
            raise OSError(errno.ENOSYS, f"{LIBRARY} knows no system call {name}")
        arguments = (_Argument * len(where))(*where)
        self._check(
            self._library.seccomp_rule_add_array(
                self._rules, ctypes.c_uint32(REFUSE | error), ctypes.c_int(number), len(where), arguments
            ),
            name,
        )

    def load(self) -> None:
        self._check(self._library.seccomp_load(self._rules), "seccomp_load")
        self._library.seccomp_release(self._rules)

    def _check(self, answer: int, what: str) -> None:
        if answer:
            raise OSError(-answer, f"{LIBRARY}: {what}: {os.strerror(-answer)}")
