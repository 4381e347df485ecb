"""A page for each case: its docstring, its YAML with the comments in it, where its data comes from, and results."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from proofmark.errors import ConfigurationError
from proofmark.literal import literal
from proofmark.record.envelope import CaseRecord
from proofmark.rules.aims import aims_of
from proofmark.rules.case_file import CaseFile, CaseLayer, load_case_file, read_case
from proofmark.rules.published import Published
from proofmark.rules.yaml.strict import load_mapping
from proofmark.rules.yaml.typed import problems_of
from proofmark.suite import Suite
from reports.content.variant import variant
from reports.content.view import View

SHOWN_ABOVE = ("metric", "target", "better", "metrics", "item", "dataset", "model", "flops", "published", "max_noise")
"""Parameters that have a line of their own, or none."""


class Source(BaseModel):
    """Of a dataset, as Markdown."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    what: str = Field(min_length=1)
    source: str = Field(min_length=1)
    prepare: str | None = None


def case_pages(root: Path, suites: Mapping[str, Suite], records: Sequence[CaseRecord] = ()) -> dict[str, str]:
    """The page of each case, by its path below `docs/cases`: inference/net.md.

    Args:
        root: of the checkout.
        suites: those with cases there, by name.
        records: verified ones, of whatever cases.

    Raises:
        ConfigurationError: with every problem in a case's YAML, or in that of the datasets.
    """
    datasets = _sources(root / "docs" / "datasets.yaml")
    pages = dict[str, str]()
    for name, suite in suites.items():
        for module in sorted((root / "suites" / name).glob("test_*.py")):
            case = module.stem.removeprefix("test_")
            of_case = [record for record in records if (record.suite, record.case) == (name, case)]
            pages[f"{name}/{case}.md"] = _page(suite, module, datasets, of_case)
    return pages


def _sources(path: Path) -> dict[str, Source]:
    try:
        return TypeAdapter(dict[str, Source]).validate_python(load_mapping(path))
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, str(path))) from None


def _page(suite: Suite, module: Path, datasets: Mapping[str, Source], records: Sequence[CaseRecord]) -> str:
    case = module.stem.removeprefix("test_")
    path, common = module.with_name(f"{case}.yaml"), module.with_name("contract.yaml")
    layer, text = read_case(path), path.read_text(encoding="utf-8")
    kind = suite.case_type.parameters_type
    files = {name: load_case_file(path, suite.name, name, common, kind) for name in layer.profiles}
    parts = [
        f"# {suite.name}: {case}",
        f"Generated from `suites/{suite.name}/{module.name}` and `{path.name}` by `make docs`.",
        _docstring(module),
        _comment(text, r"\A((?:#.*\n)+)"),
        *([f"Elsewhere called {_code(layer.known_as)}."] if layer.known_as else []),
    ]
    for name, file in files.items():
        parts += [f"## Profile `{name}`", _comment(text, rf"^((?:  #.*\n)+)  {re.escape(name)}:\n")]
        parts += _profile(file, layer, datasets)
    parts += ["## What a vendor may set", _settings(files), *_results(records)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _docstring(module: Path) -> str:
    """Of the module and of its case's class."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    docstrings = [ast.get_docstring(node) for node in (tree, *tree.body) if isinstance(node, ast.Module | ast.ClassDef)]
    return "\n\n".join(filter(None, docstrings))


def _comment(text: str, pattern: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return re.sub(r"^ *# ?", "", found.group(1), flags=re.MULTILINE).strip() if found else ""


def _profile(file: CaseFile, layer: CaseLayer, datasets: Mapping[str, Source]) -> Iterator[str]:
    parameters, guide = file.parameters.model_dump(), layer.profiles[file.profile].guide
    dataset = str(parameters.get("dataset"))
    aims = {name: aim for name, aim in aims_of(parameters).items() if aim.target is not None}
    reached = [f"`{n}` at {'most' if aim.better == 'lower' else 'least'} {aim.target:.15g}" for n, aim in aims.items()]
    rows = {
        "task": ", ".join(reached),
        "FLOPs": f"{file.parameters.flops:.4g} per {file.parameters.item}",
        "dataset": f"`{dataset}`",
        "weights": guide.weights if guide else "",
        "expected": guide.resources if guide else "",
        "data, training": _numbers({key: value for key, value in parameters.items() if key not in SHOWN_ABOVE}),
        "model": _numbers(parameters.get("model") or {}),
    }
    yield "| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in rows.items() if value)
    if file.parameters.published:
        yield _published(file.parameters.published)
    if source := datasets.get(dataset):
        yield f"**Data.** {source.what} From: {source.source.rstrip('.')}."
        yield (source.prepare or "").strip()


def _published(theirs: Published) -> str:
    if theirs.task is None:
        return "**Whose task.** Its own: " + "; ".join(theirs.differs) + "."
    numbers = [f"target {theirs.target:.15g}"] if theirs.target is not None else []
    numbers += [f"{theirs.flops:.4g} FLOPs per item as they count"] if theirs.flops is not None else []
    numbers += [_numbers(theirs.settings)] if theirs.settings else []
    head = "**Whose task.** " + ", ".join([theirs.task, *numbers]) + "."
    return head + (
        " Here it differs:\n\n" + "\n".join(f"- {each}" for each in theirs.differs) if theirs.differs else ""
    )


def _numbers(values: Mapping[str, object]) -> str:
    return ", ".join(f"`{key}: {_value(value)}`" for key, value in values.items() if value is not None)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return value if isinstance(value, str) else literal(value)


def _settings(files: Mapping[str, CaseFile]) -> str:
    """Every configuration with its value in each profile."""
    head = f"| key | type | {' | '.join(f'`{name}`' for name in files)} | |\n|{'---|' * (len(files) + 3)}\n"
    keys = dict.fromkeys(key for file in files.values() for key in file.settings)
    return head + "\n".join(f"| {' | '.join(_setting(key, files))} |" for key in keys)


def _setting(key: str, files: Mapping[str, CaseFile]) -> Iterator[str]:
    declared = [file.settings.get(key) for file in files.values()]
    setting = next(each for each in declared if each)
    yield f"`{key}`"
    yield setting.type + (" or null" if setting.nullable else "")
    yield from ("" if each is None else _value(each.value) for each in declared)
    bounds = [
        f"{name} {value:g}"
        for name, value in (("at least", setting.min), ("at most", setting.max))
        if value is not None
    ]
    bounds += [f"one of {_code(map(str, setting.choices))}"] if setting.choices else []
    bounds += ["may only be raised"] if setting.raise_only else []
    yield ", ".join([*bounds, *(["the user's alone"] if setting.users_own else [])])


def _code(words: Sequence[str] | Iterator[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _results(records: Sequence[CaseRecord]) -> list[str]:
    """By vendor and variant, the latest first; figures as every report shows them."""
    if not records:
        return []
    views = [View(record) for record in sorted(records, key=lambda each: (each.vendor, each.run_name, -each.started))]
    labels = list(dict.fromkeys(figure.label for view in views for figure, _ in view.headlines()))
    lines = ["| run | chip | verdict | " + " | ".join(labels) + " |", f"|{'---|' * (len(labels) + 3)}"]
    for view in views:
        figures = {figure.label: str(shown) for figure, shown in view.headlines()}
        run = ", ".join(variant(view.record).values())
        chip = f"{view.record.chip.units} x {view.record.chip.name}"
        cells = [run, chip, str(view.verdict.kind), *(figures.get(label, "") for label in labels)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return ["## Results", "Of records that were verified.", "\n".join(lines)]
