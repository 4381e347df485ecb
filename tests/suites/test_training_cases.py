"""The training cases: their declared FLOPs, their metrics, their models and their size."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from proofmark.errors import ConfigurationError
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import EffectiveConfig, resolve
from proofmark.rules.legality import OverrideLayer
from proofmark.training.case import TrainingCase, TrainingParameters
from suites.data.text.cloze import Cloze, lay_out
from suites.training import test_bert, test_cpm, test_glm, test_resnet50
from tests.suites.conftest import CASES, config_of

MODULES = {"resnet50": test_resnet50, "bert": test_bert, "glm": test_glm, "cpm": test_cpm}
CLASSES: dict[str, type[TrainingCase]] = {
    "resnet50": test_resnet50.TestResNet50,
    "bert": test_bert.TestBert,
    "glm": test_glm.TestGlm,
    "cpm": test_cpm.TestCpm,
}
SMALL = {"train_sequences": 40, "validation_sequences": 40}


def training_config(name: str, profile: str = "embedded", **values: Any) -> EffectiveConfig:
    small = {} if name == "resnet50" or profile == "standard" else SMALL
    return config_of(name, profile, suite="training", **small | values)


def example(name: str, config: EffectiveConfig) -> list[torch.Tensor | None]:
    if name == "resnet50":
        return [torch.zeros(1, config.channels, config.image_size, config.image_size)]
    ids = torch.zeros(1, config.max_seq_length, dtype=torch.long)
    if name == "glm":
        return [ids, ids, ids, ids, ids, torch.ones(1, 10, dtype=torch.bool)]
    # without a mask: it costs no FLOPs, and its content, which is looked at, is not on the meta device
    return [ids, None] if name == "bert" else [ids]


@pytest.mark.parametrize("profile", ["embedded", "standard"])
@pytest.mark.parametrize("name", CLASSES)
def test_declared_flops_are_three_forward_passes(name: str, profile: str) -> None:
    config = training_config(name, profile)
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        CLASSES[name]().create_model(config)(*example(name, config))
    assert 3 * counter.get_total_flops() == pytest.approx(config.flops, rel=0.005)


@pytest.mark.parametrize("name", CLASSES)
def test_fresh_model_trains_a_step_and_is_scored(name: str) -> None:
    config, case = training_config(name), CLASSES[name]()
    torch.manual_seed(0)
    model = case.create_model(config).train()
    optimizer = case.create_optimizer(model, config)
    inputs, targets = case.build_dataset(config, "train").__getitems__([3, 0, 5, 7])
    losses = []
    for _ in range(4):
        loss = case.train_step(model, inputs, targets)
        losses.append(float(loss.detach()))
        loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters()), "DDP waits for every gradient"
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0]
    with torch.no_grad():
        output = model.eval()(*inputs)
    score, count = case.evaluator(list(output) if isinstance(output, tuple) else [output], targets)
    assert 0 <= score <= count > 0


@pytest.mark.parametrize("name", CLASSES)
def test_same_seed_same_model_and_data(name: str) -> None:
    def made() -> tuple[dict[str, torch.Tensor], list[Any]]:
        torch.manual_seed(3)
        case, config = CLASSES[name](), training_config(name)
        splits = [case.build_dataset(config, split).identity for split in ("train", "validation")]
        return case.create_model(config).state_dict(), splits

    (first, data), (second, same) = made(), made()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert data == same and data[0].sha256 != data[1].sha256


@pytest.mark.parametrize("name", ["bert", "glm", "cpm"])
def test_reference_runs_are_of_the_base_batch(name: str) -> None:
    config = training_config(name)
    assert list(config.references) == [str(config.global_batch_size)]
    items = config_of(name, suite="training").train_sequences
    assert all(0 < samples <= config.max_epoch * items for samples in config.references["32"])


def test_a_reference_of_no_batch_is_refused(tmp_path: Path) -> None:
    cases = CASES.with_name("training")
    text = (cases / "cpm.yaml").read_text(encoding="utf-8")
    (tmp_path / "cpm.yaml").write_text(text.replace('{"32":', "{many:"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="references.many"):
        load_case_file(tmp_path / "cpm.yaml", "training", "embedded", cases / "contract.yaml", TrainingParameters)


def test_a_loss_is_noted_now_and_then() -> None:
    """One that is no number ends a training when it is noted, and progress is told by the notes."""

    def problems(steps: int) -> list[str]:
        cases = CASES.with_name("training")
        file = load_case_file(cases / "cpm.yaml", "training", "standard", cases / "contract.yaml", TrainingParameters)
        layer = OverrideLayer("vendor.yaml", {"log_freq": steps})
        return [str(problem) for problem in resolve(file, "acme", [layer]).problems]

    assert problems(1000) == []
    (told,) = problems(10**9)
    assert told == "vendor.yaml: log_freq: expected at most 1000, found 1000000000 (the value in force is 10)"


def test_a_momentum_makes_it_sgd() -> None:
    case, model = CLASSES["resnet50"](), torch.nn.Linear(2, 2)
    optimizer = case.create_optimizer(model, training_config("resnet50", "standard"))
    assert isinstance(optimizer, torch.optim.SGD) and optimizer.defaults["momentum"] == 0.9
    assert isinstance(case.create_optimizer(model, training_config("resnet50")), torch.optim.AdamW)


def test_tokens_are_counted_without_padding(text: Path, tokenizer_files: Path, tmp_path: Path) -> None:
    text.rename(tmp_path / "train")
    for name in ("bert", "cpm"):
        host = {"data_dir": str(tmp_path), "weights": str(tokenizer_files)}
        config = config_of(name, "standard", host=host, suite="training", max_seq_length=32)
        [tokens, *_], _ = batch = CLASSES[name]().build_dataset(config, "train").__getitems__([0, 2, 3])  # type: ignore[misc]
        counts, special = CLASSES[name]().tokens(*batch), 2 if name == "bert" else 0  # type: ignore[arg-type]
        assert counts is not None and tokens.shape == (3, 32)
        assert counts.tolist() == [5 + special, 2 + special, 32], "a line of five words, of two, and one that is cut"


def test_a_questions_tokens_are_of_its_context_and_all_candidates() -> None:
    question = Cloze([1, 10, 3, 11, 2], 2, [[20, 21], [22]], [False, True])
    assert CLASSES["glm"]().tokens(*lay_out([question, question], 12, 1, 2)).tolist() == [10, 10]  # type: ignore[union-attr]


def test_images_have_no_tokens() -> None:
    case = CLASSES["resnet50"]()
    assert case.tokens([torch.zeros(1, 3, 8, 8)], torch.zeros(1)) is None


@pytest.mark.parametrize("name", MODULES)
def test_a_case_is_one_short_module_that_imports_no_framework(name: str) -> None:
    source = Path(str(MODULES[name].__file__)).read_text()
    assert len(source.splitlines()) <= 60
    tops = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not {"torch", "transformers"} & {
        alias.name for node in tops if isinstance(node, ast.Import) for alias in node.names
    }


def test_importing_the_cases_imports_no_framework() -> None:
    lines = [f"import suites.training.test_{name}" for name in CLASSES]
    check = "import sys; assert not {'torch', 'transformers', 'sklearn', 'PIL'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", "\n".join([*lines, check])], cwd=CASES.parents[1], check=True)
