"""NVML: what the driver tells of each GPU, without touching CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pynvml

from proofmark.vendor import Reading
from vendors.nvidia import nvml

Value = TypeVar("Value")

POWER_CAP = "power cap"

THROTTLES = {
    pynvml.nvmlClocksEventReasonSwPowerCap: POWER_CAP,
    pynvml.nvmlClocksThrottleReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSyncBoost: "sync boost with another GPU",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "heat (driver)",
    pynvml.nvmlClocksThrottleReasonHwThermalSlowdown: "heat (hardware)",
    pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: "external power brake",
}
"""Reasons to run slower than the product does. Being idle is none; clocks that a user or a display set show in
clock_mhz, and so does the limit of power that the product comes with: at full load most GPUs run at it."""

SILENT = (
    pynvml.NVMLError_NotSupported,
    pynvml.NVMLError_NoPermission,
    pynvml.NVMLError_FunctionNotFound,
    pynvml.NVMLError_NoData,
)
"""What an absent sensor answers. Anything else is a fault of the device or the driver."""


class NvmlMonitor:
    """Reads all GPUs of the machine. One that has fallen off the bus says so, now or from the beginning on; the others
    are read."""

    def __init__(self) -> None:
        pynvml.nvmlInit()
        self._handles: dict[int, Any] = {}
        try:
            self._indices = range(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError:
            pynvml.nvmlShutdown()
            raise

    def sample(self) -> list[Reading]:
        """A reading of each GPU."""
        return [self._read_if_it_answers(index) for index in self._indices]

    def close(self) -> None:
        """Let go of NVML."""
        pynvml.nvmlShutdown()

    def _read_if_it_answers(self, index: int) -> Reading:
        try:
            if index not in self._handles:
                self._handles[index] = pynvml.nvmlDeviceGetHandleByIndex(index)
            return _read(index, self._handles[index])
        except pynvml.NVMLError as error:
            return Reading(index, error=str(error))


def _read(index: int, handle: Any) -> Reading:
    memory = _sensor(pynvml.nvmlDeviceGetMemoryInfo, handle)
    utilization = _sensor(pynvml.nvmlDeviceGetUtilizationRates, handle)
    processes = _sensor(nvml.processes, handle)
    return Reading(
        device=index,
        temperature_c=_scaled(_sensor(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU), 1),
        power_w=_scaled(_sensor(pynvml.nvmlDeviceGetPowerUsage, handle), 1e-3),
        energy_j=_scaled(_sensor(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle), 1e-3),
        memory_used_bytes=memory and int(memory.used),
        memory_total_bytes=memory and int(memory.total),
        utilization=_scaled(utilization and utilization.gpu, 1e-2),
        clock_mhz=_scaled(_sensor(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM), 1),
        throttled=_throttled(handle),
        processes=None if processes is None else tuple(process.pid for process in processes),
    )


def _sensor(read: Callable[..., Value], *arguments: Any) -> Value | None:
    """What a sensor says, None where there is none.

    Raises:
        pynvml.NVMLError: the device does not answer.
    """
    try:
        return read(*arguments)
    except SILENT:
        return None


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit


def _throttled(handle: Any) -> tuple[str, ...] | None:
    reasons = _sensor(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    if reasons is None:
        return None
    words = tuple(word for bit, word in THROTTLES.items() if reasons & bit)
    return words if POWER_CAP not in words or _is_capped(handle) else tuple(word for word in words if word != POWER_CAP)


def _is_capped(handle: Any) -> bool:
    """Whether somebody has set a limit of power below the product's own."""
    enforced = _sensor(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    own = _sensor(pynvml.nvmlDeviceGetPowerManagementDefaultLimit, handle)
    return enforced is None or own is None or enforced < own
