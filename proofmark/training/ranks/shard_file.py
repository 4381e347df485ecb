"""A safetensors file, written past the page cache and hashed on its way.

Through the cache a checkpoint costs the training beside it two to four times the processor time, and drives the data
set out of the host's memory. The format: https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
import xxhash

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""What safetensors can hold and give back."""

BLOCK = 4 << 20
"""Bytes per write."""

_DIRECT = getattr(os, "O_DIRECT", 0)
_NOT_DIRECT = (errno.EINVAL, errno.EOPNOTSUPP)
_SECTOR = 4096  # direct writes are whole sectors of every disk there is


def write_safetensors(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> str:
    """Write contiguous host tensors and a header's `__metadata__`; the content is on the disk when this returns.

    Returns:
        The file's XXH3, 128 bits, in hexadecimal.

    Raises:
        OSError: it can't be written; it names the file.
        ValueError: safetensors can't give such a dtype back.
    """
    size, digest = 0, xxhash.xxh3_128()
    file = _open(path)
    try:
        for block, filled in _blocks(_parts(tensors, metadata)):
            digest.update(block[:filled])
            _write(file, block[: -(-filled // _SECTOR) * _SECTOR])
            size += filled
        os.ftruncate(file, size)
        os.fsync(file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(file)
    return digest.hexdigest()


def _parts(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> Iterator[np.ndarray]:
    """The file's bytes: the header's length, the header, the tensors."""
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))  # each aligned to its own size
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in DTYPES:
            raise ValueError(f"{name} is of {tensor.dtype}, which safetensors can't give back")
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield np.frombuffer(len(text).to_bytes(8, "little") + text, np.uint8)
    for name in order:
        yield tensors[name].detach().reshape(-1).view(torch.uint8).numpy()


def _blocks(parts: Iterator[np.ndarray]) -> Iterator[tuple[memoryview, int]]:
    """The same bytes in one page-aligned buffer, each time it is full and at the end, with how much of it is filled."""
    memory = mmap.mmap(-1, BLOCK)
    buffer, filled = np.frombuffer(memory, np.uint8), 0
    for part in parts:
        while len(part):
            fits = min(BLOCK - filled, len(part))
            buffer[filled : filled + fits] = part[:fits]  # numpy copies without the interpreter's lock
            part, filled = part[fits:], filled + fits
            if filled == BLOCK:
                yield memoryview(memory), filled
                filled = 0
    if filled:
        yield memoryview(memory), filled


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(path, flags | _DIRECT, 0o666)
    except OSError as error:
        if error.errno not in _NOT_DIRECT:
            raise
        return os.open(path, flags, 0o666)  # a file system without direct writes


def _write(file: int, block: memoryview) -> None:
    while block:
        try:
            block = block[os.write(file, block) :]
        except OSError as error:  # the file system takes direct writes in other sizes, or has written a part of one
            flags = fcntl.fcntl(file, fcntl.F_GETFL)
            if error.errno not in _NOT_DIRECT or not flags & _DIRECT:
                raise
            fcntl.fcntl(file, fcntl.F_SETFL, flags & ~_DIRECT)
