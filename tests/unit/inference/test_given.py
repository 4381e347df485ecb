"""How well a container keeps an engine from the rest, by what it is given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proofmark.inference.engine.place.given import _isolation
from proofmark.launch.engine_container import EngineContainer

CONTAINER = EngineContainer("engine", "image", "", "name", (), (), False, False)


def test_what_is_given_nothing_is_behind_a_wall(tmp_path: Path) -> None:
    kept = _isolation(replace(CONTAINER, mounts=("/opt/acme:/opt/acme:ro",)), [tmp_path])
    assert (kept.kind, kept.container, kept.network, kept.gaps) == ("wall", True, "closed", ())
    assert _isolation(replace(CONTAINER, network=True), []).network == "asked for"


@pytest.mark.parametrize("mount", ["{data}", "{data}/labels", "{data}/..", "{link}"])
def test_what_engines_must_not_see(tmp_path: Path, mount: str) -> None:
    """By whichever way it is shown."""
    (tmp_path / "data/labels").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    source = mount.format(data=tmp_path / "data", link=tmp_path / "link")
    kept = _isolation(replace(CONTAINER, mounts=(f"{source}:/srv:ro",)), [tmp_path / "data"])
    assert kept.kind == "process" and "what engines must not see is there" in kept.gaps[0]


def test_what_it_can_write_and_all_of_its_host() -> None:
    for mount in ("/srv:/srv", "/srv:/srv:rw", "/srv:/srv:z,rw"):
        kept = _isolation(replace(CONTAINER, mounts=(mount,)), [])
        assert kept.kind == "process" and "can be written" in kept.gaps[0]
    kept = _isolation(replace(CONTAINER, privileged=True), [])
    assert kept.kind == "process" and "privileged" in kept.gaps[0]
