"""An error of a million characters, which clears the screen and says that all is well."""

from proofmark.vendor import Reading

REASON = "device 0 could not be read: \\x1b[2J==== 12 passed ===="


class Monitor:
    def sample(self) -> list[Reading]:
        return [Reading(0, error="\x1b[2J==== 12 passed ====" + "x" * 900_000)]

    def close(self) -> None:
        pass
