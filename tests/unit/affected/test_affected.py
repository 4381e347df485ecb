"""From changed files to runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.affected.changes import Change
from proofmark.affected.imports import dependents, imports_of
from proofmark.affected.reach import Asked, Reach, Tree, reaches, vendors_in, why
from proofmark.affected.rooms import Rooms, read_rooms
from proofmark.affected.whose import whose
from proofmark.errors import ConfigurationError

ROOMS = Rooms(affect_no_case=["docs/", "*.md", "LICENSE"], vendor_may_touch=["vendors/{vendor}/"])
SOURCES = {
    "vendors/__init__.py": "",
    "vendors/acme/__init__.py": "from vendors.acme import bus\n",
    "vendors/acme/bus.py": "",
    "vendors/acme/anvil.py": "from .staging import Staging\nmodel.eval()\n",
    "vendors/acme/hammer.py": "from vendors.acme import anvil\n",
    "vendors/acme/tongs.py": "def run():\n    import vendors.acme.staging\n",
    "vendors/acme/staging.py": "",
    "vendors/acme/one.py": "from vendors.acme import two",
    "vendors/acme/two.py": "from vendors.acme import one",
    "vendors/acme/dead.py": "",
    "vendors/acme/training/net.py": "",
    "vendors/acme/awl.py": "from vendors.acme.training import net",
    "vendors/other/__init__.py": "",
    "suites/training/test_net.py": "from suites.training.contract import Contract",
    "suites/training/test_wider.py": "from suites.training import test_net",
    "suites/training/contract.py": "",
    "suites/inference/test_net.py": "",
    "suites/data/images/loaders.py": "",
}
IMPORTS = {path: imports_of(path, text) for path, text in SOURCES.items()}
TREE = Tree(("training", "inference"), IMPORTS)


def reached(*paths: str, tree: Tree = TREE, rooms: Rooms = ROOMS) -> set[str]:
    return set(map(str, reaches(map(Change, paths), rooms, tree)))


@pytest.mark.parametrize(
    "path, expected",
    [
        ("vendors/acme/configs/inference/net.yaml", {"inference/net with vendor acme"}),
        ("vendors/acme/configs/training/net/A100x1x8.yaml", {"training/net at A100x1x8 with vendor acme"}),
        ("vendors/acme/configs/training/net/notes.txt", {"with vendor acme"}),
        ("vendors/acme/configs/training/net/environment.yaml", {"with vendor acme"}),
        ("vendors/acme/configs/inference/no_case.yaml", {"with vendor acme"}),
        ("vendors/acme/configs/inference/no_case/1x1.yaml", {"with vendor acme"}),
        ("vendors/acme/configs/inference/net.py", {"with vendor acme"}),
        ("vendors/acme/tongs.py", {"with vendor acme"}),
        ("vendors/acme/anvil.py", {"with vendor acme"}),
        ("vendors/acme/staging.py", {"with vendor acme"}),
        ("vendors/acme/bus.py", {"with vendor acme"}),
        ("vendors/acme/__init__.py", {"with vendor acme"}),
        ("vendors/acme/one.py", {"with vendor acme"}),
        ("vendors/acme/dead.py", {"with vendor acme"}),
        ("vendors/acme/training/net.py", {"with vendor acme"}),  # the referee imports it too
        ("vendors/acme/deleted.py", {"with vendor acme"}),
        ("vendors/acme/chips.yaml", {"with vendor acme"}),
        ("vendors/acme/README.md", {"with vendor acme"}),
        ("vendors/other/eager.py", {"with vendor other"}),
        ("vendors/__init__.py", {"everything"}),
        ("vendors/not-a-name/x.py", {"everything"}),
        ("vendors/link", {"everything"}),
        ("suites/training/test_net.py", {"training/net", "training/wider"}),
        ("suites/training/net.yaml", {"training/net"}),
        ("suites/training/stray.yaml", {"training/*"}),
        ("suites/training/contract.yaml", {"training/*"}),
        ("suites/training/contract.py", {"training/*"}),
        ("suites/training/report/plots.py", {"training/*"}),
        ("suites/data/images/loaders.py", {"everything"}),
        ("suites/__init__.py", {"everything"}),
        ("proofmark/case.py", {"everything"}),
        ("fixtures/options/common.py", {"everything"}),
        ("docs/verdicts.md", set()),
        ("README.md", set()),
        ("docs/generate.py", set()),
        ("suites/training/README.md", {"training/*"}),
        ("../elsewhere.md", {"everything"}),
        ("pytest.ini", {"everything"}),
        ("docs", {"everything"}),
        ("vendors/acme/configs/inference/a\nb.yaml", {"with vendor acme"}),
    ],
)  # fmt: skip
def test_a_file_reaches_what_depends_on_it_and_everything_where_it_cannot_be_placed(
    path: str, expected: set[str]
) -> None:
    assert reached(path) == expected


def test_a_submodule_is_never_looked_into() -> None:
    assert set(map(str, reaches([Change("vendors/acme", submodule=True)], ROOMS, TREE))) == {"with vendor acme"}
    assert set(map(str, reaches([Change("docs/theme", submodule=True)], ROOMS, TREE))) == {"everything"}


@pytest.mark.parametrize(
    "text",
    [
        "import importlib",
        "exec(code)",
        "FunctionType(compile(text, 'a', 'exec'), {})",
        "from .anvil import *",
        "def broken(:",
        "__import__('x')",
    ],
)
def test_a_module_that_does_not_say_what_it_imports_may_import_all_of_its_own_room(text: str) -> None:
    name = "suites/inference/test_net.py"
    imports = {**IMPORTS, name: imports_of(name, text), "suites/inference/test_wider.py": frozenset()}
    assert reached("suites/inference/test_wider.py", tree=Tree(TREE.suites, imports)) == {
        "inference/net",
        "inference/wider",
    }
    assert dependents("vendors/other/__init__.py", imports) == {"vendors/other/__init__.py"}


@pytest.mark.parametrize(
    "text",
    [
        "import pydoc\nhelper = pydoc.locate('vendors.acme.helper')",
        "from pydoc import locate as find\nhelper = find('.'.join(('vendors', 'acme', 'he' + 'lper')))",
        "import pkgutil\nhelper = pkgutil.resolve_name('vendors.acme:helper')",
        "import sys\nhelper = sys.modules['vendors.acme.helper']",
        "import vendors.acme as own\nhelper = own.helper",
        "import code\ncode.InteractiveInterpreter().runsource(open(__file__.replace('anvil', 'helper')).read())",
        "import pickle\nhelper = pickle.loads(b'cvendors.acme.helper\\nrun\\n.')",
        "from pathlib import Path\npace = len(b''.join(p.read_bytes() for p in Path(__file__).parent.glob('*.py')))",
    ],
)
@pytest.mark.parametrize("changed", ["helper.py", "tongs.py", "deep/helper.py", "table.bin"])
def test_a_vendors_engine_cannot_hide_what_it_runs(text: str, changed: str) -> None:
    """The default compiler's module runs a file in ways that no text says; another compiler's imports it plainly."""
    sources = {
        "vendors/acme/__init__.py": "",
        "vendors/acme/anvil.py": text,
        "vendors/acme/tongs.py": "from vendors.acme import helper",
        "vendors/acme/helper.py": "",
    }
    tree = Tree(("inference",), {path: imports_of(path, each) for path, each in sources.items()})
    found = reaches([Change(f"vendors/acme/{changed}")], ROOMS, tree)
    assert why(Asked("inference", "net", "", "acme"), found)
    assert not why(Asked("inference", "net", "", "other"), found)


def test_without_the_bases_rule_no_file_is_known_to_affect_nothing() -> None:
    assert reached("docs/verdicts.md", rooms=Rooms()) == {"everything"}
    assert whose([Change("vendors/acme/anvil.py")], Rooms()).vendor is None


def test_what_may_keep_others_from_the_projects_files_is_nothing_of_a_vendors() -> None:
    """It is merged with what is judged as a vendor's change, and every other vendor's is compared with that."""
    own = Change("vendors/acme/anvil.py")
    for spoils in (Change("vendors/acme/data", submodule=True), Change("vendors/acme/" + "d/" * 600 + "x.py")):
        found = whose([own, spoils], ROOMS)
        assert found.vendor is None and spoils.path in str(found)


@pytest.mark.parametrize(
    "paths, vendor, words",
    [
        (["vendors/acme/anvil.py", "vendors/acme/chips.yaml"], "acme", "judged as vendor acme's"),
        (["vendors/acme/anvil.py", "proofmark/case.py"], None, "touches what a vendor may not: proofmark/case.py"),
        (["vendors/acme/anvil.py", "ci/rooms.yaml"], None, "ci/rooms.yaml"),
        (["vendors/acme/anvil.py", "docs/x.md"], None, "docs/x.md"),
        (["vendors/acme/anvil.py", "vendors/acmes/x.py"], None, "vendors acme, acmes"),
        (
            ["vendors/acme/__pycache__/anvil.cpython-311.pyc"],
            None,
            "not: vendors/acme/__pycache__/anvil.cpython-311.pyc",
        ),
        (["vendors/acme/.gitattributes"], None, "touches what a vendor may not: vendors/acme/.gitattributes"),
        (["vendors/acme/deep/.gitignore", "vendors/acme/x.py"], None, "not: vendors/acme/deep/.gitignore"),
        (["vendors/acme/.github/x.yml"], None, "not: vendors/acme/.github/x.yml"),
        (["vendors/acme/configs/.gitkeep"], "acme", "judged as vendor acme's"),
        (["vendors/acme/anvil.py", "vendors/__init__.py"], None, "vendors/__init__.py"),
        ([f"docs/{n}" for n in range(9)] + ["vendors/acme/x.py"], None, "docs/4 and 4 more"),
        (["proofmark/case.py"], None, "no vendor's files"),
    ],
)
def test_a_change_is_a_vendors_if_it_touches_nothing_else(paths: list[str], vendor: str | None, words: str) -> None:
    found = whose(map(Change, paths), ROOMS)
    assert found.vendor == vendor
    assert words in str(found)


@pytest.mark.parametrize(
    "text, words",
    [
        ("version: 2", "version"),
        ("affect_nothing: [docs/]", "affect_nothing: unknown key"),
        ("affect_no_case: docs/", "affect_no_case"),
        ("- a", "main:ci/rooms.yaml"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_broken_rule_is_refused_in_a_line(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_rooms(text, "main:ci/rooms.yaml")


PATHS = st.one_of(
    st.sampled_from([*SOURCES, "docs/a.md", "proofmark/case.py", "vendors/acme/configs/inference/net.yaml"]),
    st.lists(
        st.sampled_from("vendors suites acme training configs docs test_net.py net.yaml a.md".split()), min_size=1
    ).map("/".join),
)
RUNS = [
    Asked(suite, case, scale, vendor)
    for suite, scale in (("inference", ""), ("training", "1x1"))
    for case in ("net", "wider")
    for vendor in ("acme", "other")
]


def affected(paths: list[str]) -> set[Asked]:
    found = reaches(map(Change, paths), ROOMS, TREE)
    return {run for run in RUNS if why(run, found)}


@given(st.lists(PATHS, max_size=6), st.lists(PATHS, max_size=6))
def test_what_two_changes_affect_is_what_either_does(one: list[str], other: list[str]) -> None:
    assert affected(one + other) == affected(other + one) == affected(one) | affected(other)


@pytest.mark.parametrize("beside", ["vendors/acme/README.md", "vendors/acme/configs/training/net.yaml", "pytest.ini"])
def test_a_scales_own_file_is_what_its_run_is_affected_by_whatever_else_changed(beside: str) -> None:
    """Of a run that the machine can't have it makes a failure, which a file beside it does not mend."""
    own = "vendors/acme/configs/training/net/1x2.yaml"
    for paths in ([own, beside], [beside, own]):
        found = reaches(map(Change, paths), ROOMS, TREE)
        reach = why(Asked("training", "net", "1x2", "acme"), found)
        assert reach is not None and (reach.because, reach.scale) == (own, "1x2")
        other = why(Asked("training", "net", "1x1", "acme"), found)
        assert other is not None and (other.because, other.scale) == (beside, None)


@given(PATHS)
def test_a_file_that_no_rule_names_is_never_lost(path: str) -> None:
    found = reaches([Change(path)], ROOMS, TREE)
    assert found or ROOMS.affects_no_case(path)
    if path.partition("/")[0] not in ("vendors", "suites"):
        assert affected([path]) == (set() if ROOMS.affects_no_case(path) else set(RUNS))


@given(PATHS)
def test_a_vendors_file_never_affects_another_vendor(path: str) -> None:
    if vendors := vendors_in([Change(path)]):
        assert {run.vendor for run in affected([path])} <= set(vendors)


def test_a_reach_is_a_pattern_over_runs() -> None:
    run = Asked("training", "net", "1x2", "acme")
    assert Reach("f", "training", "net", "1x2", "acme").covers(run)
    assert not Reach("f", "training", "net", "1x1", "acme").covers(run)
    assert not Reach("f", vendor="other").covers(run)
