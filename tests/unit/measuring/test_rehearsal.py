"""What is wrong with a case is told before anything is trained or measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from proofmark.case import Case
from proofmark.inference.engine.engine_process import EngineFailed
from proofmark.inference.engine.engines import Engines
from proofmark.inference.steps import pipeline, weights
from proofmark.inference.steps.pipeline import Pipeline
from proofmark.record.events.log import EventLog, read_events
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig, HostSettings
from proofmark.vendor.contract import Processor
from proofmark.vendor.engine import Compiler
from proofmark.wall.isolation import Isolation
from tests.unit.automl.net import Breaks, Net, Points
from tests.unit.inference.test_metrics import Answering

TRAINING = {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}
ONNX = Compiler(frozenset({"fp32"}), consumes="onnx")


class Rehearsed:
    """Step 2 of a case, in which training its weights would be a mistake, or is what is counted."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.trained, self.exported = directory, 0, list[Path]()
        monkeypatch.setattr(weights, "train", self._train)
        monkeypatch.setattr(pipeline, "export_onnx", self._export)
        monkeypatch.setattr(Engines, "rehearse", self._rehearse)
        self.export_error: Exception | None = None
        self.engines, self.engine_errors = list[str | None](), list[Exception]()

    def _rehearse(self, compiler: str | None) -> Any:
        self.engines.append(compiler)
        for error in self.engine_errors:
            raise error
        return SimpleNamespace(isolation=Isolation())

    def _train(self, case: Any, config: Any, recipe: Any, directory: Path, progress: Any) -> Path:
        from safetensors.torch import save_file

        self.trained += 1
        save_file(case.create_model(config).state_dict(), directory / "weights.safetensors")
        return directory / "weights.safetensors"

    def _export(self, model: Any, first: Any, path: Path, *names: Any) -> None:
        self.exported.append(path)
        if self.export_error:
            raise self.export_error

    def run(
        self, case: Net, compiler: Compiler | None = None, flops: float = 8.0, device: str = "cpu", **more: Any
    ) -> dict[str, Any]:
        """The step's outcome."""
        parameters = {"training": TRAINING, "seed": 0, "flops": flops, "item": "point"} | more
        settings = {"no_validation": False, "batch_size": 8, "exist_onnx_path": None, "exist_compiler_path": None}
        settings |= {"compiler": "anvil", "precision": None, "fp16": False}
        host = HostSettings(cache_dir=str(self.directory / "cache"))
        config = EffectiveConfig("inference", "net", "embedded", "acme", parameters, settings, host=host)
        vendor = Processor()
        vendor.torch_device = lambda: device  # type: ignore[method-assign]
        found: Any = SimpleNamespace(vendor=vendor, directory=self.directory)
        log = EventLog(self.directory / "events.jsonl")
        engines = Engines((Net.__module__, Net.__qualname__), found, config, self.directory)  # none is started
        return Pipeline(case, found, compiler, config, self.directory, log, lambda **_: None, engines).run(
            "data_and_model"
        )

    def counted(self) -> list[float]:
        """FLOPs in the log."""
        events = read_events(self.directory / "events.jsonl")
        return [event["counted"] for event in events if event["event"] == "flops"]


@pytest.fixture
def rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rehearsed:
    return Rehearsed(tmp_path, monkeypatch)


def answering(output: Any) -> Net:
    """A case whose model makes this of its inputs."""

    class Answers(nn.Linear):
        def forward(self, points: torch.Tensor) -> Any:
            return output(super().forward(points))

    class Strange(Net):
        def create_model(self, config: Any) -> torch.nn.Module:
            return Answers(2, 2)

    return Strange()


def loading(batch: Any, data: Any = None, then: Sequence[Any] = ()) -> Net:
    """A case whose loader yields this, and then these, of such data."""

    class Data(list[Any]):
        dataset = Points() if data is None else data

    class Strange(Net):
        def build_dataloader(self, config: Any, split: str = "validation") -> Any:
            return Data([batch, *then])

    return Strange()


def scoring(scored: Any) -> Net:
    """A case whose evaluator answers this."""

    class Strange(Net):
        def evaluator(self, outputs: Any, targets: Any) -> Any:
            return scored

    return Strange()


def judging(metric: Any) -> Net:
    """A case with a metric of its own."""

    class Strange(Net):
        def metric(self, config: Any) -> Any:
            return metric()

    return Strange()


ONE = Answering({"metric": 1.0})


class Neither(Net):
    """Says nothing of how it is judged."""

    evaluator = Case.evaluator


def losing(loss: Any) -> Net:
    """A case with this loss."""

    class Strange(Net):
        def loss(self, outputs: Any, targets: Any) -> Any:
            return loss(outputs[0])

    return Strange()


def named_data(identity: Any) -> Points:
    """Forty points that say this of themselves."""
    points = Points()
    points.identity = identity
    return points


def forgetting(method: str, returns: Any = None) -> Net:
    """A case of which one method returns nothing, or this."""

    class Strange(Net):
        pass

    setattr(Strange, method, lambda self, config, split="validation": returns)
    return Strange()


POINTS, KINDS = torch.ones(8, 2), torch.zeros(8, dtype=torch.int64)

WRONG = {
    "no model": (forgetting("create_model"), "create_model: returns None; expected a torch.nn.Module"),
    "no loader": (
        forgetting("build_dataloader"),
        "build_dataloader: returns None; expected an object with dataset, __len__, __iter__",
    ),
    "data alone": (
        forgetting("build_dataloader", []),
        "build_dataloader: returns a list of 0 without dataset; expected an object with dataset, __len__, __iter__",
    ),
    "nameless data": (
        loading(([POINTS], KINDS), [1]),
        "build_dataloader: the data set, a list of 1 (an int), has no `identity`; expected a proofmark.record.parts.Id",
    ),
    "data by its name alone": (loading(([POINTS], KINDS), named_data("points")), "has a str as its `identity`; expec"),
    "data of no length": (
        loading(([POINTS], KINDS), named_data(Identity(name="points", sha256="0" * 64))),
        "has an Identity as its `identity`; expected a proofmark.record.parts.Identity of name, sha256 and items",
    ),
    "data of another length": (
        loading(([POINTS], KINDS), named_data(Identity(name="points", sha256="0" * 64, items=1900))),
        "build_dataloader: the data set has 40 samples, its identity says 1,900; expected the same number",
    ),
    "data that is streamed": (
        loading(([POINTS], KINDS), SimpleNamespace(identity=Identity(name="points", sha256="0" * 64, items=40))),
        "has no length; expected one with `__len__`",
    ),
    "a batch that is none": (loading(POINTS), "build_dataloader: a batch is a tensor (8, 2); expected (inputs,"),
    "inputs without a list": (loading((POINTS, KINDS)), "build_dataloader: inputs are a tensor (8, 2); expected a lis"),
    "no inputs": (loading(([], KINDS)), "build_dataloader: inputs are a list of 0; expected a list"),
    "targets of words": (loading(([POINTS], ["a"])), "build_dataloader: targets are a list of 1 (a str); expected"),
    "fewer targets": (loading(([POINTS], KINDS[:7])), "tensor (8, 2), a tensor (7,)); expected the batch as the first"),
    "a batch of another shape": (
        loading(([POINTS], KINDS), then=[([torch.ones(8, 3)], KINDS)]),
        "build_dataloader: a batch is a list of 1 (a tensor (8, 3)), the first was a list of 1 (a tensor (8, 2)): expe",
    ),
    "a second batch that is none": (
        loading(([POINTS], KINDS), then=[{"points": POINTS, "kinds": KINDS}]),
        "build_dataloader: a batch is a dict; expected (inputs, targets)",
    ),
    "fewer targets in the second": (
        loading(([POINTS], KINDS), then=[([POINTS], KINDS[:7])]),
        "tensor (8, 2), a tensor (7,)); expected the batch as the first",
    ),
    "other features": (
        loading(([torch.ones(8, 3)], KINDS)),
        "create_model: the model cannot take what build_dataloader yields, a list of 1 (a tensor (2, 3)): Runt",
    ),
    "an answer for all": (answering(lambda y: y.sum(0)[:1]), "create_model: asked for 2 samples of build_dataloader: "),
    "names alone": (
        answering(lambda y: y.argmax(1)),
        "the model returns whole numbers only; expected a floating-point answer beside them",
    ),
    "an answer by name": (
        answering(lambda y: {"logits": y}),
        "create_model: the model returns a dict; expected a tensor or a tuple of tensors",
    ),
    "a score alone": (scoring(1.0), "evaluator: returns a float; expected two numbers, sum and count"),
    "three scores": (scoring((1, 2, 3)), "evaluator: returns a tuple of 3"),
    "scores of each": (scoring((torch.ones(2), 2.0)), "evaluator: returns a tuple of 2 (a tensor (2,), a float)"),
    "no score": (scoring((float("nan"), 2.0)), "evaluator: returns (nan, 2); expected finite numbers"),
    "a count below 0": (scoring((1.0, -1.0)), "evaluator: returns (1, -1); expected finite numbers, the second at"),
    "no evaluator": (Neither(), "Neither has neither an evaluator nor a metric; expected one of them"),
    "one metric for all": (judging(lambda: ONE), "metric: returns the same object at each call; expected a new"),
    "another value": (
        judging(lambda: Answering({"map": 1.0})),
        "metric Answering: compute returns map; the case names m",
    ),
    "values of each": (judging(lambda: Answering(torch.ones(2))), "metric Answering: metric is a Tensor of shape (2,)"),
    "no update": (judging(lambda: Answering("update")), "metric Answering: update raises RuntimeError: no such class"),
    "no loss": (Breaks(), "RuntimeError: no loss today"),
    "numbers in the place of classes": (
        loading(([POINTS], KINDS.float())),
        "loss: cross entropy cannot take outputs (2, 2) and targets (2,) of torch.float32; expected outputs (..., cl",
    ),
    "more rows than targets": (
        answering(lambda y: y.unsqueeze(2).repeat(1, 1, 2)),
        "loss: cross entropy cannot take outputs (2, 2, 2) and targets (2,) of torch.int64; expected",
    ),
    "a loss of each": (losing(lambda y: y.sum(1)), "loss: returns a tensor (2,); expected a tensor without dimensions"),
    "a loss as a number": (losing(lambda y: 1.0), "loss: returns a float; expected a tensor"),
    "a loss of nothing": (losing(lambda y: y.detach().sum()), "loss: does not depend on any weight"),
    "an endless loss": (losing(lambda y: y.sum() * float("inf")), "loss: is "),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told_before_weights_are_trained(rehearsed: Rehearsed, wrong: str) -> None:
    case, expected = WRONG[wrong]
    outcome = rehearsed.run(case)
    assert (outcome["status"], outcome["kind"]) == ("failed", "error")
    assert expected in outcome["reason"], outcome["reason"]
    assert not rehearsed.trained


def test_a_good_case_is_trained_after_its_rehearsal(rehearsed: Rehearsed) -> None:
    assert rehearsed.run(Net(), ONNX)["status"] == "done"
    assert rehearsed.trained == 1 and rehearsed.counted() == [8.0]
    assert [path.name for path in rehearsed.exported] == ["rehearsal.onnx"]
    assert not rehearsed.exported[0].parent.exists()


class Guesses(Net):
    """Answers with the higher score and whose it is; while it is trained, with both scores, over a norm."""

    def create_model(self, config: Any) -> torch.nn.Module:
        class Likeliest(nn.Linear):
            def __init__(self) -> None:
                super().__init__(2, 2)
                self.norm = nn.BatchNorm1d(2)

            def forward(self, points: torch.Tensor) -> Any:
                scores = self.norm(super().forward(points))
                return scores if self.training else tuple(scores.max(-1))

        return Likeliest()

    def build_dataloader(self, config: Any, split: str = "validation") -> Any:
        loader = super().build_dataloader(config, split)
        return torch.utils.data.DataLoader(loader.dataset, 1, collate_fn=loader.collate_fn)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        return float((outputs[1] == targets).sum()), float(len(targets))

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        (scores,) = outputs
        return super().loss([scores], targets)


def test_a_loss_is_rehearsed_as_it_is_trained_by(rehearsed: Rehearsed) -> None:
    outcome = rehearsed.run(Guesses(), ONNX)
    assert (outcome["status"], rehearsed.trained) == ("done", 1), outcome["detail"]


def test_a_metric_that_two_samples_are_too_few_for_is_not_refused(rehearsed: Rehearsed) -> None:
    assert rehearsed.run(judging(lambda: Answering("compute")))["status"] == "done"


def test_weights_that_are_there_need_no_rehearsed_export(rehearsed: Rehearsed) -> None:
    for _ in range(2):
        assert rehearsed.run(Net(), ONNX)["status"] == "done"
    assert rehearsed.trained == 1 and len(rehearsed.exported) == 1


def test_a_model_that_cannot_be_exported_is_not_trained(rehearsed: Rehearsed) -> None:
    rehearsed.export_error = weights.StepError("torch cannot export the model")
    assert rehearsed.run(Net(), ONNX)["reason"] == "torch cannot export the model"
    assert rehearsed.run(Net(), None)["status"] == "done", "nobody exports it"
    assert rehearsed.trained == 1


def test_without_an_engine_to_be_had_nothing_is_trained(rehearsed: Rehearsed) -> None:
    rehearsed.engine_errors.append(EngineFailed("compiler 'anvil': No module named 'anvil'"))
    outcome = rehearsed.run(Net(), ONNX)
    assert outcome["status"] == "failed" and "No module named 'anvil'" in outcome["reason"]
    assert (rehearsed.trained, rehearsed.engines) == (0, ["anvil"])


@pytest.mark.parametrize(
    "compiler, device, asked",
    [
        (ONNX, "cpu", ["anvil"]),
        (ONNX, "cuda", ["anvil"]),
        (None, "cuda", [None]),
        (Compiler(frozenset({"fp16"}), consumes="onnx"), "cuda", [None]),
        (Compiler(frozenset({"fp16"}), consumes="onnx"), "cpu", []),
        (None, "cpu", []),
    ],
)
def test_what_an_engine_needs_is_looked_for(
    rehearsed: Rehearsed, compiler: Compiler | None, device: str, asked: list[str | None]
) -> None:
    assert rehearsed.run(Net(), compiler, device=device)["status"] == "done"
    assert rehearsed.engines == asked


@pytest.mark.parametrize("flops", [1000.0, 8.0 / 1.06, 8.0 * 1.06])
@pytest.mark.parametrize(
    "yaml, where",
    [
        ("parameters: {flops: 1000}\n", "parameters.flops"),
        ("profiles: {embedded: {parameters: {flops: 1000}}}\n", "profiles.embedded.parameters.flops"),
    ],
)
def test_wrong_flops_are_told_with_their_place(
    rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch, flops: float, yaml: str, where: str
) -> None:
    numbers = rehearsed.directory / "net.yaml"
    numbers.write_text(yaml)
    monkeypatch.setattr("proofmark.measuring.rehearsal.numbers_of", lambda case: numbers)
    outcome = rehearsed.run(Net(), flops=flops)
    assert outcome["status"] == "failed" and not rehearsed.trained
    assert f"declares {flops:.4g} FLOPs per point, counted were 8" in outcome["reason"]
    assert outcome["reason"].endswith(f"if the model is as it should be, write 8 in {numbers}: {where}")
    assert rehearsed.counted() == [8.0], "the record has them all the same"


def test_a_model_without_a_product_is_not_told_to_declare_none(rehearsed: Rehearsed) -> None:
    class Scales(Net):
        def create_model(self, config: Any) -> torch.nn.Module:
            return nn.LayerNorm(2)

    outcome = rehearsed.run(Scales(), flops=8.0)
    assert outcome["reason"].startswith("the case declares 8 FLOPs per point, counted were 0")
    assert outcome["reason"].endswith("and the model of create_model has none") and not rehearsed.trained


@pytest.mark.parametrize("flops", [8.0 / 1.04, 8.0 * 1.04])
def test_flops_within_the_tolerance(rehearsed: Rehearsed, flops: float) -> None:
    assert rehearsed.run(Net(), flops=flops)["status"] == "done"
