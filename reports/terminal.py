"""The summary at the end of a terminal session: the fields of FlagPerf's "Finish Info", and the verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.record import CaseRecord, RunRecord, Verdict
from harness.training.record import TrainingRecord
from reports import labels, text
from reports.provenance import override_level, override_line
from reports.reasons import Side
from reports.scaling import scaling
from reports.training import TrainingView
from reports.view import SIDES, CaseView, Figure
from reports.watch import energy, honesty, troubles

WIDTH = 80
WORKER_LOG = "worker.log"
_LABEL = 24


def summary_lines(records: Sequence[CaseRecord], run_dir: Path) -> list[str]:
    """Every case's figures, overrides and verdict, then all verdicts, at most 80 columns wide.

    Throughputs are items per second, latencies milliseconds per batch, memory GiB (2**30 bytes).
    """
    views = [CaseView(record) for record in records if isinstance(record, RunRecord)]
    trained = [TrainingView(record) for record in records if isinstance(record, TrainingRecord)]
    lines = [line for view in views for line in _case_lines(view, run_dir)]
    lines += [line for view in trained for line in _training_lines(view, run_dir)]
    outcomes = [(v.verdict, f"{v.name}  {v.record.vendor}, {v.compiler}, {v.record.precision}") for v in views]
    outcomes += [(v.verdict, f"{v.name}  {v.record.vendor}, {v.record.precision}") for v in trained]
    for case, told in scaling(trained).items():
        lines += [*_wrapped(f"scaling, {case}", told, _LABEL), ""]
    if len(outcomes) > 1:
        lines.append(_rule("verdicts"))
        for verdict, what in outcomes:
            lines += _wrapped(f"{verdict.kind:<14}", what, 14)
    return [*lines, *_wrapped("results in", str(run_dir), 11)]


def _case_lines(view: CaseView, run_dir: Path) -> Iterator[str]:
    yield _rule(f"{view.name}, profile {view.record.profile}")
    for label, value in _fields(view):
        yield from _wrapped(label, value, _LABEL)
    yield from _conclusion(view.record, view.verdict, run_dir)


def _training_lines(view: TrainingView, run_dir: Path) -> Iterator[str]:
    yield _rule(f"{view.name}, profile {view.record.profile}")
    for label, value in view.fields():
        yield from _wrapped(label, value, _LABEL)
    yield from _conclusion(view.record, view.verdict, run_dir)


def _conclusion(record: CaseRecord, verdict: Verdict, run_dir: Path) -> Iterator[str]:
    """The overrides and the verdict with its reasons."""
    for entry in record.overrides:
        yield from _wrapped(override_level(entry), f"{entry.key}: {override_line(entry)}", 8)
    yield f"VERDICT {verdict.kind}"
    for reason in verdict.reasons:
        yield from _wrapped("  -", reason, 4)
    if any(WORKER_LOG in reason for reason in verdict.reasons):
        yield from _wrapped(WORKER_LOG, str(run_dir / record.suite / record.case / WORKER_LOG), 11)
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
    yield "e2e_time(second)", text.number(record.seconds)
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


def _rule(title: str) -> str:
    title = text.printable(title)
    if len(title) > WIDTH - 6:
        title = f"{title[: WIDTH - 9]}..."
    return f"-- {title} ".ljust(WIDTH, "-")


def _wrapped(label: str, value: str, indent: int) -> list[str]:
    """`label`, then `value` from column `indent` on, wrapped and free of control characters."""
    head = f"{text.printable(label):<{indent - 1}} "
    body = text.printable(value) or text.MISSING
    hanging = " " * indent
    return textwrap.wrap(body, WIDTH, initial_indent=head, subsequent_indent=hanging, break_on_hyphens=False)
