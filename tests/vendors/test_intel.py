"""Vendor intel: OpenVINO on the CPU that is here, and what it says of what isn't."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from proofmark.rules.config import HostSettings
from proofmark.vendor import ProcessorPackages, StepError
from proofmark.vendor.hardware.devices import usable_devices
from tests.vendors.conftest import WEIGHT, config_of
from vendors.intel import Intel, openvino, vendor
from vendors.intel.monitor import PackageEnergy
from vendors.intel.openvino import InferModel


def batch(rows: int = 8, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))


def agrees(output: torch.Tensor, inputs: torch.Tensor, tolerance: float = 1e-5) -> bool:
    return torch.allclose(output, inputs @ torch.from_numpy(WEIGHT), atol=tolerance)


@pytest.mark.parametrize("own", [{}, {"openvino_hint": "THROUGHPUT"}, {"openvino_hint": "LATENCY"}])
def test_answers_are_right_and_new_at_every_batch_size(onnx_path: Path, own: dict[str, str]) -> None:
    engine = InferModel(config_of(**own), onnx_path, None)
    kept = []
    for rows in (8, 8, 5, 1, 8):
        inputs = batch(rows, seed=len(kept))
        before = inputs.clone()
        outputs, foo_seconds = engine([inputs])
        assert foo_seconds == 0.0 and outputs[0].dtype == torch.float32 and outputs[0].shape == (rows, 3)
        assert torch.equal(inputs, before)
        kept.append((outputs[0], inputs))
    assert all(agrees(output, inputs) for output, inputs in kept)
    assert len({output.data_ptr() for output, _ in kept}) == len(kept)


@pytest.mark.parametrize("own", [{}, {"openvino_hint": "THROUGHPUT"}])
def test_a_device_of_fixed_shapes_gets_its_short_batches_filled_up(
    onnx_path: Path, own: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino, "FIXED", "CPU")  # an NPU is not to be had
    engine = InferModel(config_of(**own), onnx_path, None)
    assert engine.compiled.inputs[0].shape == (8, 4)
    for rows in (8, 3, 1):
        inputs = batch(rows, seed=rows)
        (output,), _ = engine([inputs])
        assert output.shape == (rows, 3) and agrees(output, inputs)


def test_an_npu_has_no_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    import openvino as ov  # after the vendor's package, which keeps it from writing to the home

    intel = Intel()
    monkeypatch.setattr(ov.Core, "available_devices", property(lambda core: ["CPU", "NPU"]))
    intel.select("NPU")
    assert intel.compilers["openvino"].precisions == {"fp16"} and not intel.runs_on_processor


def test_throughput_splits_a_batch_over_the_requests_that_the_device_likes(onnx_path: Path) -> None:
    engine = InferModel(config_of(openvino_hint="THROUGHPUT", openvino_streams=2), onnx_path, None)
    assert len(engine.requests) == engine.compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    assert engine.compiled.get_property("NUM_STREAMS") == 2
    assert len(InferModel(config_of(), onnx_path, None).requests) == 1


def test_input_that_is_not_contiguous(onnx_path: Path) -> None:
    inputs = batch(4, seed=3)
    assert agrees(InferModel(config_of(), onnx_path, None)([inputs.t().contiguous().t()])[0][0], inputs)


def test_a_compiled_model_is_left_and_loaded_again(onnx_path: Path, tmp_path: Path) -> None:
    import openvino

    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    InferModel(config_of(HostSettings(artifact_dir=str(artifacts))), onnx_path, None)
    openvino.save_model(openvino.Core().read_model(onnx_path), tmp_path / "ir.xml", compress_to_fp16=False)
    for compiled in (artifacts / "model.blob", tmp_path / "ir.xml"):
        inputs = batch(3)
        assert agrees(InferModel(config_of(exist_compiler_path=str(compiled)), None, None)([inputs])[0][0], inputs)


def test_bf16_is_offered_where_the_processor_computes_it(onnx_path: Path) -> None:
    inputs = batch()
    if "bf16" not in vendor.compilers["openvino"].precisions:
        with pytest.raises(StepError, match="^CPU would run f32 in place of bf16$"):
            InferModel(config_of(precision="bf16"), onnx_path, None)
        return
    output = InferModel(config_of(precision="bf16"), onnx_path, None)([inputs])[0][0]
    assert agrees(output, inputs, 0.1) and not agrees(output, inputs, 1e-5)


@pytest.mark.parametrize(
    "own, expected",
    [
        ({"precision": "int8"}, "OpenVINO cannot be asked for int8"),
        ({"precision": "tf32"}, "OpenVINO cannot be asked for tf32"),
        ({"openvino_hint": "fast"}, "openvino_hint is 'fast'; expected LATENCY or THROUGHPUT"),
        ({"openvino_streams": 0}, "openvino_streams is 0; expected a whole number from 1"),
        ({"openvino_streams": "2"}, "openvino_streams is '2'; expected a whole number from 1"),
        ({"exist_compiler_path": "/nowhere/model.blob"}, "/nowhere/model.blob: OpenVINO cannot load it on CPU: .*"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(onnx_path: Path, own: dict[str, object], expected: str) -> None:
    with pytest.raises(StepError, match=f"^{expected}[^\n]*$"):
        InferModel(config_of(**own), onnx_path, None)


def test_fp16_is_refused_where_the_cpu_would_run_something_else(onnx_path: Path) -> None:
    import openvino

    probe = openvino.Core().compile_model(onnx_path, "CPU", {"INFERENCE_PRECISION_HINT": "f16"})
    if probe.get_property("INFERENCE_PRECISION_HINT").to_string() == "f16":
        InferModel(config_of(precision="fp16"), onnx_path, None)
        return
    with pytest.raises(StepError, match="CPU would run .* in place of fp16"):
        InferModel(config_of(precision="fp16"), onnx_path, None)


def test_rubbish_in_place_of_a_compiled_model(tmp_path: Path) -> None:
    (tmp_path / "model.blob").write_bytes(np.random.default_rng(0).bytes(4096))
    with pytest.raises(StepError, match="OpenVINO cannot load it on CPU"):
        InferModel(config_of(exist_compiler_path=str(tmp_path / "model.blob")), None, None)


@pytest.mark.parametrize("device", ["TPU", "AUTO", "", "cpu"])
def test_a_device_that_is_not_here(device: str) -> None:
    intel = Intel()
    with pytest.raises(StepError, match="^no such device here; available: CPU"):
        intel.select(device)
    assert intel.kind == "CPU"


def test_a_selected_device_is_what_is_described_and_compiled_for(
    onnx_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Core:
        available_devices = ("CPU", "GPU.0", "GPU.1")

        def get_property(self, name: str, key: str) -> str:
            return f"{key} of {name}"

    intel = Intel()
    with monkeypatch.context() as patch:
        patch.setattr("openvino.Core", Core)
        intel.select("GPU")
        assert [device.name for device in intel.devices()] == ["FULL_DEVICE_NAME of GPU.0", "FULL_DEVICE_NAME of GPU.1"]
        assert intel.chip() == "FULL_DEVICE_NAME of GPU.0" and intel.chip_units() == 1
        intel.select("GPU.1")
        assert intel.chip() == "FULL_DEVICE_NAME of GPU.1"
    assert intel.compilers["openvino"].precisions == {"fp32", "fp16"} and intel.monitor() is None
    with pytest.raises(StepError, match="OpenVINO cannot load it on GPU"):
        InferModel(config_of(HostSettings(device="GPU")), onnx_path, None)
    InferModel(config_of(HostSettings(device="CPU")), onnx_path, None)


def test_cards_that_are_selected_by_name_are_told_apart_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions on two of them would wait for each other; on one, by whichever name, they do."""

    class Core:
        available_devices = ("CPU", "GPU.0", "GPU.1", "NPU")

        def get_property(self, name: str, key: str) -> str:
            return name

    intel = Intel()
    monkeypatch.setattr("openvino.Core", Core)
    for selected, numbers in {"GPU": ["0", "1"], "GPU.0": ["0"], "GPU.1": ["1"], "NPU": ["2"]}.items():
        intel.select(selected)
        assert usable_devices(intel) == numbers


def test_its_monitor_reads_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessorPackages, "found", lambda: None)
    assert PackageEnergy.found() is None
    packages = ProcessorPackages([])
    monkeypatch.setattr(packages, "joules", lambda: 0.25)
    monkeypatch.setattr(ProcessorPackages, "found", lambda: packages)
    monitor = PackageEnergy.found()
    assert monitor is not None
    (reading,) = monitor.sample()
    assert (reading.device, reading.energy_j, reading.power_w) == (0, 0.25, None)
    monitor.close()
