"""Token rates count tokens, not padding: from what ranks counted to the figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.collect import _figures
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.logs.seed_run import collect_run
from proofmark.training.outcome.over_runs import measured, tokens_over
from proofmark.training.outcome.record import Rates, SeedRun
from tests.training_records import make_run, make_training
from tests.unit.training.test_run_durations import TOTALS


def collected(
    folder: Path,
    *tokens: int | None,
    before: int = 0,
    fed: int | None = None,
    kept: str = "wall",
    of: str | None = None,
) -> SeedRun:
    """A run of 100 samples, of which `before` were trained on before it was resumed; `tokens` is each rank's count,
    `fed` that of the only rank's feeder, and `of` the checkpoint that its session had it go on from."""
    for rank, counted in enumerate(tokens):
        path = folder / f"noderank0/rank{rank}.jsonl"
        path.parent.mkdir(exist_ok=True)
        end = {"samples": 100, "converged": True, "tokens": counted, **TOTALS}
        kinds: dict[str, dict[str, Any]] = {
            "isolated": {"isolation": {"kind": kept}},
            "init_end": {},
            "train_begin": {"steps": before // 25, "samples": before},
            "train_end": end,
            "rank_end": {},
        }
        events = [{"event": kind, "time": 1.79e9, "clock": 1, **fields} for kind, fields in kinds.items()]
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    if fed is not None:
        taken = {
            "event": "fed",
            "time": 1.79e9,
            "clock": 1,
            "rank": 0,
            "samples": 100 - before,
            "tokens": fed,
            "by_the_end": 116,
        }
        (folder / "noderank0/agent.jsonl").write_text(json.dumps(taken) + "\n")
    begun = {"event": "round_begin", "seed": 0, "time": 1.79e9, "clock": 0, "resume_from": of}
    ended = {"event": "round_end", "status": "succeeded", "time": 1.79e9, "clock": 2}
    return collect_run(folder, begun, ended, 1)[0]


def test_tokens_are_of_all_ranks(tmp_path: Path) -> None:
    assert collected(tmp_path, 300, 200).tokens_per_item == 5.0


def test_ranks_that_count_too_many_only_claim_them(tmp_path: Path) -> None:
    """Those of before there were feeders: the record, and the figure, say so."""
    run = collected(tmp_path, 10**6)
    assert run.tokens_per_item == 1e4
    assert [(each.verified, each.by) for each in run.standing if each.what == "tokens"] == [(False, "the ranks")]
    (rests_on,) = (each.value for each in make_training(run).figures if each.key == "run_1_standing")
    assert "claimed by the ranks: " in str(rests_on) and "tokens" in str(rests_on).partition("claimed")[2]


def test_feeders_count_tokens_whatever_ranks_claim(tmp_path: Path) -> None:
    run = collected(tmp_path, 10**6, fed=500)
    assert run.tokens_per_item == 5.0
    assert [each.verified for each in run.standing if each.what in ("samples", "tokens")] == [True, True]
    record = make_training(run, tokens_per_second=50.0, fed=True)
    (figure,) = (figure for figure in record.figures if figure.key == "tokens_per_second")
    assert figure.note == "5 per point, padding left out"


def test_ranks_without_a_wall_can_change_what_is_counted(tmp_path: Path) -> None:
    run = collected(tmp_path, 10**6, fed=500, kept="process")
    assert [each.verified for each in run.standing if each.what in ("samples", "tokens")] == [False, False]


def test_a_resumed_run_is_counted_from_there_on(tmp_path: Path) -> None:
    assert collected(tmp_path, 300, before=75).tokens_per_item == 12.0


@pytest.mark.parametrize("of", [None, "checkpoints/step-3"])
def test_whether_a_run_was_resumed_is_its_sessions_word(tmp_path: Path, of: str | None) -> None:
    """A rank that leaves out that it was, and says with how many samples it began, has no samples that are verified."""
    run = collected(tmp_path, 300, before=75, fed=100, of=of)
    assert run.handed_out and (run.handed_out.wrong is None, run.resumed_from) == ((True, 3) if of else (False, None))
    assert [each.verified for each in run.standing if each.what == "samples"] == [False]


@pytest.mark.parametrize("tokens", [(None,), (300, None)])
def test_samples_that_are_no_text_have_none(tmp_path: Path, tokens: tuple[int | None, ...]) -> None:
    run = collected(tmp_path, *tokens)
    assert run.tokens_per_item is None and run.standing
    assert not any(each.what == "tokens" for each in run.standing)


def test_a_count_that_is_none_is_refused(tmp_path: Path) -> None:
    run = collected(tmp_path, -300)
    assert run.tokens_per_item is None and run.converged is None, "its line is no event"


@pytest.mark.parametrize(
    "end, length, expected",
    [
        ({}, 64, 640.0),
        ({}, None, None),
        ({"tokens": None}, 64, None),
        ({"tokens": 500}, 64, 50.0),
    ],
)
def test_a_log_of_before_there_was_a_count_has_its_padded_rate(
    end: dict[str, Any], length: int | None, expected: float | None
) -> None:
    log = RankLog(0)
    log.last["train_end"] = {"event": "train_end", **end}
    run = make_run(
        rates=Rates(raw=10.0, no_eval=11.0, pure_compute=12.0), tokens_per_item=5.0 if end.get("tokens") else None
    )
    config = EffectiveConfig("training", "net", "embedded", "acme", {"max_seq_length": length, "flops": 1.0}, {})
    begun = {"chip": {"name": "chip"}, "devices": 1}
    assert _figures(make_training(run), begun, config, [log])["tokens_per_second"] == expected


def test_of_several_runs_all_tokens_over_all_samples() -> None:
    runs = [make_run(tokens_per_item=10.0), make_run(passes=6, tokens_per_item=20.0)]
    assert tokens_over(runs) == (200 * 10 + 600 * 20) / 800
    assert tokens_over([*runs, make_run()]) is None
    assert measured(make_training(*runs, make_run(rates=None))) == runs, "a run that broke off is in no rate"


@pytest.mark.parametrize(
    "each, read_from, note",
    [
        (12.5, (), "12.5 per point, as the ranks claim, padding left out"),
        (None, (), None),
        (None, ("a.log",), None),
    ],
)
def test_the_figure_says_what_it_counts(each: float | None, read_from: tuple[str, ...], note: str | None) -> None:
    """A record from before there was a count, and others' logs, are shown as they are."""
    record = make_training(make_run(tokens_per_item=each), tokens_per_second=125.0, read_from=read_from)
    (figure,) = (figure for figure in record.figures if figure.key == "tokens_per_second")
    assert (figure.value, figure.note) == (125.0, note)


def test_utilisation_is_of_what_is_computed_padding_too() -> None:
    """FLOPs of whole sequences, times sequences: tokens have no part in it."""
    with_count, without = (make_training(make_run(tokens_per_item=each)) for each in (12.5, None))
    assert with_count.utilisation == without.utilisation
