"""An ssh whose jump host has too many logins under way."""

from __future__ import annotations

from pathlib import Path

SSH = """
printf x >> "$1"
[ $(wc -c < "$1") -gt "$2" ] && shift 2 && exec "$@"
echo "kex_exchange_identification: Connection closed by remote host" >&2
echo "Connection closed by UNKNOWN port 65535" >&2
exit 255
"""


def turning_away(folder: Path, times: int) -> tuple[str, ...]:
    """What leads to a host once it was tried `times`; file "tried" has a byte for each time."""
    return ("sh", "-c", SSH, "ssh", str(folder / "tried"), str(times))
