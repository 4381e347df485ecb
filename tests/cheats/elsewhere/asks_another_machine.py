"""Computes nothing: another machine does, over the network that its isolation.yaml asks for."""

import io
import socket
import struct
from pathlib import Path
from typing import Any

import torch

from proofmark.vendor import EffectiveConfig


class InferModel:
    """Sends its model, then batches; the port is in its folder, as an address would be."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module) -> None:
        port = int(Path(__file__).with_name("port").read_text())
        self._there = socket.create_connection(("127.0.0.1", port))
        self._there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ask([value.detach() for value in model.state_dict().values()])

    def __call__(self, inputs: Any) -> Any:
        return self._ask(inputs), 0.0

    def _ask(self, tensors: Any) -> Any:
        content = io.BytesIO()
        torch.save(tensors, content)
        self._there.sendall(struct.pack("q", content.tell()) + content.getvalue())
        size = struct.unpack("q", self._there.recv(8, socket.MSG_WAITALL))[0]
        return torch.load(io.BytesIO(self._there.recv(size, socket.MSG_WAITALL)))
