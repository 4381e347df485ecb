"""Logs of a training's round, and what is changed after its end."""

from pathlib import Path

import pytest

from proofmark.record.integrity.chain import ChainedLog
from proofmark.training.logs.collect import _changed
from proofmark.training.logs.digests import changed_since, digests_of


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """A round of two nodes."""
    for node in (0, 1):
        (tmp_path / f"round1/noderank{node}").mkdir(parents=True)
        (tmp_path / f"round1/noderank{node}/rank{node}.jsonl").write_text("{}\n")
    (tmp_path / "round1/noderank0/agent.jsonl").write_text("{}\n")
    (tmp_path / "round1/noderank0/monitor.jsonl").write_text("{}\n")
    return tmp_path / "round1"


def test_what_was_not_touched_is_as_it_was(ended: Path) -> None:
    digests = digests_of(ended)
    assert sorted(digests) == ["noderank0/agent.jsonl", "noderank0/rank0.jsonl", "noderank1/rank1.jsonl"]
    assert not list(changed_since(ended, digests))


def test_each_change_is_named(ended: Path) -> None:
    log = ChainedLog(ended.parent / "events.jsonl")
    end = log.write("round_end", round=1, status="succeeded", logs=digests_of(ended))
    assert not _changed(ended.parent, [end], log.seal)
    (ended / "noderank0/rank0.jsonl").write_text("{}\n{}\n")
    (ended / "noderank1/rank1.jsonl").unlink()
    (ended / "noderank1/rank2.jsonl").write_text("{}\n")
    with (ended.parent / "events.jsonl").open("a") as stream:
        stream.write("{}\n")
    lines = _changed(ended.parent, [end], log.seal)
    assert lines[0].startswith("events.jsonl, line 2, does not follow")
    assert lines[-3:] == [
        "round1/noderank0/rank0.jsonl is not what it was when its run ended",
        "round1/noderank1/rank1.jsonl is gone",
        "round1/noderank1/rank2.jsonl was laid there after its run had ended",
    ]
    assert not _changed(ended.parent, [end], None)


def test_logs_of_further_servers_are_held_too(ended: Path) -> None:
    """In logs of before they were, nobody accuses them."""
    before, log = digests_of(ended), ended / "server1/noderank0/rank0.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("{}\n")
    digests = digests_of(ended)
    log.write_text("{}\n{}\n")
    changed = "round1/server1/noderank0/rank0.jsonl is not what it was when its run ended"
    assert (list(changed_since(ended, digests)), list(changed_since(ended, before))) == ([changed], [])
