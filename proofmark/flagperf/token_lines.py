"""What FlagPerf's language models print in the place of [PerfLog] lines: tokens per second, and MFU."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofmark.record.parts import Utilisation
from proofmark.rules.scale import Scale

ROUNDED = 0.01
"""By what share a log's own two rates may differ of what they say of each other."""

SYSTEM, EACH, MFU = "System tokens per second", "Tokens/p/s", "MFU"
_LINE = re.compile(rb"(System tokens per second|Tokens/p/s|MFU)\s*[:=]\s*(-?[0-9][0-9.eE+-]{0,40}|-?nan|-?inf)\s*(%?)")


@dataclass
class TokenLines:
    """The last figure of each name. One that can't be is null, with what the log says."""

    figures: dict[str, float | None] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def take(self, line: bytes) -> None:
        """The next line, of anything."""
        for match in _LINE.finditer(line):
            name, text = match[1].decode(), match[2].decode()
            try:
                value = float(text) / (100 if match[3] else 1)
            except ValueError:
                value = math.nan
            most = 1.0 if name == MFU else math.inf
            self.figures[name] = value if 0 < value <= most and math.isfinite(value) else None
            self.said[name] = text + match[3].decode()


def token_figures(
    logs: Sequence[TokenLines], scale: Scale | None, ended_with: Sequence[float | None] = ()
) -> dict[str, Any]:
    """What a record holds of them, means over the logs; nothing where no log says anything of tokens.

    `ended_with`: the rate that each log's FINISHED has, for logs without such lines.
    """
    if not any(log.said for log in logs) and _mean(ended_with) is None:
        return {}
    system, each, mfu = (_mean([log.figures.get(name) for log in logs]) for name in (SYSTEM, EACH, MFU))
    system = system if any({SYSTEM, EACH} & log.said.keys() for log in logs) else _mean(ended_with)
    world = scale.world if scale else None
    if system is None and each is not None and world:
        system = each * world
    said = next((log.said[MFU] for log in logs if MFU in log.said), None)
    reason = f"the log says {said}, which is not a share of a peak" if said else "not in the log"
    if system is not None and world:
        if each is not None and not math.isclose(each, system / world, rel_tol=ROUNDED):
            # on several nodes it divides by a node's devices, and multiplies by the nodes where it should divide
            reason = f"the log's is of {each:g} tokens/s of a device; its system's {system:g} are of {world} devices"
            mfu = each = None
        each = each or system / world
    utilisation = Utilisation(mfu=mfu) if mfu is not None else Utilisation(reason=reason)
    return {"tokens_per_second": system, "tokens_per_second_per_device": each, "utilisation": utilisation}


def impossible(logs: Sequence[TokenLines]) -> Mapping[str, str]:
    """Rates that can't be, as the logs have them. An MFU that can't be is FlagPerf's way to keep a peak secret."""
    return {
        name: log.said[name] for log in logs for name, value in log.figures.items() if value is None and name != MFU
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
