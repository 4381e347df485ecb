"""The corpus of cheats: each file beside this one gets the verdict that it names. A new one is one file.

An engine is a compiler's module of the house's vendor. It names its VERDICT, a REASON among those of the record, what
the SESSION says, where a case is not to blame, and AT_MOST how many items a second it may be said to do, where it would
seem faster. One whose threads a busy machine may give no turn has not cheated where it did no more than HONEST items a
second, which is its figure then; where they had a turn at times there may be no result. One with WALL = "none" runs
without a wall, which it would not come past. One with a CASE is asked one of those in `cases`, at its PRECISION. One
that succeeds says why (STILL), and is a failure here on the day on which it does not.

An audited one is such an engine, in a session with the second compilation.

A training is an adapter; one that TAKES so many seconds is not reported to take fewer, and one that two checks may find
first, as chance has it, says what the other one says (MAYBE, MAYBE_REASON). A framework is what becomes of
torch on the vendor's device, with OPTIONS of its session. What needs no session is in `test_refused`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from proofmark.record.integrity.own_key import OwnKey
from proofmark.training.outcome.record import TrainingRecord
from proofmark.vendor.isolation import NOT_ASKED_FOR
from tests.cheats.corpus import files, named
from tests.e2e.conftest import House, Ran
from tests.unit.wall.test_wall import has_landlock
from tests.waiting import until

ENGINES, AUDITED, TRAININGS, FRAMEWORKS = map(files, ("engines", "audited", "trainings", "frameworks"))
TOKENS = {"GITHUB_TOKEN": "ghs_a1b2", "CI_JOB_TOKEN": "glcbt-c3d4", "AWS_SECRET_ACCESS_KEY": "wJalr-e5f6"}
SMALL = ("--scratch-limit", "0.01")
PRECISIONS = frozenset({"fp32", "bf16"})
KEPT = ("wraps_the_referee", "appends_rounds")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Ran]:
    """Two with a case for each engine: of those that run behind a wall, and of the others."""
    found = {}
    for walled in (True, False):
        house = House(tmp_path_factory.mktemp("cheats") / "house")
        house.has_a_device_apart()  # what comes ahead is seen by an engine that computes beside the loader
        package = house.root / "vendors" / "fake"
        paths = [path for path in ENGINES if ("WALL" not in named(path)) == walled]
        names = [path.stem for path in paths]
        for path in paths:
            (package / path.name).write_text(path.read_text())
            add_engines_case(house, path)
        with (package / "__init__.py").open("a") as stream:
            stream.write(f"\nFake.compilers |= dict.fromkeys({names}, Compiler({PRECISIONS}, consumes='model'))\n")
        with pytest.MonkeyPatch.context() as environment:
            for name, token in TOKENS.items():
                environment.setenv(name, token)
            kind = "wall" if walled else "process"
            found[walled] = house.run("-k", "not Tiny", "--isolation", kind, *SMALL)
        assert house.becomes_empty()
    return found


def add_engines_case(house: House, path: Path) -> None:
    """One like the tiny one, or of the cheat's CASE, at its PRECISION."""
    cheat, how = named(path), {"compiler": path.stem}
    if "CASE" not in cheat:
        house.add_case(path.stem, how)
        return
    module = f"{cheat['CASE'].partition('.')[0]}.py"
    shutil.copy(path.parents[1] / "cases" / module, house.case_yaml.with_name(module))
    how["precision"] = cheat["PRECISION"]
    house.add_case(path.stem, how, of=cheat["CASE"], target=0.5, flops="2*8*4*12")
    house.add_case(f"honestly_{path.stem}", of=cheat["CASE"], target=0.5, flops="2*8*4*12")


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
        if "HONEST" in cheat and record.engine:
            idle = kind == "PASS" and record.engine.core.value <= float(cheat["HONEST"])
            if idle or (kind == "ERROR" and "run again on a quiet machine" in reasons):
                return
        assert kind == cheat["VERDICT"] and cheat["REASON"] in reasons, (kind, reasons)
        assert record.engine is None or len(record.engine.rounds) == 2 or kind == "ERROR"
        if "AT_MOST" in cheat:
            assert record.engine is not None and record.engine.core.value <= float(cheat["AT_MOST"])
    if "SESSION" in cheat:
        assert cheat["SESSION"] in ran.output.replace("\n", ""), ran.output


@pytest.mark.parametrize("path", ENGINES, ids=lambda path: path.stem)
def test_no_thread_of_an_engine_fails_at_what_it_is_there_for(sessions: dict[bool, Ran], path: Path) -> None:
    """Else the engine is honest, and so is one of which HONEST says that it may be."""
    ran = sessions["WALL" not in named(path)]
    logs = [log.read_text(errors="replace") for log in ran.results.rglob("worker.log") if path.stem in log.parts]
    assert not [log for log in logs if "Exception in thread" in log]


@pytest.mark.parametrize("path", [path for path in ENGINES if "CASE" in named(path)], ids=lambda path: path.stem)
def test_an_honest_engine_of_the_same_case(sessions: dict[bool, Ran], path: Path) -> None:
    ran = sessions["WALL" not in named(path)]
    assert ran.verdict(f"honestly_{path.stem}") == ("PASS", "")


@pytest.mark.parametrize("path", AUDITED, ids=lambda path: path.stem)
def test_an_audited_engine(tmp_path: Path, path: Path) -> None:
    house, cheat = House(tmp_path / "house"), named(path)
    package = house.root / "vendors" / "fake"
    (package / path.name).write_text(path.read_text())
    shutil.copy(path.parents[1] / "cases" / "published.py", house.case_yaml.parent)
    house.add_case(path.stem, {"compiler": path.stem}, of=cheat["CASE"])
    house.add_case("upright", of=cheat["CASE"])
    with (package / "__init__.py").open("a") as stream:
        stream.write(f"\nFake.compilers[{path.stem!r}] = Compiler({PRECISIONS}, consumes='model')\n")
    ran = house.run("-k", "not Tiny", "-m", "")
    assert house.becomes_empty()
    assert ran.verdict("upright") == ("PASS", "")
    kind, reasons = ran.verdict(path.stem)
    assert kind == cheat["VERDICT"] and cheat["REASON"] in reasons, (kind, reasons)


def test_no_token_is_in_any_file_of_the_session(sessions: dict[bool, Ran]) -> None:
    roots = [ran.results.parent for ran in sessions.values()]
    paths = [path for root in roots for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    files = [path.read_bytes() for path in paths]
    assert any(b"PROOFMARK_RUN_ID" in content for content in files), "no engine printed its environment"
    assert not [token for token in TOKENS.values() if any(token.encode() in content for content in files)]


def test_records_say_how_engines_were_kept(sessions: dict[bool, Ran]) -> None:
    walled, other = (ran.record(name).isolation["engine"] for ran, name in zip(sessions.values(), KEPT, strict=True))
    assert (other.kind, other.gaps) == ("process", (NOT_ASKED_FOR,))
    assert walled.kind == "wall" or not has_landlock()


def test_no_engine_says_that_it_was_kept_better(sessions: dict[bool, Ran]) -> None:
    isolation = sessions[False].record("forges_its_wall").isolation["engine"]
    assert (isolation.kind, isolation.gaps) == ("process", (NOT_ASKED_FOR,))


def test_no_daemon_is_left(sessions: dict[bool, Ran]) -> None:
    """Of those that were started behind a wall, whatever they did to be forgotten."""

    def left() -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if "left by a cheat of the corpus" in _command(process)]

    until(lambda: not left(), "those that were killed to be gone")


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_no_session_is_a_success(sessions: dict[bool, Ran]) -> None:
    assert [ran.code for ran in sessions.values()] == [17, 17]


ADAPTERS = """

def _adapter(_):
    import importlib, os
    from pathlib import Path
    parts = Path(os.environ["HOME"]).parts
    if "noderank0" not in parts:
        return TrainingAdapter()
    return importlib.import_module(f"vendors.fake.{parts[-5]}").Adapter()


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
        if config := named(path).get("CONFIG"):
            written = package / "configs" / "training" / path.stem / "1x1.yaml"
            written.parent.mkdir(parents=True)
            written.write_text(config)
    with (package / "__init__.py").open("a") as stream:
        stream.write(ADAPTERS)
    OwnKey(house.cache)  # there is something to be read
    yield house.run("-m", "", "-k", "not TestTiny", "--monitor-interval", "0", *SMALL, suite="training")
    assert house.becomes_empty()


@pytest.mark.parametrize("path", TRAININGS, ids=lambda path: path.stem)
def test_a_training(ran_trainings: Ran, path: Path, request: pytest.FixtureRequest) -> None:
    cheat = named(path)
    if "STILL" in cheat:
        request.applymarker(pytest.mark.xfail(strict=True, reason=cheat["STILL"]))
    record = TrainingRecord.load(ran_trainings.run_dir / "training" / path.stem / "1x1" / "record.json")
    assert record.verdict is not None
    kind, reasons = str(record.verdict.kind), "\n".join(record.verdict.reasons)
    verdicts = ((cheat["VERDICT"], cheat["REASON"]), (cheat.get("MAYBE"), cheat.get("MAYBE_REASON", "")))
    assert any(kind == verdict and reason in reasons for verdict, reason in verdicts), (kind, reasons)
    if "TAKES" in cheat:
        (run,) = record.runs
        assert min(run.train_seconds or 0.0, run.seconds_to_target or 0.0) >= float(cheat["TAKES"])
        assert "time" in record.claimed


DEVICES = """

def _torch_device(_):
    import importlib
    from pathlib import Path
    case = Path.cwd().parent.name
    if (Path(__file__).parent / f"{case}.py").exists():
        importlib.import_module(f"vendors.fake.{case}").lie()
    return "cpu:0"


Fake.torch_device = _torch_device
"""
"""A device that is not the processor by its name. Where the framework runs on it, it lies as its case is called."""


@pytest.mark.parametrize("path", FRAMEWORKS, ids=lambda path: path.stem)
def test_a_framework(tmp_path: Path, path: Path) -> None:
    house, cheat = House(tmp_path / "house"), named(path)
    (house.root / "vendors" / "fake" / path.name).write_text(path.read_text())
    house.add_case(path.stem)
    house.add_case("upright")
    with (house.root / "vendors" / "fake" / "__init__.py").open("a") as stream:
        stream.write(DEVICES)
    ran = house.run("-k", "not Tiny", *cheat.get("OPTIONS", "").split())
    assert house.becomes_empty()
    assert ran.verdict("upright") == ("PASS", "") and "framework" in ran.record("upright").isolation
    kind, reasons = ran.verdict(path.stem)
    assert kind == cheat["VERDICT"] and cheat["REASON"] in reasons, (kind, reasons)
