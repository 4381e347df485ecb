"""What a Python process needs to read wherever it runs, and what of it holds nobody's data."""

from __future__ import annotations

import site
import sys
import sysconfig
from pathlib import Path

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc"),
    *("/sys/bus", "/sys/class", "/sys/devices", "/sys/fs/cgroup", "/sys/module", "/dev/random", "/dev/urandom"),
)

SETTINGS = (
    *("alternatives", "fonts", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias"),
    *("localtime", "mime.types", "nsswitch.conf", "os-release", "passwd", "group", "protocols", "resolv.conf"),
    *("services", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "timezone", "OpenCL", "vulkan"),
)
"""In /etc: nothing of it is secret."""

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
    places = (*SYSTEM, *settings, *site.getsitepackages(), *users, *paths, *installed, *bases, *environment, own)
    return tuple(dict.fromkeys(Path(str(place)) for place in places))
