"""What a container engine says, and what a user is told to do about it. Stubs, without an engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.container.asking import run_on
from proofmark.launch.cluster.container.image import ENGINES, ContainerImage
from proofmark.launch.cluster.container.settings import ContainerSettings
from proofmark.launch.cluster.node import Node
from tests.waiting import PATIENCE

PULL = "have ENGINE pull or load python:3.11 there"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Error response from daemon: No such image: python:3.11", PULL),
        ("Error: inspecting object: python:3.11: image not known", PULL),
        ("permission denied while trying to connect to the docker API at unix:///var/run/docker.sock", ENGINES),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", ENGINES),
        ("Error for command 'image': unknown command 'image' for 'apptainer'", ENGINES),
    ],
)
def test_an_image_is_to_be_pulled_only_where_it_is_not_there(tmp_path: Path, said: str, expected: str) -> None:
    engine, said_in = tmp_path / "engine", tmp_path / "said"
    said_in.write_text(f"{said}\n")
    engine.write_text(f"#!/bin/sh\ncat {said_in} >&2\nexit 1\n")
    engine.chmod(0o755)
    image = ContainerImage(str(engine), "python:3.11", ContainerSettings())

    async def look() -> str:
        return await image._image_id(lambda *given: run_on(Node("here", "here"), PATIENCE, *given))

    with pytest.raises(HostError) as refused:
        asyncio.run(look())
    assert str(refused.value).replace(str(engine), "ENGINE") == (
        f"looking for the image (--container-engine): {said}; {expected}"
    )
