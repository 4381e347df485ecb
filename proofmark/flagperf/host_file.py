"""The host file: where the FlagPerf inference specification (section 2.2) keeps what a machine needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from proofmark.process.log_level import LogLevel
from proofmark.rules.foreign import load_no_python
from proofmark.rules.scale import Scale

WITHOUT_EFFECT = (
    "FLAGPERF_PATH LOG_CALL_INFORMATION SSH_PORT HOSTS_PORTS MASTER_PORT SHM_SIZE "
    "ACCE_CONTAINER_OPT PIP_SOURCE ACCE_VISIBLE_DEVICE_ENV_NAME"
).split()
"""Keys of containers and other hosts, of which a cluster file has its own: a session says that it leaves them aside."""

LOCAL = {"localhost", "127.0.0.1", "::1"}


class Entry(NamedTuple):
    """An entry of CASES, whatever its form: which case it asks for, and where that one's data is."""

    key: str
    suite: str
    case: str
    scale: str
    """Empty where the suite's cases have none."""
    settings: Mapping[str, int]
    """What the key sets beside: configurations."""
    data_dir: str


class HostFile(BaseModel):
    """The keys of host.yaml. All may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    FLAGPERF_PATH: str | None = None
    FLAGPERF_LOG_PATH: str | None = None
    VENDOR: str | None = None
    FLAGPERF_LOG_LEVEL: LogLevel | None = None
    LOG_CALL_INFORMATION: bool | None = None
    HOSTS: list[str] | None = None
    SSH_PORT: str | int | None = None
    HOSTS_PORTS: list[str | int] | None = None
    MASTER_PORT: str | int | None = None
    SHM_SIZE: str | None = None
    ACCE_CONTAINER_OPT: str | None = None
    PIP_SOURCE: str | None = None
    CLEAR_CACHES: bool | None = None
    ACCE_VISIBLE_DEVICE_ENV_NAME: str | None = None
    CASES: dict[str, str] = Field(default_factory=dict)

    @field_validator("CASES")
    @classmethod
    def _keys_are_legal(cls, cases: dict[str, str]) -> dict[str, str]:
        wrong = [problem for key in cases if (problem := _wrong_with(key))]
        named = [
            (terms[0], *(str(int(term)) if term.isdecimal() else term for term in terms[2:5]))
            for terms in (key.split(":") for key in cases)
        ]
        twice = sorted({":".join(name) for name in named if named.count(name) > 1})
        if twice:
            wrong.append(f"named more than once: {', '.join(twice)}")
        if wrong:
            raise ValueError("; ".join(wrong))
        return cases

    @field_validator("HOSTS")
    @classmethod
    def _one_local_host(cls, hosts: list[str] | None) -> list[str] | None:
        if hosts is not None and (len(hosts) != 1 or hosts[0] not in LOCAL):
            raise ValueError(f"expected one of {', '.join(sorted(LOCAL))}; --cluster FILE names other hosts")
        return hosts

    @property
    def entries(self) -> list[Entry]:
        """What the file asks for, in its order."""
        return [_entry(key, directory) for key, directory in self.CASES.items()]

    def entry(self, suite: str, case: str, scale: str = "") -> Entry | None:
        """The entry of a case at a scale; None where the file does not ask for it."""
        return next(
            (each for each in self.entries if (each.suite, each.case, each.scale) == (suite, case, scale)), None
        )

    @property
    def left_aside(self) -> list[str]:
        """Keys that are given and change nothing."""
        return [key for key in WITHOUT_EFFECT if getattr(self, key) is not None]


def _entry(key: str, directory: str) -> Entry:
    """FlagPerf has two forms of keys: the short one of its inference, the long one of its training."""
    case, _, *rest = key.split(":")
    if not rest:
        return Entry(key, "inference", case, "", {}, directory)
    chip, nnodes, nproc, repeat = rest
    scale = Scale(int(nnodes), int(nproc), chip)
    return Entry(key, "training", case, str(scale), {"repeat": int(repeat)}, directory)


def _wrong_with(key: str) -> str | None:
    """What is wrong with a key of CASES, or None."""
    terms = key.split(":")
    if len(terms) not in (2, 6) or not all(terms):
        return f"expected case:framework, or case:framework:chip:nnodes:nproc:repeat to train, found {key!r}"
    if not terms[1].startswith("pytorch"):
        return f"only the framework pytorch is here, found {key!r}"
    if len(terms) == 2:
        return None
    if not all(term.isdecimal() and len(term) < 6 and int(term) for term in terms[3:]):
        return f"expected numbers of at least 1 for nnodes, nproc and repeat, found {key!r}"
    wrong = Scale.wrong_with(f"{terms[2]}x{int(terms[3])}x{int(terms[4])}")  # it becomes a folder's name
    return f"chip, nnodes and nproc: {wrong}, found {key!r}" if wrong else None


def load_host_file(path: Path) -> HostFile:
    """Read a host file.

    Raises:
        ConfigurationError: with every problem in it; or it is Python, as FlagPerf's test_conf.py.
    """
    return load_no_python(path, HostFile, "a run list of test_conf.py")
