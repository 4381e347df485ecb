"""Cases' pages: as generated, with results where verified ones are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.case_pages import case_pages
from docs.generate import main
from proofmark.errors import ConfigurationError
from proofmark.record.envelope import CaseRecord
from proofmark.rules.case_file import read_case
from proofmark.suite import Suite, find_suites
from proofmark.verdict.engine import judge
from tests.unit.records import accuracy, record

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def suites() -> dict[str, Suite]:
    return find_suites(ROOT / "suites")


def measured(suites: dict[str, Suite], verdict: str, **changes: object) -> CaseRecord:
    made = record(case="vit", **changes)
    suite = suites["inference"]
    judged = made.model_copy(update={"verdict": judge(made, suite.stages(made))})
    assert judged.verdict is not None and judged.verdict.kind == verdict
    return judged.with_figures(suite.figures(judged))


def test_every_page_is_as_generated(suites: dict[str, Suite]) -> None:
    folder = ROOT / "docs" / "cases"
    shipped = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*.md")}
    assert shipped == case_pages(ROOT, suites), "run `make docs`"


def test_every_profile_says_what_it_asks_for_and_whose_task_is_the_published_one() -> None:
    cases = [path for path in ROOT.glob("suites/*/*.yaml") if path.with_name(f"test_{path.stem}.py").exists()]
    assert len(cases) > 7
    for path in cases:
        for profile in read_case(path).profiles.values():
            assert profile.guide, path


def test_results_stand_on_the_page_of_their_case_alone(suites: dict[str, Suite]) -> None:
    passed = measured(suites, "PASS")
    missed = measured(suites, "FAIL_ACCURACY", vendor="forge", accuracy=accuracy(engine=0.5, framework=0.5))
    pages = case_pages(ROOT, suites, [passed, missed])
    assert [name for name, text in pages.items() if "## Results" in text] == ["inference/vit.md"]
    rows = [line for line in pages["inference/vit.md"].splitlines() if " chip |" in line and "1 x" in line]
    assert [row.split(" | ")[2] for row in rows] == ["PASS", "FAIL_ACCURACY"]
    assert "images/s" in rows[0] and "images/s" not in rows[1]


def test_what_does_not_verify_is_left_out(
    suites: dict[str, Suite], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = measured(suites, "PASS")
    (tmp_path / "results" / "run").mkdir(parents=True)
    made.save(tmp_path / "results" / "run" / "record.json")
    assert main(["--results", str(tmp_path / "results"), "--out", str(tmp_path / "out")]) == 0
    assert "left out: " in capsys.readouterr().err
    assert "## Results" not in (tmp_path / "out" / "inference" / "vit.md").read_text("utf-8")


@pytest.mark.parametrize("options", [["--results", "."], ["--out", "nowhere"], ["--results", "missing", "--out", "x"]])
def test_what_cannot_be_written_is_told_in_a_line(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(options) == 4
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_guide_has_all_its_keys_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("profiles: {embedded: {guide: {weights: fresh, price: 3}}}")
    with pytest.raises(ConfigurationError) as refused:
        read_case(path)
    assert [(each.key, each.what) for each in refused.value.problems] == [
        ("profiles.embedded.guide.resources", "is required and missing"),
        ("profiles.embedded.guide.price", "unknown key"),
    ]
