"""`python -m suites.made_up.agent SPEC NODE`: the job. It starts two processes, each of which counts every second."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from proofmark.launch.job import HostLayout

PROCESSES = 2


@dataclass(frozen=True)
class Spec:
    """Where to count, how far, and how many to overlook."""

    directory: str
    bound: int
    overlook: int

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def save(self, path: Path) -> None:
        """Write it down."""
        path.write_text(self.text(), encoding="utf-8")

    def moved(self, layout: HostLayout) -> Spec:
        """The same elsewhere."""
        return replace(self, directory=layout.directory)


def _count(spec: Spec, folder: Path, process: int) -> None:
    begun = time.perf_counter()
    numbers = range(2 + process, spec.bound, PROCESSES)
    primes = sum(all(number % other for other in range(2, int(number**0.5) + 1)) for number in numbers)
    seconds = time.perf_counter() - begun
    found = {"process": process, "numbers": len(numbers), "primes": primes, "seconds": seconds}
    if process == PROCESSES - 1:
        found["primes"] = primes - spec.overlook
    (folder / f"share{process}.json").write_text(json.dumps(found), encoding="utf-8")


def _main(path: str, node: str, *process: str) -> int:
    spec = Spec(**json.loads(Path(path).read_text(encoding="utf-8")))
    folder = Path(spec.directory) / f"noderank{node}"
    if process:
        _count(spec, folder, int(process[0]))
        return 0
    command = [sys.executable, "-m", "suites.made_up.agent", path, node]
    started = [subprocess.Popen([*command, str(number)]) for number in range(PROCESSES)]
    return max(each.wait() for each in started)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
