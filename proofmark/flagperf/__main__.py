"""`python -m proofmark.flagperf`: convert an adaptation to FlagPerf, and read its logs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from proofmark.errors import harmless
from proofmark.flagperf.adaptation.bring import TABLES, bring
from proofmark.flagperf.adaptation.fates import counted, work_last
from proofmark.flagperf.monitor_logs import read_monitor_logs
from proofmark.flagperf.perflog_reader import read_perflog
from proofmark.process.command_line import Parser, command, reporting_errors
from proofmark.record.parts import VerdictKind


@reporting_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; the exit code."""
    parser = Parser(prog="python -m proofmark.flagperf", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="import|read|monitor", required=True)
    purpose = "convert a vendor's FlagPerf adaptation to Proofmark's files, and report what became of each key"
    importing = commands.add_parser("import", help=purpose, description=purpose)
    importing.add_argument("checkout", type=Path, help="a FlagPerf checkout, or its folder training or inference")
    importing.add_argument("--vendor", required=True, metavar="NAME", help="the vendor, as FlagPerf calls it")
    importing.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder to write to")
    purpose = "FlagPerf's logs of one case as a training record on standard output; ends with the verdict's exit code"
    reading = commands.add_parser("read", help=purpose, description=purpose)
    reading.add_argument(
        "log", nargs="+", type=Path, help="what a rank printed; of several ranks' logs, rank 0's counts"
    )
    purpose = "what FlagPerf's monitors logged of hosts and cards, as JSON on standard output"
    monitoring = commands.add_parser("monitor", help=purpose, description=purpose)
    monitoring.add_argument("log", nargs="+", type=Path, help="<vendor>_monitor.log; cpu, mem or pwr_monitor.log")
    options = parser.parse_args(arguments)
    return {"read": _read, "import": _import, "monitor": _monitor}[options.command](options)


def _read(options: argparse.Namespace) -> int:
    record = read_perflog(options.log)
    print(json.dumps(json.loads(record.text()), indent=1))  # ASCII: an encoding of the terminal's would be no JSON
    if record.verdict is None:
        return VerdictKind.ERROR.exit_code
    print(harmless(f"{record.verdict.kind}: {'; '.join(record.verdict.reasons)}"), file=sys.stderr)
    return record.verdict.kind.exit_code


def _monitor(options: argparse.Namespace) -> int:
    print(json.dumps([log.model_dump(mode="json") for log in read_monitor_logs(options.log)], indent=1))
    return 0


def _import(options: argparse.Namespace) -> int:
    moved = bring(options.checkout, options.vendor, options.out, Path.cwd())
    for row in work_last(moved.rows):
        print(row)
    print(f"\n{counted(moved.rows)}\n{moved.check}")
    print(f"{len(moved.files)} files in {options.out}; the table is {options.out / TABLES[0]} and {TABLES[1]}")
    if here := [name for name in moved.files if (Path.cwd() / name).is_file()]:
        print(f"WARNING: to copy them writes over what is here already: {', '.join(here)}")
    return 0


if __name__ == "__main__":
    command(main)
