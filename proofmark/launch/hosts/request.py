"""What a host's description is asked for, and what of it must do for a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, PlainSerializer, PlainValidator

from proofmark.rules.scale import Scale


def _scale(value: Any) -> Scale | None:
    if value is None or isinstance(value, Scale):
        return value
    if wrong := Scale.wrong_with(str(value)):
        raise ValueError(wrong)
    return Scale.parse(value)


@dataclass(frozen=True)
class DescribeRequest:
    """What `proofmark.launch.hosts.describe` is asked: of whose devices, and how many there must be.

    Attributes:
        vendor: its name.
        precision: whose peak the chip's description has.
        device: as --device says; empty for nothing.
        scale: that a host must have the chip for, and the devices, if `devices` are the vendor's own.
        devices: whether there are any but the processor: then every host is asked, and not the first one alone.
        isolation: as --isolation says.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    vendor: str
    precision: str
    device: str
    scale: Annotated[Scale | None, PlainValidator(_scale), PlainSerializer(lambda scale: scale and str(scale))]
    devices: bool
    isolation: str = "wall"

    def command(self, python: str, code: str) -> list[str]:
        """What describes the host on which it is run, by an interpreter and the tree of the code there."""
        asked = [self.vendor, f"{code}/vendors", self.precision, self.device, self.isolation]
        return [python, "-m", "proofmark.launch.hosts.describe", *asked]

    def problems(self, facts: dict[str, Any]) -> list[str]:
        """Why a host, as it is described, does not do for the scale."""
        return [*facts["busy"], *(self.lacking(self.scale, facts) if self.scale else [])]

    def lacking(self, wanted: Scale, facts: dict[str, Any]) -> list[str]:
        """What a host, as it is described, lacks for a scale."""
        found = []
        if not wanted.is_for(facts["chip"]["name"]):
            found.append(f"scale {wanted} is for another chip than its {facts['chip']['name']}")
        if self.devices and facts["devices"] < wanted.nproc:
            found.append(f"scale {wanted} needs {wanted.nproc} devices of one chip, it has {facts['devices']}")
        return found
