"""The corpus of cheats: each file beside this one gets the verdict that it names. A new one is one file.

An engine is a compiler's module of the house's vendor. It names its VERDICT, what is TOLD among the reasons, what
the SESSION says, where a case is not to blame, and AT_MOST how many items a second it may be said to do, where it would
seem faster. One with WALL = "none" runs without a wall, which it would not come past. One that succeeds says why
(STILL), and is a failure here on the day on which it does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from proofmark.errors import ConfigurationError
from proofmark.launch.cluster.container import container_of
from proofmark.training.record import TrainingRecord
from proofmark.vendor.isolation import NOT_ASKED_FOR
from tests.e2e.conftest import House, Ran

HERE = Path(__file__).parent
ENGINES = sorted((HERE / "engines").glob("*.py"))
TRAININGS = sorted((HERE / "trainings").glob("*.py"))
TOKENS = {"GITHUB_TOKEN": "ghs_a1b2", "CI_JOB_TOKEN": "glcbt-c3d4", "AWS_SECRET_ACCESS_KEY": "wJalr-e5f6"}
KEPT = ("wraps_the_referee", "appends_rounds")
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
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Ran]:
    """Two with a case for each engine: of those that run behind a wall, and of the others."""
    found = {}
    for walled in (True, False):
        house = House(tmp_path_factory.mktemp("cheats") / "house")
        package = house.root / "vendors" / "fake"
        paths = [path for path in ENGINES if ("WALL" not in named(path)) == walled]
        names = [path.stem for path in paths]
        for path in paths:
            (package / path.name).write_text(path.read_text())
            house.add_case(path.stem, {"compiler": path.stem})
        with (package / "__init__.py").open("a") as stream:
            stream.write(f"\nFake.compilers |= dict.fromkeys({names}, _TAKES_MODEL)\n")
        with pytest.MonkeyPatch.context() as environment:
            for name, token in TOKENS.items():
                environment.setenv(name, token)
            found[walled] = house.run("-k", "not Tiny", "--isolation", "wall" if walled else "process")
        assert house.becomes_empty(5)
    return found


@pytest.mark.parametrize("path", ENGINES, ids=lambda path: path.stem)
def test_an_engine(sessions: dict[bool, Ran], path: Path, request: pytest.FixtureRequest) -> None:
    cheat = named(path)
    ran = sessions["WALL" not in cheat]
    if "STILL" in cheat:
        request.applymarker(pytest.mark.xfail(strict=True, reason=cheat["STILL"]))
    record = ran.record(path.stem) if path.stem != "edits_its_record" else None
    if record is not None:
        assert record.verdict is not None
        kind, reasons = str(record.verdict.kind), "\n".join(record.verdict.reasons)
        assert kind == cheat["VERDICT"] and cheat["TOLD"] in reasons, (kind, reasons)
        assert record.engine is None or len(record.engine.rounds) == 2 or kind == "ERROR"
        if "AT_MOST" in cheat:
            assert record.engine is not None and record.engine.core.value <= float(cheat["AT_MOST"])
    if "SESSION" in cheat:
        assert cheat["SESSION"] in ran.output.replace("\n", ""), ran.output


def test_no_token_is_in_any_file_of_the_session(sessions: dict[bool, Ran]) -> None:
    roots = [ran.results.parent for ran in sessions.values()]
    paths = [path for root in roots for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    files = [path.read_bytes() for path in paths]
    assert any(b"PROOFMARK_RUN_ID" in content for content in files), "no engine printed its environment"
    assert not [token for token in TOKENS.values() if any(token.encode() in content for content in files)]


def test_records_say_how_engines_were_kept(sessions: dict[bool, Ran]) -> None:
    walled, other = (ran.record(name).isolation["engine"] for ran, name in zip(sessions.values(), KEPT, strict=True))
    assert (other.kind, other.gaps) == ("process", (NOT_ASKED_FOR,))
    assert walled.kind == "wall" or walled.gaps


def test_no_session_is_a_success(sessions: dict[bool, Ran]) -> None:
    assert [ran.code for ran in sessions.values()] == [17, 17]


ADAPTERS = """

def _adapter(_):
    import importlib, json, sys
    from pathlib import Path
    if not sys.argv[1:] or not sys.argv[1].endswith("spec.json"):
        return TrainingAdapter()
    case = json.loads(Path(sys.argv[1]).read_text())["config"]["case"]
    return importlib.import_module(f"vendors.fake.{case}").Adapter()


Fake.training_adapter = _adapter
"""
"""A rank's adapter is the module of its case's name; the session is shown none."""


@pytest.fixture(scope="module")
def ran_trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One audited session with a case for each training."""
    house = House(tmp_path_factory.mktemp("cheats") / "house")
    package, suite = house.root / "vendors" / "fake", house.root / "suites" / "training"
    task = yaml.safe_load((suite / "tiny.yaml").read_text())
    task["profiles"]["embedded"]["parameters"]["target"] = 0.95
    for path in TRAININGS:
        (package / path.name).write_text(path.read_text())
        (suite / f"{path.stem}.yaml").write_text(yaml.safe_dump(task))
        test = "from suites.training import test_tiny\n\n\nclass TestCheat(test_tiny.TestTiny):\n    pass\n"
        (suite / f"test_{path.stem}.py").write_text(test)
    with (package / "__init__.py").open("a") as stream:
        stream.write(ADAPTERS)
    yield house.run("-m", "", "-k", "not TestTiny", "--monitor-interval", "0", suite="training")
    assert house.becomes_empty(5)


@pytest.mark.parametrize("path", TRAININGS, ids=lambda path: path.stem)
def test_a_training(ran_trainings: Ran, path: Path, request: pytest.FixtureRequest) -> None:
    cheat = named(path)
    if "STILL" in cheat:
        request.applymarker(pytest.mark.xfail(strict=True, reason=cheat["STILL"]))
    record = TrainingRecord.load(ran_trainings.run_dir / "training" / path.stem / "1x1" / "record.json")
    assert record.verdict is not None
    kind, reasons = str(record.verdict.kind), "\n".join(record.verdict.reasons)
    assert kind == cheat["VERDICT"] and cheat["TOLD"] in reasons, (kind, reasons)


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.stem)
def test_a_container(path: Path, tmp_path: Path) -> None:
    first, _, content = path.read_text().partition("\n")
    (tmp_path / "container.yaml").write_text(content)
    vendor: Any = SimpleNamespace(name="any", directory=tmp_path, vendor=SimpleNamespace(container_options=()))
    with pytest.raises(ConfigurationError) as caught:
        container_of(vendor, "image", "docker")
    (problem,) = caught.value.problems
    assert first.removeprefix("# told: ") in str(problem)
