"""The child's end of a vendor's introduction: `python -m proofmark.vendor.introduction.child ANSWER_FD`.

Each line of the answer names what is asked next; the last one has all that was answered, or why there is nothing.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proofmark.errors import ProofmarkError, named
from proofmark.process.answering.line import write_line
from proofmark.process.guard import guard
from proofmark.process.lifetime import leave, tidy_at_exit
from proofmark.vendor.adapter import adapted_steps
from proofmark.vendor.contract import Device, Software, Vendor
from proofmark.vendor.hardware.provenance import device_software
from proofmark.vendor.introduction.busy import busy_devices
from proofmark.vendor.isolation import VendorPlace
from proofmark.vendor.registry import FoundVendor, find_vendor
from proofmark.wall.wall import Wall

Note = Callable[[str], None]

LARGEST_FILE = 1 << 30
"""Bytes that a file of its may have: it says who it is, and leaves nothing."""


class NotAsAsked(ProofmarkError):
    """A vendor's method gave what the contract does not ask for."""


def main() -> None:
    """Import the vendor that standard input names, ask it, and say what it answered."""
    guard()
    tidy_at_exit()
    faulthandler.enable()
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    orders = json.loads(sys.stdin.buffer.readline())

    def send(**line: Any) -> None:
        write_line(descriptor, line, default=repr)

    def note(what: str) -> None:
        send(asking=what)

    try:
        place = VendorPlace.of(orders["vendor"], Path(orders["vendors_dir"]))
        if orders["wall"]:
            own = Wall(writable=(Path(tempfile.gettempdir()),), largest_file=LARGEST_FILE)
            send(isolation=place.enter(own).model_dump(mode="json"))
        note("its import")
        found = find_vendor(orders["vendor"], Path(orders["vendors_dir"]), orders["selected"])
        send(answers=_declared(found) | _asked(found, note, found.adapters_of(orders["suites"]), orders["busy"]))
    except ProofmarkError as error:
        send(error=str(error))


def _declared(found: FoundVendor) -> dict[str, Any]:
    vendor = found.vendor
    compilers = {
        name: asdict(compiler) | {"precisions": sorted(compiler.precisions)}
        for name, compiler in vendor.compilers.items()
    }
    return {
        "module": found.package.__name__,
        "file": found.package.__file__,
        "distribution": found.distribution,
        "compilers": compilers,
        "default_compiler": vendor.default_compiler,
        "framework_precisions": sorted(vendor.framework_precisions),
        "training_precisions": sorted(vendor.training_precisions),
        "visible_devices_variable": vendor.visible_devices_variable,
        "runs_on_processor": vendor.runs_on_processor,
        "distributed_backend": vendor.distributed_backend,
        "training_scales": list(vendor.training_scales),
        "container_options": list(vendor.container_options),
    }


def _asked(found: FoundVendor, note: Note, cases: Sequence[str], busy: bool) -> dict[str, Any]:
    """What the vendor's methods say, each with what follows its name where it failed; and its adapters of cases."""
    vendor = found.vendor
    calls: dict[str, Callable[[], Any]] = {
        "chip": vendor.chip,
        "chip_units": vendor.chip_units,
        "torch_device": vendor.torch_device,
        "training_adapter": lambda: adapted_steps(vendor.training_adapter()),
        "devices": lambda: _devices(vendor),
        **({"monitor": lambda: busy_devices(vendor)} if busy else {}),
    }
    answers: dict[str, Any] = {"failures": {}, "case_adapters": {}}
    for case in cases:
        note(f"{case}.py")
        answers["case_adapters"][case] = adapted_steps(found.training_adapter(case))
    for name, call in calls.items():
        note(f"{name}()")
        try:
            answers[name] = call()
        except NotAsAsked as error:
            answers["failures"][name] = f": {error}"
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a vendor may raise anything)
            answers["failures"][name] = f" failed: {named(error)}{_where(error, found)}"
    note("software()")
    answers["software"] = _software(vendor)
    if not answers.get("devices"):
        note("devices_sought()")
        answers["devices_sought"] = _sought(vendor)
    return answers


def _devices(vendor: Vendor) -> list[tuple[int, str, str | None]]:
    """Their numbers, their chips' names and their own.

    Raises:
        NotAsAsked: it gave something else than devices.
    """
    found: Any = vendor.devices()
    if not isinstance(found, (list, tuple)):
        raise NotAsAsked(f"expected a list of Device, found {type(found).__name__}")
    if others := sorted({type(each).__name__ for each in found if not isinstance(each, Device)}):
        raise NotAsAsked(f"expected a list of Device, found {', '.join(others)} in it")
    return [(device.index, device.name, device.identity) for device in found]


def _where(error: BaseException, found: FoundVendor) -> str:
    """The last line of the vendor's own file that it passed; empty where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == found.package.__file__]
    return f", line {lines[-1]}" if lines else ""


def _software(vendor: Vendor) -> dict[str, Any]:
    software = device_software(vendor)
    reason = next((known.reason for known in software.values() if known.reason), Software.reason)
    return {name: known.value for name, known in software.items()} | {"reason": reason}


def _sought(vendor: Vendor) -> list[str]:
    try:
        return [str(line) for line in vendor.devices_sought()]
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a vendor may raise anything)
        return [f"devices_sought() failed: {named(error)}"]


if __name__ == "__main__":
    main()
    leave(0, has_others_objects=True)
