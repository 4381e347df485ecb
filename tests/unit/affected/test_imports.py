"""What a module imports is told by its text, whatever else somebody laid beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from proofmark.affected.imports import LARGEST, imports_in, imports_of, sources
from proofmark.folders import make_folder
from proofmark.process.scratch.own_directory import remove

UNREADABLE = imports_of("vendors/other/x.py", "(")


def test_what_another_vendor_has_laid_there_ends_no_session(tmp_path: Path) -> None:
    other = tmp_path / "vendors/other"
    other.mkdir(parents=True)
    (other / "own.py").write_text("import vendors.other.part")
    (other / "endless.py").symlink_to("/dev/zero")
    (other / "itself.py").symlink_to("itself.py")
    (other / "large.py").write_text("#" * (LARGEST + 1))
    (other / "folder.py").mkdir()
    deep = other.joinpath(*["d"] * 1500)
    make_folder(deep)
    (deep / "x.py").touch()
    found = imports_in(tmp_path, "vendors")
    names = ("endless", "itself", "large", "own")
    assert sorted(found) == [f"vendors/other/{name}.py" for name in names]
    assert "vendors.other.part" in found["vendors/other/own.py"]
    assert [found[f"vendors/other/{name}.py"] for name in names[:3]] == [UNREADABLE] * 3
    remove(other / "d")


@pytest.mark.parametrize(
    "text",
    [
        f"import a{'.a' * 99_999}",
        "import a" + ".\\\na" * 99_999,
        f"import {'aaaa.' * 200}a",
        f"from a{'.a' * 400} import x",
        f"from {'a' * 600} import x",
    ],
)
def test_a_name_without_end_is_not_taken_apart(text: str) -> None:
    assert imports_of("vendors/other/x.py", text) == UNREADABLE


@pytest.fixture
def house(tmp_path: Path) -> Path:
    return tmp_path / "house"


def laid_out(house: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        file = house / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def found(house: Path, module: str) -> set[str]:
    """Its sources, by their names in the house."""
    return {path.removeprefix("house/").removesuffix(".py") for path in sources(module, [str(house)])}


def test_the_sources_of_a_module_are_what_it_names_of_its_package_by_whatever_way(house: Path) -> None:
    texts = {
        "__init__": "",
        "case": "import json\nfrom house import near\ndef f():\n    from house.room.far import x",
        "near": "import house.case, house.gone",
        "room/__init__": "from .beside import y",
        "room/far": "",
        "room/beside": "",
        "room/other": "",
        "other_case": "import house.room.other",
        "nets/chosen": "__import__('house.nets.' + input())",
        "nets/deep/one": "",
        "by_name": "import importlib",
    }
    laid_out(house, texts)
    named = ("__init__", "case", "near", "room/__init__", "room/far", "room/beside")
    assert sources("house.case", [str(house)]) == {f"house/{name}.py": texts[name] for name in named}
    assert {"nets/chosen", "nets/deep/one"} <= found(house, "house.nets.chosen")
    assert found(house, "house.by_name") == texts.keys()


def test_of_a_package_that_nobody_names_its_functions_are_not_asked(house: Path) -> None:
    """As of a suite, whose reports are no part of its cases."""
    suite = "from .seen import x\ndef page():\n    from house.suite.report import y"
    laid_out(house, {"__init__": "", "suite/__init__": suite, "suite/seen": "", "suite/report": "", "suite/kit": ""})
    laid_out(house, {"suite/case": "", "by_name": "import house.suite.kit", "by_from": "from house.suite import kit"})
    laid_out(house, {"other": "import house.suite.kit as kit"})
    case = {"__init__", "suite/__init__", "suite/seen", "suite/case"}
    assert found(house, "house.suite.case") == case
    others = case - {"suite/case"} | {"suite/kit"}
    assert found(house, "house.other") == others | {"other"}
    for name in ("by_name", "by_from"):
        assert found(house, f"house.{name}") == others | {name, "suite/report"}


def test_what_says_which_packages_are_installed_imports_none(house: Path) -> None:
    laid_out(house, {"a/case": "from importlib.metadata import PackageNotFoundError, distribution, version"})
    laid_out(house, {"a/other": "", "a/loads": "from importlib.metadata import entry_points"})
    assert found(house, "house.a.case") == {"a/case"}
    laid_out(house, {"a/asks": "from importlib.metadata import distribution\ndistribution('x').entry_points[0].load()"})
    for loads in ("loads", "asks"):
        assert found(house, f"house.a.{loads}") == {"a/case", "a/other", "a/loads", "a/asks"}


def test_what_lies_in_a_room_and_is_no_module_s_text_is_none(house: Path) -> None:
    laid_out(house, {"a/case": "import runpy", "a/.hidden": "x", "a/.folder/x": ""})
    (house / "a" / "latin.py").write_bytes(b"# \xe9")
    (house / "a" / "nowhere.py").symlink_to(house / "gone.py")
    assert found(house, "house.a.case") == {"a/case", "a/latin"}
