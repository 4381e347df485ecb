"""Whether this process runs in a container, of which kind, and from which image."""

from __future__ import annotations

import os
from pathlib import Path

from proofmark.record.provenance import Known

_PODMAN = "run/.containerenv"

_GROUPS = ("kubepods", "docker", "containerd", "libpod", "lxc")
"""What the control groups of a container's first process are called after."""


def container_kind(root: Path = Path("/")) -> str | None:
    """What container this process is in, as far as a container tells; None outside."""
    for name, kind in ((_PODMAN, "podman"), (".dockerenv", "docker")):
        if (root / name).exists():
            return kind
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    groups = _read(root / "proc/1/cgroup")
    return next((kind for kind in _GROUPS if kind in groups), None)


def container_image(root: Path = Path("/")) -> Known:
    """The image that this process runs in, which podman alone tells those within."""
    written = dict(line.partition("=")[::2] for line in _read(root / _PODMAN).splitlines())
    image, identity = (written.get(key, "").strip().strip('"') for key in ("image", "imageid"))
    if image:
        return Known(value=f"{image} {identity}".strip())
    if container_kind(root):
        return Known(reason="in a container whose engine does not say which image it is")
    return Known(reason="not in a container")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
