"""--summary, --annotations and --junitxml, without a session."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.outputs import ci, junit
from fixtures.outputs.reporting import ALTERED, FAILURES, NOT_RUN, NOTHING
from fixtures.policy import POLICY
from proofmark.errors import Problem
from proofmark.record.parts import VerdictKind
from proofmark.record.policy import default_policy
from reports.ci.markdown import Section
from tests.reports.xunit2 import ended, suites


def config(house: Path, *refused: str, **option: Any) -> Any:
    """That of a session in a house, which was refused with these lines."""
    plugin = SimpleNamespace(__file__=str(house / "conftest.py"))
    return SimpleNamespace(
        stash={ci.REFUSED: list(refused), ci.SECTIONS: [Section("Faster", ("run", "by"), [("a|b", "3 %")])]},
        option=SimpleNamespace(**{"collectonly": False, "summary": None, "annotations": None, **option}),
        invocation_params=SimpleNamespace(dir=house),
        pluginmanager=SimpleNamespace(get_plugins=lambda: [plugin]),
    )


def test_githubs_step_summary_is_appended_to_and_any_other_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, other = tmp_path / "steps.md", tmp_path / "new" / "other.md"
    monkeypatch.setenv(ci.STEP_SUMMARY, str(steps))
    steps.write_text("# An earlier step\n")
    for _ in range(2):
        assert ci._write(config(tmp_path, "no such vendor", summary=str(steps)), 4)
        assert ci._write(config(tmp_path, "no such vendor", summary="new/other.md"), 4)
    assert steps.read_text().startswith("# An earlier step\n")
    assert steps.read_text().count("exit code 4") == 2
    assert other.read_text().count("exit code 4") == 1


def test_what_features_say_stands_between_verdicts_and_the_rest(tmp_path: Path) -> None:
    ci._write(config(tmp_path, "no such vendor", summary="s.md"), 4)
    headings = [line for line in (tmp_path / "s.md").read_text().splitlines() if line.startswith("## ")]
    assert headings == ["## Proofmark&#58; 0 runs, exit code 4", "## Refused, nothing was run", "## Faster"]
    assert "| a&#124;b | 3 % |" in (tmp_path / "s.md").read_text()


@pytest.mark.parametrize("blocks", [(), (VerdictKind.INSUFFICIENT,)])
def test_all_for_which_a_session_is_no_success_is_in_the_junit_file(tmp_path: Path, blocks: Any) -> None:
    stash: dict[Any, Any] = {
        ALTERED: ["ERROR record.json: it was changed"],
        FAILURES: ["the reports cannot be written: no space"],
        NOT_RUN: [(NOTHING, "all that was selected is skipped"), ("training/net/1x9", "its test says why")],
        POLICY: default_policy().model_copy(update={"blocks": blocks}),
        junit.WRITTEN: True,
    }
    asked: Any = config(tmp_path, xmlpath="junit.xml")
    asked.stash |= stash
    assert junit._complete(asked)
    (suite,) = suites(tmp_path / "junit.xml").values()
    told = [("altered", stash[ALTERED][0]), ("session", stash[FAILURES][0])]
    nothing = [("selected", "nothing was run: all that was selected is skipped")]
    assert ended(suite, "failure") == told + (nothing if blocks else [])


def test_a_file_that_cannot_be_written_is_one_line_and_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert not ci._write(config(tmp_path, summary="file/s.md"), 0)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"--summary {tmp_path}/file/s.md: cannot be written: ")


def test_a_folder_elsewhere_that_is_not_there_is_refused_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    house, nowhere = tmp_path / "house", tmp_path / "nowhere/s.md"
    house.mkdir()
    ci.pytest_configure(config(house, summary="results/s.md"))
    with pytest.raises(pytest.UsageError) as refused:
        ci.pytest_configure(config(house, summary=str(nowhere)))
    assert str(refused.value) == f"--summary {nowhere}: there is no folder {nowhere.parent}"
    assert not ci._write(config(house, str(refused.value), summary=str(nowhere)), 4)
    assert not nowhere.parent.exists() and not capsys.readouterr().err, "it was told"


def test_what_is_wrong_with_a_file_of_the_house_is_said_on_its_line(tmp_path: Path) -> None:
    house = tmp_path / "house"
    file = house / "vendors/acme/unsupported.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("unsupported:\n  - case: a\n  - case: b\n")
    (house / "bad.yaml").write_text("a: 1\nb: [\n")
    (tmp_path / "outside.yaml").write_text("")
    refused = [
        "vendors/acme/unsupported.yaml: unsupported.1.case: there is no case 'b'",
        f"{file}: unsupported.0: is defined: more than once",
        "bad.yaml: not valid YAML: line 3: expected a node",
        "../outside.yaml: key: what",
        "nowhere.yaml: key: what",
        "x" * 5000 + ".yaml: a name that is too long",
        "\0.yaml: no name",
        "unknown vendor 'x': there are cpu",
    ]
    found = [(each.path, each.line) for each in ci._placed(config(house), [*map(ci._problem, refused)])]
    own = "vendors/acme/unsupported.yaml"
    assert found == [(own, 3), (own, 2), ("bad.yaml", 3)]


def test_a_line_is_taken_apart_as_problems_are_told() -> None:
    assert ci._problem("a.yaml: key: what: more") == Problem("a.yaml", "key", "what: more")
    assert ci._problem("a.yaml: cannot be read: it is not UTF-8") == Problem(
        "a.yaml", "", "cannot be read: it is not UTF-8"
    )
