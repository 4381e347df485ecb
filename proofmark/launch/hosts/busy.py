"""Which of a host's devices somebody uses, in the words of their vendor's monitor, which has a process of its own:
`python -m proofmark.launch.hosts.busy ANSWER_FD`, its orders as one JSON line on standard input."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from proofmark.errors import UsageError, harmless
from proofmark.plain_json import first_of, parse_json
from proofmark.process.answering.pipe import AnswerPipe
from proofmark.process.child import Child
from proofmark.process.guard import guard
from proofmark.process.lifetime import leave, tidy_at_exit
from proofmark.vendor.contract import Vendor
from proofmark.vendor.isolation import VendorPlace
from proofmark.vendor.readings import Reading
from proofmark.vendor.registry import find_vendor
from proofmark.wall.wall import Wall

BUSY = 0.2
"""Share of its time that an idle device may compute."""

PATIENCE = 120.0
"""Seconds that a vendor may take for it, its import included."""

LONGEST, LARGEST_FILE = 1 << 20, 1 << 30
"""Bytes of an answer, and of a file that its process may write."""


def busy_devices(name: str, vendors_dir: Path, device: str | None, wall: bool) -> list[str]:
    """Devices that somebody computes on, and devices that can't be read, each in a line.

    Raises:
        UsageError: there is no answer, or it is something else.
    """
    orders = {"vendor": name, "vendors_dir": str(vendors_dir), "selected": device, "wall": wall}
    pipe = AnswerPipe(LONGEST)
    with pipe.given_away() as descriptor:
        child = Child("proofmark.launch.hosts.busy", passed=[descriptor])
    try:
        child.say(json.dumps(orders))
        line = pipe.receive(child, time.monotonic() + PATIENCE)
        if line is None:
            child.has_ended(within=5)
            child.kill()
            last = child.printed.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise UsageError(": ".join(["its monitor " + child.cause_of_death(), *map(harmless, last)]))
        found = TypeAdapter(list[str]).validate_python(parse_json(line.decode("utf-8", "replace")))
        return [harmless(each) for each in found]
    except TimeoutError:
        raise UsageError(f"its monitor did not answer within {PATIENCE:g} s") from None
    except ValidationError as error:
        raise UsageError(f"its monitor gave an invalid answer: {first_of(error)}") from None
    except (ValueError, RecursionError):
        raise UsageError("its monitor gave an invalid answer") from None
    finally:
        child.kill()
        pipe.close()


def main() -> None:
    """Ask the monitor of the vendor that standard input names."""
    guard()
    tidy_at_exit()
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    orders = json.loads(sys.stdin.buffer.readline())
    if orders["wall"]:
        own = Wall(writable=(Path(tempfile.gettempdir()),), largest_file=LARGEST_FILE)
        VendorPlace.of(orders["vendor"], Path(orders["vendors_dir"])).enter(own)
    found = find_vendor(orders["vendor"], Path(orders["vendors_dir"]), orders["selected"])
    os.write(descriptor, (json.dumps(_busy(found.vendor)) + "\n").encode())


def _busy(vendor: Vendor) -> list[str]:
    monitor = vendor.monitor()
    if monitor is None:
        return []
    try:
        return [problem for reading in monitor.sample() if (problem := _wrong_with(reading))]
    finally:
        monitor.close()


def _wrong_with(reading: Reading) -> str | None:
    if reading.error:
        return f"device {reading.device} cannot be read: {reading.error}"
    if reading.processes:
        return f"device {reading.device} is used by process {', '.join(map(str, reading.processes))}"
    if reading.utilization is not None and reading.utilization > BUSY:
        return f"device {reading.device} is busy: {reading.utilization:.0%}"
    return None


if __name__ == "__main__":
    main()
    leave(0)
