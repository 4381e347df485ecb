"""The figures of a search: each is made here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.literal import percent, plural
from proofmark.record.common_figures import cost, fact, honesty, quality, utilisation
from proofmark.record.compared import compared_figures
from proofmark.record.figures import Figure, FigureKind, valued

NOTHING = "nothing was measured"
SCORE = (
    "floating-point operations of the networks really built, times images really processed, over all seconds of the "
    "search."
)
REGULATED = "the score times -ln(error), with the error of the best trial on held-out data."
COMPATIBLE = "by the original AIPerf's formulas and fixed images per epoch, to set beside its published figures."


def figures(record: AutoMLRecord) -> tuple[Figure, ...]:
    """All figures of a record; first the one that it is ranked by."""
    speeds = list(_speeds(record))
    beside = compared_figures(record.compared, speeds)
    return (*speeds, *beside, *_qualities(record), *_of_search(record), *_costs(record))


def _speeds(record: AutoMLRecord) -> Iterator[Figure]:
    score = record.score
    unrankable = "; ".join(record.unrankable)
    note: dict[str, Any] = {"note": f"not rankable: {unrankable}"} if unrankable else {}
    named = (
        ("score", "score", "honest", SCORE, True),
        ("regulated_score", "regulated score", "regulated", REGULATED, True),
        ("compatible_score", "score, AIPerf's way", "compatible", COMPATIBLE, False),
        ("compatible_regulated_score", "regulated, AIPerf's way", "compatible_regulated", COMPATIBLE, False),
    )
    for key, label, field, meaning, headline in named:
        without = NOTHING if score is None or score.honest is None else _unknown_error(record)
        known = valued(getattr(score, field) if score else None, without)
        beside = note if "value" in known else {}
        yield _speed(key, label, "FLOP/s", headline=headline, meaning=meaning, **known, **beside)
    yield utilisation(record)
    seconds = record.search_seconds
    per_second = valued(record.trained_images / seconds if seconds else None, NOTHING)
    yield _speed("images", "trained on", f"{plural(record.item)}/s", **per_second)
    share = valued(record.training_share, NOTHING)
    yield _speed("training_share", "devices' time in training", "share", **share)
    yield _speed("generation_share", "generating, of trial time", "share", **valued(record.generation_share, NOTHING))


def _unknown_error(record: AutoMLRecord) -> str:
    return record.held_out_reason or ("it is evaluated in the end" if record.as_of else "it was not evaluated")


def _qualities(record: AutoMLRecord) -> Iterator[Figure]:
    missing = _unknown_error(record)
    held = {"target": record.target, "headline": True}
    yield quality("top1", "held-out", record.metric, **valued(record.held_out_accuracy, missing), **held)
    error = record.score.error if record.score else None
    yield quality("error", "error", "1", **valued(error, missing), meaning="1 less the accuracy on held-out data.")
    best = record.best
    chosen = {"note": f"trial {best.number}"} if best else {}
    yield quality(
        "searched", "best trial", record.metric, **valued(best.accuracy if best else None, "no trial ended"), **chosen
    )
    checks = [check for trial in record.trials for check in trial.checks]
    outside = [record.examination] if record.examination else []
    yield honesty([*checks, *outside], "no trial came so far")


def _of_search(record: AutoMLRecord) -> Iterator[Figure]:
    kinds = [trial.status for trial in record.trials]
    named = {"finished": "finished", "running": "running", "failed": "failed", "none": "without an end"}
    counts = ", ".join(f"{kinds.count(kind)} {name}" for kind, name in named.items() if kind in kinds)
    yield fact("trials", "trials", "text", value=counts or "none")
    yield fact("devices", "devices", "1", value=record.devices)
    best = record.best
    yield fact(
        "parameters", "parameters of the best", "1", **valued(best.parameters if best else None, "no trial ended")
    )
    yield fact("rankable", "rankable", "text", value="no" if record.unrankable else "yes")
    if record.init_models:
        models = ", ".join(f"{model.name} (SHA-256 {model.sha256})" for model in record.init_models)
        yield fact("init_models", "begun with", "text", value=models)
    if record.adapted:
        yield fact("adapted", "adapted by the vendor", "text", value=", ".join(record.adapted))
    if record.end_reason:
        yield fact("end", "ended because", "text", value=record.end_reason)
    sampled = sum(trial.sampled for trial in record.trials)
    share = percent(sampled / len(kinds)) if kinds else "0 %"
    yield fact("sampled", "hyper-parameters of the study", "text", value=f"{sampled} trials ({share})")


def _costs(record: AutoMLRecord) -> Iterator[Figure]:
    score = record.score
    joules = valued(score.joules_per_teraflop if score else None, score.energy_reason if score else NOTHING)
    yield cost("joules_per_teraflop", "energy", "J/TFLOP", **joules)
    yield cost("flops_total", "computed", "FLOP", **valued(score.flops if score else None, NOTHING))
    yield cost("search_seconds", "searched", "s", **valued(record.search_seconds, NOTHING))
    yield cost("e2e_seconds", "in all", "s", **valued(record.seconds, "not recorded"))


def _speed(key: str, label: str, unit: str, **more: Any) -> Figure:
    return Figure(key=key, label=label, unit=unit, kind=FigureKind.SPEED, **more)
