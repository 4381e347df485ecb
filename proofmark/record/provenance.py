"""Where a result comes from: the pieces of a record that tell of chip, host, container, nodes, service and code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Literal

from pydantic import Field

from proofmark.record.parts import Part


class Peak(Part):
    """A chip's dense peak at one precision, FLOP/s, for all units that the run may use."""

    flops_per_second: float = Field(ge=1)
    precision: str
    source: str
    achievable: float | None = None


class Chip(Part):
    """The chip that was detected. `peak` is null, with a reason, when the chip's file doesn't know it."""

    name: str
    units: int = 1
    peak: Peak | None = None
    peak_missing: str | None = None
    memory_bandwidth: float | None = Field(default=None, description="bytes per second, of the chip whatever its units")


class Known(Part):
    """A fact that may not be known: null, with the reason."""

    value: str | None = None
    reason: str | None = None


NOT_RECORDED = Known(reason="not recorded")


class Host(Part):
    """The machine of the run, and what its devices run with in the vendor's words."""

    name: str
    system: str
    processor: str
    cores: int
    memory_bytes: int
    kernel: Known = NOT_RECORDED
    governor: Known = Field(default=NOT_RECORDED, description="what sets the CPU's clock")
    container: Known = Field(default=NOT_RECORDED, description="the image that the session itself ran in")
    driver: Known = NOT_RECORDED
    runtime: Known = Field(default=NOT_RECORDED, description="CUDA, or the vendor's own")
    firmware: Known = NOT_RECORDED


def said_of(fact: str, hosts: Sequence[Host]) -> Any:
    """What machines run with: once where all agree, else of each, of neighbours that agree how many; None where there
    is none."""
    said = [getattr(value := getattr(host, fact), "value", value) for host in hosts]
    alike = [("unknown" if value is None else str(value), len([*those])) for value, those in groupby(said)]
    each = (value if count == 1 else f"{count} x {value}" for value, count in alike)
    return said[0] if len(set(said)) == 1 else "; ".join(each) or None


class Container(Part):
    """What a node's processes ran in."""

    engine: str
    image: str = Field(description="its name")
    id: str = Field(description="of the image, as the node's engine has it")
    name: str
    user: str = Field(description="uid:gid")
    rootless: bool = Field(default=False, description="podman ran it without root")
    vendors: bool = Field(default=False, description="its vendor's Containerfile made it: interpreter, torch and all")
    engines_alone: bool = Field(default=False, description="its engines alone ran in it, the referee beside it")
    torch: str | None = Field(default=None, description="the image's own, as it says; where engines are alone there")
    privileged: bool = Field(description="it had all devices and capabilities of the host")
    command: tuple[str, ...] = Field((), description="the engine's, whole, up to the program that ran in it")

    @property
    def text(self) -> str:
        """For people: what ran which image, and what of it was there."""
        alone = f", engines alone, torch {self.torch}" if self.engines_alone else ""
        return f"{self.engine}: {self.image} {self.id[:19]}{', privileged' * self.privileged}{alone}"


class Launched(Part):
    """A node of a run on other hosts, as its launcher found it."""

    name: str
    skew: float | None = Field(description="seconds that its clock is ahead of the session's, known to half of:")
    round_trip: float | None = Field(description="seconds")
    here: bool = Field(default=False, description="it is the session's own machine")
    container: Container | None = None
    host: Host | None = None

    @property
    def is_the_sessions_own(self) -> bool:
        """Whether all but engines ran on the session's machine, by its interpreter: nobody else has a hand in that."""
        return self.here and (self.container is None or self.container.engines_alone)


class Instances(Part):
    """What a service ran, instance by instance: one job, or independent servers that each ran the whole of it.

    A throughput is the sum over an instance's ranks, in items per second.
    """

    SPEEDS = frozenset(
        {"throughputs", "throughput", "queue_seconds", "prepare_seconds", "run_seconds", "total_seconds"}
    )

    mode: Literal["sum", "per_server_mean"]
    throughputs: tuple[float, ...]
    accuracies: tuple[float, ...]
    throughput: float = Field(description="their mean")
    accuracy: float
    utilisation: float | None = Field(default=None, description="of the devices, 0 to 1, as the service measured it")
    queue_seconds: float | None = None
    prepare_seconds: float | None = None
    run_seconds: float | None = None
    total_seconds: float | None = None


class Provenance(Part):
    """Which suite and which vendor's package made a result."""

    commit: Known
    clean: bool | None = Field(description="whether the suite's files were as in the commit; null where that is")
    vendor_version: Known
    vendor_sha256: Known = Field(description="over names and contents of the vendor's package")
    environment: dict[str, str] = Field(default_factory=dict, description="variables that the vendor declares")
    requirements: dict[str, str] = Field(
        default_factory=dict, description="packages that it declares, with their versions"
    )
