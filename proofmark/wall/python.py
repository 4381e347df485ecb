"""What a Python process needs to read wherever it runs, and what of it holds nobody's data."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import site
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from proofmark.process.environment import passes

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc"),
    *("/sys/bus", "/sys/class", "/sys/devices", "/sys/fs/cgroup", "/sys/module", "/dev/random", "/dev/urandom"),
    *("/nix/store", "/gnu/store"),
)

SETTINGS = (
    *("alternatives", "fonts", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias"),
    *("localtime", "mime.types", "nsswitch.conf", "os-release", "passwd", "group", "protocols", "resolv.conf"),
    *("services", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "timezone", "OpenCL", "vulkan"),
    *("libibverbs.d", "nccl.conf"),
)
"""In /etc: nothing of it is secret."""

SOFTWARE = tuple(map(Path, ("/opt", "/apps", "/cm", "/cvmfs", "/software", "/sw")))
"""Below these a site installs what its system has no package of."""

LINKER = "/etc/ld.so.conf.d"
"""Where what is installed beside the system says where its libraries are."""

SETTLED = (*SOFTWARE, *map(Path, ("/etc", "/run", "/var/run")))
"""Below these is what a system's administrator, or a daemon of it, says to all of its libraries."""

INSTALLED = ("site-packages", "dist-packages")

USABLE = ("/dev/null", "/dev/zero", "/dev/full")
"""They can be written, and keep nothing."""


def imported() -> tuple[Path, ...]:
    """The source of what this process has imported from elsewhere: torch's compiler reads that of what it compiles."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    places = tuple(f"{place}/" for place in needed())
    sources = {file for file in files if isinstance(file, str) and file.endswith(".py")}
    return tuple(Path(file) for file in sorted(sources) if not file.startswith(places))


def needed() -> tuple[Path, ...]:
    """The system's programs and libraries, this interpreter and its installed packages, and the referee's own code.

    Nothing of `sys.path` beside those: a repository's root is there, with its results and its caches.
    """
    own = Path(__file__).resolve().parents[1]
    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    paths: list[str] = [sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    bases = [sys.base_prefix, sys.base_exec_prefix, sys.executable]
    environment = [f"{sys.prefix}/pyvenv.cfg", f"{sys.prefix}/bin"]
    settings = [f"/etc/{name}" for name in SETTINGS]
    installed = [path for path in sys.path if Path(path).name in INSTALLED]  # an environment may be on top of another
    packages = (*site.getsitepackages(), *users, *paths, *installed, *bases, *environment)
    places = (*SYSTEM, *settings, *packages, own)
    return tuple(dict.fromkeys(Path(str(place)) for place in places))


def software(hidden: Iterable[Path] = ()) -> tuple[Path, ...]:
    """A site's that the environment names, as its modules set it, or its linker's settings: by a compiler that lies
    there torch's compiles, and a library of it may be the network's.

    Nothing that has to do with a home or with what is hidden, wherever links lead.
    """
    lists = (os.environ.get(name, "") for name in ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH"))
    commands = (os.environ.get(name, "").split() for name in ("CC", "CXX"))
    named = [place for each in lists for place in each.split(os.pathsep)]
    named += _linkers()
    named += [os.path.dirname(word) for words in commands for word in words if word.startswith("/")]
    private = _private(hidden)
    found = (Path(os.path.realpath(place)) for place in dict.fromkeys(named) if _is_a_sites(os.path.normpath(place)))
    packages = (place.parent if place.name in ("bin", "sbin") else place for place in found)
    return tuple(
        package
        for package in packages
        if _is_a_sites(str(package))
        and not any(package.is_relative_to(place) or place.is_relative_to(package) for place in private)
    )


def _linkers() -> list[str]:
    """Folders of libraries that the system's linker knows, as an administrator, or a driver's package, has told it."""
    lines = []
    for file in sorted(glob.glob(f"{LINKER}/*.conf")):
        with contextlib.suppress(OSError, ValueError):
            lines += Path(file).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip().startswith("/")]


def settled(named: Iterable[str], hidden: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Of files, those that the system's settings are in: each where such are, and for everybody to read, wherever links
    lead; none that has to do with a home or with what is hidden, or is called like a secret."""
    private = _private(hidden)
    found = (Path(os.path.realpath(name)) for name in dict.fromkeys(named) if name.startswith("/"))
    return tuple(
        file
        for file in found
        if any(root in file.parents for root in SETTLED)
        and not any(file.is_relative_to(place) for place in private)
        and passes(str(file), ["*"])
        and _is_everybodys(file)
    )


def _is_everybodys(file: Path) -> bool:
    try:
        mode = file.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & stat.S_IROTH)


def _private(hidden: Iterable[Path]) -> list[Path]:
    return [Path(os.path.realpath(place)) for place in (*_homes(), *map(str, hidden))]


def _is_a_sites(place: str) -> bool:
    return any(root in Path(place).parents for root in SOFTWARE)


def _homes() -> Iterator[str]:
    """Where homes are, and this user's own, whatever the environment says by now. One that is all of the machine, as
    some systems' `nobody` has, is nobody's."""
    yield from ("/home", "/root")
    own = [os.path.expanduser("~")]
    with contextlib.suppress(KeyError):
        own.append(pwd.getpwuid(os.getuid()).pw_dir)
    yield from (home for home in own if os.path.realpath(home) != "/")
