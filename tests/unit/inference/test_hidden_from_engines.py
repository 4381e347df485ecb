"""What an engine must not see: data, and where links in it lead; and what it may: the files of its model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from proofmark.inference.engine.engines import Engines
from proofmark.inference.engine.inside import closing
from proofmark.inference.engine.model_files import files_of
from proofmark.inference.engine.protocol import ORDER, as_json
from proofmark.rules.config import EffectiveConfig, HostSettings
from proofmark.vendor.isolation import VendorPlace
from proofmark.wall.isolation import Isolation
from proofmark.wall.wall import Wall

KEPT = Isolation.none("asked for none")


def test_where_links_in_data_lead_is_hidden_from_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of data that is nothing but links: an order has no room for all of them."""
    data, package, walls = tmp_path / "data", tmp_path / "vendors" / "fake", list[Wall]()
    data.mkdir()
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for number in range(2000):
        (data / f"{number:060}").symlink_to(tmp_path / f"elsewhere{number:060}")
    host = HostSettings(data_dir=os.path.relpath(data), isolation="wall")
    config = EffectiveConfig("inference", "net", "embedded", "fake", {}, {}, host=host)
    vendor = SimpleNamespace(torch_device=lambda: "cpu")
    found: Any = SimpleNamespace(name="fake", vendors_dir=package.parent, vendor=vendor)
    order = Engines(("module", "Case"), found, config, tmp_path / "run" / "engine")._orders() | {"files": []}
    for asks in ("take_on", "is_alone"):
        monkeypatch.setattr(closing, asks, lambda: None)
    monkeypatch.setattr(closing, "COMPILED", ())
    monkeypatch.setattr(VendorPlace, "of", lambda *_: SimpleNamespace(enter=lambda wall: (walls.append(wall), KEPT)[1]))
    monkeypatch.chdir(tmp_path)
    sent = json.loads(as_json(ORDER, order)[1:])
    assert closing.close_in(sent, EffectiveConfig.from_dict(sent["config"]), tmp_path) == KEPT
    assert {data, *map(Path.readlink, data.iterdir())} <= set(walls[0].hidden)


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
