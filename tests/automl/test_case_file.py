"""A search is judged by one value: what else its case asks for is refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proofmark.errors import ConfigurationError
from proofmark.rules.case_file import load_case_file
from suites.automl import test_image_search
from suites.automl.contract import AutoMLContract

CASE = Path(test_image_search.__file__).with_name("image_search.yaml")


@pytest.mark.parametrize("instead", [True, False])
def test_several_values_are_refused(tmp_path: Path, instead: bool) -> None:
    """Whether they stand beside the one value or in its place."""
    case = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    task = case["profiles"]["embedded"]["parameters"]
    task["metrics"] = {"top1": {"target": 0.9}, "top5": {}}
    if instead:
        del task["target"]
    path = tmp_path / CASE.name
    path.write_text(yaml.safe_dump(case), encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        load_case_file(path, "automl", "embedded", AutoMLContract.common_file, AutoMLContract.parameters_type)
    what = "`metrics`: a search is scored by one value; give it as `metric` and `target`"
    assert [str(problem) for problem in refused.value.problems] == [f"{path}: parameters: {what}"]
