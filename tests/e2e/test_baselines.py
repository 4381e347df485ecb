"""Figures held against those of an earlier session: like with like, and with an exit code of ours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.e2e.conftest import House, Ran, clean, one_line_answer


@dataclass(frozen=True)
class Saved:
    """A session that made a baseline."""

    house: House
    ran: Ran
    file: Path

    def altered(self, name: str, factor: float) -> str:
        """The baseline, with times multiplied by `factor`, in a file of its own."""
        content = json.loads(self.file.read_text())
        for entry in content["benchmarks"]:
            stats = entry["stats"]
            stats.update({key: stats[key] * factor for key in ("min", "max", "mean", "median")})
        path = self.house.root / name
        path.write_text(json.dumps(content))
        return str(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Saved:
    house = House(tmp_path_factory.mktemp("baselines") / "house", trained)
    ran = house.run("--benchmark-save=main")
    assert ran.code == 0, ran.output
    (file,) = (house.root / "baselines").glob("*/0001_main.json")
    return Saved(house, ran, file)


def entries(saved: Saved) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(saved.file.read_text())["benchmarks"]
    return found


def test_a_baseline_lies_where_it_can_be_committed_and_says_what_it_is_of(saved: Saved) -> None:
    assert not (saved.house.root / ".benchmarks").exists()
    record = saved.ran.record()
    for entry, figure in zip(entries(saved), ("whole", "core"), strict=True):
        way = "tiny, fake, honest, fp32, embedded, batch 16"
        assert entry["name"] == f"test_{figure}_throughput[{way}]"
        assert entry["fullname"].startswith(f"suites/inference/test_tiny.py::TestTiny::{entry['name']} ")
        assert entry["group"].startswith(f"{figure}: inference/tiny, fake chip, fake, honest")
        info = entry["extra_info"]
        assert (info["chip"], info["config_hash"]) == ("fake chip", record.config_hash)
        assert entry["stats"]["ops"] == pytest.approx(info["items_per_second"], rel=1e-9), (
            "its OPS are items per second"
        )


def test_what_is_slower_than_allowed_is_told_and_carried_by_the_exit_code(saved: Saved) -> None:
    quicker = saved.altered("quicker.json", 1e-3)
    ran = saved.house.run("--benchmark-compare", quicker, "--benchmark-compare-fail", "min:20%", "--junitxml=junit.xml")
    clean(ran)
    assert ran.code == 13, ran.output
    for figure in ("whole", "core"):
        assert f"test_{figure}_throughput[tiny, fake, honest, fp32, embedded, batch 16]: slower than" in ran.output
    assert "VERDICT PASS" in ran.output


@pytest.mark.parametrize(
    "options, why",
    [
        (["-k", "verdict"], "throughput tests were not selected"),
        (["-k", "overrides_legal"], "only some tests of the case were selected"),
        (["--benchmark-disable"], "disable"),
    ],
)
def test_what_was_to_be_compared_and_was_not_is_no_success(saved: Saved, options: list[str], why: str) -> None:
    check = ("--benchmark-compare=0001", "--benchmark-compare-fail=mean:900%")
    ran = saved.house.run(*check, *options, "--junitxml=junit.xml", "--summary=summary.md")
    clean(ran)
    assert ran.code == 12, ran.output
    (complaint,) = [line for line in ran.output.splitlines() if line.startswith("NOT COMPARED ")]
    assert "inference/tiny: --benchmark-compare: " in complaint and why in complaint
    failed = ET.parse(saved.house.root / "junit.xml").findall(".//failure")
    assert [failure.get("message") for failure in failed] == [complaint.removeprefix("NOT COMPARED inference/tiny: ")]
    assert why in (saved.house.root / "summary.md").read_text()


def test_unlike_runs_are_refused_with_what_differs(saved: Saved) -> None:
    unlike = ("--set", "batch_size=8", "--device", "other chip")
    ran = saved.house.run("--benchmark-compare", "0001", *unlike, "-n", "1")
    one_line_answer(
        ran, "inference/tiny in", "chip: 'fake chip' there, 'other chip' here; batch_size: 16 there, 8 here"
    )


def test_what_is_skipped_needs_no_baseline(house: House) -> None:
    """A scale that there are too few hosts for, of other settings than the one that ran; a case without the profile."""
    with (house.root / "vendors/fake/__init__.py").open("a") as stream:
        stream.write('\n\nFake.training_scales = ("1x1", "2x1")\n')
    own = house.root / "vendors/fake/configs/training/tiny/1x1.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("gradient_accumulation_steps: 2\n")
    ran = house.run("--benchmark-save=main", suite="training")
    assert ran.code == 0, ran.output
    again = house.run("--benchmark-compare=0001", "--setup-plan", suite="training")
    assert again.code == 0 and "needs 2 hosts" in again.output, again.output

    house.add_case("small")
    path = house.case_yaml.with_name("small.yaml")
    content = yaml.safe_load(path.read_text())
    del content["profiles"]["standard"]
    path.write_text(yaml.safe_dump(content))
    options = ("--profile=standard", "--data-dir=suites", "--weights=vendors", "--benchmark-compare=0001")
    one_line_answer(house.run(*options), "inference/tiny is not among the figures of")
