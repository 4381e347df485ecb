"""The cases: their declared FLOPs, their metrics, their models and their size."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from pydantic import ValidationError
from torch.utils.flop_counter import FlopCounterMode

from proofmark.inference.case import InferenceCase
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import EffectiveConfig, OverrideLayer, resolve
from proofmark.rules.published import Published
from proofmark.rules.yaml.strict import load_mapping
from suites.inference import test_bert, test_resnet50, test_swin, test_vit, test_yolos
from tests.suites.conftest import CASES, PARAMETERS, config_of

CLASSES: dict[str, type[InferenceCase]] = {
    "resnet50": test_resnet50.TestResNet50,
    "vit": test_vit.TestVit,
    "swin": test_swin.TestSwin,
    "bert": test_bert.TestBert,
    "yolos": test_yolos.TestYolos,
}
OF_CLASSES = [name for name in CLASSES if name not in ("yolos", "bert")]
FILES = sorted(CASES.parent.glob("*/*.yaml"))


def example(config: EffectiveConfig, batch: int = 1) -> list[torch.Tensor | None]:
    if "max_seq_length" in config:
        # without a mask: it costs no FLOPs, and its content, which is looked at, is not on the meta device
        return [torch.zeros(batch, config.max_seq_length, dtype=torch.long), None]
    size = config.image_size
    height, width = (size, size) if isinstance(size, int) else size
    return [torch.zeros(batch, config.channels, height, width)]


@pytest.mark.parametrize("profile", ["embedded", "standard"])
@pytest.mark.parametrize("name", CLASSES)
def test_declared_flops_are_the_counted_ones(name: str, profile: str) -> None:
    config = config_of(name, profile)
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        CLASSES[name]().create_model(config)(*example(config))
    assert counter.get_total_flops() == pytest.approx(config.flops, rel=0.02)


@pytest.mark.parametrize("setting, value", [("repeat", 1001), ("repeat", 10**12), ("min_seconds", 1e308)])
def test_no_measurement_outlasts_its_reader(setting: str, value: float) -> None:
    file = load_case_file(
        CASES / "bert.yaml", "inference", "embedded", CASES / "contract.yaml", PARAMETERS["inference"]
    )
    (problem,) = resolve(file, "cpu", [OverrideLayer("--set", {setting: value})], "onnxruntime").problems
    assert problem.key == setting and "at most" in str(problem)


@pytest.mark.parametrize("name", OF_CLASSES)
def test_fresh_model_takes_what_the_loader_gives_and_is_scored(name: str) -> None:
    config = config_of(name, batch_size=4)
    case = CLASSES[name]()
    torch.manual_seed(0)
    model = case.create_model(config).eval()
    inputs, targets = next(iter(case.build_dataloader(config)))
    assert len(inputs) == len(case.input_names)
    with torch.no_grad():
        outputs = model(*inputs)
    assert outputs.shape[:-1] == targets.shape
    right, count = case.evaluator([outputs], targets)
    assert 0 <= right <= count == (targets != -100).sum()
    ideal = torch.nn.functional.one_hot(targets.clamp(min=0), outputs.shape[-1]).float()
    assert case.evaluator([ideal], targets) == (count, count)
    assert torch.isfinite(case.loss([outputs], targets))


def test_a_fresh_language_model_takes_what_the_loader_gives_and_is_scored() -> None:
    case, config = test_bert.TestBert(), config_of("bert", batch_size=4)
    model = case.create_model(config).eval()
    inputs, targets = next(iter(case.build_dataloader(config)))
    with torch.no_grad():
        highest, tokens = model(*inputs)
    assert highest.shape == tokens.shape == targets.shape and len(case.output_names) == 2
    right, count = case.evaluator([highest, tokens], targets)
    assert 0 <= right <= count == (targets != -100).sum()
    assert case.evaluator([highest, targets], targets) == (count, count)
    assert torch.isfinite(case.loss([model.train()(*inputs)], targets))


def test_a_fresh_detector_takes_what_the_loader_gives_and_is_scored() -> None:
    config = config_of("yolos", batch_size=4, scenes={"train": 4, "validation": 4})
    case = test_yolos.TestYolos()
    model = case.create_model(config).eval()
    [(inputs, targets)] = case.build_dataloader(config)
    with torch.no_grad():
        outputs = list(model(*inputs))
    assert [output.shape[0] for output in outputs] == [4, 4] and len(outputs) == len(case.output_names)
    metric, ideal = case.metric(config), case.metric(config)
    metric.update(outputs, targets)
    found = metric.compute()
    assert isinstance(found, dict) and all(0 <= value < 0.5 for value in found.values())
    sure = torch.nn.functional.one_hot(targets[..., 0].long() % (config.classes + 1), config.classes + 1).float() * 50
    ideal.update([sure, targets[..., 1:5]], targets)
    assert ideal.compute() == pytest.approx({"map": 1, "map_50": 1, "map_75": 1})
    assert torch.isfinite(case.loss(outputs, targets)) and case.loss_weight(targets) >= 4


@pytest.mark.parametrize("name", CLASSES)
def test_same_seed_same_model(name: str) -> None:
    def state() -> dict[str, torch.Tensor]:
        torch.manual_seed(3)
        return CLASSES[name]().create_model(config_of(name)).state_dict()

    first, second = state(), state()
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_each_bottleneck_of_a_fresh_resnet_starts_as_the_identity() -> None:
    model = CLASSES["resnet50"]().create_model(config_of("resnet50"))
    zeroed = [
        key for key, value in model.state_dict().items() if key.endswith("normalization.weight") and not value.any()
    ]
    assert len(zeroed) == 16
    assert all(".layer.2." in key for key in zeroed)


@pytest.mark.parametrize("module", [test_resnet50, test_vit, test_swin, test_bert, test_yolos])
def test_a_case_is_one_short_module_that_imports_no_framework(module: ModuleType) -> None:
    source = Path(str(module.__file__)).read_text()
    assert len(source.splitlines()) <= 60
    tops = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not {"torch", "transformers"} & {
        name.name for node in tops if isinstance(node, ast.Import) for name in node.names
    }


def test_importing_the_cases_imports_no_framework() -> None:
    lines = [f"import suites.inference.test_{name}" for name in CLASSES]
    check = "import sys; assert not {'torch', 'transformers', 'sklearn', 'PIL'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", "\n".join([*lines, check])], cwd=CASES.parents[1], check=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_standard_profile_says_whose_task_it_is(path: Path) -> None:
    standard = load_mapping(path).get("profiles", {}).get("standard")
    if standard is None:
        return
    said = Published.model_validate(standard["parameters"]["published"])
    judged = standard["parameters"].get("metrics") or {"": {"target": standard["parameters"].get("target")}}
    same = said.target in [aim.get("target") for aim in judged.values()]
    assert said.task is None or same or any("target" in each for each in said.differs)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_standard_profile_has_the_published_numbers_or_says_which_differ(path: Path) -> None:
    profiles = load_mapping(path).get("profiles", {})
    if "standard" not in profiles:
        return
    config = config_of(path.stem, "standard", suite=path.parent.name) if path.parent.name in PARAMETERS else {}
    said = Published.model_validate(profiles["standard"]["parameters"]["published"])
    assert said.task is None or path.parent.name not in PARAMETERS or said.settings, "to the number"
    differing = [key for key, value in said.settings.items() if config.get(key) != value]
    assert [key for key in differing if not any(each.startswith(f"{key}:") for each in said.differs)] == []


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"task": None},
        {"task": ""},
        {"task": "X", "flops": 0},
        {"task": "X", "of": 1},
        {"task": "X", "settings": {"a": [1]}},
    ],
)
def test_whose_task_it_is_not_left_open(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Published.model_validate(said)
