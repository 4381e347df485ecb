"""The pages for a case author and for a vendor, followed to the letter."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, House

CASE_PAGE = (ROOT / "docs" / "case-author.md").read_text(encoding="utf-8")
VENDOR_PAGE = (ROOT / "docs" / "vendor-first-day.md").read_text(encoding="utf-8")


def files_of(page: str) -> dict[str, str]:
    """The files that a page prints: a heading that names one, and the next block of code."""
    return dict(re.findall(r"^## [^\n]*`([^`\n]+/[^`\n]+)`\n.*?^```\w+\n(.*?)^```", page, re.DOTALL | re.MULTILINE))


def commands_of(page: str, suite: str = "inference") -> list[list[str]]:
    """The options of every pytest command of a suite's that a page prints."""
    found = re.findall(rf"^    \.venv/bin/python -m pytest suites/{suite} (.*?)(?:  +#.*)?$", page, re.MULTILINE)
    return [shlex.split(options) for options in found]


@pytest.fixture
def clone(house: House) -> House:
    """A house with the suite's own data rooms."""
    shutil.copytree(ROOT / "suites" / "data", house.root / "suites" / "data")
    for name in ("test_tiny.py", "tiny.yaml"):
        (house.root / "suites" / "inference" / name).unlink()
    for path, text in files_of(CASE_PAGE).items():
        (house.root / path).write_text(text)
    return house


def test_a_case_authors_first_day(clone: House) -> None:
    suites, names = ("inference", "training"), ("mlp.yaml", "test_mlp.py")
    assert {*files_of(CASE_PAGE)} == {f"suites/{suite}/{name}" for suite in suites for name in names}
    assert all(len(text.splitlines()) <= 60 for text in files_of(CASE_PAGE).values())
    ran = [clone.run(*options, vendor="cpu") for options in commands_of(CASE_PAGE)]
    assert [each.code for each in ran] == [0, 16, 16, 16], [each.output for each in ran]
    assert "VERDICT PASS" in ran[0].output
    yaml = clone.root / "suites/inference/mlp.yaml"
    yaml.write_text(yaml.read_text().replace("target: 0.93", "target: 0.999"))
    failed = clone.run("-k", "mlp", vendor="cpu")
    assert failed.code == 14 and "withheld: FAIL_ACCURACY" in failed.output


def test_a_case_authors_first_training(clone: House) -> None:
    (options,) = commands_of(CASE_PAGE, "training")
    ran = clone.run(*options, vendor="cpu", suite="training")
    assert ran.code == 0 and "VERDICT PASS" in ran.output, ran.output


def test_a_vendors_first_day(clone: House) -> None:
    """With the small case in the place of the page's, and without its many devices and its image."""
    files = files_of(VENDOR_PAGE)
    assert [Path(path).name for path in files] == ["__init__.py", "anvil.py", "chips.yaml", "vit.yaml"]
    given = [options for options in commands_of(VENDOR_PAGE) if not {"-n", "--container"} & {*options}]
    commands = [[word.replace("vit", "mlp") for word in options] for options in given]
    for path in list(files)[:2]:
        write(clone.root / path, files[path])
    ran = [clone.run(*options, vendor="acme") for options in commands[:-1]]
    assert [each.code for each in ran] == [0, 0, 10, 0, 0], [each.output for each in ran]
    assert "p99" in ran[3].output
    write(clone.root / "vendors/acme/chips.yaml", files["vendors/acme/chips.yaml"])
    write(clone.root / "vendors/acme/configs/inference/mlp.yaml", "batch_size: 32\n")
    last = clone.run(*commands[-1], vendor="acme")
    assert last.code == 0, last.output
    assert "batch_size: 64 -> 32" in last.output
    peak = last.record("mlp").chip.peak
    assert peak is not None and peak.flops_per_second == 20e12


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
