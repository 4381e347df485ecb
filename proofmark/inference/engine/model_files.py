"""The files that a model lies in."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def files_of(onnx: str | None, compiled: str | None) -> list[Path]:
    """What an engine may read of a model: an ONNX file and those in which it keeps tensors; a compiled one, whose form
    is its vendor's, and the files beside it that begin with its name."""
    files = []
    if onnx is not None:
        path = Path(onnx)
        files += [path, *(path.parent / name for name in kept_beside(path))]
    if compiled is not None:
        path = Path(os.path.abspath(compiled))
        files += sorted(part for part in path.parent.glob(f"{glob.escape(path.stem)}*") if part.is_file())
    return files


def kept_beside(path: Path) -> list[str]:
    """Names of the files in which a valid ONNX file keeps tensors, whatever they are called, as of its own folder."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    entries = (entry for tensor in _tensors(model) for entry in tensor.external_data)
    return sorted({entry.value for entry in entries if entry.key == "location"})


def _tensors(message: Any) -> Iterator[Any]:
    """All tensors of a model, however deep: of its initializers, of nodes' attributes, of the graphs in those."""
    import onnx

    if isinstance(message, onnx.TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _tensors(part)
