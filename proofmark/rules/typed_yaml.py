"""YAML as a typed model, with every problem in it at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from proofmark.errors import ConfigurationError, Problem
from proofmark.literal import literal
from proofmark.rules.strict_yaml import load_mapping

M = TypeVar("M", bound=BaseModel)

MOST = 40
"""Problems of a file that are told."""


def load_model(path: Path, model: type[M], root: Path | None = None) -> M:
    """Read a YAML file as a typed model; `root` is as in `load_mapping`.

    Raises:
        ConfigurationError: with every problem in it.
    """
    values = load_mapping(path, root)
    try:
        return model.model_validate_json(json.dumps(values))  # as JSON: a list will do for a tuple
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, str(path))) from None


def problems_of(error: ValidationError, where: str, prefix: str = "") -> list[Problem]:
    """Each complaint of pydantic as a problem with its key."""
    problems = []
    for detail in error.errors():
        key = ".".join([prefix, *map(str, detail["loc"])]) if prefix else ".".join(map(str, detail["loc"]))
        message = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            message = "unknown key"
        elif detail["type"] == "missing":
            message = "is required and missing"
        elif detail["type"] != "value_error":
            message = f"{message}, found {literal(detail['input'])[:80]}"
        problems.append(Problem(where, key.strip("."), message))
    more = len(problems) - MOST
    return problems[:MOST] + ([Problem(where, "", f"and {more} problems more")] if more > 0 else [])
