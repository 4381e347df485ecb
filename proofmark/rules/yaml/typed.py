"""YAML as a typed model, with every problem in it at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from proofmark.errors import MOST, ConfigurationError, Problem, more_problems
from proofmark.literal import literal
from proofmark.names import hint, misspelled
from proofmark.rules.yaml.strict import load_mapping

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_SHOULD_BE = "Input should be "

_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "dictionary": "a mapping",
    "integer": "a whole number",
    "list": "a list",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
    "tuple": "a list",
}
"""Of pydantic's names of types."""


def load_model(path: Path, model: type[M], root: Path | None = None) -> M:
    """Read a YAML file as a typed model; `root` is as in `load_mapping`.

    Raises:
        ConfigurationError: with every problem in it.
    """
    values = load_mapping(path, root)
    try:
        return model.model_validate_json(json.dumps(values))  # as JSON: a list will do for a tuple
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, str(path), model=model)) from None


def number_as_text(value: Any) -> Any:
    """An environment's variable: a whole number as text, which YAML needs no quotes for; not true and false.

    Raises:
        ValueError: it is another number, of which nobody knows any more how it was written: 1.20 is 1.2.
    """
    if isinstance(value, float):
        raise ValueError(f"write it in quotes: the number {value} may stand there as another text")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def problems_of(
    error: ValidationError, where: str, prefix: str = "", model: type[BaseModel] | None = None
) -> list[Problem]:
    """Each complaint of pydantic as a problem with its key; of a `model`, with the key that may be meant."""
    problems = []
    found = error.errors()
    for detail in found[:MOST]:
        place = [str(part) for part in detail["loc"] if part != "[key]"]  # so pydantic marks a key that is wrong itself
        key = ".".join([prefix, *place] if prefix else place)
        message = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            message = f"unknown key{hint(str(detail['loc'][-1]), _known(model, detail['loc']))}"
        elif detail["type"] == "missing":
            message = f"is required and missing{_misspelled(model, detail)}"
        elif detail["type"] != "value_error":
            message = f"{_expected(message)}, found {literal(detail['input'])[:80]}"
        problems.append(Problem(where, key.strip("."), message))
    return problems + more_problems(where, len(found) - MOST)


def _expected(message: str) -> str:
    """A complaint of pydantic's in the words of all others."""
    kind = message.removeprefix(_SHOULD_BE)
    of = kind.removeprefix("a valid ").partition(", unable to parse")[0].partition(" or instance of")[0]
    return message if kind == message else f"expected {_KINDS.get(of.removeprefix('an '), kind)}"


def _misspelled(model: type[BaseModel] | None, missing: ErrorDetails) -> str:
    """Where keys of any name may be: the one that is there and may be the missing one. Elsewhere that is unknown."""
    place, given = missing["loc"], missing["input"]
    holder = _at(model, place)
    if holder is None or holder.model_config.get("extra") != "allow" or not isinstance(given, Mapping):
        return ""
    others = [str(key) for key in given if key not in holder.model_fields]
    near = next((key for key in others if misspelled(key, str(place[-1]))), None)
    return f"; did you mean it by '{near}'?" if near else ""


def _known(model: type[BaseModel] | None, place: Sequence[int | str]) -> list[str]:
    """The keys that there are beside one: none where its model isn't known."""
    holder = _at(model, place)
    return [field.alias or name for name, field in holder.model_fields.items()] if holder is not None else []


def _at(model: type[BaseModel] | None, place: Sequence[int | str]) -> type[BaseModel] | None:
    """The model that a key is of."""
    for part in place[:-1]:
        if model is not None and part in model.model_fields:  # else it is an index, or a key of a mapping
            model = _within(model.model_fields[str(part)].annotation)
    return model


def _within(annotation: Any) -> type[BaseModel] | None:
    """The first model of a type: that of a list's elements, say, or of a mapping's values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _within(inner)) is not None), None)
