"""What an engine's process does, wherever it is: an engine is made, and called, as its referee says.

A vendor's package and one compiled model of its live here, and nothing of a case but its model: no data, no labels, no
reference, no clock that counts.
"""

from __future__ import annotations

import array
import json
import os
import socket
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import ProofmarkError, StepError
from proofmark.inference.engine import protocol
from proofmark.inference.engine.inside.tensors import Inputs, Outputs
from proofmark.inference.failure import LONGEST, failure_text
from proofmark.literal import short
from proofmark.measuring.precision import framework_compute
from proofmark.measuring.window import Compute
from proofmark.process.lifetime import leave
from proofmark.process.log_level import log_from
from proofmark.process.memory import give_back_freed
from proofmark.process.shared_memory.slots import Slot
from proofmark.process.threads import compile_within, heed_environment
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor import torch_extensions
from proofmark.vendor.contract import Vendor, memory_of
from proofmark.vendor.registry import FoundVendor, find_vendor

if TYPE_CHECKING:
    import torch

SPINS, SOON_SPINS = 40, 4000
"""So often the next message is looked for without sleeping, some 20 microseconds: to be woken takes longer. And where
a call comes soon, some 2 milliseconds: its batch is being laid."""

RIGHTS = socket.CMSG_LEN(4)


class Server(ABC):
    """Carries out orders, one message after the other."""

    def __init__(self, channel: socket.socket, root: Path, directory: Path) -> None:
        """`root` is where the session runs: messages name files relative to it; `directory` is this process's own."""
        self._channel, self._root, self.directory = channel, root, directory
        self._buffer = bytearray(protocol.LONGEST)
        self._slots: dict[int, Slot] = {}
        self._inputs: dict[int, Inputs] = {}
        self._outputs = Outputs()
        self._compute: Compute | None = None
        self._vendor: Vendor | None = None
        self._own: list[Path] = []
        self._made_in = ""
        self.behind_a_wall = False
        self._unregistered: Exception | None = None

    def serve(self) -> None:
        """Carry out orders until the other end is closed."""
        while length := self._next():
            try:
                if self._buffer[0] == protocol.CALL:
                    self._answer()
                elif self._buffer[0] == protocol.ORDER:
                    self.tell(done=self._obey(json.loads(self._buffer[1:length])))
            except ProofmarkError as error:
                self.tell(failed=str(error)[: LONGEST["reason"]])
            except Exception as error:  # noqa: BLE001 (vendors may raise anything)
                traceback.print_exc()  # to worker.log
                detail = traceback.format_exc()[-LONGEST["detail"] :]
                self.tell(
                    failed=failure_text(error, self._own, self._root, self.behind_a_wall)[: LONGEST["reason"]],
                    detail=detail,
                )

    @abstractmethod
    def model(self, order: dict[str, Any], config: EffectiveConfig) -> torch.nn.Module | None:
        """The model of which an engine is to be made; None where it needs none.

        Raises:
            StepError: it can't be had here.
        """

    @abstractmethod
    def close_in(self, order: dict[str, Any], config: EffectiveConfig) -> None:
        """Put around this process what is to be around it, before it imports a vendor's code."""

    def _next(self) -> int:
        """Bytes of the next message that is something to do, which lies in the buffer; 0 at the end."""
        while True:
            length, descriptors = self._received()
            if not length or self._buffer[0] != protocol.SLOT:
                return length
            _, number, size = protocol.SLOT_FORM.unpack(self._buffer[:length])
            try:
                self._slots[number] = slot = Slot(number, size, descriptors[0])
                self._inputs[number] = Inputs(slot)
            finally:
                os.close(descriptors[0])
            if self._vendor is not None and self._unregistered is None:
                try:
                    self._vendor.register_memory(slot.address, size)
                except Exception as error:  # noqa: BLE001 (vendors may raise anything)
                    self._unregistered = error
            self._channel.send(protocol.MAPPED_FORM.pack(protocol.MAPPED, number))

    def _received(self) -> tuple[int, list[int]]:
        """Bytes of the next message, and its descriptors; what says that a call comes soon is heeded here."""
        left, into = SPINS, [self._buffer]
        while True:
            try:
                length, rights, _, _ = self._channel.recvmsg_into(into, RIGHTS, socket.MSG_DONTWAIT if left > 0 else 0)
            except BlockingIOError:
                os.sched_yield()
                left -= 1
                continue
            except ConnectionResetError:
                return 0, []
            if length and self._buffer[0] == protocol.SOON:
                left = SOON_SPINS
                continue
            return length, list(array.array("i", b"".join(content for _, _, content in rights))) if rights else []

    def _answer(self) -> None:
        """Run one batch: compute, wait for the device, lay the answer into its slot, and say so."""
        _, source, target, size, number = protocol.CALL_FORM.unpack_from(self._buffer)
        form = self._buffer[protocol.CALL_FORM.size : protocol.CALL_FORM.size + size]
        inputs, rows = self._inputs[source].take(form)
        assert self._compute is not None and self._vendor is not None
        self._check_registered()
        returned = self._compute(inputs)
        self._vendor.synchronize()
        laid = self._outputs.lay_alike(returned, rows, self._slots[target])
        if laid is None:
            laid = self._lay(returned, rows, self._slots[target], number)
        self._channel.send(protocol.ANSWER_FORM.pack(protocol.ANSWER, number, returned[1]) + laid)

    def _lay(self, returned: Any, rows: int, slot: Slot, number: int) -> bytes:
        """Lay an answer after a look at it, into a larger slot if need be: its form.

        Raises:
            StepError: it is no answer.
        """
        try:
            form, layout, outputs = self._outputs.look(returned, rows)
        except StepError as error:
            raise StepError(f"{error}{self._made_in}") from None
        if layout.size > slot.size:
            slot = self._larger(layout.size, number)
            self._check_registered()
        slot.lay(layout, outputs)
        return form

    def _check_registered(self) -> None:
        """What a vendor has raised over a slot's memory is told now: then the referee waited for something else."""
        if self._unregistered is not None:
            raise self._unregistered

    def _larger(self, size: int, number: int) -> Slot:
        """A slot of that size, which the referee makes."""
        self._channel.send(protocol.LARGER_FORM.pack(protocol.LARGER, number, size))
        length = self._next()
        if not length:
            leave(0)
        return self._slots[protocol.GO_ON_FORM.unpack(self._buffer[:length])[1]]

    def tell(self, **content: Any) -> None:
        """Send words to the referee."""
        self._channel.send(protocol.as_json(protocol.REPLY, content))

    def _obey(self, order: dict[str, Any]) -> Any:
        if order["do"] == "memory":
            assert self._vendor is not None
            return memory_of(self._vendor)
        return self._rehearse(order) if order["do"] == "rehearse" else self._make(order)

    def _rehearse(self, order: dict[str, Any]) -> None:
        """Check all that an engine needs before it has weights: torch finds the vendor's device, and the compiler can
        be imported."""
        import torch

        found, _ = self._found(order, EffectiveConfig.from_dict(order["config"]))
        device = found.vendor.torch_device()
        if device != "cpu":
            torch.ones(1, device=device)
            found.vendor.synchronize()
        if order["compiler"] is not None:
            found.infer_model(order["compiler"])

    def _make(self, order: dict[str, Any]) -> dict[str, Any]:
        """The model, then, behind the wall, the vendor's package and its engine."""
        config = EffectiveConfig.from_dict(order["config"])
        log_from(config.host.log_level)
        model = self.model(order, config)
        found, config = self._found(order, config)
        for slot in self._slots.values():
            found.vendor.register_memory(slot.address, slot.size)
        declared = None
        if order["compiler"] is None:
            assert model is not None
            self._compute = framework_compute(model, _device(found.vendor, order["device"]), order["precision"])
        else:
            make: Callable[..., Compute] = found.infer_model(order["compiler"])
            self._made_in = f" ({short(found.directory / order['compiler'], self._root)}.py)"
            self._compute = make(config, order["onnx"] and Path(order["onnx"]), model)
            declared = _foo_time_reason(make)
        give_back_freed()
        return {"foo_time_reason": declared}

    def _found(self, order: dict[str, Any], config: EffectiveConfig) -> tuple[FoundVendor, EffectiveConfig]:
        """The vendor's package, imported behind the wall, and what it is shown of the configuration."""
        self.close_in(order, config)
        if config.host.artifact_dir:
            Path(config.host.artifact_dir).mkdir(exist_ok=True)
        torch_extensions.load()
        heed_environment()
        compile_within(order.get("device", "cpu"))
        config = replace(config, host=replace(config.host, weights=None, data_dir=None, cache_dir=str(self.directory)))
        found = find_vendor(order["vendor"], Path(order["vendors_dir"]), config.host.device, order.get("target"))
        self._own.append(found.directory)
        self._vendor = found.vendor
        return found, config


def _device(vendor: Vendor, introduced: str) -> str:
    """What the framework runs on.

    Raises:
        StepError: it is of another kind than the vendor was introduced with, a processor in a chip's place say.
    """
    said = vendor.torch_device()
    if said.split(":")[0] != introduced.split(":")[0]:
        raise StepError(f"torch_device() says {said!r} here, and said {introduced!r} when the vendor was introduced")
    return said


def _foo_time_reason(infer_model: object) -> str | None:
    """Why a compiler's calls hold what is not inference, in its own words; the referee looks at what they are.

    Raises:
        StepError: they are no words.
    """
    reason = getattr(infer_model, "foo_time_reason", None)
    if reason is not None and type(reason) is not str:
        raise StepError(f"InferModel.foo_time_reason is of type {type(reason).__name__}; expected a line of text")
    return reason
