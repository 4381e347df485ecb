"""What all programs of ours have in common, apart from pytest: how they refuse a command line, and how they end."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

from proofmark.errors import ProofmarkError, harmless, reason

P = ParamSpec("P")

USAGE = 4
"""The exit code for a command line that can't be understood, as pytest's."""

INTERRUPTED = 128 + signal.SIGINT
"""That of a program that the user has interrupted, as a shell gives it."""

UNREAD = 128 + signal.SIGPIPE
"""That of a program whose output nobody reads to its end, as a shell gives it."""


class Parser(argparse.ArgumentParser):
    """Usage errors are one line, and end with exit code 4. A value of type `Path` may begin with `~`; none is empty."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.register("type", Path, _path)

    def error(self, message: str) -> NoReturn:
        """End."""
        self.exit(USAGE, f"ERROR: {message}\n")


def _path(text: str) -> Path:
    if not text:  # it would be taken for the working directory
        raise argparse.ArgumentTypeError("expected a path, found none; is a variable not set?")
    return Path(os.path.expanduser(text))  # a shell leaves `~` as it is in `--policy=~/there`


class _Output(io.FileIO):
    """A program's output for as long as somebody reads it: `| head` ends the program, and that is no error. Nor may it
    be told with a traceback that there is no room for more, as for a log on a full disk."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())  # for what is still buffered
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                raise SystemExit(UNREAD) from None
            print(f"ERROR: the output cannot be written: {error.strerror or error}", file=sys.stderr)
            raise SystemExit(USAGE) from None


def reporting_errors(main: Callable[P, int]) -> Callable[P, int]:
    """Have a program's `main` tell of a mistake in lines, one for each problem, of Ctrl-C by its exit code alone."""

    @wraps(main)
    def reporting(*given: P.args, **named: P.kwargs) -> int:
        try:
            return main(*given, **named)
        except KeyboardInterrupt:
            return INTERRUPTED
        except ProofmarkError as error:
            lines = str(error).splitlines() or [reason(error)]
        except OSError as error:
            of_file = error.filename is not None
            lines = [f"{error.filename}: {error.strerror}" if of_file else reason(error)]
        for line in lines:
            print(harmless(f"ERROR: {line}"), file=sys.stderr)
        return USAGE

    return reporting


def command(main: Callable[[], int]) -> NoReturn:
    """Run a program, and end with its exit code; without a word where whoever read its output has gone.

    The signal is left as it is: programs have other pipes too, to processes that they started, and none may end them.
    """
    for name in ("stdout", "stderr"):
        old = getattr(sys, name)
        if old is None:  # closed by who started it
            continue
        raw = io.BufferedWriter(_Output(old.fileno(), "w", closefd=False))
        buffering = old.line_buffering or name == "stderr"
        errors = "backslashreplace" if old.errors == "strict" else old.errors  # a name that the terminal cannot show
        setattr(sys, name, io.TextIOWrapper(raw, old.encoding, errors, line_buffering=buffering))
    code: Any
    try:
        code = main()
    except SystemExit as leaving:
        code = leaving.code
    if sys.stdout is not None:
        sys.stdout.flush()  # here, where it can still end the program
    sys.exit(code)
