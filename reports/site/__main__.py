"""`python -m reports.site DIR... --out SITE`: a static site of all runs whose records lie below the directories."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from proofmark.errors import UsageError
from proofmark.process.command_line import INTERRUPTED, Parser, command, reporting_errors
from proofmark.record.policy import load_policy
from proofmark.suite import find_suites
from reports.site.build import HOUSE, build
from reports.site.export import NO_PARQUET
from reports.site.reading import held


@reporting_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Build it; 0, or 4 with a line that says what is wrong. A record that can't be read is a line and no more."""
    parser = Parser(prog="python -m reports.site", description="Build a static site from run records.")
    parser.add_argument(
        "directories", metavar="DIR", nargs="+", type=Path, help="directories with results, at any depth"
    )
    parser.add_argument(
        "--out",
        metavar="SITE",
        required=True,
        type=Path,
        help="the site's directory: new, or one that this program made",
    )
    parser.add_argument("--processes", metavar="N", type=_count, default=2, help="reader processes (2)")
    parser.add_argument("--allowed-signers", metavar="FILE", type=Path, help="rank only what these signers have signed")
    parser.add_argument("--policy", metavar="FILE", type=Path, help="policy to rank by (the suite's own)")
    given = parser.parse_args(arguments)
    signers = given.allowed_signers
    look = partial(held, allowed=signers)
    try:
        by = hashlib.sha256(signers.read_bytes()).hexdigest() if signers else ""
        policy = load_policy(given.policy) if given.policy else None
        built = build(given.directories, given.out, find_suites(HOUSE / "suites"), look, given.processes, by, policy)
    except KeyboardInterrupt:
        print("interrupted: the site is as it was before", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        if error.filename is not None:
            raise
        raise UsageError(f"{given.out}: cannot be written: {error.strerror or error}") from None
    for problem in built.problems:
        print(f"left out: {problem}", file=sys.stderr)
    if not built.parquet:
        print(NO_PARQUET, file=sys.stderr)
    summary = f"{built.runs} {'run' if built.runs == 1 else 'runs'}; {built.read} read, {len(built.problems)} left out"
    print(f"{given.out / 'index.html'}: {summary}")
    return 0


def _count(text: str) -> int:
    if text not in map(str, range(1, 257)):
        raise argparse.ArgumentTypeError("expected 1 to 256")
    return int(text)


if __name__ == "__main__":
    command(main)
