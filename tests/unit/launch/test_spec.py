"""Where a run's things lie, on this machine and on another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.options.settings import Settings
from proofmark.flagperf.host_file import HostFile
from proofmark.launch.job import HostLayout
from proofmark.launch.spec import RunSpec


def settings(folder: Path, cluster: Any = None) -> Settings:
    """Those of a session with --weights."""
    found: Any = SimpleNamespace(directory=folder)
    places = (folder / "results", folder / ".cache", None, str(folder / "weights"))
    rest: Any = (None, "wall", 1.0, None, "counted", cluster)
    return Settings(found, None, "standard", *places, (), HostFile(), *rest)


@pytest.mark.parametrize("there", [True, False])
def test_a_cases_own_folder_of_weights_is_looked_for_where_it_runs(tmp_path: Path, there: bool) -> None:
    given, own = tmp_path / "weights", tmp_path / "weights/bert"
    (given if there else own).mkdir(parents=True)
    here = settings(tmp_path).host_of("inference", "bert", "")
    assert here.weights == str(given if there else own)
    elsewhere = settings(tmp_path, SimpleNamespace(data_dir=None)).host_of("inference", "bert", "")
    assert elsewhere.weights == str(given)
    config = {"case": "bert", "host": vars(elsewhere)}
    spec = RunSpec(("suites.net", "Net"), "cpu", "vendors", config, str(tmp_path), ())
    (own if there else given / "other").mkdir(exist_ok=True)
    if not there:
        own.rmdir()
    spec.moved(HostLayout("run", "code", "cache", None)).save(tmp_path / "spec.json")
    assert RunSpec.load(tmp_path / "spec.json").config["host"]["weights"] == str(own if there else given)
    spec.save(tmp_path / "spec.json")
    assert RunSpec.load(tmp_path / "spec.json") == spec, "what stayed here was looked at here"
