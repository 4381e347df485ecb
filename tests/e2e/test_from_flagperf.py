"""The page for who comes from FlagPerf, followed to the letter, with the small cases in the place of the page's."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import yaml

from proofmark.record.parts import VerdictKind
from proofmark.training.outcome.record import TrainingRecord
from tests.e2e.conftest import ROOT, House
from tests.flagperf.tree import FILES, write

PAGE = (ROOT / "docs" / "from-flagperf.md").read_text(encoding="utf-8")
LINES = re.findall(r"^    (?! )(\S.*)$", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL), re.M)
COMMANDS = [shlex.split(line) for line in LINES]
METHODS = re.findall(r"^```python\n.*?(?=    def devices)(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]


def test_who_comes_from_flagperf(house: House) -> None:
    """At fp32 and without loader processes, since the machine's few cores do everything here."""
    small = {"fp16: true": "fp16: false", "num_workers: 8": "num_workers: 0", "repeat: 5": "repeat: 3"}
    for name, text in FILES.items():
        for old, new in small.items():
            text = text.replace(old, new)
        write(house.root / "FlagPerf", {name: text})
    for suite, names in (("inference", "[vit_l_16]"), ("training", "[bert]")):
        path = house.root / "suites" / suite / "tiny.yaml"
        path.write_text(f"known_as: {names}\n{path.read_text()}")
    brought, copied, *sessions, _, _, monitored = COMMANDS
    done = subprocess.run([sys.executable, *brought[1:]], cwd=house.root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "renamed     inference/configs/vit_l_16  (all of it) -> inference/tiny" in done.stdout
    assert "break FlagPerf's own mutable_params" in done.stdout.splitlines()[-2]
    subprocess.run(copied, cwd=house.root, check=True)
    package = house.root / "vendors/acme/__init__.py"
    skeleton, rest = package.read_text().split("    def devices(", 1)
    package.write_text(skeleton + METHODS + rest[rest.index("\n\nvendor = ") :])
    answers = []
    for _, _, _, suite, *options in sessions:
        given = [option.replace("vit", "tiny").replace("bert", "tiny") for option in options]
        answers.append(house.end(house.start(*given, suite=suite.removeprefix("suites/"))))
    assert [each.code for each in answers] == [0, 0, 0], "\n".join(each.output for each in answers)
    record = answers[0].record()
    assert (record.vendor, record.compiler, record.precision) == ("acme", "forge", "fp32")
    origins = {override.key: override.origin for override in record.overrides}
    assert origins["batch_size"] == "vendors/acme/configs/inference/tiny.yaml"
    assert record.chip.name == "Acme Z100" and record.chip.peak_missing == "chips.yaml has no fp32 peak for Z100"
    assert "[Z100x1x8]" in answers[1].output
    assert (
        yaml.safe_load((house.root / "moved/runs.yaml").read_text())["CASES"]["tiny:pytorch_1.13"] == "/raid/ImageNet"
    )
    log = house.root / "result/run20241121191924/a/round1/b/acme_monitor.log"
    log.parent.mkdir(parents=True)
    log.write_text("2024-11-21-19:19:24\n34C 56W 1234MiB 40536MiB 83%\n")
    *command, pattern = monitored
    found = [sys.executable, *command[1:], *map(str, house.root.glob(pattern))]
    done = subprocess.run(found, cwd=house.root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and json.loads(done.stdout)[0]["cards"][0]["power"]["mean"] == 56, done.stderr


PERFLOG = [
    {"event": "TRAIN_START", "metadata": {"time_ms": 1732216764000, "rank": 0}},
    {
        "event": "FINISHED",
        "value": {"e2e_time": 1661.6, "converged": True, "final_mlm_accuracy": 0.92, "raw_train_time": 1501.7},
        "metadata": {"time_ms": 1732218265700, "rank": 0},
    },
]


def test_what_flagperfs_logs_say_becomes_a_page(house: House) -> None:
    """The page's lines as they stand, by a shell; only the Python is this one."""
    log = house.root / "result/run20241121191924/bert:pytorch_1.8:Z100:1:8:1/round1/10.1.2.3_noderank0/rank0.out.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"[PerfLog] {json.dumps(event)}\n" for event in PERFLOG))
    read, shown = [line for line in LINES if "flagperf read" in line or "reports.site" in line]
    answers = []
    for line in (read, shown):
        command = line.replace(".venv/bin/python", shlex.quote(sys.executable))
        answers.append(
            subprocess.run(["bash", "-c", command], cwd=house.root, capture_output=True, text=True, timeout=120)
        )
    assert answers[0].returncode == VerdictKind.INSUFFICIENT.exit_code, answers[0].stderr
    record = TrainingRecord.load(house.root / "result/record.json")
    assert (record.case, record.scale, record.runs[0].converged) == ("bert", "Z100x1x8", True)
    assert answers[1].returncode == 0, answers[1].stderr
    assert any("Z100x1x8" in page.read_text(encoding="utf-8") for page in (house.root / "site").rglob("*.html"))
