"""The standard profile to its end, on folders of the user's: the real images, text and models, only small."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode

from proofmark.inference.outcome.record import RunRecord
from tests.e2e.conftest import ROOT, House, clean, one_line_answer

CLASSES, WORDS = (
    5,
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the old young baker sailor sells paints bread".split()],
)
SMALL = {
    "resnet50": {"embedding_size": 8, "hidden_sizes": [8, 8, 8, 16], "depths": [1, 1, 1, 1]},
    "bert": {"vocab_size": len(WORDS), "max_position_embeddings": 16, "hidden_size": 16, "intermediate_size": 16}
    | {"num_hidden_layers": 1, "num_attention_heads": 2},
}
TASK: dict[str, dict[str, Any]] = {
    "resnet50": {"classes": CLASSES, "image_size": 32, "resize": 40},
    "bert": {"max_seq_length": 16},
}
EXAMPLE = {"resnet50": torch.zeros(1, 3, 32, 32), "bert": torch.zeros(1, 16, dtype=torch.long)}


@pytest.fixture
def published(house: House) -> House:
    """A house with two of the real cases, their standard profile made small, and a random model's weights for each."""
    shutil.copytree(ROOT / "suites/data", house.root / "suites/data")
    shutil.copy(ROOT / "suites/models.py", house.root / "suites/models.py")
    for case, model in SMALL.items():
        for name in (f"{case}.yaml", f"test_{case}.py"):
            shutil.copy(ROOT / "suites/inference" / name, house.case_yaml.with_name(name))
        path = house.case_yaml.with_name(f"{case}.yaml")
        content = yaml.safe_load(path.read_text())
        standard = content["profiles"]["standard"]
        described = content["parameters"].get("model", {}) | standard["parameters"].get("model", {}) | model
        flops = save_weights(case, described, house.root / "weights" / case)
        standard["parameters"] |= TASK[case] | {"model": described, "flops": flops}
        standard["configurations"] |= {"batch_size": 4, "num_workers": 1, "repeat": 2, "min_seconds": 0.0}
        standard["configurations"] |= {"fp16": False}  # which a CPU has not
        path.write_text(yaml.safe_dump(content))
    make_images(house.root / "images/val")
    (house.root / "text").mkdir()
    (house.root / "text/a.txt").write_text("the old baker sells bread\nthe young sailor paints\n" * 3)
    return house


def save_weights(case: str, described: dict[str, Any], directory: Path) -> int:
    """Floating-point operations per item."""
    import transformers

    torch.manual_seed(0)
    model: Any
    if case == "resnet50":
        model = transformers.ResNetForImageClassification(transformers.ResNetConfig(**described, num_labels=CLASSES))
    else:
        model = transformers.BertForMaskedLM(transformers.BertConfig(**described))
    model.save_pretrained(directory)
    if case == "bert":
        (directory / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    model.eval().set_attn_implementation("eager")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(EXAMPLE[case])
    return counter.get_total_flops()


def make_images(root: Path) -> None:
    noise = np.random.default_rng(0)
    for label in range(CLASSES):
        (root / f"n{label}").mkdir(parents=True)
        for number in range(2):
            size = (int(noise.integers(30, 90)), int(noise.integers(30, 90)), 3)
            Image.fromarray(noise.integers(0, 256, size, dtype=np.uint8)).save(root / f"n{label}/{number}.JPEG")


def complete(record: RunRecord, items: int) -> None:
    assert record.verdict is not None and record.verdict.kind == "FAIL_ACCURACY", record.verdict
    assert {step.name: step.status for step in record.steps if step.status != "done"} == {}
    assert record.profile == "standard" and record.dataset is not None and record.dataset.items == items
    assert record.engine is not None and record.framework is not None
    assert [timed.items - timed.filled for timed in record.engine.rounds] == [items] * 2
    assert record.weights is not None and all(check.passed for check in record.checks)


def test_cases_of_a_host_file_with_random_weights_go_all_the_way_and_miss_their_targets(published: House) -> None:
    cases = {"resnet50:pytorch_1.13": "images/val", "bert:pytorch_1.13": str(published.root / "text")}
    (published.root / "host.yaml").write_text(yaml.safe_dump({"CASES": cases}))
    options = ["--host-config=host.yaml", "--weights=weights"]
    ran = published.run(*options, vendor="cpu")
    assert ran.code == 14, ran.output
    complete(ran.record("resnet50"), 2 * CLASSES)
    complete(ran.record("bert"), 2)  # six lines, joined to one text
    assert (ran.run_dir / "report.html").read_text().count("FAIL_ACCURACY") >= 2
    clean(ran)
    (published.root / "text").rename(published.root / "moved")
    one_line_answer(
        published.run(*options, vendor="cpu"), "host.yaml: CASES: bert:pytorch_1.13: no such directory: ", "house/text"
    )


def test_what_lies_in_the_folders_is_looked_at_before_anything_runs(published: House) -> None:
    options = ["--profile=standard", "--data-dir=images", "--weights=text", "--compiler=null"]
    ran = published.run("-k", "resnet50", *options, vendor="cpu")
    assert ran.code == 4 and not ran.results.exists(), ran.output
    weights, data = (line for line in ran.output.splitlines() if published.root.name in line and "holds" in line)
    assert f"--weights: {published.root}/text holds no *.safetensors file: expected a model directory" in weights
    assert f"--data-dir: {published.root}/images holds 1 class folder: expected {CLASSES}" in data
    assert data.endswith(f"; did you mean {published.root}/images/val?")
    clean(ran)
    both = published.run("-k", "resnet50 or bert", *options, vendor="cpu")
    assert [both.output.count(f"folder {case} with these") for case in SMALL] == [1, 1], both.output
    (published.root / "host.yaml").write_text("CASES: {'resnet50:pytorch_1.13': images}\n")
    expected = f"host.yaml: CASES: resnet50:pytorch_1.13: {published.root}/images holds 1 class folder"
    one_line_answer(published.run("--host-config=host.yaml", "--weights=weights", vendor="cpu"), expected)


def test_weights_are_looked_at_before_the_data(published: House) -> None:
    options = ["-k", "resnet50", "--profile=standard", "--data-dir=images/val", "--compiler=null"]
    shutil.copy(published.root / "weights/bert/config.json", published.root / "weights/resnet50/config.json")
    (published.root / "images/val/n0/0.JPEG").write_text("no image")
    ran = published.run(*options, "--weights=weights", vendor="cpu")
    kind, reasons = ran.verdict("resnet50")
    assert kind == "ERROR" and "describes a model of type 'bert'" in reasons
    assert ran.record("resnet50").dataset is None


def test_a_case_without_the_profile_is_skipped_in_one_line(house: House) -> None:
    house.add_case("small")
    path = house.case_yaml.with_name("small.yaml")
    content = yaml.safe_load(path.read_text())
    del content["profiles"]["standard"]
    path.write_text(yaml.safe_dump(content))
    options = ["--profile=standard", "--data-dir=suites", "--weights=vendors", "--junitxml=junit.xml"]
    ran = house.run(*options)
    assert ran.code not in (0, 4), ran.output
    expected = "case small has no profile 'standard'; it has embedded"
    lines = [line for line in ran.output.splitlines() if expected in line and not line.startswith("SKIPPED [")]
    assert lines == [f"skipped: {expected}"]
    assert expected in (house.root / "junit.xml").read_text()
    assert [path.name for path in (ran.run_dir / "inference").iterdir()] == ["tiny"]
    one_line_answer(house.run(*options, "-k", "Small"), "small.yaml: profiles: has no profile 'standard'")
    house.root.joinpath("host.yaml").write_text("CASES: {'tiny:pytorch': suites, 'small:pytorch': suites}\n")
    listed = house.run("--host-config=host.yaml", "--weights=vendors")
    one_line_answer(listed, "small.yaml: profiles: has no profile 'standard'")
