"""What the agents of a case's job need to know, whatever the suite. Plain values, handed over as a file."""

from __future__ import annotations

import json
import tempfile
import zlib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from proofmark.launch.job import HostLayout
from proofmark.rules.config import weights_of


@dataclass(frozen=True)
class RunSpec:
    """One run of one case.

    Attributes:
        case: module and class of the case.
        vendor: whose devices, found under `vendors_dir` or as an installed package.
        config: an EffectiveConfig as `as_dict` gives it.
        directory: where the run leaves its files, on each node its own.
        sys_path: where Python finds the case.
        elsewhere: whether it was moved to a host: only there is it known what lies in --weights.
    """

    case: tuple[str, str]
    vendor: str
    vendors_dir: str
    config: dict[str, Any]
    directory: str
    sys_path: tuple[str, ...]
    elsewhere: bool = field(default=False, kw_only=True)

    def node_directory(self, node: int) -> Path:
        """Where a node leaves its files."""
        return Path(self.directory) / f"noderank{node}"

    def own_directory(self, node: int, local_rank: int) -> Path:
        """The directory of a process there that runs a vendor's code: what it may write, as long as it runs."""
        return self.node_directory(node) / f"own{local_rank}"

    def save(self, path: Path) -> None:
        """Write it down.

        Raises:
            OSError: no space, no permission.
        """
        path.write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        """What `save` writes."""
        return json.dumps(self, default=_fields)

    def moved(self, layout: HostLayout) -> Self:
        """The same run where things lie elsewhere; data and weights are the user's, at the same place on all hosts."""
        host = {**self.config["host"], "cache_dir": layout.cache_dir}
        return replace(
            self,
            vendors_dir=f"{layout.code}/vendors",
            config={**self.config, "host": host},
            directory=layout.directory,
            sys_path=(layout.code,),
            elsewhere=True,
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            ValueError: it is something else.
        """
        spec = TypeAdapter(cls).validate_json(path.read_bytes())
        given = spec.config["host"].get("weights") if spec.elsewhere else None
        if given is None:
            return spec
        host = {**spec.config["host"], "weights": weights_of(given, spec.config["case"])}
        return replace(spec, config={**spec.config, "host": host})


def _fields(part: Any) -> dict[str, Any]:
    """Of a data class, without a copy of what it has: a network alone may be large."""
    return {field.name: getattr(part, field.name) for field in fields(part)}


def temporary_of(own: Path) -> Path:
    """Where a process with a directory of its own puts down for a moment what it does not keep: known to who watches
    how much that is. Sockets have short names."""
    return Path(tempfile.gettempdir()) / f"{own.name}-{zlib.crc32(str(own).encode('utf-8', 'surrogateescape')):08x}"
