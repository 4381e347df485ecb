"""A rank behind its wall: closed in before any code of a vendor's runs in it."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from proofmark.launch.spec import RunSpec, temporary_of
from proofmark.process.scratch.own_directory import remove
from proofmark.process.threads import heed_environment
from proofmark.process.warm.main import is_alone
from proofmark.training.spec import AGENT
from proofmark.vendor import torch_extensions
from proofmark.vendor.contract import GLOO
from proofmark.vendor.environment import take_on
from proofmark.vendor.isolation import COMPILED, NOT_ASKED_FOR, VendorPlace
from proofmark.wall.isolation import Isolation
from proofmark.wall.wall import Wall, linked_from


def dictated(variable: str, local_rank: int) -> Path:
    """A rank's pipe among those of its agent, which keeps its logs: no other process writes them (Linux).

    torchrun hands no descriptors on: the agent's own is opened once more.
    """
    return Path(f"/proc/{os.environ[AGENT]}/fd/{os.environ[variable].split(',')[local_rank]}")


def wall_of_rank(backend: str, world: int, beside: int) -> Wall:
    """What a rank needs to speak to others; its network is for more than one.

    Args:
        backend: of its process group.
        world: how many ranks there are.
        beside: how many of them on its host.
    """
    devices = backend != GLOO  # such a library connects and sends to itself, where there is nobody else
    return Wall(
        streams="own" if world == 1 and not devices else "all",
        unix_sockets="datagrams" if devices else "none",
        shared_memory=devices and beside > 1,
    )


def close_in(spec: RunSpec, own: Path, wall: Wall, extensions: bool = True) -> Isolation:
    """Import the case, and close this process in, if it is to be: it reads the case's code, and the weights to begin
    with, and writes its own directory. The data it sees where the wall lets it, and nowhere else.

    Args:
        spec: what is run.
        own: that directory, made if it is not there; its home. What it puts down for a moment lies in its agent's own
            directory for that, since sockets have short names.
        wall: what it needs beside.
        extensions: whether torch's are loaded then, which are the vendor's code.

    Raises:
        UsageError: its vendor can't be found.
        ConfigurationError: the vendor's isolation.yaml is wrong.
        OSError: its directories can't be made.
    """
    torch_extensions.import_without()
    importlib.import_module(spec.case[0])
    take_on()
    temporary = _at_home(own)
    if spec.config["host"]["isolation"] != "wall":
        _ready(extensions)
        return Isolation.none(NOT_ASKED_FOR)
    is_alone()  # what it asks with ends the threads that an import has left
    os.environ.update(dict.fromkeys(COMPILED, str(own / "compiled")))
    wall = _around(spec, replace(wall, writable=(own, temporary, *wall.writable)))
    isolation = VendorPlace.of(spec.vendor, Path(spec.vendors_dir)).enter(wall)
    _ready(extensions)
    return isolation


def _at_home(own: Path) -> Path:
    """Make a process's own directory, and have it live there; where it puts down what it needs for a moment."""
    temporary = temporary_of(own)
    remove(temporary)  # of who had this directory before
    temporary.mkdir()
    own.mkdir(parents=True, exist_ok=True)
    os.environ |= {"HOME": str(own), "TMPDIR": str(temporary)}
    tempfile.tempdir = None
    return temporary


def _around(spec: RunSpec, wall: Wall) -> Wall:
    """A wall through which the case's code and the weights are seen too, and neither data nor what others have left."""
    host = spec.config["host"]
    code = map(Path, sys.modules[spec.case[0].partition(".")[0]].__path__)
    weights, data = ([Path(host[name])] if host[name] else [] for name in ("weights", "data_dir"))
    others = (host["cache_dir"], spec.directory, spec.vendors_dir)
    unseen = [each for each in data if each not in wall.readable]  # who runs no vendor's code may look at all of it
    hidden = (*map(Path, others), *unseen, *(place for each in unseen for place in linked_from(each)))
    return replace(wall, readable=(*code, *weights, *wall.readable), hidden=hidden)


def _ready(extensions: bool) -> None:
    if extensions:
        torch_extensions.load()
    heed_environment()
