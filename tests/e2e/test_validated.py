"""A run without a framework of its own that relies on an earlier one's: whose model its ONNX file is, and how good."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from proofmark.errors import UsageError
from proofmark.inference.steps.onnx_file import onnx_digest
from proofmark.record.integrity.manifest import MANIFEST, write_manifest
from proofmark.record.policy import default_policy
from proofmark.suite import Suite, find_suites
from proofmark.verification import configuration
from proofmark.verification.verify import verify
from suites.inference.relied_on import read
from tests.e2e.conftest import ROOT, House, Ran, one_line_answer


@dataclass(frozen=True)
class Earlier:
    """A session that passed, and its ONNX file, brought elsewhere."""

    house: House
    ran: Ran
    onnx: Path

    @property
    def record(self) -> Path:
        return self.ran.case_dir() / "record.json"

    def relying(self, *options: str, onnx: Path | None = None, vendor: str = "cpu") -> Ran:
        """A session that validates nothing, with the earlier record."""
        given = ("--set", "no_validation=true", "--set", f"exist_onnx_path={onnx or self.onnx}")
        return self.house.run(*given, "--validated", str(self.record), *options, vendor=vendor)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Earlier:
    house = House(tmp_path_factory.mktemp("validated") / "house", trained)
    house.add_case("other")
    ran = house.run("--keep-artifacts", "-k", "tiny", vendor="cpu")
    assert ran.code == 0, ran.output
    brought = tmp_path_factory.mktemp("brought")
    for path in ran.case_dir().glob("model.onnx*"):
        shutil.copy(path, brought)
    (brought / "model.onnx").rename(brought / "resnet.onnx")
    return Earlier(house, ran, brought / "resnet.onnx")


@pytest.fixture
def suites(earlier: Earlier, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Suite]:
    """Those of this checkout, whose cases' files are those of the house."""
    folder = configuration.folder_of
    monkeypatch.setattr(configuration, "folder_of", lambda suite: earlier.house.root / folder(suite).relative_to(ROOT))
    return find_suites(ROOT / "suites")


def test_it_passes_and_its_record_says_on_what(earlier: Earlier, suites: Mapping[str, Suite]) -> None:
    ran = earlier.relying("-k", "tiny")
    assert ran.code == 0 and ran.verdict()[0] == "PASS", ran.output
    record, before = ran.record(), earlier.ran.record()
    assert record.framework is None and record.onnx == before.onnx == onnx_digest(earlier.onnx)
    relied_on = record.validated
    assert relied_on is not None and relied_on.session == earlier.ran.run_dir.name
    assert relied_on.framework_fp32 == {"top1": before.accuracy.framework_fp32}
    page = (ran.run_dir / "report.html").read_text()
    assert relied_on.record_sha256 in page and str(record.onnx) in page
    assert "validated by" in ran.output
    verified = verify(ran.run_dir, suites)
    assert verified.holds, verified.findings


def test_what_lies_below_latest_is_the_earlier_sessions(earlier: Earlier) -> None:
    """Also when the link leads to the session that relies on it."""
    results = earlier.ran.run_dir.parent
    (results / "latest").unlink()
    (results / "latest").symlink_to(earlier.ran.run_dir.name)
    there = "results/latest/inference/tiny"
    given = ("--set", "no_validation=true", "--set", f"exist_onnx_path={there}/model.onnx")
    ran = earlier.house.run("-k", "tiny", *given, "--validated", f"{there}/record.json", vendor="cpu")
    assert ran.code == 0 and ran.verdict()[0] == "PASS", ran.output
    assert ran.record().config["exist_onnx_path"] == f"results/{earlier.ran.run_dir.name}/inference/tiny/model.onnx"


def test_another_file_another_case_and_no_file_are_told_by_the_verdict(earlier: Earlier, tmp_path: Path) -> None:
    model = onnx.load(str(earlier.onnx))
    weights = next(each for each in model.graph.initializer if len(each.dims) == 2)
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * 1.5, weights.name))
    onnx.save(model, str(tmp_path / "resnet.onnx"))
    ran = earlier.relying("-k", "tiny", onnx=tmp_path / "resnet.onnx")
    kind, reasons = ran.verdict()
    assert ran.code == 12 and kind == "INSUFFICIENT", ran.output
    assert reasons.startswith("the record given with --validated exported another ONNX file: SHA-256 ")
    kind, reasons = earlier.relying("-k", "other").verdict("other")
    assert (kind, reasons) == (
        "INSUFFICIENT",
        "the record given with --validated is of inference/tiny, profile embedded; this is inference/other, "
        "profile embedded",
    )
    (engine,) = earlier.ran.case_dir().glob("engine-*/model.optimized.onnx")
    kind, reasons = earlier.relying("-k", "tiny", "--set", f"exist_compiler_path={engine}").verdict()
    assert kind == "INSUFFICIENT" and "this run has read none" in reasons


def test_a_given_file_that_keeps_its_weights_in_one_of_another_name_is_read(earlier: Earlier, tmp_path: Path) -> None:
    """Behind the wall too."""
    path = tmp_path / "given.onnx"
    onnx.save(onnx.load(str(earlier.onnx)), str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    ran = earlier.house.run("-k", "tiny", "--set", f"exist_onnx_path={path}", vendor="cpu")
    assert ran.code == 0 and ran.verdict()[0] == "PASS", ran.output


LOUD = """
from vendors.fake import runtime

class InferModel(runtime.InferModel):
    def __call__(self, inputs):
        (answer,), foo_time = super().__call__(inputs)
        return [answer * 1.5], foo_time
"""


def test_its_engine_is_held_to_the_file(earlier: Earlier, house: House) -> None:
    """One that answers otherwise, without the metric's notice, is what a reference is for."""
    fake = house.root / "vendors/fake"
    shutil.copy(house.root / "vendors/cpu/onnxruntime.py", fake / "runtime.py")
    (fake / "onnx.py").write_text(LOUD)
    given = ("--set", "no_validation=true", "--set", f"exist_onnx_path={earlier.onnx}", "--compiler", "onnx")
    ran = house.run(*given, "--validated", str(earlier.record))
    assert ran.code == 15, ran.output
    kind, reasons = ran.verdict()
    assert kind == "FAIL_HONESTY" and "answers new inputs" in reasons, reasons


def edited(record: Path) -> None:
    text = record.read_text()
    assert '"framework_fp32": 1.0' in text
    record.write_text(text.replace('"framework_fp32": 1.0', '"framework_fp32": 0.5'))


def edited_and_listed_anew(record: Path) -> None:
    edited(record)
    write_manifest(record.parents[2])


def torn(record: Path) -> None:
    record.write_text(record.read_text()[:1000])


def linked(record: Path) -> None:
    record.rename(record.with_name("mine.json"))
    record.symlink_to("mine.json")


def piped(record: Path) -> None:
    record.unlink()
    os.mkfifo(record)


def without_manifest(record: Path) -> None:
    (record.parents[2] / MANIFEST).unlink()


def without_its_log(record: Path) -> None:
    record.with_name("events.jsonl").unlink()


@pytest.mark.parametrize(
    "spoil, expected",
    [
        (Path.unlink, "No such file or directory"),
        (edited, "its session does not verify: inference/tiny/record.json: "),
        (edited_and_listed_anew, "its logs say 1.0"),
        (torn, "its session does not verify: "),
        (linked, "is not a regular file, so not opened"),
        (piped, "is not a regular file, so not opened"),
        (without_manifest, "is not in a session's folder: expected a manifest.json"),
        (without_its_log, "its session does not verify: inference/tiny/"),
    ],
)
def test_a_record_that_cannot_be_relied_on(
    earlier: Earlier, suites: Mapping[str, Suite], tmp_path: Path, spoil: Callable[[Path], None], expected: str
) -> None:
    session = Path(shutil.copytree(earlier.ran.run_dir, tmp_path / "session"))
    record = session / "inference/tiny/record.json"
    assert read(record, suites, default_policy()).framework_fp32 == {"top1": 1.0}
    spoil(record)
    with pytest.raises(UsageError) as refused:
        read(record, suites, default_policy())
    assert expected in str(refused.value) and len(str(refused.value).splitlines()) == 1, refused.value


def test_another_file_of_a_session_and_a_record_that_exported_nothing(
    earlier: Earlier, suites: Mapping[str, Suite]
) -> None:
    with pytest.raises(UsageError, match="is not the record of a run"):
        read(earlier.record.with_name("events.jsonl"), suites, default_policy())
    stricter = default_policy().model_copy(update={"least_rounds": 3})
    with pytest.raises(UsageError, match="is INSUFFICIENT by policy .*; expected a PASS"):
        read(earlier.record, suites, stricter)
    framework_alone = earlier.house.run("-k", "tiny", "--compiler", "null", vendor="cpu")
    assert framework_alone.code == 0
    with pytest.raises(UsageError, match="it has exported no ONNX file"):
        read(framework_alone.case_dir() / "record.json", suites, default_policy())
    ran = earlier.house.run("--validated", "results/none/record.json", vendor="cpu")
    one_line_answer(ran, "--validated ", "results/none/record.json: No such file or directory")
    ran = earlier.house.run("--validated", str(earlier.record), vendor="cpu")
    one_line_answer(ran, "--validated ", "is for runs with no_validation, which no selected case has")
