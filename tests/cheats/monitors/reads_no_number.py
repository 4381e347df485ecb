"""Power and memory that are no numbers, in which an integral or a maximum would be lost."""

from proofmark.vendor import Reading

REASON = "lines of the monitor's log are not samples (line 2: "


class Monitor:
    def sample(self) -> list[Reading]:
        return [Reading(0, power_w=float("nan"), memory_used_bytes=-1, utilization=float("inf"))]

    def close(self) -> None:
        pass
