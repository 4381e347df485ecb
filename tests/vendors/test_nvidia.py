"""Vendor nvidia without a GPU: the real pynvml over a driver that is played, so that calls and types are real."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pynvml
import pytest
import torch

from fixtures.devices.device_count import count_devices
from proofmark.automl.places import places_here
from proofmark.errors import UsageError
from proofmark.launch.cluster.container.settings import settings_of
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import resolve
from proofmark.rules.legality import OverrideLayer
from proofmark.rules.yaml.strict import load_mapping
from proofmark.training.case import TrainingParameters
from proofmark.vendor import Reading
from proofmark.vendor.contract import Processor
from proofmark.vendor.hardware.chips import count_alike, find_chip, load_chips
from proofmark.vendor.hardware.devices import Assignment, assign, limits_to_all, usable_indices
from proofmark.vendor.registry import find_vendor
from tests.vendors.test_contract import ROOT
from vendors.nvidia import Nvidia, nvml
from vendors.nvidia.monitor import THROTTLES, NvmlMonitor

GIB, FOUND = 2**30, "nvmlDeviceGetHandleByIndex"
PROCESSES = "nvmlDeviceGetComputeRunningProcesses_v3"


class Driver:
    """Two H100s as NVML describes them. `failing` maps (device or None for all, function) to an error code; "*" is all
    functions but that by which a GPU is found."""

    def __init__(self) -> None:
        self.names = ["NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"]
        self.failing: dict[tuple[int | None, str], int] = {}
        self.open = self.begun = 0
        self.at_exit: list[Callable[[], None]] = []
        self.energy_mj = 5_000_000
        self.reasons = 0
        self.limit_mw = 700_000
        self.divided: set[int] = set()
        self.capability = dict.fromkeys(range(3), (9, 0))

    def answers(self) -> dict[str, Callable[..., Any]]:
        process = SimpleNamespace(pid=4321, usedGpuMemory=3 * GIB)
        return {
            "nvmlDeviceGetName": lambda gpu: self.names[gpu],
            "nvmlDeviceGetVbiosVersion": lambda gpu: "96.00.74.00.1C",
            "nvmlDeviceGetGspFirmwareVersion": lambda gpu: b"570.86.15",
            "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu:04x}",
            "nvmlDeviceGetCudaComputeCapability": lambda gpu: self.capability[gpu],
            "nvmlDeviceGetMemoryInfo": lambda gpu: SimpleNamespace(used=10 * GIB, total=80 * GIB),
            "nvmlDeviceGetUtilizationRates": lambda gpu: SimpleNamespace(gpu=97, memory=40),
            "nvmlDeviceGetTemperature": lambda gpu, sensor: {pynvml.NVML_TEMPERATURE_GPU: 61}[sensor],
            "nvmlDeviceGetPowerUsage": lambda gpu: 650_123,
            "nvmlDeviceGetTotalEnergyConsumption": lambda gpu: self.energy_mj,
            "nvmlDeviceGetClockInfo": lambda gpu, kind: {pynvml.NVML_CLOCK_SM: 1980}[kind],
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda gpu: self.reasons,
            "nvmlDeviceGetEnforcedPowerLimit": lambda gpu: self.limit_mw,
            "nvmlDeviceGetPowerManagementDefaultLimit": lambda gpu: 700_000,
            "nvmlDeviceGetMigMode": lambda gpu: [int(gpu in self.divided)] * 2,
            PROCESSES: lambda gpu: [process],
            "nvmlDeviceGetComputeRunningProcesses_v2": lambda gpu: [process],
        }

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, answer in self.answers().items():
            monkeypatch.setattr(pynvml, name, self.guarded(name, answer))
        monkeypatch.setattr(pynvml, "nvmlInit", self.init)
        monkeypatch.setattr(pynvml, "nvmlShutdown", self.shutdown)
        monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: "570.86.15")
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: len(self.names))
        monkeypatch.setattr(pynvml, FOUND, self.guarded(FOUND, lambda index: index))

    def guarded(self, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def call(gpu: int, *arguments: Any) -> Any:
            assert self.open, f"{name} outside a session"
            for key in ((gpu, name), (None, name), (gpu, "*")):
                if key in self.failing and not (name == FOUND and key[1] == "*"):
                    raise pynvml.NVMLError(self.failing[key])
            return answer(gpu, *arguments)

        return call

    def init(self) -> None:
        self.open += 1
        self.begun += 1

    def shutdown(self) -> None:
        self.open -= 1


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    played = Driver()
    played.install(monkeypatch)
    monkeypatch.setattr(nvml, "_begin", cache(nvml._begin.__wrapped__))
    monkeypatch.setattr(atexit, "register", played.at_exit.append)
    return played


def test_a_reading_in_the_units_of_the_contract(driver: Driver) -> None:
    monitor = NvmlMonitor()
    reading = monitor.sample()[1]
    assert (reading.device, reading.temperature_c, reading.clock_mhz) == (1, 61, 1980)
    assert reading.power_w == pytest.approx(650.123) and reading.energy_j == pytest.approx(5000)
    assert reading.utilization == pytest.approx(0.97)
    assert (reading.memory_used_bytes, reading.memory_total_bytes) == (10 * GIB, 80 * GIB)
    assert reading.throttled == () and reading.processes == (4321,)
    monitor.close()
    assert driver.open == 0


@pytest.mark.parametrize("code", ["NOT_SUPPORTED", "NO_PERMISSION", "FUNCTION_NOT_FOUND", "NO_DATA"])
def test_a_sensor_that_cannot_be_read_is_none_and_not_zero(driver: Driver, code: str) -> None:
    for name in driver.answers():
        driver.failing[None, name] = getattr(pynvml, f"NVML_ERROR_{code}")
    readings = NvmlMonitor().sample()
    assert [reading.device for reading in readings] == [0, 1]
    assert all(value is None for reading in readings for key, value in vars(reading).items() if key != "device")


def test_a_gpu_that_shares_the_processors_memory_is_one(driver: Driver) -> None:
    driver.names = ["NVIDIA GB10", "NVIDIA A100-SXM4"]
    driver.failing[0, "nvmlDeviceGetMemoryInfo"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert [device.name for device in nvml.devices()] == ["NVIDIA GB10", "NVIDIA A100-SXM4 (80 GiB)"]


def test_a_true_zero_is_a_zero(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", lambda gpu: SimpleNamespace(gpu=0, memory=0))
    monkeypatch.setattr(pynvml, PROCESSES, lambda gpu: [])
    reading = NvmlMonitor().sample()[0]
    assert reading.utilization == 0 and reading.processes == ()


def test_throttle_reasons_are_words_and_idle_is_none_of_them(driver: Driver) -> None:
    monitor = NvmlMonitor()
    driver.reasons = pynvml.nvmlClocksEventReasonGpuIdle | pynvml.nvmlClocksEventReasonApplicationsClocksSetting
    assert monitor.sample()[0].throttled == ()
    driver.reasons |= pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
    assert monitor.sample()[0].throttled == ("heat (hardware)",)
    assert all(bit & (bit - 1) == 0 for bit in THROTTLES)


def test_the_products_own_limit_of_power_is_its_speed_and_a_lower_one_throttles_it(driver: Driver) -> None:
    """At full load most GPUs are at their limit: none of them would ever PASS."""
    monitor = NvmlMonitor()
    driver.reasons = pynvml.nvmlClocksEventReasonSwPowerCap
    assert monitor.sample()[0].throttled == ()
    driver.limit_mw = 500_000
    assert monitor.sample()[0].throttled == ("power cap",)
    driver.failing[None, "nvmlDeviceGetPowerManagementDefaultLimit"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert monitor.sample()[0].throttled == ("power cap",), "nobody knows which it is"


def test_a_device_that_falls_off_the_bus_is_named_and_the_others_are_read(driver: Driver) -> None:
    monitor = NvmlMonitor()
    driver.failing[0, "*"] = pynvml.NVML_ERROR_GPU_IS_LOST
    lost, other = monitor.sample()
    assert lost == Reading(0, error="GPU is lost")
    assert other.device == 1 and other.error is None and other.temperature_c is not None
    driver.failing.clear()
    assert [reading.error for reading in monitor.sample()] == [None, None]


@pytest.mark.parametrize("function", [FOUND, "*"])
@pytest.mark.parametrize("code, word", [("GPU_IS_LOST", "GPU is lost"), ("UNKNOWN", "Unknown"), ("NOT_FOUND", "")])
def test_a_gpu_that_is_lost_from_the_beginning_is_named_and_the_others_are_used(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, function: str, code: str, word: str
) -> None:
    driver.failing[0, function] = getattr(pynvml, f"NVML_ERROR_{code}")
    vendor = Nvidia()
    assert [device.index for device in vendor.devices()] == [1] and vendor.chip() == driver.names[1]
    assert assign(vendor, 0) == Assignment({"CUDA_VISIBLE_DEVICES": "1"}, 1)
    assert "bf16" in vendor.training_precisions and nvml.software().driver == "570.86.15"
    assert nvml.used_by(4321) == 3 * GIB
    assert any(line.startswith("GPU 0: does not answer") and word in line for line in nvml.sought())
    monitor = NvmlMonitor()
    lost, other = monitor.sample()
    assert lost.device == 0 and word in str(lost.error) and lost.error
    assert other.device == 1 and other.error is None and other.temperature_c == 61
    driver.failing.clear()
    assert [reading.error for reading in monitor.sample()] == [None, None]
    monitor.close()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-0001")
    driver.failing[0, function] = getattr(pynvml, f"NVML_ERROR_{code}")
    assert [device.index for device in vendor.devices()] == [1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert vendor.devices() == [], "what CUDA makes of the rest of such a list nobody can say: README.md"


def test_a_training_sees_no_gpu_that_is_divided(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA would count its slice, and none but that."""
    driver.divided.add(0)
    assert limits_to_all(Nvidia()) == {"CUDA_VISIBLE_DEVICES": "1"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert limits_to_all(Nvidia()) == {} and limits_to_all(Processor()) == {}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert limits_to_all(Nvidia()) == {"CUDA_VISIBLE_DEVICES": "1"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert limits_to_all(Nvidia()) == {}


def test_versions_of_what_the_gpus_run_with(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"nvidia-cuda-runtime-cu11": "11.8.89", "nvidia-cuda-runtime-cu12": "12.8.90"}
    wanted = ["filelock", 'nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"']
    monkeypatch.setattr(nvml, "requires", lambda name: wanted)
    monkeypatch.setattr(nvml, "version", packages.__getitem__)
    software = nvml.software()
    assert (software.driver, software.runtime) == ("570.86.15", "CUDA 12.8.90")
    assert software.firmware == "VBIOS 96.00.74.00.1C, GSP 570.86.15", "once, though there are two"
    driver.failing[None, "nvmlDeviceGetGspFirmwareVersion"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert nvml.software().firmware == "VBIOS 96.00.74.00.1C"
    assert driver.begun == 1, "where persistence is off it takes seconds a GPU"
    for end in driver.at_exit:
        end()
    assert driver.open == 0
    driver.open = 1
    wanted[1:] = ['cuda-toolkit[cudart,nvrtc]==13.0.2; platform_system == "Linux"']
    toolkit = ["nvidia-cuda-runtime==13.0.96.*; sys_platform == 'linux' and extra == 'cudart'"]
    monkeypatch.setattr(nvml, "requires", {"torch": wanted, "cuda-toolkit": toolkit}.__getitem__)
    packages["nvidia-cuda-runtime"] = "13.0.96"
    assert nvml.software().runtime == "CUDA 13.0.96"
    wanted.clear()
    monkeypatch.setattr(nvml, "version", lambda name: "2.9.0+cu126")
    assert nvml.software().runtime == "CUDA 12.6"
    monkeypatch.setattr(nvml, "version", lambda name: "2.9.0+cpu")
    assert nvml.software().runtime is None
    driver.names.clear()
    assert nvml.software().driver is None and nvml.software().reason == "no driver answers"


def test_without_nvml_there_are_no_devices_and_the_monitor_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", absent)
    vendor = Nvidia()
    assert vendor.devices() == [] and vendor.chip() == "no CUDA device"
    assert vendor.compilers["tensorrt"].precisions == {"fp32", "tf32", "fp16", "bf16", "int8"}
    with pytest.raises(pynvml.NVMLError, match="NVML Shared Library Not Found"):
        vendor.monitor()


def test_a_driver_that_answers_nothing_has_no_devices(driver: Driver) -> None:
    driver.failing[None, "nvmlDeviceGetName"] = pynvml.NVML_ERROR_UNKNOWN
    assert nvml.devices() == []


@pytest.mark.parametrize(
    "chosen, indices",
    [
        *[(None, [0, 1]), ("1", [1]), ("1,0", [1, 0]), ("GPU-0001", [1]), ("GPU-0001,GPU-0000", [1, 0])],
        *[("GPU-000", [0, 1]), ("", []), ("7", []), ("-1", []), ("MIG-0001", [])],
        *[("0,9,1", [0]), ("1,-1,0", [1]), ("GPU-0001,GPU-7,GPU-0000", [1]), ("9,0", []), ("0,", [0])],
    ],
)
def test_devices_are_those_that_cuda_would_show(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, chosen: str | None, indices: list[int]
) -> None:
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert [device.index for device in Nvidia().devices()] == indices


def test_a_device_named_by_its_uuid_is_read_by_its_number(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the readings of all would be its own: its energy, and who else computes on it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-0001")
    assert assign(Nvidia(), 0) == Assignment({"CUDA_VISIBLE_DEVICES": "GPU-0001"}, 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-0001,GPU-7")
    assert usable_indices(Nvidia()) == [None, None]


@pytest.mark.parametrize("chosen", ["0,9,1", "GPU-0000,GPU-7"])
def test_a_session_has_no_more_devices_than_cuda_shows(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    """From a word on that names none CUDA shows none: a rank there would find no device."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    count, why = count_alike(Nvidia(), ROOT / "vendors/nvidia/chips.yaml")
    assert (count, why) == (1, f", of {chosen.count(',') + 1} that CUDA_VISIBLE_DEVICES names")


@pytest.mark.parametrize(
    "chosen, indices",
    [
        *[("0,1,2", []), ("0", []), ("2,0,1", [2]), ("1,2,0", [1, 2]), ("1,2", [1, 2])],
        *[("GPU-0000,GPU-0001", []), ("GPU-0001,GPU-0000,GPU-0002", [1]), ("GPU-000", [])],
    ],
)
def test_no_session_gets_the_slice_of_a_divided_gpu_that_is_named(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, chosen: str, indices: list[int]
) -> None:
    """Cases get the first of the names: as many as devices are found, which have to be those that are found."""
    driver.names.append(driver.names[0])
    driver.divided = {0}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    vendor = Nvidia()
    assert [device.index for device in vendor.devices()] == indices
    assert count_alike(vendor, ROOT / "vendors/nvidia/chips.yaml")[0] == len(indices)


def test_a_gpu_is_the_same_whatever_number_it_has_here(driver: Driver) -> None:
    assert [device.identity for device in nvml.devices()] == ["GPU-0000", "GPU-0001"]
    driver.failing[0, "nvmlDeviceGetUUID"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert [device.identity for device in nvml.devices()] == [None, "GPU-0001"]


def test_a_gpu_that_is_divided_is_no_chip(driver: Driver) -> None:
    driver.divided = {0}
    assert [device.index for device in nvml.devices()] == [1]
    assert nvml.sought()[-1] == "GPU 0: divided by MIG, so none of it is the chip; undo it by nvidia-smi -i 0 -mig 0"
    driver.failing[None, "nvmlDeviceGetMigMode"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert [device.index for device in nvml.devices()] == [0, 1]


def test_a_chip_names_its_memory_and_is_found(driver: Driver) -> None:
    driver.names = ["NVIDIA H200", "NVIDIA A100-SXM4-40GB"]
    assert [device.name for device in nvml.devices()] == ["NVIDIA H200 (80 GiB)", "NVIDIA A100-SXM4-40GB"]


@pytest.mark.parametrize(
    "detected, name, bf16",
    [
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40 GB", 312e12),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB", 312e12),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB", 312e12),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40 GB", 312e12),
        ("NVIDIA H100 80GB HBM3", "H100 SXM", 989.5e12),
        ("NVIDIA H100 PCIe (80 GiB)", "H100 PCIe", 756.5e12),
        ("NVIDIA H200 (140 GiB)", "H200 SXM", 989.5e12),
        ("NVIDIA B200 (179 GiB)", "B200", 2.25e15),
        ("NVIDIA L40S (45 GiB)", "L40S", 362.05e12),
        ("Tesla T4 (15 GiB)", "T4", None),
        ("Tesla V100-SXM2-16GB", "V100 SXM2", None),
        ("Tesla V100-PCIE-32GB", "V100 PCIe", None),
    ],
)
def test_chips_are_found_by_the_names_that_the_driver_gives(detected: str, name: str, bf16: float | None) -> None:
    entry = find_chip(detected, load_chips(find_vendor("nvidia", ROOT / "vendors").chips_file))
    assert entry is not None and entry.name == name
    assert bf16 is None or entry.peaks["bf16"].flops == bf16
    assert entry.memory_bandwidth and entry.link_bandwidth and entry.tdp


@pytest.mark.parametrize("detected", ["NVIDIA H100 NVL (94 GiB)", "NVIDIA GB200", "NVIDIA L40", "NVIDIA H200 NVL"])
def test_a_relative_of_a_chip_is_not_that_chip(detected: str) -> None:
    assert find_chip(detected, load_chips(find_vendor("nvidia", ROOT / "vendors").chips_file)) is None


def test_an_engine_without_root_can_give_containers_what_they_need() -> None:
    """It may not raise a limit beyond its user's, and starts no container that is to have one."""
    options = settings_of(find_vendor("nvidia", ROOT / "vendors")).options
    assert "--gpus=all" in options and not [option for option in options if option.startswith("--ulimit")]


def test_no_run_uses_devices_of_several_chips(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record names one, and has that one's peak."""
    found, workers = find_vendor("nvidia", ROOT / "vendors"), cast(Any, SimpleNamespace(workerinput={"workercount": 2}))
    driver.names = ["Tesla T4", "Tesla T4 16GB"]
    count_devices(workers, found)
    assert len(places_here(found, 1).environments) == 2
    driver.names[1] = "NVIDIA A100-SXM4-40GB"
    has = r"has 1 here, and then another chip \(NVIDIA A100-SXM4-40GB; CUDA_VISIBLE_DEVICES chooses\)"
    with pytest.raises(pytest.UsageError, match=f"{has}, so -n may be at most 1, not 2"):
        count_devices(workers, found)
    with pytest.raises(UsageError, match=f"a search runs on devices of one chip; vendor nvidia {has}"):
        places_here(found, 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert count_alike(found.vendor, found.chips_file) == (1, "")


@pytest.mark.parametrize("profile", ["embedded", "standard"])
@pytest.mark.parametrize("case", ["bert", "glm", "cpm"])
def test_one_device_alone_takes_a_global_batch_in_parts(case: str, profile: str) -> None:
    """What it keeps of all samples for their backward pass is more than it has memory."""
    own, cases = ROOT / f"vendors/nvidia/configs/training/{case}/1x1.yaml", ROOT / "suites/training"
    file = load_case_file(cases / f"{case}.yaml", "training", profile, cases / "contract.yaml", TrainingParameters)
    layer = OverrideLayer(str(own), load_mapping(own, own.parent), closed=True, vendors_own=True)
    found = resolve(file, "nvidia", [layer])
    assert not found.problems and found.config.gradient_accumulation_steps == 8


def test_cuda_counts_devices_as_nvml_does_whatever_its_user_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    Nvidia()
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_precisions_are_those_of_the_chips_that_are_shown(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.capability[0] = (7, 5)
    vendor = Nvidia()
    assert vendor.compilers["tensorrt"].precisions == {"fp32", "fp16", "int8"}
    assert vendor.framework_precisions == {"fp32", "fp16"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert Nvidia().framework_precisions == {"fp32", "fp16", "tf32", "bf16"}


def test_an_older_gpu_beside_the_one_that_is_used_takes_no_precision_from_it(driver: Driver) -> None:
    """No run uses both: a precision that isn't declared, and works, would be an error."""
    driver.names[1], driver.capability[1] = "Tesla T4", (7, 5)
    vendor = Nvidia()
    assert vendor.framework_precisions == {"fp32", "fp16", "tf32", "bf16"}
    assert vendor.chip() == driver.names[0] and assign(vendor, 0).index == 0


def test_memory_of_this_process(driver: Driver) -> None:
    assert nvml.used_by(4321) == 6 * GIB
    assert nvml.used_by(1) is None
    driver.failing[None, PROCESSES] = pynvml.NVML_ERROR_NO_PERMISSION
    assert nvml.used_by(4321) is None


@pytest.mark.parametrize(
    "imported, told, used",
    [("tensorrt", False, None), ("onnxruntime", False, None), ("tensorrt", True, 6 * GIB), ("torch", False, GIB)],
)
def test_memory_that_torch_does_not_know_of_is_the_drivers_to_tell(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, imported: str, told: bool, used: int | None
) -> None:
    """In a container with processes of its own no driver does: torch's part alone would be far too little."""
    for name in ("tensorrt", "onnxruntime"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, imported, sys.modules.get(imported, ModuleType(imported)))
    monkeypatch.setattr(os, "getpid", lambda: 4321 if told else 1)
    known = {"is_available": True, "max_memory_reserved": GIB, "mem_get_info": (0, 80 * GIB)}
    for name, answer in known.items():
        monkeypatch.setattr(torch.cuda, name, lambda answer=answer: answer)
    assert Nvidia().memory() == (used, 80 * GIB)


@pytest.mark.parametrize("lacking", [[PROCESSES], [PROCESSES, "nvmlDeviceGetComputeRunningProcesses_v2"]])
def test_a_driver_older_than_pynvml_is_read(driver: Driver, lacking: list[str]) -> None:
    """What pynvml asks by its plain name is the newest question, of which it raises what is no NVMLError."""
    for name in lacking:
        driver.failing[None, name] = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    with nvml.session(), pytest.raises(pynvml.NVMLLibraryMismatchError):
        pynvml.nvmlDeviceGetComputeRunningProcesses(0)
    reading = NvmlMonitor().sample()[0]
    told = len(lacking) == 1
    assert reading.error is None and reading.temperature_c == 61
    assert reading.processes == ((4321,) if told else None)
    assert nvml.used_by(4321) == (6 * GIB if told else None)
