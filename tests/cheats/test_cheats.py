"""The corpus of cheats: each file beside this one gets the verdict that it names. A new one is one file.

An engine is a compiler's module of the house's vendor. It names its VERDICT, what is TOLD among the reasons, and what
the SESSION says, where a case is not to blame. One that succeeds as long as engines have no process of their own says
why (STILL), and is a failure here on the day on which it does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.errors import ConfigurationError
from proofmark.launch.cluster.container import container_of
from tests.e2e.conftest import House, Ran

HERE = Path(__file__).parent
ENGINES = sorted((HERE / "engines").glob("*.py"))
CONTAINERS = sorted((HERE / "containers").glob("*.yaml"))


def named(path: Path) -> dict[str, str]:
    """The texts that a cheat's file assigns: it is not imported here."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for name, value in zip(names, values, strict=True):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                    found[name.id] = str(value.value)
    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One session with a case for each engine."""
    house = House(tmp_path_factory.mktemp("cheats") / "house")
    package = house.root / "vendors" / "fake"
    names = [path.stem for path in ENGINES]
    for path in ENGINES:
        (package / path.name).write_text(path.read_text())
        house.add_case(path.stem, {"compiler": path.stem})
    with (package / "__init__.py").open("a") as stream:
        stream.write(f"\nFake.compilers |= dict.fromkeys({names}, _TAKES_MODEL)\n")
    yield house.run("-k", "not Tiny")
    assert house.becomes_empty(5)


@pytest.mark.parametrize("path", ENGINES, ids=lambda path: path.stem)
def test_an_engine(ran: Ran, path: Path, request: pytest.FixtureRequest) -> None:
    cheat = named(path)
    if "STILL" in cheat:
        request.applymarker(pytest.mark.xfail(strict=True, reason=cheat["STILL"]))
    record = ran.record(path.stem) if path.stem != "edits_its_record" else None
    if record is not None:
        assert record.verdict is not None
        kind, reasons = str(record.verdict.kind), "\n".join(record.verdict.reasons)
        assert kind == cheat["VERDICT"] and cheat["TOLD"] in reasons, (kind, reasons)
        assert record.engine is None or len(record.engine.rounds) == 2 or kind == "ERROR"
    if "SESSION" in cheat:
        assert cheat["SESSION"] in ran.output.replace("\n", ""), ran.output


def test_the_session_is_no_success(ran: Ran) -> None:
    assert ran.code == 17


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.stem)
def test_a_container(path: Path, tmp_path: Path) -> None:
    first, _, content = path.read_text().partition("\n")
    (tmp_path / "container.yaml").write_text(content)
    vendor: Any = SimpleNamespace(name="any", directory=tmp_path, vendor=SimpleNamespace(container_options=()))
    with pytest.raises(ConfigurationError) as caught:
        container_of(vendor, "image", "docker")
    (problem,) = caught.value.problems
    assert first.removeprefix("# told: ") in str(problem)
