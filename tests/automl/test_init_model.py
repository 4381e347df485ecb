"""Networks of the user's that a search begins with: taken with their hash, or refused with key and reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proofmark.automl.morphism.grow import grown
from proofmark.automl.morphism.operations import Deeper
from proofmark.automl.network.graph import MOST_GROWN, Graph
from proofmark.automl.network.hyperparameters import with_dropout, with_kernel
from proofmark.automl.network.init_model import read_init_models
from proofmark.automl.network.seeds import small_network
from proofmark.automl.outcome.figures import figures
from proofmark.errors import ConfigurationError
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig
from tests.automl.automl_records import record
from tests.automl.searches import session
from tests.suites_there import page_of

SMALL = small_network(size=8, channels=1, width=4)


def config(path: Path | None) -> EffectiveConfig:
    parameters = {"channels": 1, "image_size": 8, "classes": 10, "dropout": 0.0, "kernel_size": 3}
    settings = {"init_model": None if path is None else str(path)}
    return EffectiveConfig("automl", "made_up", "embedded", "cpu", parameters, settings)


def written(path: Path, graph: Graph) -> Path:
    path.write_text(graph.model_dump_json(), encoding="utf-8")
    return path


def test_a_file_or_a_folder_of_networks_is_read_with_its_hash(tmp_path: Path) -> None:
    first = written(tmp_path / "a.json", SMALL)
    second = written(tmp_path / "b.json", grown(SMALL, Deeper(after="stem_relu")))
    (tmp_path / "notes.txt").write_text("no network")
    assert read_init_models(config(None)) == []
    (one,) = read_init_models(config(first))
    assert one.graph == SMALL
    assert one.identity.sha256 == hashlib.sha256(first.read_bytes()).hexdigest() and one.identity.name == "a.json"
    assert [model.identity.origin for model in read_init_models(config(tmp_path))] == [str(first), str(second)]


def test_more_networks_than_trials_are_refused(tmp_path: Path) -> None:
    for name in "abc":
        written(tmp_path / f"{name}.json", SMALL)
    of_two = replace(config(tmp_path), parameters={**config(None).parameters, "max_trials": 2})
    with pytest.raises(ConfigurationError, match="init_model: 3 networks, of which each has a trial: max_trials is 2"):
        read_init_models(of_two)


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not a graph's file: .*No such file"):
        read_init_models(config(tmp_path / "nothing.json"))
    with pytest.raises(ConfigurationError, match=r"has 0 \*.json files; expected 1 to 64 networks"):
        read_init_models(config(tmp_path))


def test_a_network_that_no_child_can_be_made_of_is_refused(tmp_path: Path) -> None:
    large = SMALL
    while len(large.nodes) <= MOST_GROWN:
        large = grown(large, Deeper(after="stem_relu"))
    with pytest.raises(ConfigurationError, match=f"nodes: expected at most {MOST_GROWN}, .* found {len(large.nodes)}"):
        read_init_models(config(written(tmp_path / "large.json", large)))


def test_no_name_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable of a script's is one, and not where that runs."""
    written(tmp_path / "a.json", SMALL)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="init_model: names no file"):
        read_init_models(replace(config(None), configurations={"init_model": ""}))


def edited(graph: Graph, edit: Callable[[dict[str, Any]], None]) -> str:
    plain = graph.model_dump(mode="json")
    edit(plain)
    return json.dumps(plain)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not a graph's file"),
        (edited(SMALL, lambda graph: graph["nodes"][0].update(op="swish")), r"nodes\.0: .*'swish'"),
        (edited(SMALL, lambda graph: graph["nodes"][0].update(code="x")), r"nodes\.0\.conv\.code: unknown key"),
        (edited(SMALL, lambda graph: graph["nodes"][0].update(kernel=4)), "node stem_conv: has a kernel of 4"),
        (edited(SMALL, lambda graph: graph["nodes"][3].update(inputs=["later"])), "takes from later"),
        (
            small_network(size=8, channels=3, width=4).model_dump_json(),
            "channels: expected 1, which profile",
        ),
        (small_network(size=16, channels=1, width=4).model_dump_json(), "size: expected 8, .* found 16"),
        (small_network(9, size=8, channels=1, width=4).model_dump_json(), "classes: expected 10, .* found 9"),
        (with_kernel(SMALL, 5).model_dump_json(), "nodes.s1b1_1_conv: trials start with kernel_size 3"),
        (
            with_dropout(SMALL, 0.1).model_dump_json(),
            "nodes.dense: trials start with .* and dropout 0, which",
        ),
    ],
)
def test_an_illegal_network_is_refused_with_key_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    written(tmp_path / "good.json", SMALL)
    with pytest.raises(ConfigurationError, match=reason) as refused:
        read_init_models(config(tmp_path))
    assert all(problem.where == str(tmp_path / "bad.json") for problem in refused.value.problems)


def test_a_session_refuses_it_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(edited(SMALL, lambda graph: graph["nodes"][0].update(op="swish")))
    options = ["--init-model", str(tmp_path / "bad.json"), "--results-dir", str(tmp_path / "results")]
    with session("suites/automl", *options) as running:
        output, _ = running.communicate(timeout=600)
    assert running.returncode == 4 and "Traceback" not in output, output
    assert "bad.json: nodes.0: " in output and not (tmp_path / "results").exists()


def test_what_began_with_another_network_is_told_and_not_ranked() -> None:
    model = Identity(name="mine.json", sha256="5" * 64)
    begun = record(init_models=(model,))
    by_key = {figure.key: figure for figure in figures(begun)}
    assert by_key["rankable"].value == "no" and "mine.json" in str(by_key["init_models"].value)
    assert "it began with other networks than the case" in page_of([begun.with_figures(figures(begun))])
