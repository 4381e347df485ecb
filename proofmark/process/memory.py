"""Peak resident memory of a process, where the kernel tells."""

from __future__ import annotations

from pathlib import Path


def reset_peak(process: int | str = "self") -> None:
    """Start the kernel's high-water mark anew, so that an earlier step's peak doesn't count."""
    try:
        Path(f"/proc/{process}/clear_refs").write_text("5")
    except OSError:
        return


def peak_resident_bytes(process: int | str = "self") -> int | None:
    """The high-water mark in bytes, or None where it can't be read."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
