"""What a preflight asks of a host."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import socket
import struct
from pathlib import Path

from proofmark.launch.far_end.caches import may_drop_caches
from proofmark.launch.far_end.protocol import Frame
from proofmark.process.versions import version_of

SIOCGIFFLAGS, IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x8913, 0x1, 0x8, 0x40

MOST_FILES = 20_000
"""Files of a data directory that its fingerprint takes in."""


def facts_of(
    work: Path,
    packages: list[str],
    interface: str | None,
    port: int | None,
    data_dirs: list[str],
    shared: str | None,
    clear_caches: bool,
) -> Frame:
    """All facts that are asked for; null where one is not, or does not exist."""
    return {
        "hostname": socket.gethostname(),
        "python": platform.python_version(),
        "versions": {name: version_of(name) for name in packages},
        "free_bytes": shutil.disk_usage(work).free,
        "interface": None if interface is None else _interface_state(interface),
        "port_free": None if port is None else _is_free(port),
        "data": {directory: fingerprint(Path(directory)) for directory in data_dirs},
        "shared": None if shared is None else Path(shared).exists(),
        "clears_caches": may_drop_caches() if clear_caches else None,
    }


def _size(path: str) -> int:
    """The size of a path in bytes; -1 for a link that leads nowhere."""
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def fingerprint(folder: Path) -> str | None:
    """Names and sizes of a directory's first files, in order, as one SHA-256; None if there is no such directory."""
    if not folder.is_dir():
        return None
    digest, count = hashlib.sha256(), 0
    for directory, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            path = os.path.join(directory, name)
            digest.update(f"{os.path.relpath(path, folder)}\0{_size(path)}\0".encode("utf-8", "replace"))
            count += 1
            if count == MOST_FILES:
                return digest.hexdigest()
    return digest.hexdigest()


def _interface_state(name: str) -> str:
    """'up' if it is switched on and its cable is in, 'loopback' if it leads nowhere, 'down', or 'missing'."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, SIOCGIFFLAGS, struct.pack("16sH14x", name.encode()[:15], 0))
        except OSError:
            return "missing"
    flags = struct.unpack("16sH14x", answer)[1]
    if flags & IFF_LOOPBACK:
        return "loopback"
    return "up" if flags & IFF_UP and flags & IFF_RUNNING else "down"


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
    return True
