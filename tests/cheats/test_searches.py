"""Cheats of a search's trials: adapters, each in a session of the suite's own search, with its CONFIG and a chip whose
peak, by its vendor's own word, bounds nothing. Where one is an adapter in ranks alone, the record has the steps that it
ADAPTS."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from proofmark.automl.outcome.record import AutoMLRecord
from tests.cheats.corpus import files, named
from tests.e2e.conftest import ROOT, House

ADAPTED = """

def _adapter(_):
    from . import cheat

    return cheat.Adapter() if "noderank0" in str(__import__("os").environ["HOME"]) else TrainingAdapter()


Fake.training_adapter = _adapter
Fake.training_precisions = frozenset({"fp32"})
"""
CHIPS = "chips:\n  - {name: Fake, match: fake chip, peaks: {fp32: {flops: 9e18, source: our own data sheet}}}\n"


@pytest.mark.parametrize("path", files("searches"), ids=lambda path: path.stem)
def test_a_search(tmp_path: Path, path: Path, request: pytest.FixtureRequest) -> None:
    house, cheat = House(tmp_path / "house"), named(path)
    for name in ("automl", "data"):
        shutil.copytree(ROOT / "suites" / name, house.root / "suites" / name)
    package = house.root / "vendors" / "fake"
    (package / "cheat.py").write_text(path.read_text())
    (package / "chips.yaml").write_text(CHIPS)
    config = package / "configs" / "automl" / "image_search.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(cheat["CONFIG"])
    with (package / "__init__.py").open("a") as stream:
        stream.write(ADAPTED)
    ran = house.run("--monitor-interval", "0", suite="automl")
    assert house.becomes_empty()
    if "STILL" in cheat:
        request.applymarker(pytest.mark.xfail(strict=True, reason=cheat["STILL"]))
    record = AutoMLRecord.load(ran.run_dir / "automl" / "image_search" / "record.json")
    assert record.verdict is not None
    kind, reasons = str(record.verdict.kind), "\n".join(record.verdict.reasons)
    assert kind == cheat["VERDICT"] and cheat["REASON"] in reasons, (kind, reasons)
    assert record.adapted == tuple(cheat.get("ADAPTS", "").split())
    assert ran.code == record.verdict.kind.exit_code
