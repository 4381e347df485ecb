"""What of an exception of anybody's code is said in a line."""

from __future__ import annotations

import pytest

from proofmark.errors import UsageError, first_line, in_a_line, named, reason

NCCL = """NCCL error in: NCCLUtils.cpp:93, unhandled system error (run with NCCL_DEBUG=INFO for details)
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
UDS: Socket creation error : Permission denied (13)
"""


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit("no word")


@pytest.mark.parametrize(
    "error, said",
    [
        (RuntimeError("out of anvils\nand more"), "out of anvils"),
        (RuntimeError("  \n out of anvils"), "out of anvils"),
        (RuntimeError(), ""),
        (Mute(), ""),
        (RuntimeError("Last error:"), "Last error:"),
        (RuntimeError(NCCL), f"{NCCL.splitlines()[0]}; UDS: Socket creation error : Permission denied (13)"),
    ],
)
def test_what_it_says_first_and_a_librarys_cause(error: Exception, said: str) -> None:
    assert first_line(error) == said
    assert named(error) == f"{type(error).__name__}: {said}"
    assert reason(error) == (said or type(error).__name__)


def test_a_mistake_of_the_users_is_said_in_its_own_words() -> None:
    assert in_a_line(UsageError("no such vendor")) == "no such vendor"
    assert in_a_line(ValueError("no such vendor")) == "ValueError: no such vendor"
