"""A house as a git repository: what a change affects is selected, and nothing affected is not an empty selection."""

from __future__ import annotations

import shutil

import pytest

from tests.e2e.conftest import ROOT, House, Ran, clean, one_line_answer
from tests.reports.xunit2 import suites
from tests.unit.affected.test_affected_git import Git, git_in


@pytest.fixture
def git(house: House, monkeypatch: pytest.MonkeyPatch) -> Git:
    """The house with a second case, which another compiler compiles, on a branch of its own."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    house.add_case("second", {"compiler": "nan"})
    (house.root / ".gitignore").write_text("results/\n__pycache__/\n.cache/\n*.mark\n")
    (house.root / "docs").mkdir()
    (house.root / "docs/page.md").write_text("one\n")
    (house.root / "ci").mkdir()
    shutil.copy(ROOT / "ci/rooms.yaml", house.root / "ci")
    run = git_in(house.root)
    run("init", "-q", "-b", "main")
    run("add", "-A")
    run("commit", "-qm", "base")
    run("checkout", "-qb", "work")
    return run


def edit(house: House, path: str, text: str = "\n# edited\n") -> None:
    with (house.root / path).open("a") as stream:
        stream.write(text)


def selected(house: House, *options: str, vendor: str | None = None) -> Ran:
    given = ("--vendor", vendor) if vendor else ()
    return house.end(house.start(*given, "--collect-only", "-q", "--changed-since", "main", *options))


def cases(ran: Ran) -> set[str]:
    return {line.partition("::")[0].rpartition("/")[2] for line in ran.output.splitlines() if "::" in line}


def test_a_module_selects_all_cases_of_its_vendor_whoever_seems_to_import_it(house: House, git: Git) -> None:
    """The base's default compiler has planted what no reader of its text finds; the request changes the helper."""
    for name, text in {
        "honest.py": "\nimport pydoc\n\nhelper = pydoc.locate('vendors.fake.helper')\n",
        "nan.py": "\nfrom vendors.fake import helper\n",
        "helper.py": "",
    }.items():
        edit(house, f"vendors/fake/{name}", text)
    git("add", "-A")
    git("commit", "-qm", "planted")
    git("branch", "-f", "main")
    edit(house, "vendors/fake/helper.py")
    ran = selected(house)
    assert cases(ran) == {"test_second.py", "test_tiny.py"}, ran.output
    assert "AFFECTED inference/second, inference/tiny: vendors/fake/helper.py (with vendor fake)" in ran.output


def test_one_configuration_file_selects_its_case_and_a_deleted_one_too(house: House, git: Git) -> None:
    git("rm", "-q", "vendors/fake/configs/inference/second.yaml")
    git("commit", "-qm", "without")
    ran = selected(house)
    assert (ran.code, cases(ran)) == (0, {"test_second.py"}), ran.output


def test_a_case_that_others_import_and_what_cannot_be_placed(house: House, git: Git) -> None:
    edit(house, "suites/inference/second.yaml")
    assert cases(selected(house, vendor="fake")) == {"test_second.py"}
    edit(house, "suites/inference/test_tiny.py")  # the second inherits from it
    assert cases(selected(house, vendor="fake")) == {"test_second.py", "test_tiny.py"}


def test_documents_alone_affect_nothing_which_is_said_and_is_no_failure(house: House, git: Git) -> None:
    edit(house, "docs/page.md")
    for options in ((), ("-n", "1")):
        ran = house.run("--changed-since", "main", "--junitxml=results/j.xml", *options)
        assert ran.code == 0, ran.output
        assert "NOTHING AFFECTED: none of the 2 runs that were selected depends on the 1 file " in ran.output
        assert "that differs from main: docs/page.md" in ran.output
        left = suites(house.root / "results/j.xml")
        assert {run: suite.get("skipped") for run, suite in left.items()} == {
            "inference/second": "1",
            "inference/tiny": "1",
        }
    assert not (house.root / "results/latest").exists()
    broken = house.run("--changed-since", "main", "-k", "no_such_case")
    assert broken.code == 5 and "NOTHING AFFECTED" not in broken.output


def test_packages_of_cases_that_are_left_out_are_not_asked_for(house: House, git: Git) -> None:
    needs = "cases: {inference/second: {requirements: ['fake-runtime>=2']}}\n"
    (house.root / "vendors/fake/environment.yaml").write_text(needs)
    git("add", "-A")
    git("commit", "-qm", "needs")
    git("branch", "-f", "main")
    edit(house, "docs/page.md")
    ran = house.run("--changed-since", "main")
    assert ran.code == 0 and "NOTHING AFFECTED" in ran.output, ran.output
    edit(house, "vendors/fake/configs/inference/second.yaml")
    ran = house.run("--changed-since", "main")
    one_line_answer(ran, "environment.yaml: requirements: not installed", "pip install 'fake-runtime>=2'")


def test_a_vendors_request_is_judged_by_the_bases_rule(house: House, git: Git) -> None:
    edit(house, "vendors/fake/nan.py")
    assert (
        "judged as vendor fake's: nothing but vendors/fake/ has changed"
        in house.run("--changed-since", "main", "--co").output
    )
    (house.root / "ci/rooms.yaml").write_text("version: 1\nvendor_may_touch: [vendors/, ci/]\n")
    ran = house.run("--changed-since", "main", "--co")
    assert "AFFECTED inference/second, inference/tiny: ci/rooms.yaml (everything)" in ran.output
    assert "not judged as vendor fake's: it touches what a vendor may not: ci/rooms.yaml" in ran.output


def test_another_vendors_change_is_named_and_two_ask_which(house: House, git: Git) -> None:
    edit(house, "vendors/cpu/eager.py")
    ran = selected(house, vendor="fake")
    assert ran.code == 0 and not cases(ran)
    assert "LEFT OUT vendor cpu: it has changed too; this session is of fake, --vendor cpu runs it" in ran.output
    edit(house, "vendors/fake/nan.py")
    one_line_answer(selected(house), "vendors cpu, fake have changed: say which with --vendor")


def test_a_host_file_that_names_no_vendor_leaves_it_to_the_change(house: House, git: Git) -> None:
    edit(house, "vendors/fake/honest.py")
    listed = "CASES: {'tiny:pytorch': suites, 'second:pytorch': suites}\n"
    edit(house, "host.yaml", listed)
    edit(house, ".gitignore", "host.yaml\n")
    git("commit", "-qm", "ignored", ".gitignore")
    git("branch", "-f", "main")
    options = ("--host-config=host.yaml", "--weights=vendors")
    ran = selected(house, *options)
    assert cases(ran) == {"test_second.py", "test_tiny.py"}, ran.output
    edit(house, "vendors/cpu/eager.py")
    one_line_answer(selected(house, *options), "vendors cpu, fake have changed: say which with --vendor")
    edit(house, "host.yaml", "VENDOR: fake\n")
    assert "vendor cpu: it has changed too; this session is of fake" in selected(house, *options).output


def test_refusals_are_a_line(house: House, git: Git) -> None:
    one_line_answer(selected(house), "nothing differs from it")
    (house.root / "ci/rooms.yaml").write_text("version: 9\n")
    git("commit", "-qam", "broken")
    edit(house, "vendors/fake/nan.py")
    one_line_answer(house.run("--changed-since", "work~0"), "work~0:ci/rooms.yaml: version")
    shutil.rmtree(house.root / ".git")
    one_line_answer(house.run("--changed-since", "main"), "is not in a git repository that can be read")


def test_attributes_of_a_vendors_own_are_refused_and_hide_nothing(house: House, git: Git) -> None:
    """`$Id$` and `$Id: half of it $` are the same to git where the base's `.gitattributes` says `*.py ident`."""
    attributes, engine = (house.root / "vendors/fake" / name for name in (".gitattributes", "honest.py"))
    attributes.write_text("*.py ident\n")
    edit(house, "vendors/fake/honest.py", "\n# $Id$\n")
    git("add", "-A")
    git("commit", "-qm", "planted")
    git("branch", "-f", "main")
    engine.write_text(engine.read_text().replace("$Id$", "$Id: half of it $"))
    git("add", "--force", "vendors/fake")
    ran = house.run("--vendor", "fake", "--changed-since", "main")
    one_line_answer(ran, "vendors/fake/.gitattributes: git reads it to decide which files differ")
    attributes.unlink()
    git("rm", "-q", "--cached", "vendors/fake/.gitattributes")
    (house.root / ".git/info/attributes").write_text("*.py ident\n")
    git("commit", "-qm", "refused no more")
    git("branch", "-f", "main")
    assert "vendors/fake/honest.py (with vendor fake" in selected(house).output


def test_an_affected_run_without_a_record_is_a_failure(house: House, git: Git) -> None:
    """Here a plugin lets every test pass without running it."""
    edit(house, "vendors/fake/nan.py")
    (house.root / "conftest.py").open("a").write(
        "\nimport pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_protocol(item):\n    return True\n"
    )
    ran = house.run("--changed-since", "main", "--junitxml=results/j.xml")
    assert ran.code == 12, ran.output
    assert "NOT RUN inference/tiny: the change affects it, and this session has made no record of it" in ran.output
    assert suites(house.root / "results/j.xml")["inference/tiny"].get("failures") == "1"
    clean(ran)
