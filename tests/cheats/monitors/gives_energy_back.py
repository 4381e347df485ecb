"""A device that gives power to the machine."""

from proofmark.vendor import Reading

REASON = "lines of the monitor's log are not samples (line 2: devices.0.power_w: "


class Monitor:
    def sample(self) -> list[Reading]:
        return [Reading(0, power_w=-250.0)]

    def close(self) -> None:
        pass
