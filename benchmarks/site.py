"""`python -m benchmarks.site RECORD`: what building the scoreboard of 10,000 records costs, and when it is painted.

Prints seconds by the clock and peak memory of a first build, of one more after another record, and, where Chromium is
there, when the pages of the largest case are first painted. The records are made up after RECORD, so that they follow
from no logs: with `--logs` a copy of its session's logs lies beside each, and all of verification is done, in vain;
without it their verification is taken as given, since otherwise nothing would be ranked.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.synthetic_records import write_synthetic
from proofmark.record.manifest import write_manifest
from proofmark.suite import Suite, find_suites
from reports.site.build import HOUSE, build
from reports.site.reading import Seen, held

_PROBE = """<iframe src="PAGE.html" width="1280" height="900"></iframe><script>
const frame = document.querySelector("iframe");
const look = () => {
  const seen = frame.contentWindow, paint = seen.performance.getEntriesByName("first-contentful-paint")[0];
  const told = seen.document.getElementById("about").textContent;
  if (!paint || told.startsWith("Loading")) { setTimeout(look, 5); return; }
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
    parser.add_argument("--logs", action="store_true", help="verify, with the logs that lie beside RECORD")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proofmark-site-") as folder:
        results, site = Path(folder, "results"), Path(folder, "site")
        write_synthetic(given.record, results, given.records, given.cases)
        if given.logs:
            _with_logs(given.record.parent, results)
        suites, look = find_suites(HOUSE / "suites"), held if given.logs else _taken_as_given
        for what in ("first build", "nothing new"):
            began, busy = time.perf_counter(), _processor_seconds()
            built = build([results], site, suites, look, given.processes)
            took = f"{time.perf_counter() - began:6.1f} s, {_processor_seconds() - busy:.1f} s of processors"
            print(f"{what:14} {took}, {built.read} of {built.runs} read, {_peaks()}", flush=True)
        one_more = results / "one-more"
        write_synthetic(given.record, one_more, 1)
        record = next(one_more.rglob("record.json"))
        record.write_text(record.read_text(encoding="utf-8").replace('"seed": 0', '"seed": 1'), encoding="utf-8")
        began = time.perf_counter()
        built = build([results], site, suites, look, given.processes)
        print(f"{'one more':14} {time.perf_counter() - began:6.1f} s, {built.read} of {built.runs} read")
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        print(f"site           {size / 2**20:6.0f} MiB")
        _paint(site)


def _taken_as_given(folder: Path, suites: Mapping[str, Suite]) -> Seen:
    return Seen((), {})


def _with_logs(run_dir: Path, results: Path) -> None:
    for record in results.rglob("record.json"):
        for log in run_dir.glob("*.jsonl"):
            shutil.copy(log, record.parent)
        write_manifest(record.parents[2])


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
        told = done.stdout.partition("<title>")[2].partition("</title>")[0]
        print(f"{page:14} {told or 'not painted'}")


if __name__ == "__main__":
    main()
