"""A shard's file: what safetensors itself reads of it, on what disks it can be written, what is refused."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from pathlib import Path

import pytest
import torch
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import proofmark.training.ranks.shard_file as shard_file
from proofmark.training.ranks.shard_file import BLOCK, DTYPES, write_safetensors

SHAPES = [(), (0,), (1,), (3, 5), (2, 0, 4), (7, 1, 3)]


def written(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    told = {"format": "pt", "ü": '"'}
    digest = write_safetensors(path, tensors, told)
    with path.open("rb") as stream:
        assert hashlib.file_digest(stream, xxhash.xxh3_128).hexdigest() == digest
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == told
        assert set(file.keys()) == set(tensors)
        for name, tensor in tensors.items():
            read = file.get_tensor(name)
            assert read.dtype == tensor.dtype and read.shape == tensor.shape
            assert torch.equal(read.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text(), st.sampled_from(list(DTYPES)), st.sampled_from(SHAPES)), max_size=8))
def test_safetensors_reads_what_was_written(tmp_path_factory: pytest.TempPathFactory, parts: list[tuple]) -> None:
    names = {name: (dtype, shape) for name, dtype, shape in parts if name != "__metadata__"}
    tensors = {name: torch.randint(0, 2, shape).to(dtype) for name, (dtype, shape) in names.items()}
    written(tmp_path_factory.mktemp("shard") / "x.safetensors", tensors)


@pytest.mark.parametrize("size", [BLOCK - 4096, BLOCK, 2 * BLOCK, 2 * BLOCK + 1])
def test_any_number_of_blocks(tmp_path: Path, size: int) -> None:
    written(tmp_path / "x.safetensors", {"a": torch.randint(0, 256, (size,), dtype=torch.uint8), "b": torch.ones(3)})


def test_a_longer_file_of_that_name_is_replaced(tmp_path: Path) -> None:
    for size in (100_000, 10):
        written(tmp_path / "x.safetensors", {"a": torch.ones(size)})


@pytest.mark.parametrize("refused", ["open", "write"])
def test_where_direct_writes_are_refused_the_cache_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    real_open, real_write, seen = os.open, os.write, []

    def opened(path: str, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECT:
            seen.append("open")
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return real_open(path, flags, *rest)

    def half_written(file: int, block: memoryview) -> int:
        if len(seen) < 2:
            seen.append("write")
            if len(seen) == 2 and fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT:
                raise OSError(errno.EINVAL, "Invalid argument")
            return real_write(file, block[:4096])
        return real_write(file, block)

    monkeypatch.setattr(
        shard_file.os, "open" if refused == "open" else "write", {"open": opened, "write": half_written}[refused]
    )
    written(tmp_path / "x.safetensors", {"a": torch.rand(BLOCK // 4 + 77)})
    assert refused in seen


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, block: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shard_file.os, "write", full)
    with pytest.raises(OSError, match="No space left on device: '.*x.safetensors'"):
        write_safetensors(tmp_path / "x.safetensors", {"a": torch.ones(3)}, {})


@pytest.mark.parametrize("dtype", [torch.complex128, torch.float8_e8m0fnu])
def test_a_dtype_that_safetensors_lacks_is_named(tmp_path: Path, dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=f"phase is of {dtype}"):
        write_safetensors(tmp_path / "x.safetensors", {"phase": torch.empty(3, dtype=dtype)}, {})
