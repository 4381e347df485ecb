"""The figures at the end of a terminal session: the fields of FlagPerf's "Finish Info"."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from proofmark.inference.record import RunRecord
from proofmark.record.envelope import CaseRecord
from proofmark.training.record import TrainingRecord
from reports import labels, text
from reports.provenance import override_level, override_line
from reports.reasons import Side
from reports.scaling import scaling
from reports.training import TrainingView
from reports.view import SIDES, CaseView, Figure
from reports.watch import energy, honesty, troubles

WIDTH = 80
_LABEL = 24


def summary_lines(records: Sequence[CaseRecord], width: int = WIDTH) -> list[str]:
    """Every case's figures, overrides and verdict, at most `width` columns wide; not of those that were interrupted.

    Throughputs are items per second, latencies milliseconds per batch, memory GiB (2**30 bytes).
    """
    ended = [record for record in records if record.interrupted is None]
    views = [CaseView(record) for record in ended if isinstance(record, RunRecord)]
    trained = [TrainingView(record) for record in ended if isinstance(record, TrainingRecord)]
    lines = [line for view in views for line in _case_lines(view, width)]
    lines += [line for view in trained for line in _case_lines(view, width)]
    for case, told in scaling(trained).items():
        lines += [*_wrapped(f"scaling, {case}", told, _LABEL, width), ""]
    return lines


def explanations(records: Sequence[CaseRecord], width: int = WIDTH) -> list[str]:
    """What the figures of these records are."""
    explained = [
        label for suite in dict.fromkeys(r.suite for r in records) for label in labels.EXPLAINED.get(suite, ())
    ]
    told = [line for each in dict.fromkeys(explained) for line in _wrapped(each.full, each.meaning, _LABEL, width)]
    return [_rule("what the figures are", width), *told, ""] if told else []


def _case_lines(view: CaseView | TrainingView, width: int) -> Iterator[str]:
    """The reasons of a verdict stand where all verdicts are."""
    yield _rule(f"{view.name}, profile {view.record.profile}", width)
    for label, value in _fields(view) if isinstance(view, CaseView) else view.fields():
        yield from _wrapped(label, value, _LABEL, width)
    for entry in view.record.overrides:
        yield from _wrapped(override_level(entry), f"{entry.key}: {override_line(entry)}", 8, width)
    yield f"VERDICT {view.verdict.kind}"
    yield ""


def _fields(view: CaseView) -> Iterator[tuple[str, str]]:
    record = view.record
    yield "vendor", record.vendor
    yield "chip", record.chip.name
    yield "compiler", view.compiler
    yield "precision", record.precision
    yield "batchsize", str(view.batch_size)
    yield "flops", str(view.flops_rate)
    yield "", view.flops_per_item
    yield "e2e_time(second)", view.seconds.text.removesuffix(" s")
    for side in SIDES:
        yield _throughput(labels.throughput(side, labels.WHOLE), view.speed(side, "whole"))
        yield _throughput(labels.throughput(side, labels.CORE), view.speed(side, "core"))
    yield labels.LOADER.name, str(view.loader(view.ranked))
    yield labels.BOUND_BY.name, str(view.bound_by(view.ranked))
    for side in SIDES:
        yield from _latency(view, side)
    yield from _accuracy(view)
    yield labels.MFU.name, str(view.mfu)
    yield "energy", energy(view)
    yield "honesty", str(honesty(view))
    yield from (("monitor", trouble) for trouble in troubles(view))
    yield from ((f"memory, {name}", str(figure)) for name, figure in view.memory.items())


def _throughput(label: labels.Label, figure: Figure) -> tuple[str, str]:
    """FlagPerf's name stands behind a figure, for it is too long for the column of names."""
    return label.name, f"{figure} ({label.flagperf})" if figure.value is not None else str(figure)


def _latency(view: CaseView, side: Side) -> Iterator[tuple[str, str]]:
    """One line for all latencies of a side that was measured, in ms per batch."""
    if view.measurement(side) is None or not view.latencies:
        return
    figures = [(name, view.latency(side, name)) for name in view.latencies]
    shown = ", ".join(f"{name} {figure.text}" for name, figure in figures if figure.value is not None)
    yield f"{side} latency", view.withheld or shown or text.MISSING


def _accuracy(view: CaseView) -> Iterator[tuple[str, str]]:
    accuracy = view.record.accuracy
    precision = view.record.precision
    yield "val accuracy, fp32", _scored(view.score("framework", accuracy.framework_fp32), accuracy.metric)
    if f"framework at {precision}" in view.scores:
        yield f"val accuracy, {precision}", _scored(view.score("framework", accuracy.framework), accuracy.metric)
    yield "infer accuracy", _scored(view.score("engine", accuracy.engine), accuracy.metric)
    floor = f", the engine at least {view.floor}" if view.floor else ""
    yield "target", f"{accuracy.metric} {accuracy.target:g}{floor}"


def _scored(figure: Figure, metric: str) -> str:
    return str(figure) if figure.value is None else f"{metric} {figure}"


def _rule(title: str, width: int) -> str:
    title = text.printable(title)
    if len(title) > width - 6:
        title = f"{title[: width - 9]}..."
    return f"-- {title} ".ljust(width, "-")


def _wrapped(label: str, value: str, indent: int, width: int) -> list[str]:
    """`label`, then `value` from column `indent` on, wrapped and free of control characters."""
    head = f"{text.printable(label):<{indent - 1}} "
    body = text.printable(value) or text.MISSING
    hanging = " " * indent
    return textwrap.wrap(body, width, initial_indent=head, subsequent_indent=hanging, break_on_hyphens=False)
