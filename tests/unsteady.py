"""Runs tests as pytest does, and the files of those few that fail again, alone: `python -m tests.unsteady OPTIONS`.

Thousands of tests, most of them of real processes, share a small machine for the better part of an hour, and one
standstill of it may fail one of them. That is no reason to look away: what failed is named, and it counts as failed
unless its whole file then passes with nothing beside it, and it passes once more. What is at fault by itself, or after
others of its file, fails again. Nothing is tried again where much fails, where not all was run or a test ended its
process, where what tests share could not be taken down, or where a test draws what it tries: another draw would find
nothing.
"""

import os
import subprocess
import sys

import pytest

FEW = 3
"""Files with tests that failed."""

DRAWN = "tests/fuzz/"
"""Tests that draw what they try."""


class Failures:
    """A plugin of pytest's that keeps which tests failed, and whether that may have been by chance."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.certain = False

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            self.certain |= report.when == "teardown" or report.nodeid.startswith(DRAWN)
            self.names += [report.nodeid] if report.nodeid not in self.names else []

    pytest_collectreport = pytest_runtest_logreport  # with -n these are counted, and the other tests are run

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.certain |= bool(session.shouldfail or session.shouldstop)  # as by -x: not all was run

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self) -> None:
        self.certain = True


def main(options: list[str]) -> int:
    """pytest's exit code; 0 too where the few that failed passed when they were tried again."""
    failures, environment = Failures(), os.environ | {"PROOFMARK_SKIPS_FAIL": "1"}
    code = pytest.main(options, plugins=[failures])
    files = list(dict.fromkeys(name.partition("::")[0] for name in failures.names))
    if code != pytest.ExitCode.TESTS_FAILED or failures.certain or not 1 <= len(files) <= FEW:
        return code
    chosen = options[options.index("-m") :][:2] if "-m" in options else []
    for what in ([*files, *chosen], [*failures.names, *chosen]):
        print(f"\n{len(failures.names)} failed; alone:", *what, flush=True)
        again = subprocess.run([sys.executable, "-m", "pytest", *what], env=environment, check=False)
        if again.returncode != pytest.ExitCode.OK:
            return again.returncode
    print("\nUNSTEADY, and to be mended: they failed beside others, and pass alone", *failures.names, sep="\n  ")
    return pytest.ExitCode.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
