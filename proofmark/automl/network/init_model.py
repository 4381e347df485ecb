"""Networks of the user's, as JSON, that a search begins with in place of the case's own: the original's init models."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from proofmark.automl.network.graph import MOST_GROWN, Graph, read_graph
from proofmark.automl.network.hyperparameters import with_dropout, with_kernel
from proofmark.errors import ConfigurationError, Problem
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig

SUFFIX = ".json"
MOST = 64
"""Files of a folder that are taken: each has a trial of the first round."""


class InitModel(NamedTuple):
    """A network, and its file by name and content."""

    graph: Graph
    identity: Identity


def read_init_models(config: EffectiveConfig) -> list[InitModel]:
    """The networks that the setting `init_model` names: a file, or those of a folder in the order of their names; maybe
    none.

    Raises:
        ConfigurationError: one can't be read, is no network, or none for the case's images and classes; every problem.
    """
    named = config.get("init_model")
    if named is None:
        return []
    if not named:
        raise ConfigurationError([Problem("init_model", "", "names no file; expected a network's file or a folder")])
    read, problems = list[InitModel](), list[Problem]()
    for path in _files(Path(named)):
        try:
            graph = read_graph(path)
        except ConfigurationError as error:
            problems += error.problems
            continue
        problems += _misfits(graph, config, str(path))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        read.append(InitModel(graph, Identity(name=path.name, sha256=digest, origin=str(path))))
    if not problems and len(read) > (most := int(config.get("max_trials", MOST))):
        problems.append(
            Problem("init_model", "", f"{len(read)} networks, of which each has a trial: max_trials is {most}")
        )
    if problems:
        raise ConfigurationError(problems)
    return read


def _files(path: Path) -> Sequence[Path]:
    try:
        if not path.is_dir():
            return [path]
        found = sorted(each for each in path.iterdir() if each.suffix == SUFFIX)
    except OSError as error:
        raise ConfigurationError([Problem(str(path), "", f"cannot be read: {error.strerror}")]) from None
    if not 1 <= len(found) <= MOST:
        what = f"has {len(found)} *{SUFFIX} files; expected 1 to {MOST} networks"
        raise ConfigurationError([Problem(str(path), "", what)])
    return found


def _misfits(graph: Graph, config: EffectiveConfig, where: str) -> list[Problem]:
    """Why a network does not fit the case."""
    found = {"channels": graph.channels, "size": graph.size, "classes": graph.classes}
    expected = {"channels": config.channels, "size": config.image_size, "classes": config.classes}
    problems = [
        Problem(where, key, f"expected {expected[key]}, which profile {config.profile} has, found {value}")
        for key, value in found.items()
        if value != expected[key]
    ]
    begun = with_kernel(with_dropout(graph, config.dropout), config.kernel_size)
    changed = [node.name for node in begun.nodes if graph.by_name.get(node.name) != node]
    if changed:
        what = (
            f"trials start with kernel_size {config.kernel_size} and dropout {config.dropout:g}, which would change it"
        )
        problems.append(Problem(where, f"nodes.{changed[0]}", what))
    if len(graph.nodes) > MOST_GROWN:
        what = f"expected at most {MOST_GROWN}, so that a child can be made of it, found {len(graph.nodes)}"
        problems.append(Problem(where, "nodes", what))
    return problems
