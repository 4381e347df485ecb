"""Readers of what vendors and users bring: files of a vendor's folder, monitors' logs, an adaptation to FlagPerf."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from proofmark.automl.network.init_model import read_init_models
from proofmark.errors import ProofmarkError
from proofmark.flagperf.adaptation.bring import bring
from proofmark.flagperf.monitor_logs import read_monitor_logs
from proofmark.launch.launchers.modelarts import credentials
from proofmark.rules.yaml.typed import load_model
from proofmark.vendor.environment import load_environment
from proofmark.vendor.isolation import IsolationSettings
from proofmark.vendor.monitor_log import memory_seen
from proofmark.vendor.registry import find_vendor
from proofmark.vendor.unsupported import contradictions, load_expected, unknown_cases
from suites.data.images.listing import listed
from tests.automl.test_init_model import SMALL, config
from tests.flagperf.tree import FILES, write
from tests.fuzz import inputs, samples

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "variables": {"ACME_FUSE": "1"},
    "requirements": ["h5py>=3.1"],
    "cases": {"training/bert": {"variables": {"ACME_CACHE": "8 GiB"}, "requirements": ["acme-ext==1"]}},
}
ISOLATION = {
    "network": False,
    "devices": ["/dev/acme*"],
    "readable": ["/opt/acme"],
    "environment": ["ACME_*"],
    "files": ["/etc/acme.conf", "ACME_TOPOLOGY"],
}
UNSUPPORTED = {
    "unsupported": [
        {"case": "inference/bert", "compiler": "inductor", "precision": "fp16", "reason": "no such kernel"},
        {"case": "training/bert", "compiler": None, "precision": "bf16", "reason": "it diverges"},
    ]
}
CARDS = b"2024-01-02-03:04:05\n34C 56W 1234MiB 40536MiB 83%\n35C N/A 1MiB 40536MiB [N/A]\n" * 3
POWER = b"2024-01-02-03:04:05\t 512.5\n" * 3
LISTED = b"cat/1.png\0000123\ncat/2.png\00045\ndog/1.png\0006\n"
INI = b"[basic]\nak = key\nsk = secret\nsecurity_token = t\nproject_id = p\n"


def environment(folder: Path, content: bytes) -> None:
    (folder / "environment.yaml").write_bytes(content)
    read = load_environment(folder)
    for case in ("training/bert", "inference/bert"):
        for name, value in read.variables_of(case).items():
            os.fsencode(f"{name}={value}")
            assert "\0" not in name + value and "=" not in name
        assert all(isinstance(each, str) for each in read.requirements_of(case))


def isolation(folder: Path, content: bytes) -> None:
    (folder / "isolation.yaml").write_bytes(content)
    load_model(folder / "isolation.yaml", IsolationSettings, folder).device_files()


def unsupported(folder: Path, content: bytes) -> None:
    path = folder / "unsupported.yaml"
    path.write_bytes(content)
    entries = load_expected(path)
    vendor = find_vendor("cpu", ROOT / "vendors").vendor
    problems = [*contradictions(path, entries, vendor, ["training"]), *unknown_cases(path, entries, ["inference/bert"])]
    assert all(line.isprintable() for each in problems for line in str(each).splitlines()), problems


def monitor(folder: Path, content: bytes) -> None:
    (folder / "monitor.jsonl").write_bytes(content)
    used, total = memory_seen(folder / "monitor.jsonl")
    assert (used is None or used >= 0) and (total is None or total >= 0)


def flagperf_monitor(folder: Path, content: bytes) -> None:
    for name in ("acme_monitor.log", "pwr_monitor.log", "mem_monitor.log"):
        (folder / name).write_bytes(content)
    for name in ("acme_monitor.log", "pwr_monitor.log", "mem_monitor.log"):
        read_monitor_logs([folder / name])[0].model_dump_json()


def init_model(folder: Path, content: bytes) -> None:
    (folder / "network.json").write_bytes(content)
    read_init_models(config(folder / "network.json"))


def credentials_file(folder: Path, content: bytes) -> None:
    (folder / "credentials").write_bytes(content)
    before = os.environ.get(credentials.FILE)
    os.environ[credentials.FILE] = str(folder / "credentials")
    try:
        found = credentials._of_file()
    finally:
        os.environ.pop(credentials.FILE) if before is None else os.environ.update({credentials.FILE: before})
    assert found is None or repr(found) == repr(replace(found, sk="another", token="another"))


def _adaptation(name: str) -> st.SearchStrategy[tuple[str, bytes]]:
    return inputs.damaged_text(FILES[name].encode(), most=6).map(lambda content: (name, content))


def adaptation(folder: Path, given: tuple[str, bytes]) -> None:
    """A whole checkout of FlagPerf, one of whose files is damaged."""
    name, content = given
    checkout = write(folder / "FlagPerf")
    (checkout / name).write_bytes(content)
    try:
        moved = bring(checkout, "acme", folder / "out", ROOT)
        assert all(line.isprintable() for row in moved.rows for line in str(row).splitlines())
    finally:
        shutil.rmtree(checkout)


def listing(folder: Path, content: bytes) -> None:
    (folder / "kept").write_bytes(content)
    found, identity = listed(folder, 2, folder / "kept")
    assert identity.items == len(found) and all(
        label in (0, 1) for _, label in map(found.__getitem__, range(len(found)))
    )


Reading = tuple[st.SearchStrategy[Any], Callable[[Path, Any], None], Any]
FILES_READ: dict[str, Reading] = {
    "environment.yaml": (inputs.yamls(ENVIRONMENT), environment, (ProofmarkError,)),
    "isolation.yaml": (inputs.yamls(ISOLATION), isolation, (ProofmarkError,)),
    "unsupported.yaml": (inputs.yamls(UNSUPPORTED), unsupported, (ProofmarkError,)),
    "a monitor's log": (inputs.logs(samples.MONITOR), monitor, (ProofmarkError,)),
    "FlagPerf's monitors": (
        inputs.damaged_text(CARDS, 6) | inputs.damaged_text(POWER, 6),
        flagperf_monitor,
        (ProofmarkError,),
    ),
    "an adaptation to FlagPerf": (
        st.sampled_from([name for name, text in FILES.items() if text]).flatmap(_adaptation),
        adaptation,
        (ProofmarkError,),
    ),
    "networks to begin with": (
        inputs.jsons(SMALL.model_dump(mode="json")),
        init_model,
        (ProofmarkError,),
    ),
    "what lies in a folder of images": (inputs.damaged_text(LISTED, 6), listing, (ProofmarkError,)),
    "a credentials file": (inputs.damaged_text(INI, 6), credentials_file, (ProofmarkError,)),
}
"""By name: inputs, what reads them, and how it may refuse."""
