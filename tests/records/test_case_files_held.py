"""A record's configuration is of its case's files here, or of those of the commit that it names, or of nobody's."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proofmark.errors import UsageError
from proofmark.inference.outcome.record import RunRecord
from proofmark.record.integrity.manifest import MANIFEST
from proofmark.record.provenance import Known, Provenance
from proofmark.rules.case_file import content_of, load_case_file
from proofmark.rules.config import Resolution, resolve
from proofmark.rules.legality import OverrideLayer
from proofmark.verification import configuration
from proofmark.verification.configuration import Held, folder_of, held
from proofmark.verification.verify import verify
from tests.reports.records import make_record
from tests.suites_there import SUITES

SUITE = SUITES["inference"]
FOLDER = folder_of(SUITE)


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose folder of cases holds one, with a commit of it."""
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "resnet50.yaml").write_text("target: 0.95\n")
    (folder / "contract.yaml").write_text("common: 1\n")
    git(folder, "init", "-q")
    commit(folder)
    monkeypatch.setattr(configuration, "folder_of", lambda suite: folder)
    return folder


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    ran = subprocess.run(["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return git(folder, "rev-parse", "HEAD")


def said(folder: Path) -> str:
    found = content_of(folder / "resnet50.yaml", folder / "contract.yaml")
    assert found is not None
    return found


def looked_at(case_hash: str, made: str, clean: bool = True) -> Held:
    unknown = Known(reason="it is not asked for here")
    made_by = Provenance(commit=Known(value=made), clean=clean, vendor_version=unknown, vendor_sha256=unknown)
    return held(SUITE, make_record(case_hash=case_hash, provenance=made_by))


def test_files_of_the_commit_that_it_names_are_told(cases: Path) -> None:
    then, made = said(cases), git(cases, "rev-parse", "HEAD")
    (cases / "resnet50.yaml").write_text("target: 0.96\n")
    commit(cases)
    found = looked_at(then, made)
    assert not found.faults and f"others than here, those of commit {made}" in str(found.note)


@pytest.mark.parametrize(
    "clean, expected", [(True, "that neither commit"), (False, "made with uncommitted changes, nor")]
)
def test_files_that_no_commit_has_are_at_fault(cases: Path, clean: bool, expected: str) -> None:
    """A target that was lowered for the run, and put back after it."""
    (cases / "resnet50.yaml").write_text("target: 0.20\n")
    lowered = said(cases)
    git(cases, "checkout", "-q", "--", ".")
    found = looked_at(lowered, git(cases, "rev-parse", "HEAD"), clean)
    assert expected in "".join(found.faults) and found.note is None


@pytest.mark.parametrize("made", ["1" * 40, "HEAD", "--output=stolen", "1" * 39])
def test_of_a_commit_that_is_not_here_nobody_knows(cases: Path, made: str) -> None:
    found = looked_at("0" * 64, made)
    assert not found.faults and "is not in this repository" in str(found.note)
    assert not (cases / "stolen").exists()


def test_files_of_another_name_then_are_not_told_as_another_commit(cases: Path) -> None:
    before = git(cases, "rev-parse", "HEAD")
    git(cases, "mv", "resnet50.yaml", "resnet.yaml")
    then = commit(cases)
    git(cases, "checkout", "-q", before)
    found = looked_at("0" * 64, then)
    assert not found.faults and f"commit {then} has no resnet50.yaml, or no contract.yaml, in" in str(found.note)


def test_a_git_that_does_not_answer_is_told(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "PATIENCE", 0.0)
    found = looked_at("0" * 64, git(cases, "rev-parse", "HEAD"))
    assert not found.faults and "was not read: git did not answer" in str(found.note)


def test_a_suite_in_no_repository_that_can_be_read_holds_to_nothing(cases: Path) -> None:
    """It is none, or another user's; of which folder is nobody's business whom the note is published to."""
    made = git(cases, "rev-parse", "HEAD")
    (cases / ".git").rename(cases / "gone")
    (cases / ".git").write_text("gitdir: nowhere\n")
    found = looked_at("0" * 64, made)
    assert not found.faults and f"commit {made} was not read: this checkout is no repo" in str(found.note)
    assert str(cases) not in str(found.note)


def test_a_folder_of_sessions_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "20261124-120000").mkdir()
    (tmp_path / "20261124-120000" / MANIFEST).write_text("{}")
    with pytest.raises(UsageError, match="holds sessions' folders and is not one: name them, as .*20261124-120000"):
        verify(tmp_path, SUITES)


def resolved_with(*layers: OverrideLayer) -> tuple[Resolution, RunRecord]:
    """A case of this checkout under some overrides, and the record that says so."""
    path, common = FOLDER / "resnet50.yaml", FOLDER / "contract.yaml"
    file = load_case_file(path, "inference", "embedded", common, SUITE.case_type.parameters_type)
    resolution = resolve(file, "acme", layers, "anvil")
    config, plain = resolution.config, resolution.config.as_dict()
    record = make_record(
        vendor="acme",
        case_hash=content_of(path, common),
        config={**plain["parameters"], **plain["configurations"]},
        config_hash=config.hash,
        overrides=config.overrides,
        problems=resolution.problems,
    )
    return resolution, record


def vendors_own(values: Mapping[str, Any], package: str = "acme") -> OverrideLayer:
    return OverrideLayer(f"/site/{package}/configs/inference/resnet50.yaml", values, vendors_own=True)


@pytest.mark.parametrize("package", ["acme_proofmark", "acme"])
def test_a_vendors_own_file_is_known_in_a_package_of_any_name(package: str) -> None:
    """A user's precision decides over the fp16 that the vendor's file asks for."""
    own = vendors_own({"fp16": True}, package)
    resolution, record = resolved_with(own, OverrideLayer("--precision", {"precision": "bf16"}))
    assert not resolution.problems
    assert [each.key for each in record.overrides] == ["fp16", "precision", "compiler", "fp16"]
    assert held(SUITE, record) == Held()


def test_one_option_after_another_is_held_as_it_was_given() -> None:
    """The second does something only since the first did."""
    options = [OverrideLayer("--set", {"scenario": "throughput"}), OverrideLayer("--set", {"batch_size": 64})]
    resolution, record = resolved_with(vendors_own({"scenario": "latency"}), *options)
    assert not resolution.problems and record.config["batch_size"] == 64
    assert held(SUITE, record) == Held()


def test_a_word_for_fp16_that_was_refused_is_none() -> None:
    """It does nothing, since the vendor's file says so already; of that the record tells."""
    options = [OverrideLayer("--precision", {"precision": "bf16"}), OverrideLayer("--set", {"fp16": True})]
    resolution, record = resolved_with(vendors_own({"fp16": True}), *options)
    assert [(each.where, each.key) for each in resolution.problems] == [("--set", "fp16")]
    assert held(SUITE, record) == Held()
