"""Engines that have others compute, over the network that their vendor's file asks for: what is measured is not the
device's, so none of them may be set among runs behind a wall."""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from proofmark.record.policy import Ranking, default_policy
from proofmark.verdict.ranking import obstacles
from tests.cheats.corpus import files
from tests.e2e.conftest import House
from tests.unit.wall.test_wall import behind


@pytest.fixture
def port() -> Iterator[int]:
    """Of the other machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=_serve, args=(server,))
        serving.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)  # closed alone it would take one more caller, whoever that is by then
        serving.join()


def _serve(server: socket.socket) -> None:
    while True:
        try:
            one, _ = server.accept()
        except OSError:
            return
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        weights = None
        while head := one.recv(8, socket.MSG_WAITALL):
            given = torch.load(io.BytesIO(one.recv(struct.unpack("q", head)[0], socket.MSG_WAITALL)))
            answer = [] if weights is None else [torch.nn.functional.linear(given[0], *weights)]
            weights, content = weights or given, io.BytesIO()
            torch.save(answer, content)
            one.sendall(struct.pack("q", content.tell()) + content.getvalue())


@behind
@pytest.mark.parametrize("path", files("elsewhere"), ids=lambda path: path.stem)
def test_an_engine_elsewhere(tmp_path: Path, port: int, path: Path) -> None:
    house = House(tmp_path / "house")
    package = house.root / "vendors/fake"
    (package / "honest.py").write_text(path.read_text())
    (package / "port").write_text(str(port))
    (package / "isolation.yaml").write_text("network: true\n")
    record = house.run().record()
    policy = default_policy().model_copy(update={"ranking": Ranking(isolation="wall")})
    assert record.verdict is not None
    assert str(record.verdict.kind) != "PASS" or list(obstacles(record, policy)), (record.isolation, record.verdict)
