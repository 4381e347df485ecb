"""`vendors/<name>/isolation.yaml`: what a vendor's code may reach behind its wall, and how it comes to be there.

Whoever writes it gains by a better figure. So it is held to what accelerators need, and what it asks for is recorded.
"""

from __future__ import annotations

import glob
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from proofmark.finding import imported
from proofmark.names import hint
from proofmark.process.environment import holds_password, passes
from proofmark.rules.device_files import (
    DRIVERS,
    SETTINGS,
    is_device_file,
    is_drivers,
    is_hosts_own,
    is_networks,
    is_setting,
)
from proofmark.rules.yaml.typed import load_model
from proofmark.vendor.from_source import FromSource
from proofmark.vendor.registry import target_of
from proofmark.wall.isolation import Isolation
from proofmark.wall.python import settled
from proofmark.wall.wall import Wall, put_on

FILE = "isolation.yaml"

KERNELS = ("/dev/dri/renderD*", "/dev/accel/accel*")
"""Where the kernel itself puts accelerators, whoever made them: no file need name these."""

COMPILED = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Variables with where compilers keep what they have compiled: others' can't be seen behind the wall."""

NOT_ASKED_FOR = "none was put on: --isolation process"


def _is_device(text: str) -> str:
    """A device file, or a pattern of some: `/dev/acme*`."""
    if not is_device_file(text.replace("*", "0")) or text.startswith("/dev/*"):
        raise ValueError(f"{text!r} is not a device: expected a file (/dev/acme0) or a pattern (/dev/acme*)")
    if is_hosts_own(text):
        raise ValueError(f"{text!r} is the host's own, not an accelerator")
    return text


def _is_drivers(text: str) -> str:
    if not is_drivers(text):
        places = ", ".join(place.rstrip("/") for place in DRIVERS)
        if not text.startswith("/"):
            raise ValueError(f"{text!r} is not an absolute path{hint(text, [f'/{text}'])}")
        raise ValueError(f"{text!r} is not visible to a vendor's code: drivers and runtimes are below {places}")
    return text


def _is_variable(text: str) -> str:
    name = text.removesuffix("*").rstrip("_")
    if len(name) < 2 or not name.isidentifier() or not name.isupper():
        raise ValueError(f"{text!r} is not a variable: expected a name (ACME_HOME) or a prefix (ACME_*)")
    if not passes(text.replace("*", ""), ["*"]):
        raise ValueError(f"{text!r} is named like a secret: its user may pass it, in PROOFMARK_PASSES")
    return text


def _is_file(text: str) -> str:
    """A file of the system's settings, or a variable that may name one: whether it is one is seen when it is shown."""
    if not text.startswith("/"):
        if text.endswith("*"):
            raise ValueError(f"{text!r} is not a variable that names a file: write out its name (ACME_TOPOLOGY)")
        return _is_variable(text)
    if not is_setting(text):
        places = ", ".join(place.rstrip("/") for place in SETTINGS)
        raise ValueError(f"{text!r} is no file of the system's settings: they are below {places}")
    if not passes(text, ["*"]):
        raise ValueError(f"{text!r} is named like a secret")
    return text


class IsolationSettings(BaseModel):
    """The keys of a vendor's isolation.yaml. All may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    network: bool = Field(default=False, description="whether engines need the network; the record says so")
    unix_sockets: bool = Field(
        default=False,
        description="whether ranks on several devices of a host speak over streams in files; they are no wall's then",
    )
    devices: tuple[Annotated[str, AfterValidator(_is_device)], ...] = Field(
        default=(), description="device files, as /dev/acme*"
    )
    readable: tuple[Annotated[str, AfterValidator(_is_drivers)], ...] = Field(
        default=(), description="where a runtime is that is in none of the system's places, as /opt/acme"
    )
    files: tuple[Annotated[str, AfterValidator(_is_file)], ...] = Field(
        default=(), description="settings of the system's, as /etc/acme.conf, or variables that name one"
    )
    environment: tuple[Annotated[str, AfterValidator(_is_variable)], ...] = Field(
        default=(), description="variables that its code reads, as ACME_*"
    )

    def device_files(self, networks: bool = False) -> list[Path]:
        """Those that are there; of adapters to other machines, which need no socket, only if `networks` are open."""
        found = {path for pattern in (*KERNELS, *self.devices) for path in glob.glob(pattern)}
        led = {path: os.path.realpath(path) for path in sorted(found)}
        return [Path(path) for path, end in led.items() if not is_hosts_own(end) and (networks or not is_networks(end))]


def isolation_settings(directory: Path) -> IsolationSettings:
    """What the vendor whose package is in a directory asks for.

    Raises:
        ConfigurationError: all that is wrong with its isolation.yaml.
    """
    path = directory / FILE
    return load_model(path, IsolationSettings, directory) if path.exists() else IsolationSettings()


@dataclass(frozen=True)
class VendorPlace:
    """Where a vendor's code is, of which nothing was imported.

    Attributes:
        directory: that of its package, with its files.
        top: the outermost module of it, by which all of it is found.
        readable: where its code lies.
    """

    directory: Path
    top: ModuleSpec
    readable: tuple[Path, ...]
    settings: IsolationSettings = field(default_factory=IsolationSettings)

    @classmethod
    def of(cls, name: str, vendors_dir: Path) -> VendorPlace:
        """The place of a vendor.

        Raises:
            UsageError: unknown or ambiguous, or its package can't be found.
            ConfigurationError: all that is wrong with its isolation.yaml.
        """
        target, distribution = target_of(name, vendors_dir)
        top, _, within = target.partition(".")
        if distribution is None:  # a repository's own folder of vendors is nobody's code but its own
            FromSource.imports(top)  # what lies in its __pycache__ anybody may have laid there
            imported(top, f"the folder of vendor '{name}'")
            top, within = target, ""
        spec = importlib.util.find_spec(top)
        if spec is None:
            imported(top, f"vendor '{name}'")  # says why not
            raise ImportError(top)
        places = [Path(place) for place in spec.submodule_search_locations or [spec.origin or os.devnull]]
        directory = places[0] if places[0].is_dir() else places[0].parent
        for part in within.split(".") if within else ():
            directory = directory / part if (directory / part).is_dir() else directory
        readable = (*places, *([Path(str(distribution.locate_file("")))] if distribution else []))
        return cls(directory, spec, readable, isolation_settings(directory))

    @property
    def environment(self) -> dict[str, str]:
        """Variables of this process that its code reads."""
        return {name: value for name, value in os.environ.items() if passes(name, self.passing, value)}

    @property
    def passing(self) -> tuple[str, ...]:
        """Names and patterns of them. What its file names and holds a password passes only if its user says so."""
        return tuple(name for name in self.settings.environment if not holds_password(os.environ.get(name, "")))

    def enter(self, wall: Wall) -> Isolation:
        """Close this process in for good, so that it can import this vendor and run its code.

        Args:
            wall: what it may reach beside what the vendor needs.

        Raises:
            RuntimeError: this process has several threads already.
        """
        sys.meta_path.insert(0, _Known(self.top))
        files = [name if name.startswith("/") else os.environ.get(name, "") for name in self.settings.files]
        more = self.settings.unix_sockets and wall.unix_sockets == "datagrams"
        return put_on(
            replace(
                wall,
                readable=(
                    *(*self.readable, *_not_within(self.settings.readable, wall.hidden), *wall.readable),
                    *settled(files, wall.hidden),
                ),
                devices=tuple(self.settings.device_files(self.settings.network or wall.streams == "all")),
                network=self.settings.network,
                unix_sockets="all" if more else wall.unix_sockets,
            )
        )


def _not_within(named: Iterable[str], hidden: Iterable[Path]) -> tuple[Path, ...]:
    """Of files and folders those that lie in nothing hidden, wherever links lead: whether a hidden folder can be seen
    doesn't tell whether one in it can. Around one they are told of as a gap."""
    private = [os.path.realpath(place) for place in hidden]
    found = ((Path(name), Path(os.path.realpath(name))) for name in named)
    return tuple(path for path, end in found if not any(end.is_relative_to(place) for place in private))


class _Known:
    """Finds a module that lies where this process can no longer look around."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = spec

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return self._spec if fullname == self._spec.name else None
