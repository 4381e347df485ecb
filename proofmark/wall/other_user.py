"""A user id of its own for a process of others' code: what the kernel keeps from other users, it keeps without
Landlock too. Only root can give one."""

from __future__ import annotations

import errno
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

from proofmark.errors import StepError, UsageError
from proofmark.process.lifetime import die_with_parent
from proofmark.wall.privileges import gain_nothing_by_exec

OPTION = "--engine-user"

PROBE = "import os, sys; print(*(path for path in sys.argv[1:] if not os.access(path, os.R_OK)), sep='\\0', end='')"
"""What a process of that user says: which paths it can't read."""

PATIENCE = 60.0
"""Seconds that it may take."""


def look_at(name: str, vendor: Path, results: Path) -> None:
    """Look whether a process here can become a user's, and would find there what it needs.

    Args:
        name: the user's.
        vendor: the folder of the vendor's package.
        results: the one in which sessions make theirs; it need not be there yet.

    Raises:
        UsageError: it can't, or would not; the line says what, and what to do.
    """
    user = _user(name)
    there = next(path for path in (results, *results.parents) if path.exists())
    paths = [str(path) for path in (*_own(), vendor, there)]
    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-c", PROBE, *paths],
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=_groups(user),
            cwd="/",
            env={},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except OSError as error:
        if error.errno == errno.EACCES:
            raise _unreadable(name, sys.executable) from None
        raise UsageError(f"{OPTION} {name}: no process of that user can be started here: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{OPTION} {name}: a process of that user did not answer in {PATIENCE:.0f} s") from None
    if ran.returncode or ran.stdout:
        raise _unreadable(name, ran.stdout.partition("\0")[0] or sys.base_prefix)


def become(name: str, own: Path) -> None:
    """Have this process, which is root's and has one thread, be another user's for good.

    Args:
        name: the user's.
        own: the directory that shall be its own.

    Raises:
        StepError: it can't be, or what it needs is not to be read there.
    """
    try:
        user, parent = _user(name), os.getppid()
    except UsageError as error:
        raise StepError(str(error)) from None
    try:
        gain_nothing_by_exec()
        os.chown(own, user.pw_uid, user.pw_gid, follow_symlinks=False)
        os.setgroups(_groups(user))
        os.setresgid(*[user.pw_gid] * 3)
        os.setresuid(*[user.pw_uid] * 3)
    except OSError as error:
        raise StepError(f"{OPTION} {name}: {error}") from None
    die_with_parent(signal.SIGKILL)()  # the kernel has forgotten it with the user
    if os.getppid() != parent:
        os._exit(1)
    for path in (*_own(), own):
        if not os.access(path, os.R_OK):
            raise StepError(str(_unreadable(name, path)))


def _user(name: str) -> pwd.struct_passwd:
    if os.geteuid() != 0:
        raise UsageError(f"{OPTION} {name}: only root can give a process another user: remove it, or run as root")
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise UsageError(f"{OPTION} {name}: there is no such user here") from None
    if user.pw_uid == 0:
        raise UsageError(f"{OPTION} {name}: that user is root, who can read everything: name another")
    return user


def _groups(user: pwd.struct_passwd) -> list[int]:
    """All groups of the user: a device may be a group's."""
    return os.getgrouplist(user.pw_name, user.pw_gid)


def _own() -> list[Path]:
    """What the process of any engine reads: the interpreter, its packages, and the referee's code."""
    return [Path(sys.base_prefix), Path(sys.prefix), Path(os.__file__).parent, Path(__file__).parents[1]]


def _unreadable(name: str, path: str | Path) -> UsageError:
    return UsageError(f"{OPTION} {name}: that user can't read {path}: grant access, or name another")
