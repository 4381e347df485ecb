"""docs/cluster.md: its files are read by the product, and every key is on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from proofmark.launch.cluster.cluster_file import Cluster, load_cluster
from proofmark.launch.cluster.container.settings import ContainerSettings

PAGE = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", [text for name, text in FILES if name == "cluster.yaml"])
def test_a_cluster_file_of_the_page(text: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    assert load_cluster(path).work_dir == "/scratch/proofmark"


def test_the_container_file_of_the_page() -> None:
    (text,) = [text for name, text in FILES if name == "vendors/acme/container.yaml"]
    assert set(yaml.safe_load(text)) == set(ContainerSettings.model_fields)


def test_every_key_is_on_the_page() -> None:
    table = PAGE[PAGE.index("## Every key") : PAGE.index("## What comes home")]
    assert not [key for key in Cluster.model_fields if f"`{key}`" not in table]
