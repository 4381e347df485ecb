"""The monitor's process: `python -m proofmark.monitoring.monitor_main`, its orders as one JSON line on standard input.

It appends a JSON line per sample to a file, and ends when standard input closes, so with its parent.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from proofmark.errors import ProofmarkError, StepError, harmless, in_a_line, named
from proofmark.monitoring.watch import ENDING, Watch
from proofmark.process.guard import guard
from proofmark.process.lifetime import leave, tidy_at_exit
from proofmark.process.wall_clock import now
from proofmark.vendor.environment import take_on
from proofmark.vendor.hardware.devices import usable_indices
from proofmark.vendor.hardware.packages import ProcessorPackages
from proofmark.vendor.isolation import NOT_ASKED_FOR, VendorPlace
from proofmark.vendor.monitor_log import LARGEST
from proofmark.vendor.readings import Monitor, Reading
from proofmark.vendor.registry import find_vendor
from proofmark.wall.isolation import Isolation
from proofmark.wall.wall import Wall

QUICK = 0.1
"""Seconds of a processor that a reading may take to be asked for beside the regular ones: one that is slow would slow
what is timed."""


def main() -> None:
    """Sample until told to stop."""
    guard(patience=1.5 * ENDING)  # longer than a parent that lives waits before it ends the group itself
    tidy_at_exit()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch = Watch(**json.loads(sys.stdin.buffer.readline()))
    ended, asked, told = threading.Event(), threading.Event(), int(sys.argv[1])
    with Path(watch.path).open("ab", buffering=0) as stream:
        isolation, failure = _close_in(watch, (stream.fileno(), told))
        threading.Thread(target=_watch_parent, args=(ended, asked), daemon=True).start()
        first = (json.dumps({"time": now(), "isolation": isolation.model_dump(mode="json")}) + "\n").encode()
        stream.write(first)
        os.write(told, first)  # the vendor's code can write the log's first line anew
        os.close(told)
        sampler = _Sampler(watch, failure)
        interval, due = watch.interval, time.monotonic()
        while True:
            stream.write((json.dumps(sampler.sample()) + "\n").encode())
            due = max(due + interval, time.monotonic())
            while asked.wait(max(0.0, due - time.monotonic())):
                asked.clear()  # first: what comes from now on is another wish, or the end
                if ended.is_set():
                    break
                if sampler.counts:
                    stream.write((json.dumps(sampler.count()) + "\n").encode())
            if ended.is_set():
                break
        stream.write((json.dumps(sampler.sample()) + "\n").encode())
        sampler.close()


def _close_in(watch: Watch, kept: tuple[int, ...]) -> tuple[Isolation, str | None]:
    """Put the wall on, before any of the vendor's code runs; and why none of it may run, where there can't be one that
    is asked for."""
    take_on()
    if not watch.wall:
        return Isolation.none(NOT_ASKED_FOR), None
    # what is beyond it nobody reads; the log, which the vendor's code can write too, is such a file
    own = Wall(writable=(Path(tempfile.gettempdir()),), kept=kept, largest_file=LARGEST)
    try:
        return VendorPlace.of(watch.vendor, Path(watch.vendors_dir)).enter(own), None
    except (ProofmarkError, ImportError) as error:
        return Isolation.none(f"the vendor can't be found: {error}"), named(error)


def _watch_parent(ended: threading.Event, asked: threading.Event) -> None:
    """A line of standard input asks for a reading of counters. It ends with the parent, however that ends."""
    for _ in sys.stdin.buffer:
        asked.set()
    ended.set()
    asked.set()


def _processor_seconds() -> float:
    """What this process has taken, and what it has run, as a vendor's tool that tells of a device."""
    return sum(os.times()[:4])


class _Sampler:
    """Host and devices at one moment. A failure to read is part of the sample.

    Attributes:
        counts: whether a counter of energy was in the last sample, which was quickly read.
    """

    counts = False

    def __init__(self, watch: Watch, failure: str | None = None) -> None:
        """`failure` is why there is nobody to ask but the host."""
        self._group, self._container = watch.group, watch.container
        self._devices = None if isinstance(watch.devices, int) else watch.devices
        self._monitor: Monitor | None = None
        self._failure = failure
        self._packages: ProcessorPackages | None = None
        psutil.cpu_percent()
        if failure is not None:
            return
        try:
            found = find_vendor(watch.vendor, Path(watch.vendors_dir), watch.selected)
            if found.vendor.runs_on_processor:  # what a processor uses beside a card says nothing of the card
                self._packages = ProcessorPackages.found()
            if isinstance(watch.devices, int):
                self._devices = _first(usable_indices(found.vendor), watch.devices)
            self._monitor = found.vendor.monitor()
        except Exception as error:  # noqa: BLE001 (a vendor's monitor may raise anything)
            self._failure = named(error)

    def sample(self) -> dict[str, Any]:
        """One line of the log."""
        begun = _processor_seconds()
        line = self._line()
        is_quick = _processor_seconds() - begun < QUICK
        counters = line["package_energy_j"], *(device["energy_j"] for device in line["devices"])
        self.counts = is_quick and any(joules is not None for joules in counters)
        return line | {"cpu": psutil.cpu_percent() / 100}

    def count(self) -> dict[str, Any]:
        """One line more, for what counters have counted by now.

        Without the power: at the edge of a round it is that of neither side. Without a share of the processor: of so
        short a time it says nothing.
        """
        line = self._line()
        for device in line["devices"]:
            device["power_w"] = None
        return line

    def _line(self) -> dict[str, Any]:
        failure, devices = self._failure, []
        if self._monitor is not None:
            try:
                readings = self._monitor.sample()
                own = [each for each in readings if self._devices is None or each.device in self._devices]
                devices = [each | {"foreign": self._foreign(each["processes"])} for each in map(_plain, own)]
            except Exception as error:  # noqa: BLE001 (recorded; the next sample is tried all the same)
                failure = in_a_line(error)
        return {
            "time": now(),
            "cpu": None,
            "memory": psutil.virtual_memory().used,
            "package_energy_j": self._package_energy(),
            "devices": devices,
            "failure": failure,
        }

    def _foreign(self, processes: tuple[int, ...] | None) -> list[int] | None:
        """Those that neither are in the case's process group nor descend from its leader, nor from an engine's in a
        container, which is nobody's child here, but has its container's name among its arguments.

        An id that this host doesn't know (a container's) says nothing.
        """
        return (
            None if processes is None else [pid for pid in processes if _is_foreign(pid, self._group, self._container)]
        )

    def _package_energy(self) -> float | None:
        """Joules that the processor packages have used; None where the kernel doesn't tell us, or no longer."""
        try:
            return self._packages.joules() if self._packages else None
        except (OSError, ValueError):
            self._packages = None
            return None

    def close(self) -> None:
        """Let go of the devices."""
        if self._monitor is not None:
            self._monitor.close()


def _plain(reading: Reading) -> dict[str, Any]:
    """A reading as a line of the log has it.

    Raises:
        StepError: a value in it can't stand there, or is no process's id.
    """
    device = asdict(reading)
    for name, value in device.items():
        try:
            json.dumps(value)
            wrong = name == "processes" and any(type(pid) is not int or pid < 0 for pid in value or ())
        except (TypeError, ValueError):
            wrong = True
        if wrong:
            expected = "numbers and text of Python's own; of processes whole numbers"
            what = f"{name} is {harmless(repr(value))[:80]}; expected {expected}"
            raise StepError(f"sample(): device {reading.device}: {what}")
    return device


def _first(indices: list[int | None], many: int) -> list[int] | None:
    """Numbers of the first devices; None, for all, where one is not known."""
    known = [index for index in indices[:many] if index is not None]
    return known if len(known) == len(indices[:many]) else None


def _is_foreign(pid: int, group: int, container: str | None) -> bool:
    try:
        own, *above = psutil.Process(pid), *psutil.Process(pid).parents()
        if os.getpgid(pid) == group or any(parent.pid == group for parent in above):
            return False
        arguments = (word for each in (own, *above) if container for word in each.cmdline())
        return not any(container and word.startswith(container) for word in arguments)
    except (OSError, psutil.Error):
        return False


if __name__ == "__main__":
    main()
    leave(0)
