"""Bounds as data: read strictly, laid over the default's, and each of them decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proofmark.errors import ConfigurationError
from proofmark.inference.outcome.record import RunRecord
from proofmark.inference.outcome.verdict import judge
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Contention, Monitoring, VerdictKind
from proofmark.record.policy import RESTS_ON, Policy, Ranking, default_policy, load_policy
from proofmark.training.outcome.verdict import judge as judge_training
from proofmark.verdict.ranking import obstacles
from proofmark.wall.isolation import Isolation
from tests.automl.automl_records import record as search
from tests.training_records import make_run, make_training
from tests.unit.records import accuracy, measurement, record

RANKING = ["isolation", "0", "more"]


def policy(**changes: Any) -> Policy:
    noise = default_policy().noise.model_copy(update=changes.pop("noise", {}))
    return default_policy().model_copy(update={"noise": noise, **changes})


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_what_is_other_in_it(tmp_path: Path) -> None:
    read = load_policy(written(tmp_path / "p.yaml", "name: lab\nversion: 7\nnoise: {scatter: 0.02}\n"))
    assert (read.name, read.version, read.noise.scatter) == ("lab", 7, 0.02)
    assert read.noise.contended == default_policy().noise.contended and read.blocks == default_policy().blocks
    assert read.sha256 != default_policy().sha256 and len(read.sha256) == 64
    assert read == load_policy(written(tmp_path / "q.yaml", "version: 7\nnoise: {scatter: 2.0e-2}\nname: lab\n"))


@pytest.mark.parametrize(
    "text, keys",
    [
        ("", ["name", "version"]),
        ("name: ''\nversion: 0\n", ["name", "version"]),
        ("name: <script>\nversion: 1.5\n", ["name", "version"]),
        ("name: lab\nversion: '1'\naccuracy_ratio: '0.99'\n", ["version", "accuracy_ratio"]),
        ("name: lab\nversion: 1\naccuracy_ratio: 0\nleast_rounds: 0\n", ["accuracy_ratio", "least_rounds"]),
        ("name: lab\nversion: 1\nnoise: {scatter: 2, idle: -1, more: 0}\n", ["scatter", "idle", "more"]),
        ("name: lab\nversion: 1\nnoise: 3\nlatency_percentile: 98\n", ["latency_percentile", "noise"]),
        ("name: lab\nversion: 1\nblocks: [PASS]\n", ["blocks"]),
        ("name: lab\nversion: 1\nblocks: [AMBIGUOUS, AMBIGUOUS]\n", ["blocks"]),
        ("name: lab\nversion: 1\nblocks: [FAIL_HONESTY]\nbloks: 1\n", ["blocks", "bloks"]),
        ("name: lab\nversion: 1\nranking: {isolation: container, verified: [honesty], more: 1}\n", RANKING),
        ("name: lab\nversion: 1\nranking: wall\n", ["ranking"]),
        ("name: proofmark\nversion: 1\nleast_rounds: 1\n", ["name"]),
        ("- name", [""]),
        ("name: lab\nname: lab\n", [""]),
    ],
)
def test_all_that_is_wrong_is_told_at_once(tmp_path: Path, text: str, keys: list[str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_policy(written(tmp_path / "p.yaml", text))
    assert [problem.key.rpartition(".")[2] for problem in refused.value.problems] == keys, str(refused.value)
    assert all(str(tmp_path) in line for line in str(refused.value).splitlines())


def test_what_a_ranking_needs_is_in_no_hash_of_before(tmp_path: Path) -> None:
    assert default_policy().sha256 == "9134de65f55b5f85dc17eae7e1a2df0ff0297063da2bb3027a448fcf9dab35a7"
    assert "ranking" not in default_policy().model_dump()
    same = load_policy(written(tmp_path / "p.yaml", "name: proofmark\nversion: 1\nranking: {isolation: process}\n"))
    assert same.sha256 == default_policy().sha256
    other = load_policy(written(tmp_path / "q.yaml", "name: lab\nversion: 1\nranking: {verified: [time]}\n"))
    assert other.sha256 != same.sha256 and Policy.model_validate_json(other.model_dump_json()) == other
    assert other.ranking.isolation == "process" and judge(record(policy=other)).kind == "PASS"


WALLED, OPEN = Isolation(kind="wall"), Isolation.none("none was put on")


@pytest.mark.parametrize(
    "isolation, expected",
    [
        ({"engine": WALLED, "introduction": WALLED}, []),
        ({"engine": OPEN, "introduction": WALLED}, ["isolation: engine ran without a wall"]),
        (
            {"engine": WALLED.model_copy(update={"network": "asked for"}), "introduction": WALLED},
            ["isolation: engine could reach other machines, as isolation.yaml asks: those may have computed"],
        ),
        ({}, ["isolation: its vendor's code, as far as is recorded, ran without a wall"]),
    ],
)
def test_a_ranking_may_need_a_wall(isolation: dict[str, Isolation], expected: list[str]) -> None:
    made = record(isolation=isolation)
    assert not list(obstacles(made, default_policy()))
    found = list(obstacles(made, policy(ranking=Ranking(isolation="wall"))))
    assert [what.partition(", and policy")[0] for what in found] == expected


def test_a_monitor_that_no_wall_kept_may_have_written_what_is_ranked() -> None:
    """As on a host whose kernel has none, beside engines in a container."""
    for kept, expected in ((WALLED, []), (OPEN, ["isolation: monitor ran without a wall"]), (None, [])):
        made = record(isolation={"engine": WALLED}, monitoring=Monitoring(samples=1, window=None, isolation=kept))
        found = obstacles(made, policy(ranking=Ranking(isolation="wall")))
        assert [what.partition(", and policy")[0] for what in found] == expected


@pytest.mark.parametrize(
    "made, expected",
    [
        (make_training(make_run(resumed_from=40)), "it was resumed from a checkpoint, and has no time to rank"),
        (search(rankable=True, drivers=2), "it was resumed, and has no time to rank"),
        (search(rankable=False), "the profile is too small to stand for the workload"),
    ],
)
def test_what_is_no_time_to_rank_is_ranked_by_no_policy(made: CaseRecord, expected: str) -> None:
    assert list(obstacles(made, default_policy())) == [f"not rankable: {expected}"]


def test_a_ranking_may_need_what_was_verified() -> None:
    strict = policy(ranking=Ranking(verified=("time", "metric", "steps")))
    assert not list(obstacles(record(), strict))
    (elsewhere,) = obstacles(record(launched=[{"name": "h", "skew": 0.0, "round_trip": 0.1}]), strict)
    assert elsewhere.startswith("only claimed: time, metric; ")
    sure = [{"what": what, "verified": True, "by": "the referee"} for what in ("time", "metric", "steps")]
    held, half, said = (make_run(standing=standing) for standing in (sure, sure[:2], ()))
    cases = {"": (held,), "steps": (held, half), "time, metric, steps": (held, said)}
    for what, runs in cases.items():
        found = [
            each.removeprefix("only claimed: ").partition(";")[0] for each in obstacles(make_training(*runs), strict)
        ]
        assert found == [what][: bool(what)]
    assert CaseRecord.claimed.fget(None) == frozenset(RESTS_ON), "a suite that says nothing claims all"  # type: ignore[attr-defined]


def test_of_what_ran_in_its_vendors_image_all_is_claimed() -> None:
    container = {"engine": "e", "image": "i", "id": "1", "name": "n", "user": "1:1", "privileged": False}
    node = {"name": "h", "skew": 0.0, "round_trip": 0.1, "container": container}
    theirs = node | {"container": container | {"vendors": True}}
    sure = [{"what": what, "verified": True, "by": "the referee"} for what in RESTS_ON]
    strict = policy(ranking=Ranking(isolation="wall", verified=("metric", "steps")))
    for launched, expected in ([node], []), ([theirs], ["isolation: all of it ran on", "only claimed: metric, steps;"]):
        made = make_training(make_run(standing=sure, launched=launched), isolation={"ranks": WALLED})
        found = list(obstacles(made, strict))
        assert len(found) == len(expected) and all(map(str.startswith, found, expected)), found
        one = record(launched=launched, isolation={"engine": WALLED})
        walls = [what for what in obstacles(one, strict) if what.startswith("isolation: ")]
        assert len(walls) == bool(expected), walls


@pytest.mark.parametrize("text, verified, ranked", [(False, False, True), (True, True, True), (True, False, False)])
def test_of_tokens_only_a_run_of_text_may_need_that_they_were_verified(
    text: bool, verified: bool, ranked: bool
) -> None:
    standing = [{"what": "tokens", "verified": verified, "by": "who counted"}] if text else []
    made = make_training(make_run(standing=standing), tokens_per_second=5.0 if text else None)
    assert bool(list(obstacles(made, policy(ranking=Ranking(verified=("tokens",)))))) != ranked


def test_only_what_may_pass_can_be_let_pass() -> None:
    lax = policy(blocks=())
    passing = {kind for kind in VerdictKind if lax.lets_pass(kind)}
    assert passing == {"UNSUPPORTED", "AMBIGUOUS", "INSUFFICIENT", "FAIL_PERF"}
    assert not any(default_policy().lets_pass(kind) for kind in VerdictKind)


def latency(name: str) -> RunRecord:
    measured = measurement().model_copy(update={"latency_ms": {name: 1.0}, "latency_batches": 70})
    return record(engine=measured, config={"scenario": "latency", "repeat": 3})


SCATTERED = measurement().model_copy(update={"core": measurement().core.model_copy(update={"stdev": 4.0})})
BUSY = [{"contention": Contention(others=0.02, stolen=0.0, idle=0.4)}] * 3

HELD: dict[str, tuple[CaseRecord, Policy, str]] = {
    "accuracy_ratio": (
        record(accuracy=accuracy(framework_fp32=0.98, engine=0.975)),
        policy(accuracy_ratio=0.999),
        "FAIL_ACCURACY",
    ),
    "least_rounds": (record(), policy(least_rounds=4), "INSUFFICIENT"),
    "latency_percentile": (latency("p99"), policy(latency_percentile=99.9), "INSUFFICIENT"),
    "scatter": (record(engine=SCATTERED), policy(noise={"scatter": 0.03}), "AMBIGUOUS"),
    "contended": (record(engine=measurement(*BUSY)), policy(noise={"contended": 0.5}), "AMBIGUOUS to PASS"),
    "idle": (record(engine=measurement(*BUSY)), policy(noise={"idle": 0.3}), "AMBIGUOUS to PASS"),
}


@pytest.mark.parametrize("name", HELD)
def test_each_bound_decides(name: str) -> None:
    made, other, kinds = HELD[name]
    before, _, after = kinds.rpartition(" to ")
    assert judge(made).kind == (before or "PASS")  # type: ignore[arg-type]
    verdict = judge(made.model_copy(update={"policy": other}))  # type: ignore[arg-type]
    assert verdict.kind == after, verdict


def test_each_bound_of_a_training_decides() -> None:
    failed = make_run(converged=False, metric=0.1)
    made = make_training(*[make_run() for _ in range(4)], failed)
    before = judge_training(made).kind
    harder = made.model_copy(update={"policy": policy(failing_seeds=0.1)})
    assert before is not VerdictKind.FAIL_ACCURACY and judge_training(harder).kind is VerdictKind.FAIL_ACCURACY
    one = make_training(make_run())
    assert judge_training(one).kind is VerdictKind.PASS
    asked = judge_training(one.model_copy(update={"policy": policy(least_seeds=3)}))
    assert asked.kind is VerdictKind.INSUFFICIENT and "--repeat 3" in asked.reasons[0]


def test_the_width_of_a_gate_decides_over_a_comparison_that_was_made() -> None:
    ratio = {"metric": "core", "outcome": "SAME", "value": 0.99, "low": 0.985, "high": 0.995, "pairs": 9}
    shared = {"baseline": "main", "identity": None, "way": "rounds", "width": 0.02, "error": 0.01}
    made = record(compared={**shared, "metrics_of_session": 1, "ratios": [ratio]})
    for width, kind in ((None, "PASS"), (0.02, "PASS"), (0.003, "FAIL_PERF"), (0.01, "AMBIGUOUS")):
        assert judge(made.model_copy(update={"policy": policy(gate_width=width)})).kind == kind, width


def test_a_record_from_before_there_were_policies_has_its_gate() -> None:
    made = record(accuracy=accuracy(gate=0.995))
    assert made.policy.accuracy_ratio == 0.995 and made.policy_hash is None
    assert record().policy == default_policy()
    raw = made.model_dump(mode="json")
    raw.pop("policy")
    assert RunRecord.model_validate(raw).policy.accuracy_ratio == 0.995
