"""Cases of several values, which torchmetrics compute: corpus-level, lower is better, negative; in both suites."""

from __future__ import annotations

import json
import re

from tests.e2e.conftest import House, clean

METRIC = '''    packages = ("torchmetrics",)

    def metric(self, config: EffectiveConfig) -> Any:
        """BLEU over sentences of corners, the squared error of probabilities, and AUROC less than 1."""
        return Judge()


class Judge:
    """Three of torchmetrics'."""

    def __init__(self) -> None:
        from torchmetrics import MeanSquaredError
        from torchmetrics.classification import MulticlassAUROC
        from torchmetrics.text import BLEUScore

        self.bleu, self.error, self.auroc = BLEUScore(n_gram=1), MeanSquaredError(), MulticlassAUROC(CLASSES)

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor, /) -> None:
        """Take a batch."""
        logits = outputs[0]
        self.bleu.update([said(logits.argmax(-1))], [[said(targets)]])
        hot = logits.new_zeros(logits.shape).scatter_(1, targets.unsqueeze(1), 1.0)
        self.error.update(logits.softmax(-1), hot)
        self.auroc.update(logits, targets)

    def compute(self) -> Any:
        """By name."""
        return {"bleu": self.bleu.compute(), "error": self.error.compute(), "lacks": self.auroc.compute() - 1}


def said(corners: torch.Tensor) -> str:
    """A sentence."""
    return " ".join(f"corner{corner}" for corner in corners.tolist())
'''

VALUES = "metrics: {bleu: {target: 0.9}, error: {target: 0.05, better: lower}, lacks: {target: -0.02}}"


def judged(house: House, suite: str, values: str = VALUES) -> None:
    """The tiny case of a suite with this metric."""
    folder = house.root / "suites" / suite
    module, numbers = folder / "test_tiny.py", folder / "tiny.yaml"
    text = module.read_text()
    module.write_text(re.sub(r"    def evaluator\(self.*?(?=\n\n\n)", lambda _: METRIC.rstrip(), text, flags=re.DOTALL))
    short = re.sub(r"^ +target: .*\n", "", numbers.read_text(), flags=re.MULTILINE)
    numbers.write_text(short.replace("  metric: top1\n", f"  {values}\n"))


def test_an_engine_is_held_to_each(house: House) -> None:
    judged(house, "inference")
    ran = house.run("--junitxml=junit.xml", "--benchmark-json=benchmark.json")
    assert ran.code == 0, ran.output
    clean(ran)
    assert {"pytest-benchmark", "torchmetrics"} <= ran.record().versions.keys()
    scores = {each.metric: each for each in ran.record().accuracy.scores}
    assert list(scores) == ["bleu", "error", "lacks"] and ran.record().config["target"] == 0.9
    for each in scores.values():
        assert each.engine is not None and each.framework_fp32 is not None and each.aim.reached(each.engine)
        assert abs(each.engine - each.framework_fp32) < 1e-4
    assert scores["lacks"].engine is not None and -0.02 <= scores["lacks"].engine <= 0
    shown = {"page": (ran.run_dir / "report.html").read_text(), "junit": (house.root / "junit.xml").read_text()}
    shown |= {"terminal": ran.output, "benchmark": json.dumps(json.loads((house.root / "benchmark.json").read_text()))}
    for name, text in shown.items():
        assert "lacks" in text or name == "benchmark", name
    illegal = house.run("--set", "better=lower", "--set", "metrics=none")
    assert illegal.code == 16 and "metrics: is a parameter of the task" in illegal.output
    assert "better: is a parameter of the task" in illegal.output
    judged_worse = VALUES.replace("0.05", "1e-9")
    house.case_yaml.write_text(house.case_yaml.read_text().replace(VALUES, judged_worse))
    missed = house.run()
    assert missed.code == 14 and "engine error " in missed.output and "is above the target 1e-09" in missed.output
    house.case_yaml.write_text(house.case_yaml.read_text().replace("lacks:", "absent:"))
    absent = house.run()
    lacks_absent = "metric Judge: compute returns bleu, error, lacks; the case names absent too"
    assert absent.code == 17 and lacks_absent in absent.output


def test_a_value_that_is_no_number_is_on_no_side_of_a_target(house: House) -> None:
    judged(house, "inference")
    module = house.root / "suites" / "inference" / "test_tiny.py"
    module.write_text(module.read_text().replace('"bleu": self.bleu.compute()', '"bleu": float("nan")'))
    ran = house.run("-k", "framework_accuracy")
    assert "bleu is not a finite number; expected one, to be held to the target 0.9" in ran.output, ran.output
    assert "None is" not in ran.output


def test_a_training_reaches_each(house: House) -> None:
    judged(house, "training", VALUES.replace("-0.02", "-0.01"))
    ran = house.run("--scale", "1x2", vendor="cpu", suite="training")
    assert ran.code == 0, ran.output
    record = ran.training("1x2")
    assert {"pytest-benchmark", "torchmetrics"} <= record.versions.keys()
    (run,) = record.runs
    assert list(record.aims) == ["bleu", "error", "lacks"] and run.examination is not None and run.examination.whole
    reached = {"bleu": run.metric, **run.metrics}
    assert all(value is not None and record.aims[name].reached(value) for name, value in reached.items())
    said = {name: found.claimed for name, found in run.examination.others.items()}
    for name, value in run.metrics.items():
        assert said[name] is not None and value is not None and abs(said[name] - value) < 1e-4
    assert all(each.others.keys() == {"error", "lacks"} for each in run.evaluations)
