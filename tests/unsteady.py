"""Runs tests as pytest does, and those few that fail again, alone: `python -m tests.unsteady OPTIONS OF PYTEST`.

Thousands of tests, most of them of real processes, share a small machine for the better part of an hour, and one
standstill of it may fail one of them. That is no reason to look away: what failed is named, and it counts as failed
unless it then passes every time, with nothing beside it. What is at fault fails again; where much fails nothing is
tried again.
"""

import os
import subprocess
import sys

import pytest

FEW = 5
"""Files with tests that failed."""

TIMES = 2
"""It is let through by chance p * (1 - p) ** TIMES, where p is how often it fails alone."""


class Failures:
    """A plugin of pytest's that keeps which tests failed, and which files could not be read."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and report.nodeid not in self.names:
            self.names.append(report.nodeid)

    pytest_collectreport = pytest_runtest_logreport  # with -n these are counted, and the other tests are run


def main(options: list[str]) -> int:
    """pytest's exit code; 0 too where the few that failed passed when they were tried again."""
    failures, environment = Failures(), dict(os.environ)
    code = pytest.main(options, plugins=[failures])
    few = 1 <= len({name.partition("::")[0] for name in failures.names}) <= FEW
    if code != pytest.ExitCode.TESTS_FAILED or not few:
        return code
    for time in range(1, TIMES + 1):
        print(f"\n{len(failures.names)} failed; alone, {time} of {TIMES} times:", flush=True)
        again = subprocess.run([sys.executable, "-m", "pytest", *failures.names], env=environment, check=False)
        if again.returncode != pytest.ExitCode.OK:
            return again.returncode
    print("\nUNSTEADY, and to be mended: they failed beside others, and pass alone", *failures.names, sep="\n  ")
    return pytest.ExitCode.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
