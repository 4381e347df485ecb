"""What is done with results, without running anything: `python -m proofmark --verify DIR...`.

No option of pytest's: that takes a directory on its command line for tests, and executes the `conftest.py` that whoever
made the directory has laid there.

Exit code 4, and one line, for what can't be looked at; 17 where a directory does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.errors import ProofmarkError, harmless
from proofmark.record.parts import VerdictKind
from proofmark.suite import Suite, find_suites
from proofmark.verification.verify import Verified, verify

USAGE = 4
"""As pytest's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        suites = find_suites(Path("suites").resolve())
        return _verify(options.verify, suites, options.allowed_signers)
    except (ProofmarkError, OSError) as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m proofmark", description="results, looked at again")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--verify", nargs="+", type=Path, metavar="DIR", help="hold sessions' folders to their manifests and their logs"
    )
    parser.add_argument(
        "--allowed-signers",
        type=Path,
        metavar="FILE",
        help="with --verify: who must have signed, one of OpenSSH's list",
    )
    return parser


def _verify(directories: Sequence[Path], suites: Mapping[str, Suite], allowed: Path | None) -> int:
    looked_at = [verify(directory, suites, allowed) for directory in directories]
    for verified in looked_at:
        for line in _told(verified):
            print(harmless(line))
    return 0 if all(verified.holds for verified in looked_at) else VerdictKind.ERROR.exit_code


def _told(verified: Verified) -> list[str]:
    for_whom = f", signed by {verified.signer}" if verified.signer else ""
    head = "VERIFIED" if verified.holds else "NOT VERIFIED"
    records = [
        f"  {name}: {record.verdict.kind if record.verdict else 'not judged'}"
        for name, record in verified.records.items()
    ]
    wrong = [f"  WRONG {finding}" for finding in verified.findings]
    return [f"{head} {verified.directory}{for_whom}", *records, *wrong, *(f"  NOTE {note}" for note in verified.notes)]


if __name__ == "__main__":
    sys.exit(main())
