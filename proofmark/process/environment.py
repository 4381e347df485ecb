"""What a child has of its parent's environment: what is on a list. A CI's tokens are not, nor a user's home.

A user, or a vendor's file, lets others pass by name; what a child was given on purpose its own children have too.
"""

from __future__ import annotations

import fnmatch
import os
import re
import site
from collections.abc import Iterable, Mapping
from pathlib import Path

PASSES = "PROOFMARK_PASSES"
"""The variable with names of others, by commas, that pass too; a name may end in *."""

LISTED = (
    *("PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "USER", "LOGNAME", "TMPDIR", "VIRTUAL_ENV", "DO_NOT_TRACK"),
    *("CC", "CXX", "CPATH", "LIBRARY_PATH", "LD_*", "DYLD_*", "MALLOC_*"),
    *("GOMP_*", "KMP_*", "MKL_*", "OMP_*", "OPENBLAS_*"),
    *("GLOO_*", "PROOFMARK_*", "PYTHON*", "PYTORCH_*", "TORCH*", "TRITON_*"),
)
"""What interpreters, linkers and libraries read, and our own."""

NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""For libraries that start a thread of their own when they are imported: pyarrow's allocator, which pandas imports. A
wall is put on before there are any."""

_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|PASSFILE|(^|_|SSH|PG)PASS(_|$)|PWD|CREDENTIAL|AUTH|KEYS?(_|$)|COOKIE|JWT|(^|_)PAT(_|$)"
    r"|WEBHOOK|PRIVATE|CONNECTION_?STR|(^|_)(DSN|PW|SAS)(_|$)",
    re.IGNORECASE,
)
"""What a pattern never lets pass; a whole name does."""

_NO_SECRET = re.compile(r"(^|_)(IB_PKEY|PAT_ENABLE)$")
"""InfiniBand's partition key, which is a number that all of a network know, and an algorithm's switch."""

_ADDRESS = re.compile(r"://[^\s/@]*:[^\s/@]+@|https?://[^\s/@]+@")
"""An address with a password in it, as a CI has of its repository; or with a token in the place of a user."""


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables of a parent's environment that its child inherits: on the list, or let pass by `PASSES`."""
    patterns = (*LISTED, *_names(environment))
    return {name: value for name, value in environment.items() if passes(name, patterns, value)}


def passes(name: str, patterns: Iterable[str], value: str = "") -> bool:
    """Whether one of the patterns lets a variable pass."""
    secret = _SECRET.search(name) and not _NO_SECRET.search(name)
    by_pattern = not (secret or holds_password(value))
    return any(name == each or (by_pattern and fnmatch.fnmatchcase(name, each)) for each in patterns)


def holds_password(value: str) -> bool:
    """Whether a value is an address with a password in it."""
    return _ADDRESS.search(value) is not None


def passing() -> list[str]:
    """Names and patterns of what passes beside what is on the list."""
    return _names(os.environ)


def let_pass(names: Iterable[str]) -> None:
    """Let variables pass to all that this process starts from now on; a name may end in *."""
    os.environ[PASSES] = ",".join(dict.fromkeys((*passing(), *names)))


def begun_with(
    given: Mapping[str, str], own: Mapping[str, str], everything: bool = False, home: str | None = None
) -> dict[str, str]:
    """The whole environment of a child of this process.

    Args:
        given: variables that it is given on purpose; its own children have them too.
        own: those that are its alone.
        everything: whether it has all that this process has.
        home: its own; None for a place that is not there.
    """
    inherited = dict(os.environ) if everything else passed_on(os.environ)
    if not everything:  # packages of the user's are found by HOME
        inherited |= {"HOME": home or "/nonexistent", "PYTHONUSERBASE": site.getuserbase()}
    return {**inherited, **handed_on(given, passing()), **own}


def handed_on(given: Mapping[str, str], others: Iterable[str] = ()) -> dict[str, str]:
    """The variables that a child is given on purpose, with word to it that its own children have them too.

    Args:
        given: those; names that it lets pass itself do so.
        others: names that pass too.
    """
    names = dict.fromkeys((*others, *_names(given), *(name for name in given if name != PASSES)))
    return {**NO_THREADS, **given, PASSES: ",".join(names)}


def _names(environment: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in environment.get(PASSES, "").split(",") if name.strip(" *")]


def quiet_environment() -> dict[str, str]:
    """What keeps torch's C++ from warning, and libraries from reporting to their makers; what is set already stands."""
    return _unless_set({"DO_NOT_TRACK": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"})


def tidy_environment(cache: Path) -> dict[str, str]:
    """`quiet_environment`, and what keeps a process from leaving things in the user's home or in /tmp."""
    compiled = {"TORCHINDUCTOR_CACHE_DIR": str(cache / "torchinductor"), "TRITON_CACHE_DIR": str(cache / "triton")}
    return _unless_set(compiled) | quiet_environment()


def _unless_set(ours: Mapping[str, str]) -> dict[str, str]:
    return {key: os.environ.get(key, value) for key, value in ours.items()}
