"""`python -m benchmarks.site RECORD`: what building the scoreboard of 10,000 records costs, and when it is painted.

Prints seconds by the clock and peak memory of a first build, of one more after another record, and, where Chromium is
there, when the pages of the largest case are first painted. The records are made up after RECORD. With `--verify` they
are made of logs that are made up after those beside it, and all of them are verified, as `python -m reports.site` does;
without it they follow from no logs, and their verification is taken as given.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.simulated.records import write_synthetic, write_verified
from proofmark.suite import Suite, find_suites
from proofmark.verification.verify import verify
from reports.site.build import HOUSE, build
from reports.site.reading import Seen, held

_PROBE = """<iframe src="PAGE.html" width="1280" height="900"></iframe><script>
const frame = document.querySelector("iframe");
const look = () => {
  const seen = frame.contentWindow, paint = seen.performance.getEntriesByName("first-contentful-paint")[0];
  const about = seen.document.getElementById("about").textContent;
  if (!paint || about.startsWith("Loading")) { setTimeout(look, 5); return; }
  const [first, full] = [paint.startTime, seen.performance.now()].map(Math.round);
  document.title = `first paint ${first} ms, filled by ${full} ms`;
};
frame.onload = look;</script>"""


def main() -> None:
    """Make the records, build the site of them twice, and say what it took."""
    parser = argparse.ArgumentParser(description="what the scoreboard costs")
    parser.add_argument("record", type=Path, help="a real record, after which the others are made")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--verify", action="store_true", help="verify all; they are of RECORD's own case, then")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proofmark-site-") as folder:
        results, site = Path(folder, "results"), Path(folder, "site")
        suites, look = find_suites(HOUSE / "suites"), held if given.verify else _taken_as_given
        made: Callable[[Path, int], None] = partial(_unverified, given.record, given.cases)
        if given.verify:
            made = _verified(given.record, suites)
        made(results, given.records)
        for what in ("first build", "nothing new"):
            began, busy = time.perf_counter(), _processor_seconds()
            built = build([results], site, suites, look, given.processes)
            took = f"{time.perf_counter() - began:6.1f} s, {_processor_seconds() - busy:.1f} s of processors"
            print(f"{what:14} {took}, {built.read} of {built.runs} read, {_peaks()}", flush=True)
        made(results / "one more", 1)
        began = time.perf_counter()
        built = build([results], site, suites, look, given.processes)
        print(f"{'one more':14} {time.perf_counter() - began:6.1f} s, {built.read} of {built.runs} read")
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        print(f"site           {size / 2**20:6.0f} MiB")
        _paint(site)


def _taken_as_given(folder: Path, suites: Mapping[str, Suite]) -> Seen:
    return Seen((), {})


def _unverified(record: Path, cases: int, folder: Path, count: int) -> None:
    write_synthetic(record, folder, count, cases)
    if count == 1:  # the first would be equal to the first of many
        for path in folder.rglob("record.json"):
            path.write_text(path.read_text(encoding="utf-8").replace('"seed": 0', '"seed": 1'), encoding="utf-8")


def _verified(record: Path, suites: Mapping[str, Suite]) -> Callable[[Path, int], None]:
    suite = suites[json.loads(record.read_text(encoding="utf-8"))["suite"]]

    def made(folder: Path, count: int) -> None:
        numbers = range(count) if count > 1 else range(1_000_000, 1_000_001)
        with ProcessPoolExecutor(2, get_context("fork")) as pool:
            shares = [numbers[share::8] for share in range(8)]
            for done in [pool.submit(write_verified, record, folder, suite, share, count) for share in shares]:
                done.result()
        first = verify(next(iter(sorted(folder.iterdir()))), suites)
        if first.findings or first.notes:
            raise SystemExit(f"what is made up does not verify: {(*first.findings, *first.notes)[0]}")

    return made


def _processor_seconds() -> float:
    """Of this process and those that it started."""
    return sum(os.times()[:4])


def _peaks() -> str:
    """Of this process and of the largest of those that it started, MiB."""
    mine, theirs = (resource.getrusage(who).ru_maxrss >> 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return f"peak memory {mine} MiB, of a reading process {theirs} MiB"


def _paint(site: Path) -> None:
    """When the largest league is first painted, and when its table is there, by the page's own clock."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("first paint: no chromium here")
        return
    probe = site / "probe.html"
    for page in ("index", "league", "trends"):
        script = _PROBE.replace("PAGE", page)
        probe.write_text(f"<!DOCTYPE html><title></title>{script}", encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="proofmark-chromium-") as profile:
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom"]
            command = [chromium, *flags, "--virtual-time-budget=10000", f"--user-data-dir={profile}", probe.as_uri()]
            environment = {"HOME": profile, "PATH": "/usr/bin:/bin"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        title = done.stdout.partition("<title>")[2].partition("</title>")[0]
        print(f"{page:14} {title or 'not painted'}")


if __name__ == "__main__":
    main()
