"""Engines that are to rest while the other side of a speed gate has its turn, each a compiler's module: others compute
as fast meanwhile, or it is told (EngineFailed)."""

from __future__ import annotations

import statistics
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from proofmark.inference.engine.engine_process import EngineFailed
from proofmark.inference.engine.remote_engine import RemoteEngine
from tests.cheats.corpus import files
from tests.unit.inference.test_remote_engine import orders, process, root

__all__ = ["root"]

pytestmark = pytest.mark.usefixtures("warm")
IMPORTED = ("safetensors.torch", "proofmark.inference.engine.inside.main")

RESTS, BLOCK, SLICES = 6, bytes(1 << 17), 25

LEAST = 0.005
"""Seconds of a processor by which a pace is measured."""


@pytest.mark.parametrize("path", files("rests"), ids=lambda path: path.stem)
def test_an_engine_that_rests(root: Path, path: Path) -> None:
    (root / f"vendors/acme/{path.name}").write_text(path.read_text())
    made, slowed = RemoteEngine(process(root)), []
    try:
        with suppress(EngineFailed):
            made.make(orders(root, compiler=path.stem, weights=None))
            for _ in range(RESTS):
                made([torch.ones(2, 3)])
                made.rest()
                paces = list(_paces())
                slowed.append(sum(pace < statistics.median(paces) / 2 for pace in paces))
    finally:
        made.close()
    assert sum(slowed) < RESTS, f"so many of {SLICES} moments of each rest were slowed to a half and more: {slowed}"


def _paces() -> Iterator[float]:
    """What this thread gets done in a second of a processor, which others on the cores don't change: where they leave
    it none for a while, each moment lasts until it has had some."""
    for _ in range(SLICES):
        done, until, begun = 0, time.perf_counter() + 0.02, time.thread_time()
        while time.perf_counter() < until or time.thread_time() - begun < LEAST:
            zlib.crc32(BLOCK)
            done += 1
        yield done / (time.thread_time() - begun)
