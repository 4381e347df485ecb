"""What a process has freed: kept for the next call, given back when asked, left alone where somebody has decided."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from proofmark.process.memory import peak_resident_bytes

CALLS = """
import resource
from proofmark.process.memory import give_back_freed, keep_freed

def resident():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() / 2**20

def call():
    return sum(len(block) for block in [bytearray(300_000) for _ in range(100)])

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed()
call(), call()
print(sum(faults() for _ in range(5)))
before = resident()
give_back_freed()
print(before - resident())
"""


def faults_and_freed(**environment: str) -> tuple[int, float]:
    """Of five calls that need 30 MB each, after two of the same; and the MiB that went back to the kernel at last."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    ran = subprocess.run(
        [sys.executable, "-c", CALLS], env=inherited | environment, capture_output=True, text=True, check=True
    )
    faults, freed = ran.stdout.split()
    return int(faults), float(freed)


def test_what_a_call_has_freed_the_next_one_has() -> None:
    faults, freed = faults_and_freed()
    assert faults < 100 and freed > 20


@pytest.mark.parametrize("name, value", [("MALLOC_ARENA_MAX", "8"), ("GLIBC_TUNABLES", "glibc.malloc.arena_max=8")])
def test_an_allocator_that_somebody_has_set_is_left_alone(name: str, value: str) -> None:
    """However large the pages are that the kernel hands out."""
    assert faults_and_freed(**{name: value})[0] > faults_and_freed()[0] + 30


def test_a_peak_is_the_kernels_word_whatever_a_process_is_called() -> None:
    """A name may hold what many take for the end of a line, and it comes first."""
    program = (
        "import sys\nwith open('/proc/self/comm', 'wb') as name: name.write({name!r})\n"
        "print(flush=True)\nsys.stdin.read()"
    )
    for name in (b"\x0cVmHWM: 1 kB", b"\x0cVmHWM: x", b"VmHWM: 7 kB"):
        command = [sys.executable, "-c", program.format(name=name)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            peak = peak_resident_bytes(child.pid)
            assert peak is not None and 1 << 20 < peak < 1 << 30
            child.communicate()
    assert peak_resident_bytes(0) is None
