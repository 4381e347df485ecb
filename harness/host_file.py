"""The host file: where the FlagPerf inference specification (section 2.2) keeps what a machine needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.case_file import problems_of
from harness.errors import ConfigurationError
from harness.strict_yaml import load_mapping

WITHOUT_EFFECT = (
    "FLAGPERF_PATH FLAGPERF_LOG_LEVEL LOG_CALL_INFORMATION SSH_PORT HOSTS_PORTS MASTER_PORT SHM_SIZE "
    "ACCE_CONTAINER_OPT PIP_SOURCE CLEAR_CACHES ACCE_VISIBLE_DEVICE_ENV_NAME"
).split()
"""Keys that matter to containers and other hosts only; a local run says that it leaves them aside."""

LOCAL = {"localhost", "127.0.0.1", "::1"}


class HostFile(BaseModel):
    """The keys of host.yaml. All may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    FLAGPERF_PATH: str | None = None
    FLAGPERF_LOG_PATH: str | None = None
    VENDOR: str | None = None
    FLAGPERF_LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] | None = None
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
    def _keys_name_case_and_framework(cls, cases: dict[str, str]) -> dict[str, str]:
        wrong = [key for key in cases if key.count(":") != 1 or not all(key.split(":"))]
        if wrong:
            raise ValueError(f"expected keys of the form case:framework, found {', '.join(map(repr, wrong))}")
        foreign = [key for key in cases if not key.split(":")[1].startswith("pytorch")]
        if foreign:
            raise ValueError(f"only the framework pytorch is here, found {', '.join(map(repr, foreign))}")
        names = [key.split(":")[0] for key in cases]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"named more than once: {', '.join(twice)}")
        return cases

    @field_validator("HOSTS")
    @classmethod
    def _one_local_host(cls, hosts: list[str] | None) -> list[str] | None:
        if hosts is not None and (len(hosts) != 1 or hosts[0] not in LOCAL):
            raise ValueError(f"inference runs on this machine; expected one of {', '.join(sorted(LOCAL))}")
        return hosts

    @property
    def data_dirs(self) -> dict[str, str]:
        """Data directory of each case that the file asks for."""
        return {key.split(":")[0]: directory for key, directory in self.CASES.items()}

    @property
    def left_aside(self) -> list[str]:
        """Keys that are given and change nothing in a local run."""
        return [key for key in WITHOUT_EFFECT if getattr(self, key) is not None]


def load_host_file(path: Path) -> HostFile:
    """Read a host file.

    Raises:
        ConfigurationError: with every problem in it.
    """
    values: dict[str, Any] = load_mapping(path)
    try:
        return HostFile.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, str(path))) from None
