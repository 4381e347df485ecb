"""What an engine must not see: data, and where links in it lead; and what it may: the files of its model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from proofmark.inference.engine.engines import Engines
from proofmark.inference.engine.model_files import files_of


def test_where_links_in_the_data_lead_is_hidden_from_an_engine(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "images").symlink_to(tmp_path / "elsewhere")
    host = SimpleNamespace(data_dir=str(data), weights=None, cache_dir="/nowhere")
    config: Any = SimpleNamespace(host=host)
    found: Any = None
    engines = Engines(("module", "Case"), found, config, tmp_path / "run" / "engine")
    assert {str(data), tmp_path / "elsewhere"} <= set(engines._hidden())


def with_weights_in(path: Path, location: str) -> None:
    """An ONNX file that keeps its one tensor there."""
    value = onnx.helper.make_tensor_value_info("a", TensorProto.FLOAT, [4])
    weight = numpy_helper.from_array(np.ones(4, np.float32), "w")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["a", "w"], ["b"])], "g", [value], [value], [weight])
    model = onnx.helper.make_model(graph)
    onnx.save(model, str(path), save_as_external_data=True, location=location, size_threshold=0)


def test_an_engine_may_read_the_files_of_its_model_whatever_they_are_called(tmp_path: Path) -> None:
    with_weights_in(tmp_path / "val.onnx", "w.bin")
    assert files_of(str(tmp_path / "val.onnx"), None) == [tmp_path / "val.onnx", tmp_path / "w.bin"]
    assert files_of(None, None) == []


def test_a_folder_that_is_called_like_a_model_is_none_of_its_files(tmp_path: Path) -> None:
    """It may be of data, labels or weights."""
    (tmp_path / "val").mkdir()
    with_weights_in(tmp_path / "val.onnx", "val.onnx.data")
    files = [tmp_path / "val.onnx", tmp_path / "val.onnx.data"]
    assert files_of(str(tmp_path / "val.onnx"), None) == files_of(None, str(tmp_path / "val.onnx")) == files
