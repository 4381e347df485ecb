"""What a host that is well answers before a job begins."""

from __future__ import annotations

from typing import Any

FACTS: dict[str, Any] = {
    "hostname": "a",
    "python": "3.11.9",
    "versions": {"torch": "2.13.0", "numpy": "2.4.6"},
    "data": {"/data": "aa"},
    "free_bytes": 1 << 40,
    "interface": "up",
    "port_free": True,
    "shared": None,
    "clears_caches": None,
}
