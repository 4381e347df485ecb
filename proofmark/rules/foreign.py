"""Files of FlagPerf's that are given where ours are expected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from proofmark.errors import ConfigurationError, Problem
from proofmark.names import BRING
from proofmark.rules.yaml.strict import text_of
from proofmark.rules.yaml.typed import load_model

M = TypeVar("M", bound=BaseModel)

_ASSIGNS = re.compile(r"^[A-Za-z_][A-Za-z0-9_]* *\+?=(?!=)", re.MULTILINE)
"""A line that sets a name, as test_conf.py and cluster_conf.py do: no line of a YAML mapping begins so."""


def load_no_python(path: Path, model: type[M], made: str) -> M:
    """Read a YAML file as a typed model. Of Python, under whatever name, the command is told that makes one of it.

    Args:
        path: the file.
        model: what it should be.
        made: what the command makes, and of which file of theirs.

    Raises:
        ConfigurationError: with every problem in it; or it is Python.
    """
    message = f"is Python, which is not run: `{BRING}` makes {made}"
    if path.suffix == ".py":
        raise ConfigurationError([Problem(str(path), "", message)])
    try:
        return load_model(path, model)
    except ConfigurationError:
        if _is_python(path):
            raise ConfigurationError([Problem(str(path), "", message)]) from None
        raise


def _is_python(path: Path) -> bool:
    """Whether a file that our reader refused is Python. A pipe has been read by then."""
    try:
        return path.is_file() and _ASSIGNS.search(text_of(path)) is not None
    except ConfigurationError:
        return False
