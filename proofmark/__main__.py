"""What is done with results, without running anything: `python -m proofmark --judge RECORD... | --verify DIR...`.

No options of pytest's: that takes a path on its command line for tests, and executes the `conftest.py` that whoever
made it has laid there.

Exit code 4 for what can't be looked at, a line each after all else is told; 17 where a directory or a record is not
what it says; that of the gravest verdict for records that are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from proofmark.errors import UsageError, harmless
from proofmark.process.command_line import Parser, command, reporting_errors
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.record.policy import default_policy, load_policy
from proofmark.suite import find_suites
from proofmark.verdict.engine import exit_code
from proofmark.verification.again import FEWER_CHECKS
from proofmark.verification.judged import Judged, judge_again
from proofmark.verification.verify import Verified, verify

Seen = TypeVar("Seen", Judged, Verified)


@reporting_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    _refuse_unused(options)
    house = Path(__file__).parents[1].resolve()
    if str(house) not in sys.path:  # started elsewhere, with an editable installation
        sys.path.insert(0, str(house))
    suites = find_suites(house / "suites")
    if options.verify:
        return _of_all(options.verify, partial(verify, suites=suites, allowed=options.allowed_signers), _verify)
    policy = load_policy(options.policy) if options.policy else None
    code = _of_all(options.judge, partial(judge_again, suites=suites, policy=policy), _judge)
    print(f"exit code {code}")
    return code


def _of_all(paths: Sequence[Path], look: Callable[[Path], Seen], tell: Callable[[Sequence[Seen]], int]) -> int:
    """Tell of all that can be looked at; its exit code.

    Raises:
        UsageError: some can't be.
    """
    seen, wrong = list[Seen](), list[str]()
    for path in paths:
        try:
            seen.append(look(path))
        except UsageError as error:
            wrong.append(str(error))
    code = tell(seen)
    if wrong:
        raise UsageError("\n".join(dict.fromkeys(wrong)))
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m proofmark", description="verify and re-judge results")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--verify",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="check sessions' folders against their manifests and logs",
    )
    what.add_argument("--judge", nargs="+", type=Path, metavar="RECORD", help="judge runs' record.json again")
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="with --judge: the policy to judge by (each record's own)"
    )
    parser.add_argument(
        "--allowed-signers",
        type=Path,
        metavar="FILE",
        help="with --verify: an OpenSSH list of the accepted signers, one of whom must have signed",
    )
    return parser


def _refuse_unused(options: argparse.Namespace) -> None:
    if options.policy and not options.judge:
        raise UsageError("--policy is for --judge: a directory is verified by the policies that its records have")
    if options.allowed_signers and not options.verify:
        raise UsageError("--allowed-signers is for --verify")


def _judge(judged: Sequence[Judged]) -> int:
    for each in judged:
        for line in _verdict_lines(each):
            print(harmless(line))
    verdicts = [each.verdict for each in judged if each.blocks]
    verdicts += [Verdict(kind=VerdictKind.ERROR) for each in judged if not each.holds]
    return exit_code(verdicts)


def _verdict_lines(judged: Judged) -> list[str]:
    record, verdict = judged.record, judged.verdict
    said = record.verdict.kind if record.verdict else "not judged"
    passed_by = "" if judged.blocks else ", which lets it pass"
    before = "" if judged.own or said == verdict.kind else f", was {said}"
    head = f"{verdict.kind}  {record.run_name}  {judged.path}  by policy {record.policy.title}{passed_by}{before}"
    return [head, *(f"      {reason}" for reason in verdict.reasons), *_wrong(judged, str(said))]


def _wrong(judged: Judged, said: str) -> list[str]:
    if judged.holds:
        return []
    if judged.fewer_checks:
        return [f"      the record says {said}, by {FEWER_CHECKS.format(written=judged.written)}"]
    return [f"      WRONG the record says {said}, which is not what its figures and its policy give"]


def _said(record: CaseRecord) -> str:
    kind = record.verdict.kind if record.verdict else "not judged"
    return f"{kind}" if record.policy == default_policy() else f"{kind}, by policy {record.policy.title}"


def _verify(looked_at: Sequence[Verified]) -> int:
    for verified in looked_at:
        for line in _verified_lines(verified):
            print(harmless(line))
    return 0 if all(verified.holds for verified in looked_at) else VerdictKind.ERROR.exit_code


def _verified_lines(verified: Verified) -> list[str]:
    for_whom = f", signed by {verified.signer}" if verified.signer else ""
    head = "VERIFIED" if verified.holds else "NOT VERIFIED"
    records = [f"  {name}: {_said(record)}" for name, record in verified.records.items()]
    wrong = [f"  WRONG {finding}" for finding in verified.findings]
    return [f"{head} {verified.directory}{for_whom}", *records, *wrong, *(f"  NOTE {note}" for note in verified.notes)]


if __name__ == "__main__":
    command(main)
