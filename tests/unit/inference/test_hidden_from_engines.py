"""What an engine must not see: data, and where links in it lead."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from proofmark.inference.engine.engines import Engines


def test_where_links_in_the_data_lead_is_hidden_from_an_engine(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "images").symlink_to(tmp_path / "elsewhere")
    host = SimpleNamespace(data_dir=str(data), weights=None, cache_dir="/nowhere")
    config: Any = SimpleNamespace(host=host)
    found: Any = None
    engines = Engines(("module", "Case"), found, config, tmp_path / "run" / "engine")
    assert {str(data), tmp_path / "elsewhere"} <= set(engines._hidden())
