"""The templates under ci/: linted, and their steps run as they stand, on branches of a house that each break a gate."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import yaml

from proofmark.process.lifetime import end_group
from tests.e2e.conftest import TEMPLATE, House
from tests.reports.xunit2 import suites
from tests.unit.affected.test_affected_git import git_in

ROOT = Path(__file__).parents[2]
CI = ROOT / "ci"
GITHUB = sorted(path.name for path in CI.glob("github-*.yml"))

VENDOR = "vendors/fake"
TINY = f"{VENDOR}/configs/inference/tiny.yaml"
SLOWER = """

class InferModel(InferModel):
    def __call__(self, inputs):
        time.sleep(0.005)  # a tenth more
        return super().__call__(inputs)
"""
BRANCHES: Mapping[str, Mapping[str, str]] = {
    "steady": {TINY: "compiler: slow\n"},
    "slower": {f"{VENDOR}/slow.py": SLOWER},
    "fine": {f"{VENDOR}/slow.py": "\n# as fast as before\n"},
    "documents": {"docs/notes.md": "as fast as before\n"},
    "illegal": {TINY: "repeat: 3\nseed: 7\n"},
    "wrong": {TINY: "compiler: short\n"},
    "cheat": {TINY: "compiler: foo_time\n"},
    "broken": {f"{VENDOR}/__init__.py": "import no_such_module\n"},
    "new": {
        f"vendors/fresh/{path.name}": path.read_text()
        for path in (*(TEMPLATE / VENDOR).glob("*.*"), TEMPLATE / "trouble.py")
    },
    "beyond": {TINY: "batch_size: 8\n", "ci/rooms.yaml": "version: 1\nvendor_may_touch: [vendors/, ci/]\n"},
}
ONTO: Mapping[str, str] = {"slower": "steady", "fine": "steady"}
"""Branches that are requested for another than main: there the engine waits for 50 ms, as for a card. A tenth more is
far beyond what a busy machine adds to that, in `core` and in `whole`."""


def workflow(name: str) -> dict[str, Any]:
    """A template; `on` is a key and not YAML 1.1's true."""
    content = yaml.safe_load((CI / name).read_text())
    return {"on" if key is True else key: value for key, value in content.items()}


@pytest.mark.parametrize("name", GITHUB)
def test_a_github_workflow_is_valid(name: str) -> None:
    jsonschema.validate(workflow(name), json.loads((Path(__file__).parent / "github-workflows.json").read_text()))


def test_gitlabs_template_is_valid() -> None:
    jsonschema.validate(workflow("gitlab.yml"), json.loads((Path(__file__).parent / "gitlab-ci.json").read_text()))


def test_no_workflow_does_what_a_linter_of_their_security_warns_of() -> None:
    command = [Path(sys.executable).with_name("zizmor"), "--offline", "--persona=pedantic", "--no-progress", *GITHUB]
    done = subprocess.run(command, cwd=CI, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", GITHUB)
def test_nothing_of_others_gets_into_a_script_a_secret_or_a_token(name: str) -> None:
    text = (CI / name).read_text()
    assert "secrets." not in text and "write" not in text
    content = workflow(name)
    assert content["permissions"] == {}
    for job in content["jobs"].values():
        assert job["permissions"] in ({}, {"contents": "read"})
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", f"a@{'0' * 40}"))
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_the_card_waits_for_a_label_and_for_a_change_that_is_a_vendors() -> None:
    content = workflow("github-card.yml")
    assert content["on"] == {"pull_request_target": {"types": ["labeled"]}}
    default = "github.event.pull_request.base.ref == github.event.repository.default_branch"
    assert content["jobs"]["whose"]["if"] == f"github.event.label.name == 'run-on-card' && {default}"
    assert content["jobs"]["card"]["needs"] == "whose"


@pytest.mark.parametrize("label, name", [("run-on-card", "gate"), ("another", "not asked for")])
@pytest.mark.parametrize("card", ["success", "failure", "skipped", "cancelled"])
def test_no_label_but_that_one_says_anything_in_the_gates_name(
    tmp_path: Path, label: str, name: str, card: str
) -> None:
    """GitHub takes a job that was skipped for one that passed."""
    gate = workflow("github-card.yml")["jobs"]["gate"]
    assert (gate["needs"], gate["if"], gate["permissions"]) == (["whose", "card"], "always()", {})
    asked = "github.event.label.name == 'run-on-card'"
    names = re.fullmatch(rf"\$\{{\{{ {asked} && '(.+)' \|\| '(.+)' \}}\}}", gate["name"])
    assert names and names[1 if label == "run-on-card" else 2] == f"Proofmark on a card, {name}"
    assert f"`{names[1]}`" in (ROOT / "docs/ci.md").read_text()
    known = {asked: str(label == "run-on-card").lower(), "needs.card.result": card}
    code, output = github("github-card.yml", "gate", tmp_path, known)
    assert code == int(label == "run-on-card" and card != "success"), output


def test_gitlabs_card_blocks_a_merge_request_that_touches_a_vendor_until_it_has_passed() -> None:
    card = workflow("gitlab.yml")["card"]
    assert card["rules"] == [{"changes": ["vendors/*/**/*"], "when": "manual", "allow_failure": False}]
    assert not {"when", "allow_failure"} & set(card)


@pytest.mark.parametrize("vendor", sorted({path.parent.name for path in ROOT.glob("vendors/*/__init__.py")} - {"cpu"}))
def test_no_template_names_a_vendor_whose_cards_it_would_be_for(vendor: str) -> None:
    assert all(vendor not in (CI / name).read_text() for name in os.listdir(CI))


def test_every_session_of_the_templates_holds_speed_against_the_bases() -> None:
    lines = re.findall(
        r"-m pytest suites(.+?)--junitxml", "".join((CI / name).read_text() for name in os.listdir(CI)), re.S
    )
    assert len(lines) == 4 and all("compare" in line for line in lines)


def test_what_the_templates_install_with_is_there() -> None:
    targets = re.findall(
        r"(?:run:|-) make (?:-C base )?(\S+)", "".join((CI / name).read_text() for name in os.listdir(CI))
    )
    assert set(targets) == {".venv/.bench"}
    assert "\n.venv/.bench:" in (ROOT / "Makefile").read_text()


@dataclass(frozen=True)
class Job:
    """A job that has ended: the code of its last step, what it printed, and its folder."""

    code: int
    output: str
    folder: Path

    def read(self, name: str) -> str:
        return (self.folder / "results" / name).read_text()


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A house as a repository: `main`, and a branch for each gate."""
    house = House(tmp_path_factory.mktemp("ci") / "upstream")
    shutil.rmtree(house.root / "suites/training")
    (house.root / "ci").mkdir()
    shutil.copy(CI / "rooms.yaml", house.root / "ci")
    (house.root / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    git = git_in(house.root)
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "base")
    for branch, files in BRANCHES.items():
        git("checkout", "-q", "-b", branch, ONTO.get(branch, "main"))
        for name, text in files.items():
            (house.root / name).parent.mkdir(parents=True, exist_ok=True)
            with (house.root / name).open("w" if name.endswith(".yaml") else "a") as stream:
                stream.write(text)
        git("add", "-A")
        git("commit", "-qm", branch)
    git("checkout", "-q", "main")
    return house.root


Clone = Callable[[str, str], Path]


@pytest.fixture
def clone(upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """Check a revision out into a folder, with an environment that is installed."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("OUTPUT", "STEP_SUMMARY"):
        monkeypatch.setenv(f"GITHUB_{name}", str(tmp_path / name))
    monkeypatch.setenv("PATH", f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}")

    def check_out(revision: str, name: str) -> Path:
        folder = tmp_path / name
        git_in(upstream)("clone", "-q", str(upstream), str(folder))
        git_in(folder)("checkout", "-q", "--detach", revision)
        (folder / ".venv").symlink_to(ROOT / ".venv")
        return folder

    return check_out


def shell(script: str, folder: Path, values: Mapping[str, str]) -> tuple[int, str]:
    """As GitHub and GitLab run a script."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))} | dict(values)
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**environment, "HOUSE": str(folder), "TROUBLE_MARK": str(folder / "../mark")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            output, _ = running.communicate(timeout=4200)  # a comparison may take its hour
        finally:
            end_group(running)
    return running.returncode, output


def github(name: str, job: str, folder: Path, known: Mapping[str, str], **given: str) -> tuple[int, str]:
    """Run a job's steps up to the first that fails. What is installed is there already."""
    content = workflow(name)["jobs"][job]
    outputs = []
    for step in content["steps"]:
        if "run" in step and step["name"] != "Install":
            values = {**content.get("env", {}), **step.get("env", {})}
            resolved = {key: re.sub(r"\$\{\{ (.+?) \}\}", lambda m: known[m[1]], each) for key, each in values.items()}
            code, output = shell(step["run"], folder, {**resolved, **given})
            outputs.append(output)
            if code:
                return code, "".join(outputs)
    return 0, "".join(outputs)


def on_github_cpu(clone: Clone, branch: str) -> Job:
    """The merge commit that GitHub makes."""
    folder = clone(f"origin/{ONTO.get(branch, 'main')}", "merged")
    git_in(folder)("merge", "-q", "--no-ff", "-m", "merged", f"origin/{branch}")
    return Job(*github("github-cpu.yml", "cases", folder, {}, VENDOR="fake"), folder)


def on_github_card(clone: Clone, branch: str, upstream: Path) -> Job:
    onto = ONTO.get(branch, "main")
    base, request = clone(f"origin/{onto}", "base"), clone(f"origin/{branch}", "request")
    (request / ".venv").unlink()
    known = {"github.sha": git_in(upstream)("rev-parse", onto)}
    code, output = github("github-card.yml", "whose", base.parent, known)
    if code:
        return Job(code, output, base)
    vendor = Path(os.environ["GITHUB_OUTPUT"]).read_text().removeprefix("vendor=").strip()
    assert vendor == "fake"
    again, more = github("github-card.yml", "card", base.parent, {"needs.whose.outputs.vendor": vendor})
    return Job(again, output + more, base)


def on_gitlab(clone: Clone, job: str, branch: str, merged: bool = False) -> Job:
    """With merged results, of a target that has gone on since, in what a vendor may not touch."""
    content, folder = workflow("gitlab.yml"), clone(f"origin/{branch}", "clone")
    git = git_in(folder)
    values = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": git("merge-base", "origin/main", "HEAD")}
    values["CI_MERGE_REQUEST_TARGET_BRANCH_NAME"] = "main"
    if merged:
        git("checkout", "-q", "--detach", "origin/main")
        (folder / "docs").mkdir(exist_ok=True)
        (folder / "docs/newer.md").write_text("newer\n")
        git("add", "docs/newer.md")
        git("commit", "-q", "-m", "newer")
        values["CI_MERGE_REQUEST_TARGET_BRANCH_SHA"] = git("rev-parse", "HEAD")
        git("merge", "-q", "--no-ff", "-m", "merged", f"origin/{branch}")
    values["CI_COMMIT_SHA"] = git("rev-parse", "HEAD")
    values |= {key: "fake" for key in content[job].get("variables", {}) if key == "VENDOR"}
    script = [*content["default"]["before_script"], *content[job]["script"]]
    lines = [line for line in script if not line.startswith("make ")]
    return Job(*shell("\n".join(lines), folder, values), folder)


def test_github_an_illegal_override_is_named_on_its_line(clone: Clone) -> None:
    job = on_github_cpu(clone, "illegal")
    assert job.code == 16, job.output
    assert f"\n::error file={TINY},line=2,title=not legal::seed: is a parameter of the task" in job.output
    summary = Path(os.environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary == job.read("summary.md")
    assert summary.startswith("## Proofmark&#58; 1 run, exit code 16\n") and "FAIL&#95;LEGALITY" in summary
    assert list(suites(job.folder / "results/junit.xml")) == ["inference/tiny"]


def record_of(job: Job) -> dict[str, Any]:
    """Of the case that was compared with the base's."""
    (record,) = job.folder.glob("results/latest/inference/tiny/record.json")
    return dict(json.loads(record.read_text()))


def outcomes(job: Job) -> dict[str, str]:
    """Of each metric."""
    return {each["metric"]: each["outcome"] for each in record_of(job)["compared"]["ratios"]}


def test_github_a_tenth_slower_is_found_by_the_pairs_and_nothing_else(clone: Clone) -> None:
    job = on_github_cpu(clone, "slower")
    assert job.code == 13, job.output
    assert outcomes(job) == {"core": "REGRESSION", "whole": "REGRESSION"}
    record = record_of(job)
    compared = record["compared"]
    assert compared["loadings"] == 5 and compared["way"] == "rounds"
    assert compared["identity"] == git_in(job.folder)("rev-parse", "HEAD^1")
    assert all(len(each["base"]) == len(each["head"]) >= each["pairs"] >= 24 for each in compared["ratios"])
    assert record["verdict"]["kind"] == "FAIL_PERF" and "core is slower" in str(record["verdict"]["reasons"])
    failed = ET.parse(job.folder / "results/junit.xml").findall(".//failure")
    assert len(failed) == 1 and "FAIL_PERF" in str(failed[0].text)
    assert "FAIL&#95;PERF" in job.read("summary.md") and "Slower or faster" in job.read("summary.md")


def test_github_a_change_of_documents_alone_passes(clone: Clone) -> None:
    job = on_github_cpu(clone, "documents")
    assert job.code == 0, job.output
    assert "## Proofmark&#58; 0 runs, exit code 0\n" in Path(os.environ["GITHUB_STEP_SUMMARY"]).read_text()


def test_github_a_broken_import_is_refused(clone: Clone) -> None:
    job = on_github_cpu(clone, "broken")
    assert job.code == 4, job.output
    assert "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'" in job.output
    assert "Refused, nothing was run" in job.read("summary.md")


def test_the_card_finds_a_cheat(clone: Clone, upstream: Path) -> None:
    job = on_github_card(clone, "cheat", upstream)
    assert job.code == 15, job.output
    assert "judged as vendor fake's" in job.output
    assert "FAIL&#95;HONESTY" in job.read("summary.md")


def test_the_card_accepts_a_change_that_costs_nothing(clone: Clone, upstream: Path) -> None:
    """Held against the base's speed: of the same clone, in which the request's folder is laid over the base's."""
    job = on_github_card(clone, "fine", upstream)
    assert job.code == 0, job.output
    assert outcomes(job) == {"core": "SAME", "whole": "SAME"}
    assert record_of(job)["compared"]["identity"] == git_in(upstream)("rev-parse", ONTO["fine"])
    assert "✓ PASS" in job.read("summary.md")


def test_the_card_runs_nothing_for_a_change_beyond_the_vendors_folder(clone: Clone, upstream: Path) -> None:
    job = on_github_card(clone, "beyond", upstream)
    assert job.code == 1, job.output
    assert "not judged as vendor fake's: it touches what a vendor may not: ci/rooms.yaml" in job.output
    assert not (job.folder / "results").exists()


def test_gitlab_a_wrong_answer(clone: Clone) -> None:
    job = on_gitlab(clone, "cpu", "wrong")
    assert job.code == 14, job.output
    assert json.loads(job.read("codequality.json")) == []


@pytest.mark.parametrize("merged", [False, True])
def test_gitlabs_card_passes_a_new_vendor_which_has_no_base_to_be_slower_than(clone: Clone, merged: bool) -> None:
    job = on_gitlab(clone, "card", "new", merged)
    assert job.code == 0, job.output
    assert "✓ PASS" in job.read("summary.md")
    assert "AFFECTED inference/tiny: vendors/fresh/" in job.output and "comparing with" not in job.output


def test_gitlabs_card_runs_nothing_for_a_change_beyond_the_vendors_folder(clone: Clone) -> None:
    job = on_gitlab(clone, "card", "beyond")
    assert job.code == 1, job.output
    assert "it touches what a vendor may not: ci/rooms.yaml" in job.output
    assert not (job.folder / "results").exists()
