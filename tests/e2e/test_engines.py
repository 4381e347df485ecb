"""An engine that misbehaves, by the session's exit code; and loader processes."""

from __future__ import annotations

import json
import os

import pytest

from tests.e2e.conftest import House, clean


@pytest.mark.parametrize(
    "precision, code, kind, expected",
    [
        ("fp16", 10, "UNSUPPORTED", "no fp16 here"),
        ("bf16", 17, "ERROR", "does not declare bf16, yet it ran"),
    ],
)
def test_undeclared_precision(house: House, precision: str, code: int, kind: str, expected: str) -> None:
    entry = f"{{case: inference/tiny, compiler: honest, precision: {precision}, reason: known}}"
    (house.root / "vendors/fake/unsupported.yaml").write_text(f"unsupported:\n  - {entry}\n")
    ran = house.run("--precision", precision)
    found, reasons = ran.verdict()
    assert found == kind and expected in reasons, (found, reasons)
    assert "the vendor expects it: known" in reasons or "and remove it from vendors/fake/unsupported.yaml" in reasons
    assert ran.code == code, ran.output
    clean(ran)


def test_of_the_framework_alone_what_is_declared_decides(house: House) -> None:
    """It is not tried, and the reason doesn't say that it can't be done."""
    ran = house.run("--compiler", "null", "--precision", "fp16")
    expected = "vendor fake declares no fp16 of the framework (framework_precisions), and compiler is null"
    assert ran.code == 10 and ran.verdict()[0] == "UNSUPPORTED" and expected in ran.verdict()[1], ran.output
    clean(ran)


def test_accuracy_alone_is_exit_code_14(house: House) -> None:
    ran = house.run("--compiler", "short")
    assert ran.code == 14, ran.output
    clean(ran)


def test_an_allure_report_of_a_session_that_stops_at_the_failure_has_the_record(house: House) -> None:
    """Once, with the first test that has it: the verdict's is not run."""
    ran = house.run("--compiler", "short", "-x", "--alluredir=allure")
    assert ran.code == 14, ran.output
    results = [json.loads(path.read_text()) for path in (house.root / "allure").glob("*-result.json")]
    assert not [each for each in results if each["name"].startswith("tiny: verdict")]
    attached = [each["name"] for result in results for each in result.get("attachments", ())]
    assert attached.count("run record") == 1, attached


def test_dishonesty_alone_is_exit_code_15(house: House) -> None:
    assert house.run("--compiler", "foo_time").code == 15


def test_loader_processes_load_and_leave(house: House) -> None:
    """A forked loader once waited for a lock that a thread of the case's process held."""
    ran = house.run("--set", "num_workers=2", "--step-timeout", "300")
    assert ran.code == 0, ran.output
    assert house.becomes_empty()


ROAMING = """
import os
import threading

from vendors.fake import honest


class InferModel(honest.InferModel):
    def __init__(self, *given):
        super().__init__(*given)
        threading.Thread(target=self._roam, daemon=True).start()

    def _roam(self):
        os.sched_setaffinity(0, range(os.cpu_count()))
        threading.Event().wait()
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no core to leave for")
def test_a_thread_that_leaves_the_sessions_cores_is_an_error(house: House) -> None:
    (house.root / "vendors/fake/honest.py").rename(house.root / "vendors/fake/stays.py")
    (house.root / "vendors/fake/honest.py").write_text(ROAMING.replace("import honest", "import stays as honest"))
    own, *others = sorted(os.sched_getaffinity(0))
    ran = house.end(house.start("--vendor", "fake", before=("taskset", "-c", str(own))))
    kind, reasons = ran.verdict()
    assert kind == "ERROR" and f"cores that the session may not ({', '.join(map(str, others))}" in reasons, ran.output
    assert ran.code == 17
    clean(ran)


WRAPPED = """
import torch

class Wrapped(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, points):
        return self.inner(points)
"""

CASE = """
from suites.inference import test_tiny
from suites.wrapped import Wrapped

class TestWrapped(test_tiny.TestTiny):
    def create_model(self, config):
        return Wrapped(super().create_model(config))
"""

COMPILES = """
import torch

class InferModel:
    def __init__(self, config, onnx_path, model):
        self._model = torch.compile(model, backend="eager")

    @torch.no_grad()
    def __call__(self, inputs):
        return [self._model(*inputs)], 0.0
"""


def test_torchs_compiler_reads_the_source_of_a_cases_own_model(house: House) -> None:
    """It looks into the file that `forward` is in, which lies beside what no engine may see."""
    (house.root / "suites/wrapped.py").write_text(WRAPPED)
    house.add_case("wrapped", {"compiler": "compiles"})
    (house.root / "suites/inference/test_wrapped.py").write_text(CASE)
    (house.root / "vendors/fake/compiles.py").write_text(COMPILES)
    with (house.root / "vendors/fake/__init__.py").open("a") as stream:
        stream.write("\nFake.compilers |= {'compiles': _TAKES_MODEL}\n")
    ran = house.run("-k", "Wrapped")
    assert ran.verdict("wrapped") == ("PASS", ""), ran.output
    assert ran.code == 0 and ran.record("wrapped").isolation["engine"].kind == "wall"
