"""What a training's report says of where its time went: communication apart from compute, stragglers, and
how it scales."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from proofmark.record.parts import Monitoring
from proofmark.record.provenance import Host
from proofmark.training.outcome.examined import HandedOut, Taken
from proofmark.training.outcome.record import Communication, Confirmation, Rank, Rates, SeedRun, Split, TrainingRecord
from proofmark.training.outcome.stragglers import SECONDS, STEPS, slowest_host, slowest_rank, too_short
from reports.content.view import View
from reports.junit import properties
from reports.terminal import summary_lines
from suites.training.report.plots import training_plots
from suites.training.report.ranks import MOST, SLOWEST, rank_rows
from suites.training.report.scaling import efficiency, scaling, scaling_rows
from suites.training.report.view import TrainingView
from tests.suites_there import SUITES, page_of
from tests.training_records import make_run, make_training, passed

SVG = "{http://www.w3.org/2000/svg}"


def labels(drawing: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(drawing).iter(f"{SVG}text")]


def rank(number: int, share: float | None = None, reason: str | None = None, **changes: Any) -> Rank:
    found = Communication(share=share, steps=0 if share is None else 7, reason=reason)
    return Rank(
        **{
            "rank": number,
            "steps": STEPS,
            "compute_seconds": 10.0,
            "data_seconds": 1.0,
            "communication": found,
            **changes,
        }
    )


def split(communication: float | None) -> Split:
    times = {"init": 5.0, "data": 1.0, "compute": 10.0, "evaluation": 2.0, "checkpoint": 0.0, "other": 0.5}
    return Split(**times, communication=communication)


def two(*ranks: Rank, **changes: Any) -> TrainingView:
    run: SeedRun = make_run(ranks=ranks, steps=STEPS, split=split(ranks[0].communication_seconds))
    return TrainingView(make_training(run, scale="1x2", nproc=2, **changes))


def test_communication_is_a_part_of_compute() -> None:
    drawing = training_plots(two(rank(0, 0.25), rank(1, 0.05)))["where the time went"]
    assert "compute 7.500 s, communication 2.500 s" in drawing and labels(drawing).count("communication") == 1
    widths = [
        float(bar.get("width", 0)) for bar in ET.fromstring(drawing).iter(f"{SVG}rect") if bar.get("height") == "22"
    ]
    assert widths[2] == pytest.approx(3 * widths[3], rel=1e-3), "compute without it, then communication"
    assert "url(#hatch)" in drawing


def test_communication_that_nobody_measured_has_no_stretch_but_a_reason(tmp_path: Path) -> None:
    view = two(rank(0, reason="not measured with x"), rank(1, reason="not measured with x"))
    drawing = training_plots(view)["where the time went"]
    assert "communication" not in labels(drawing) and "compute 10.00 s, evaluation" in drawing
    assert figure(view.record, "communication") == "– (not measured with x)"
    assert "communication           – (not measured with x)" in "\n".join(summary_lines([view.record]))


def test_communication_is_told_of_all_ranks(tmp_path: Path) -> None:
    view = two(rank(0, 0.25), rank(1, 0.05))
    assert figure(view.record, "communication") == "5.00 % to 25.0 % of a rank's compute, measured on 7 steps of a run"
    page = page_of([view.record])
    assert "of it communication, s" in page and ">2.500</td>" in page


def test_one_process_communicates_with_nobody() -> None:
    view = TrainingView(make_training())
    assert "communication" not in {figure.key for figure in view.record.figures}
    assert "communication" not in labels(training_plots(view)["where the time went"])


HOST = Host(name="alpha", system="Linux", processor="p", cores=2, memory_bytes=1 << 30)
HOSTS = (HOST, HOST.model_copy(update={"name": "beta"}))


def figure(record: TrainingRecord, key: str) -> str:
    """A figure as a reader sees it."""
    return str(View(record).shown(key))


def slowest(record: TrainingRecord) -> dict[str, str]:
    """The slowest rank and host, as far as they are told."""
    listed = [(figure.label, str(shown)) for figure, shown in View(record).listed()]
    return {label: value for label, value in listed if label.startswith("slowest")}


def slowest_of(*ranks: Rank, nodes: tuple[Host | None, ...] = (HOST,)) -> dict[str, str]:
    run = make_run(ranks=ranks, nodes=nodes, steps=STEPS, train_seconds=SECONDS)
    return slowest(make_training(run, scale="x", nnodes=len(nodes), nproc=len(ranks) // len(nodes)))


@pytest.mark.parametrize(
    "slow, expected",
    [
        ({"compute_seconds": 10.0}, "rank 2: no straggler, 0 % above the median of the others in its own work"),
        ({"compute_seconds": 11.0}, "rank 2: no straggler, 9.05 % above the median"),
        ({"compute_seconds": 13.0}, "rank 2: a straggler, 27.1 % above the median"),
        ({"data_seconds": 4.0}, "rank 2: a straggler, 28.6 % above the median"),
    ],
)
def test_who_works_longest_is_named(slow: dict[str, float], expected: str) -> None:
    found = slowest_of(rank(0, 0.05), rank(1, 0.05), rank(2, 0.05, **slow), rank(3, 0.05))
    if slow == {"compute_seconds": 10.0}:
        expected = expected.replace("rank 2", "rank 0")
    assert list(found) == ["slowest rank"] and found["slowest rank"].startswith(expected), found


def test_waiting_is_no_work() -> None:
    """All ranks compute as long as the slowest: it is the one that waits least."""
    found = slowest_of(rank(0, 0.4), rank(1, 0.0), rank(2, 0.4))
    assert found["slowest rank"].startswith("rank 1: a straggler, 57.1 %")


def test_where_waiting_is_unknown_only_data_is_compared() -> None:
    found = slowest_of(rank(0, compute_seconds=20.0), rank(1), rank(2, data_seconds=2.5))
    assert found["slowest rank"].startswith("rank 2: no straggler, 9.")
    assert "in its data; how much of its compute is waiting is not known" in found["slowest rank"]


@pytest.mark.parametrize(
    "fixed, slow, excess",
    [
        (0.0, {}, 0.0),
        (8.0, {}, 0.0),  # however much of a step is the same for any number of samples
        (4.0, {}, 0.0),
        (0.0, {3: 1.3}, 0.04),  # longer than those of more samples, by that
        (8.0, {3: 1.3}, 0.3),
        (0.0, {0: 1.3}, 0.3),
    ],
)
def test_who_has_more_samples_takes_longer(fixed: float, slow: dict[int, float], excess: float) -> None:
    """As where 18 are divided by four."""
    samples = {0: 500, 1: 500, 2: 400, 3: 400}
    seconds = {number: (fixed + (8.0 - fixed) * of / 400) * slow.get(number, 1.0) for number, of in samples.items()}
    ranks = [
        rank(number, 0.0, node=number // 2, compute_seconds=each, data_seconds=0.0) for number, each in seconds.items()
    ]
    run = divided(ranks, samples)
    found, host = slowest_rank(run), slowest_host(run)
    assert found is not None and found.excess == pytest.approx(excess) and host is not None
    assert not slow or found.name.startswith(f"rank {next(iter(slow))} ")
    assert bool(slow) or not host.is_straggler
    without = slowest_rank(divided(ranks, {**samples, 3: 0})), slowest_rank(make_run(ranks=ranks, nodes=HOSTS))
    assert without[0] == without[1], "one that has no sample computes on another's"


def divided(ranks: Sequence[Rank], samples: dict[int, int]) -> SeedRun:
    """A run on two hosts whose ranks have taken so many samples."""
    taken = [Taken(rank=rank, samples=of, by_the_end=of, planned=of, began=None) for rank, of in samples.items()]
    of_all = sum(samples.values())
    counted = HandedOut(claimed=of_all, samples=of_all, by_the_end=None, tokens=None, ranks=tuple(taken))
    return make_run(ranks=ranks, nodes=HOSTS, handed_out=counted)


def test_hosts_are_compared_by_their_ranks() -> None:
    ranks = [rank(number, 0.1, node=number // 2, compute_seconds=10.0 + 5 * (number >= 2)) for number in range(4)]
    found = slowest_of(*ranks, nodes=HOSTS)
    assert found["slowest host"].startswith("node 1, beta: a straggler, 45.0 %")
    assert found["slowest rank"].startswith("rank 2 on beta: ")
    page = page_of(
        [make_training(make_run(ranks=ranks, nodes=(HOST, None), steps=STEPS), scale="2x2", nnodes=2, nproc=2)]
    )
    assert ">alpha<" in page and "its agent left no name" in page


def test_nobody_is_slowest_where_nobody_can_be() -> None:
    assert slowest_of(rank(0, 0.1)) == {}
    assert slowest_of(rank(0, 0.1), rank(1, 0.1, compute_seconds=None)) == {}
    idle = {"compute_seconds": 0.0, "data_seconds": 0.0}
    assert slowest_of(rank(0, 0.1, **idle), rank(1, 0.1, **idle)) == {}


def at(scale: str, rate: float, **changes: Any) -> TrainingView:
    nnodes, nproc = map(int, scale.split("x"))
    rates = Rates(raw=rate, no_eval=rate, pure_compute=rate)
    ranks = [Rank(rank=number, steps=STEPS, compute_seconds=1.0) for number in range(nnodes * nproc)]
    run = make_run(**{"rates": rates, "ranks": ranks, "steps": STEPS, "train_seconds": SECONDS, **changes})
    return TrainingView(make_training(run, scale=scale, nnodes=nnodes, nproc=nproc))


def test_efficiency_is_against_the_smallest_and_the_next_smaller_scale() -> None:
    views = [at("2x2", 240.0), at("1x1", 100.0), at("1x2", 160.0), at("2x1", 180.0)]
    rows = scaling_rows(views)["tiny"]
    assert [row.view.record.scale for row in rows] == ["1x1", "1x2", "2x1", "2x2"]
    assert [row.per_process for row in rows] == [100.0, 80.0, 90.0, 60.0]
    assert [row.against_first and row.against_first.value for row in rows] == [None, 0.8, 0.9, 0.6]
    assert [row.against_next and row.against_next.value for row in rows] == [None, 0.8, 0.9, pytest.approx(60 / 90)]
    (comparison,) = scaling(views)
    assert comparison.lines == {"scaling, tiny": "of 1x1's rate per process: 1x2 80.0 %, 2x1 90.0 %, 2x2 60.0 %"}
    assert "of 1x1's rate per process" in "\n".join(summary_lines([view.record for view in views], suites=SUITES))
    page = page_of([view.record for view in views])
    assert "<h3>Scaling</h3>" in page and "66.7 %" in page


@pytest.mark.parametrize(
    "seconds, steps, enough",
    [(SECONDS, STEPS, True), (SECONDS - 0.01, STEPS, False), (SECONDS, STEPS - 1, False), (2 * SECONDS, 99, True)],
)
def test_what_is_compared_took_long_enough(seconds: float, steps: int, enough: bool) -> None:
    runs = [
        make_run(train_seconds=seconds / 2, steps=steps // 2),
        make_run(train_seconds=seconds / 2, steps=-(-steps // 2)),
    ]
    why = too_short(runs)
    assert (why is None) is enough
    assert why is None or "are too little: at least 10 s and 50 steps" in why
    assert too_short([make_run(train_seconds=None, steps=None)]) is not None


def test_too_little_names_no_straggler() -> None:
    """Half of 0.3 s is a pause of the kernel's."""
    ranks = (rank(0, 0.1, compute_seconds=0.2, data_seconds=0.01), rank(1, 0.1, compute_seconds=0.1, data_seconds=0.01))
    run = make_run(ranks=ranks, steps=STEPS, train_seconds=0.3)
    found = slowest(make_training(run, scale="1x2", nproc=2))
    assert found == {"slowest rank": "– (too little was trained to compare by it: at least 10 s and 50 steps)"}


def test_too_little_has_no_efficiency() -> None:
    short = at("1x1", 10.0, train_seconds=0.3)
    (_, row) = scaling_rows([short, at("1x2", 74.6)])["tiny"]
    assert row.against_first is not None and row.against_first.value is None
    assert (
        scaling([short, at("1x2", 74.6)])[0]
        .lines["scaling, tiny"]
        .endswith("1x2 – (1x1: 0.30 s and 50 steps are too little: at least 10 s and 50 steps)")
    )
    page = page_of([short.record, at("1x2", 74.6).record])
    assert "373" not in page and "are too little" in page


@pytest.mark.parametrize("rate, share", [(219.9, 1.0995), (220.1, None), (746.0, None)])
def test_nobody_is_faster_than_its_share_by_more_than_noise(rate: float, share: float | None) -> None:
    found = efficiency(at("1x2", rate), at("1x1", 100.0))
    assert found.value == (share and pytest.approx(share))
    if share is None:
        reason = "above 110%, which no process can be by noise: 1x2 or 1x1 was not measured alone"
        assert str(found) == f"– ({reason})"


@pytest.mark.parametrize("setting", [{"precision": "fp16"}, {"compile": True}])
def test_scales_that_compute_otherwise_are_not_compared(setting: dict[str, Any]) -> None:
    """What is gained by another precision would be taken for scaling, or for a machine that was not alone."""
    larger = at("1x8", 2000.0)
    other = TrainingView(larger.record.model_copy(update={"config": {**larger.record.config, **setting}}))
    found = efficiency(other, at("1x1", 100.0))
    assert found.value is None and str(found) == f"– (1x8 and 1x1 differ in {next(iter(setting))})"


def test_scattered_runs_have_more_noise() -> None:
    """40 and 160 at one process: 133 % of all over all, 64. What is beyond that is beyond noise."""
    runs = [at("1x1", rate).record.runs[0] for rate in (40.0, 160.0)]
    scattered = TrainingView(make_training(*runs))
    assert efficiency(at("1x2", 400.0), scattered).value == 3.125
    assert "above 365%" in str(efficiency(at("1x2", 480.0), scattered))


def test_as_many_processes_elsewhere_may_be_faster() -> None:
    assert efficiency(at("2x1", 300.0), at("1x2", 200.0)).value == 1.5


def test_one_scale_and_a_withheld_speed_have_no_efficiency() -> None:
    missed = at("1x2", 160.0, converged=False, metric=0.1)
    assert missed.withheld
    assert scaling_rows([at("1x1", 100.0)]) == scaling_rows([at("1x1", 100.0), missed]) == {}
    assert "Scaling" not in page_of([missed.record])


def energy(joules: float, per_item: float) -> SeedRun:
    seen = {"energy_joules": joules, "energy_method": "counter", "energy_per_item": per_item}
    return make_run(monitoring=Monitoring.model_validate({"samples": 3, "window": None, **seen}))


def test_energy_is_told_in_all_and_per_item() -> None:
    runs = [energy(250.0, 2.5), energy(250.0, 2.5)]
    both = make_training(*runs)
    assert figure(both, "energy_joules") == "500.0 J" and figure(both, "energy_per_item") == "2.500 J/point (counter)"
    unread = make_run(monitoring=Monitoring(samples=0, window=None))
    for key in ("energy_joules", "energy_per_item"):
        assert figure(make_training(*runs, unread), key) == "– (not read in every run)"
        assert figure(make_training(unread), key) == "– (nothing read the power)"


def test_energy_per_item_is_all_energy_over_all_items() -> None:
    """10,000 samples at 1 J and 2,000 at 2 J."""
    shown = figure(make_training(energy(10_000.0, 1.0), energy(4_000.0, 2.0)), "energy_per_item")
    assert shown == "1.167 J/point (counter)"


def test_of_many_ranks_the_spread_and_the_slowest_are_shown() -> None:
    ranks = [rank(number, 0.1, node=number // 8, data_seconds=1.0 + number / 1e4) for number in range(8192)]
    ranks[4711] = rank(4711, 0.1, node=588, compute_seconds=99.0)
    run = make_run(ranks=ranks, nodes=[None] * 1024, steps=STEPS)
    rows = list(rank_rows(run))
    assert [row["name"] for row in rows[:3]] == [f"{what} of 8192 ranks" for what in ("least", "median", "most")]
    assert [rows[n]["compute_seconds"] for n in range(3)] == [10.0, 10.0, 99.0]
    assert [row["name"] for row in rows[3:]] == [4711, *range(8191, 8191 - SLOWEST + 1, -1)]
    view = TrainingView(make_training(run, scale="1024x8", nnodes=1024, nproc=8))
    assert "rank 4711 on" in slowest(view.record)["slowest rank"]
    assert len(page_of([view.record])) < 100_000


def test_up_to_some_number_all_ranks_are_shown() -> None:
    rows = rank_rows(make_run(ranks=[rank(number) for number in range(MOST)]))
    assert [row["name"] for row in rows] == list(range(MOST))


def test_honesty_is_told() -> None:
    """How many checks passed, each on the page, and what the case's own model scored."""
    wrong = passed("keeps time", passed=False, figure=7.5, meaning="its clock says 1 s, the agent's 9 s")
    confirmed = make_run(confirmation=Confirmation(samples=200, metric=0.9375, seconds=0.25))
    fine = make_training(confirmed, adapted=("backward",))
    fine = fine.model_copy(update={"verdict": make_training().verdict})
    refused = make_training(make_run(checks=[passed("starts from the case's weights"), wrong]))
    assert figure(fine, "honesty") == "4 of 4 checks passed"
    assert figure(fine, "run_1_confirmed") == "top1 0.93750"
    assert figure(fine, "run_1_confirmation_seconds") == "0.2500 s"
    assert figure(refused, "honesty") == "1 of 2 checks passed; failed: keeps time"
    assert dict(properties(refused))["honesty"] == "1 of 2 checks passed; failed: keeps time"
    page = page_of([refused])
    assert (
        "Honesty of the training" in page and "✗ failed" in page and "its clock says 1 s, the agent&#39;s 9 s" in page
    )
    withheld = fine.model_copy(update={"verdict": refused.verdict})
    assert figure(withheld, "run_1_confirmation_seconds") == "withheld: FAIL_HONESTY"
