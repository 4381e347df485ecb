"""What every vendor under vendors/ is held to, whether its devices are here or not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from proofmark.vendor import Device
from proofmark.vendor.hardware.chips import find_chip, load_chips
from proofmark.vendor.registry import find_vendor
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
VENDORS = sorted(path.parent.name for path in (ROOT / "vendors").glob("*/__init__.py"))
PRECISIONS = {"fp32", "tf32", "fp16", "bf16", "int8"}


def test_the_vendors_are_these() -> None:
    assert VENDORS == ["cpu", "intel", "nvidia"]


@pytest.mark.parametrize("name", VENDORS)
def test_each_compiler_has_a_module_with_the_class(name: str) -> None:
    vendor = find_vendor(name, ROOT / "vendors").vendor
    assert vendor.default_compiler in vendor.compilers
    for compiler, declared in vendor.compilers.items():
        assert declared.precisions <= PRECISIONS and "fp32" in declared.precisions
        tree = ast.parse((ROOT / "vendors" / name / f"{compiler}.py").read_text(encoding="utf-8"))
        (infer_model,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "InferModel"]
        methods = {node.name for node in infer_model.body if isinstance(node, ast.FunctionDef)}
        assert infer_model.bases or {"__init__", "__call__"} <= methods


@pytest.mark.parametrize("name", VENDORS)
def test_looking_for_devices_never_raises(name: str) -> None:
    vendor = find_vendor(name, ROOT / "vendors").vendor
    devices = vendor.devices()
    assert all(isinstance(device, Device) and device.name for device in devices)
    assert len({device.index for device in devices}) == len(devices)
    assert vendor.chip() and vendor.chip_units() >= 1 and vendor.torch_device()


@pytest.mark.parametrize("name", VENDORS)
def test_looking_at_a_vendor_imports_nothing_heavy(name: str) -> None:
    script = f"import sys, vendors.{name} as package; package.vendor.devices(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    heavy = {"torch", "numpy", "onnx", "onnxruntime", "openvino", "tensorrt", "torch_tensorrt", "transformers"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize("name", VENDORS)
def test_chips_are_few_lines_with_a_source_for_every_number(name: str) -> None:
    path = ROOT / "vendors" / name / "chips.yaml"
    for chip in load_chips(path):
        for peak in chip.peaks.values():
            assert peak.achievable is None or peak.achievable < peak.flops, chip.name
        assert chip.source or not (chip.memory_bandwidth or chip.link_bandwidth or chip.tdp), chip.name
    starts = [mark.start_mark.line for mark in yaml.compose(path.read_text(encoding="utf-8")).value[0][1].value]
    ends = [*starts[1:], len(path.read_text(encoding="utf-8").splitlines())]
    assert all(end - start <= 15 for start, end in zip(starts, ends, strict=True))


@pytest.mark.parametrize("name", [name for name in VENDORS if name != "cpu"])
def test_a_lower_precision_is_never_slower(name: str) -> None:
    """A sparse figure that was copied, or a unit, would show here."""
    for chip in load_chips(ROOT / "vendors" / name / "chips.yaml"):
        flops = [chip.peaks[p].flops for p in ("fp32", "tf32", "bf16", "fp8", "fp4") if p in chip.peaks]
        assert flops == sorted(flops), chip.name


@pytest.mark.parametrize(
    ("name", "clock"), [("Platinum 8380 CPU @ 2.30GHz", 3.7e9), ("CPU @ 2.60GHz", 3.7e9), ("W-3375 CPU @ 2.50GHz", 4e9)]
)
def test_a_workstations_processor_is_not_a_servers(name: str, clock: float) -> None:
    """Its clock is higher, and a peak is an upper bound."""
    chip = find_chip(f"Intel(R) Xeon(R) {name} (family 6 model 106)", load_chips(ROOT / "vendors/cpu/chips.yaml"))
    assert chip is not None and chip.peaks["fp32"].flops == 2 * 16 * 2 * clock


def test_the_proof_of_cost() -> None:
    """A whole vendor in at most 4 files and 250 lines."""
    files = [path for path in (ROOT / "vendors" / "intel").rglob("*") if path.suffix in (".py", ".yaml")]
    assert len(files) <= 4
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 250
