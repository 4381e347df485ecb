"""JSON from a disk or a wire as plain values: finite numbers, integers of 64 bits, text that UTF-8 can hold."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from proofmark.errors import harmless

_NUMBERS = frozenset({float, int})

LARGEST = 64 << 20
"""Bytes that a file of ours may have."""


def read_json(path: Path) -> Any:
    """The plain value in a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, too large, not UTF-8, not JSON, or no reader takes a number or a text in it.
        RecursionError: it is nested too deeply.
    """
    text = read_file(path).decode("utf-8")
    return parse_json(text) if "\\u" in text else _parsed(text)  # else no escape has brought a lone surrogate


def is_regular_file(path: Path) -> bool:
    """Whether a path is a regular file and no link to one. To open a pipe would wait for whoever writes there.

    Raises:
        OSError: there is nothing at the path.
    """
    return stat.S_ISREG(path.lstat().st_mode)


def open_plain(path: Path) -> BinaryIO:
    """A plain file to read. A pipe, which may have no writer, and a device, which may not end, are not read.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise ValueError("it is not a regular file, so not read")


def read_file(path: Path) -> bytes:
    """The bytes of a plain file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large, or no plain file.
    """
    with open_plain(path) as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    return content


def parse_json(text: str) -> Any:
    """The plain value in a text.

    Raises:
        ValueError: not JSON, or no reader takes a number or a text in it.
        RecursionError: it is nested too deeply.
    """
    return plain_text(_parsed(text))


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_whole)


def plain_text(value: Any) -> Any:
    """Text that UTF-8 can hold: file names that are none come as lone surrogates, which no reader takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {plain_text(key): plain_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if _NUMBERS.issuperset(map(type, value)):  # a series has thousands
            return list(value)
        return [plain_text(item) for item in value]
    return value


def first_of(error: ValidationError) -> str:
    """The first complaint of pydantic, with its place, in a line: keys may be any text."""
    detail = error.errors(include_url=False, include_context=False)[0]
    place = harmless(".".join(map(str, detail["loc"])))
    more = f" ({error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place}: {detail['msg']}{more}" if place else f"{detail['msg']}{more}"


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _whole(text: str) -> int:
    number = int(text) if len(text) < 40 else 1 << 64
    if number.bit_length() > 63:
        raise ValueError(f"{text[:40]} is larger than 64 bits can hold")
    return number
