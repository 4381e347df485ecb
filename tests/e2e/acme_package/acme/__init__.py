"""A vendor whose adapter lives in the vendor's own repository."""

from proofmark.vendor import Compiler, Device, Reading, Vendor


class _Monitor:
    def sample(self) -> list[Reading]:
        return [Reading(0, power_w=50.0, memory_used_bytes=2**30, memory_total_bytes=2**31, utilization=0.5)]

    def close(self) -> None:
        pass


class Acme(Vendor):
    """One device that isn't there."""

    compilers = {"anvil": Compiler(frozenset({"fp32"}), consumes="model", package="acme-proofmark")}
    default_compiler = "anvil"

    def devices(self) -> list[Device]:
        return [Device(0, self.chip())]

    def synchronize(self) -> None:
        pass

    def chip(self) -> str:
        return "Acme Anvil 2000"

    def monitor(self) -> _Monitor:
        return _Monitor()


vendor = Acme()
