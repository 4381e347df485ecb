"""What unit tests share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from proofmark.process.scratch.temporary import temporary_directory


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Products of a few numbers: two threads would wait for each other, on a busy machine for tens of milliseconds."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tidied(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A loader's processes that are ended leave their temporary directories: whoever starts a rank takes them away."""
    with temporary_directory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield
