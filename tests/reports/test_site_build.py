"""The scoreboard: what is built of which records, how much of it again, and what breaks a build and what does not."""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulated.records import synthetic
from proofmark.errors import UsageError
from proofmark.folders import RANKS_WRITE
from proofmark.inference.outcome.record import Accuracy
from proofmark.process.scratch.own_directory import remove
from proofmark.record.integrity.manifest import write_manifest
from proofmark.record.policy import default_policy
from proofmark.suite import Suite
from proofmark.verification import configuration
from proofmark.verification.judged import judge_again
from proofmark.verification.verify import verify
from reports.site import __main__ as program
from reports.site import build as building
from reports.site import export as exporting
from reports.site.build import INDEX, LOCK, Built, build
from reports.site.files import as_json, script
from reports.site.ranking import AHEAD
from reports.site.reading import Seen, held
from tests.reports.records import make_record
from tests.suites_there import SUITES

EVIL = "=cmd|' /C calc'!A0 <script>alert(1)</script> ](javascript:1) \u202e"
MANY = 300


def taken_as_given(folder: Path, suites: Mapping[str, Suite]) -> Seen:
    return Seen((), {})


def seed() -> dict[str, Any]:
    return json.loads(make_record(profile="standard").text())


def put(folder: Path, record: Mapping[str, Any]) -> Path:
    run = folder / record["suite"] / "case"
    run.mkdir(parents=True)
    path = run / "record.json"
    path.write_text(json.dumps(record))
    return path


def data(path: Path) -> Any:
    """What a script hands over."""
    return handed_over(path.read_text())


def handed_over(text: str) -> Any:
    """As a page parses it."""
    begin = "JSON.parse("
    return json.loads(json.loads(text[text.index(begin) + len(begin) : text.rindex("))")]))


def leagues(site: Path) -> dict[str, Any]:
    found: dict[str, Any] = data(site / "data" / "site.js")["leagues"]
    return found


def league(site: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = data(site / "data" / f"{leagues(site)[name]['data']}.js")
    return found


def made(folder: Path, site: Path, look: Any = taken_as_given) -> Built:
    return build([folder], site, SUITES, look)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for number, record in enumerate(synthetic(seed(), MANY)):
        put(folder / f"session-{number:04}", record)
    return folder


@pytest.fixture(scope="module")
def built(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("out") / "site"
    assert made(many, site).runs == MANY
    return site


@pytest.fixture
def few(tmp_path: Path) -> Path:
    for number, record in enumerate(synthetic(seed(), 4, cases=1)):
        put(tmp_path / "results" / str(number), record)
    return tmp_path / "results"


def test_only_passed_runs_of_the_published_size_are_ranked_each_contender_once(built: Path) -> None:
    assert sum(known["runs"] for known in leagues(built).values()) == MANY
    for name in leagues(built):
        rows = league(built, name)["rows"]
        ranked = [row for row in rows if row["rank"]]
        assert ranked and all(row["verdict"] == "PASS" and row["profile"] == "standard" for row in ranked)
        contenders = [(row["vendor"], row["chip"], row["precision"]) for row in ranked]
        assert len(set(contenders)) == len(contenders)
        assert sorted(row["rank"] for row in ranked) == list(range(1, len(ranked) + 1))
        assert all(row["why"] for row in rows if not row["rank"])


def test_a_vendor_without_a_rank_has_a_reason(tmp_path: Path) -> None:
    put(tmp_path / "in", {**seed(), "profile": "embedded"})
    made(tmp_path / "in", tmp_path / "site")
    ((_, known),) = leagues(tmp_path / "site").items()
    assert known["vendors"] == {
        "cpu": {"id": known["vendors"]["cpu"]["id"], "verdict": "PASS", "why": "profile embedded is never ranked"}
    }


def test_cores_of_a_processor_are_not_told_as_so_many_chips(tmp_path: Path) -> None:
    put(tmp_path / "in", {**seed(), "chip": {**seed()["chip"], "name": "EPYC", "units": 8}})
    made(tmp_path / "in", tmp_path / "site")
    (row,) = league(tmp_path / "site", "inference/resnet50")["rows"]
    assert row["chip"] == "8 cores of EPYC"


def test_a_run_of_a_day_to_come_displaces_no_other(tmp_path: Path) -> None:
    """By whomever it was signed: its contender would have that rank for good."""
    put(tmp_path / "in" / "now", seed())
    put(tmp_path / "in" / "then", {**seed(), "started": 250_000_000_000.0, "seed": 7})
    made(tmp_path / "in", tmp_path / "site")
    (name,) = leagues(tmp_path / "site")
    rows = league(tmp_path / "site", name)["rows"]
    assert sorted((row["rank"] or 0, row["why"] or "") for row in rows) == [
        (0, "it says of itself that it is yet to be: its machine's clock is wrong"),
        (1, ""),
    ]


def test_a_run_whose_day_has_come_is_ranked_by_the_next_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    put(tmp_path / "in", {**seed(), "started": now + 1.5 * AHEAD})
    assert made(tmp_path / "in", tmp_path / "site").read == 1
    for later, rank in ((0.4, None), (0.6, 1), (5.0, 1)):
        monkeypatch.setattr("time.time", lambda later=later: now + later * AHEAD)
        assert made(tmp_path / "in", tmp_path / "site").read == 0
        (row,) = league(tmp_path / "site", "inference/resnet50")["rows"]
        assert row["rank"] == rank


def test_every_run_has_a_page_and_what_two_are_compared_by(built: Path) -> None:
    pages = {path.stem for path in (built / "runs").glob("*.html")}
    assert len(pages) == MANY and pages == {path.stem for path in (built / "runs").glob("*.js")}
    sections = data(next((built / "runs").glob("*.js")))["sections"]
    assert sections["configuration"]["training.epochs"] == "4" and sections["run"]["precision"] in ("fp16", "fp32")


def test_trends_show_where_the_pace_changed(built: Path) -> None:
    changes = [
        change for name in leagues(built) for change in league(built, name)["changes"] if change["key"] == "core"
    ]
    assert changes and all(0.9 < change["after"] / change["before"] < 0.95 for change in changes)


def test_exports_hold_every_run(built: Path) -> None:
    import pyarrow.parquet as parquet

    for known in leagues(built).values():
        comma, plain, columns = (built / "exports" / name for name in known["exports"])
        with comma.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        listed, table = json.loads(plain.read_text()), parquet.read_table(columns)
        assert len(rows) == len(listed) == table.num_rows == known["runs"]
        assert table.column("figure_engine_core").to_pylist() == [row["figure_engine_core"] for row in listed]
        assert [row["id"] for row in rows] == [row["id"] for row in listed]
        withheld = [row for row in listed if row["verdict"].startswith("FAIL") or row["verdict"] == "ERROR"]
        assert withheld and all(row["figure_engine_core"] is None for row in withheld)


def test_a_build_reads_again_only_what_is_new_and_writes_only_what_it_touches(few: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    other = put(tmp_path / "results" / "other", {**seed(), "case": "other"})
    assert made(few, site).read == 5
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*.*") if path.parent.name in ("runs", "exports")}
    untouched = leagues(site)["inference/other"]["data"]
    assert made(few, site).read == 0
    put(tmp_path / "results" / "new", {**next(synthetic(seed(), 1, cases=1)), "seed": 7})
    assert made(few, site).read == 1
    after = {path: path.stat().st_mtime_ns for path in before}
    assert {path.stem for path, when in after.items() if when != before[path]} == {
        Path(leagues(site)["inference/resnet50_0"]["exports"][0]).stem
    }
    assert leagues(site)["inference/other"]["data"] == untouched
    shutil.rmtree(other.parents[2])
    assert made(few, site).runs == 5 and "inference/other" not in leagues(site)
    assert len(list((site / "runs").glob("*.html"))) == 5 and len(list((site / "data").iterdir())) == 2


@pytest.fixture
def nested() -> Iterator[Callable[[Path, int], None]]:
    """Makes folders in one another, however long their path is: they are gone before pytest removes its own."""
    made_here: list[Path] = []

    def nest(folder: Path, depth: int) -> None:
        made_here.append(folder)
        folder.mkdir()
        here = os.open(folder, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)

    yield nest
    for folder in made_here:
        remove(folder)


def test_folders_in_one_another_without_end_are_no_end_of_the_build(
    few: Path, tmp_path: Path, nested: Callable[[Path, int], None]
) -> None:
    """One submitter's, in a session and beside one: deeper than calls may nest, and than a path may be long."""
    runs = made(few, tmp_path / "before").runs
    session = put(few / "deep", seed()).parents[2]
    for folder, depth in {session / "x": 1200, few / "beside": 1200, few / "too_long": 2500}.items():
        nested(folder, depth)
    built = made(few, tmp_path / "site")
    assert built.runs == runs + 1
    (problem,) = built.problems
    assert "/too_long/d/d/" in problem
    assert not verify(session, SUITES).holds


def test_a_folder_whose_name_is_no_text_is_no_end_of_the_build(few: Path, tmp_path: Path) -> None:
    runs = made(few, tmp_path / "before").runs
    put(few / os.fsdecode(b"\xff"), seed())
    built = made(few, tmp_path / "site")
    assert built.runs == runs + 1 and not built.problems
    assert made(few, tmp_path / "site").read == 0


def test_what_a_session_takes_away_meanwhile_is_no_end_of_the_build(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = os.walk

    def walk(top: Any, **given: Any) -> Iterator[tuple[str, list[str], list[str]]]:
        for folder, names, files in there(top, **given):
            yield folder, names, [*files, ".draft"]

    runs = made(few, tmp_path / "before").runs
    monkeypatch.setattr(os, "walk", walk)
    assert made(few, tmp_path / "site").runs == runs


def test_what_lies_beside_a_record_is_looked_at_again_when_it_changes(few: Path, tmp_path: Path) -> None:
    made(few, tmp_path / "site")
    (few / "0" / "inference" / "case" / "events.jsonl").write_text("{}")
    assert made(few, tmp_path / "site").read == 1


def test_a_record_that_cannot_be_read_is_a_line_and_the_rest_is_built(few: Path, tmp_path: Path) -> None:
    (few / "0/inference/case/record.json").write_text(json.dumps(seed())[:5000])
    with put(few / "large", seed()).open("r+b") as stream:
        stream.truncate(2 << 30)
    put(few / "schema", {**seed(), "schema_version": 99})
    for number, pace in enumerate([1e308] * 4 + [1.7e308] * 3):
        put(few / f"speed-{number}", {**seed(), "figures": [{**seed()["figures"][0], "value": pace}]})
    built = made(few, tmp_path / "site")
    assert built.runs == 3
    truncated, large, schema, *speeds = built.problems
    assert len(speeds) == 7 and all("expected a number below 1e+300" in each for each in speeds)
    assert "0/inference/case/record.json: not a run record" in truncated
    assert "larger than 64 MiB" in large and "\n" not in large
    assert "schema version 99, this Proofmark reads 2 and 3" in schema
    assert len(data(tmp_path / "site/data/site.js")["problems"]) == len(built.problems)


def test_a_record_of_an_unknown_suite_is_shown_by_envelope_and_figures(tmp_path: Path) -> None:
    put(tmp_path / "in", {**seed(), "suite": "elsewhere"})
    made(tmp_path / "in", tmp_path / "site")
    (page,) = (tmp_path / "site/runs").glob("*.html")
    assert "images/s" in page.read_text() and "elsewhere/resnet50" in leagues(tmp_path / "site")


def test_names_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    put(tmp_path / "in", {**seed(), "vendor": EVIL, "case": EVIL})
    made(tmp_path / "in", tmp_path / "site")
    for path in (tmp_path / "site").rglob("*.*"):
        if path.parent.name in ("runs", "data"):
            assert "<script>alert" not in path.read_text() and "\u202e" not in path.read_text()
    ((_, known),) = leagues(tmp_path / "site").items()
    with (tmp_path / "site/exports" / known["exports"][0]).open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert row["vendor"].startswith("'=cmd")


def test_a_script_hands_over_any_name_and_is_harmless() -> None:
    names = {"</script><!--\u2028\u2029\\\"'`": "\\u003c", "__proto__": {"constructor": 1}}
    text = script("a", as_json(names))
    assert handed_over(text) == names and text.isascii() and not set("<>") & set(text)
    assert "__proto__" in text and ", {" not in text, "no object literal, in which __proto__ is no key"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert exporting.cell(text).startswith("'")
    assert exporting.cell(-1.5) == "-1.5" and exporting.cell("fp16") == "fp16" and exporting.cell(None) == ""


def test_two_builds_do_not_write_one_directory(few: Path, tmp_path: Path) -> None:
    made(few, tmp_path / "site")
    with (tmp_path / "site" / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another build writes it"):
            made(few, tmp_path / "site")


def test_a_folder_of_other_things_is_left_alone(few: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="files that no site made"):
        made(few, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_an_interrupted_build_leaves_the_earlier_site(few: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    made(few, site)
    before = {path: path.read_bytes() for path in site.rglob("*.*") if path.parent.name in ("runs", "data")}
    put(few / "new", {**seed(), "case": "resnet50_0"})

    def interrupted(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(few, site, interrupted)
    assert all(path.read_bytes() == content for path, content in before.items())
    assert made(few, site).read == 1 and len(leagues(site)) == 1


def test_what_goes_wrong_in_a_reading_process_ends_the_build(many: Path, tmp_path: Path) -> None:
    def full(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        made(many, tmp_path / "site", full)


def test_a_disk_that_fails_under_one_session_is_a_line_and_the_rest_is_built(few: Path, tmp_path: Path) -> None:
    bad = next(path.parent for path in few.rglob("record.json"))

    def failing(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        if bad.is_relative_to(folder):
            raise OSError(errno.ESTALE, "Stale file handle")
        return taken_as_given(folder, suites)

    whole, built = made(few, tmp_path / "whole"), made(few, tmp_path / "site", failing)
    assert 0 < built.runs < whole.runs and any("Stale file handle" in line for line in built.problems)


def test_a_damaged_index_is_begun_anew(few: Path, tmp_path: Path) -> None:
    made(few, tmp_path / "site")
    (tmp_path / "site" / INDEX).write_bytes(b"not a database" * 100)
    assert made(few, tmp_path / "site").read == 4


def test_an_index_with_other_things_in_it_is_refused_in_a_line(few: Path, tmp_path: Path) -> None:
    made(few, tmp_path / "site")
    base = sqlite3.connect(tmp_path / "site" / INDEX)
    base.execute("UPDATE run SET entry = '{}'")
    base.commit()
    base.close()
    put(few / "new", {**seed(), "case": "resnet50_0"})
    with pytest.raises(UsageError, match="delete it and build again") as refused:
        made(few, tmp_path / "site")
    assert "\n" not in str(refused.value)


def test_another_proofmark_makes_all_anew(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(few, tmp_path / "site")
    monkeypatch.setattr(building, "_maker", lambda: "another")
    assert made(few, tmp_path / "site").read == 4


def test_a_session_that_does_not_hold_is_shown_unranked_with_the_finding(tmp_path: Path) -> None:
    put(tmp_path / "in", seed())
    made(tmp_path / "in", tmp_path / "site", held)
    (row,) = league(tmp_path / "site", "inference/resnet50")["rows"]
    assert row["rank"] is None and row["why"].startswith("manifest.json: is missing")
    assert "Not verified:" in (tmp_path / "site/runs" / f"{row['id']}.html").read_text()


@pytest.mark.parametrize("other", ["in/inference/case/sub/manifest.json", "manifest.json"])
def test_a_manifest_of_something_else_is_no_end_of_the_build(tmp_path: Path, other: str) -> None:
    """Below a run that has none, as a compiler leaves one, or above the directory."""
    put(tmp_path / "in", seed())
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / other).write_text("{}")
    assert made(tmp_path / "in", tmp_path / "site", held).problems == []
    (row,) = league(tmp_path / "site", "inference/resnet50")["rows"]
    assert row["rank"] is None and row["why"].startswith("manifest.json: is missing")


def test_what_ranks_have_laid_among_shared_checkpoints_is_no_session(tmp_path: Path) -> None:
    """A rank may write below its round's folder there: another vendor's slower run, for one, which would be newer."""
    put(tmp_path / "results/one", seed())
    session = tmp_path / "checkpoints/20260301-120000"
    laid = session / "training/bert/1x2/round1/x"
    put(laid, {**seed(), "vendor": "other"})
    write_manifest(laid, [])
    assert made(tmp_path, tmp_path / "before", held).runs == 2
    (session / RANKS_WRITE).touch()
    assert made(tmp_path, tmp_path / "site", held).runs == 1


def test_a_part_of_a_session_is_not_taken_for_one_that_did_not_finish(tmp_path: Path) -> None:
    put(tmp_path / "results/one", seed())
    write_manifest(tmp_path / "results/one", [])
    (tmp_path / "results/latest").symlink_to("one")
    for session in ("one", "latest"):
        whole = tmp_path / "results" / session
        for part in (whole / "inference", whole / "inference/case"):
            with pytest.raises(UsageError) as caught:
                build([tmp_path / "results", part], tmp_path / "site", SUITES)
            assert str(caught.value) == f"{part}: is part of a session's folder: name that folder, {whole}"
    assert made(tmp_path / "results/latest", tmp_path / "site").runs == 1


def test_a_session_that_is_taken_away_while_it_is_read_is_a_line(few: Path, tmp_path: Path) -> None:
    def going(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        if folder.parents[1].name == "0":
            remove(folder)
        return held(folder, suites)

    built = made(few, tmp_path / "site", going)
    assert built.runs == 3 and len(built.problems) == 1 and "No such file" in built.problems[0]


def test_a_session_with_a_folder_that_nobody_may_enter_is_a_line(few: Path, tmp_path: Path) -> None:
    def closed(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        if folder.parents[1].name == "0":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder / "below" / "log"))
        return Seen((), {})

    built = made(few, tmp_path / "site", closed)
    assert built.runs == 3 and len(built.problems) == 1 and "cannot be verified: [Errno 13]" in built.problems[0]


def test_a_run_whose_configuration_was_held_to_nothing_is_shown_unranked(tmp_path: Path) -> None:
    why = "its configuration is not resolved again: the files of its case are others"

    def noted(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        return Seen((), {}, {"record.json": why})

    put(tmp_path / "in", seed())
    made(tmp_path / "in", tmp_path / "site", noted)
    (row,) = league(tmp_path / "site", "inference/resnet50")["rows"]
    assert row["rank"] is None and row["why"] == why


@pytest.mark.parametrize(
    "case_hash, faults, note", [(None, 1, None), ("0" * 64, 0, "the files of its case are others")]
)
def test_a_record_that_names_no_files_of_its_case_is_at_fault(
    case_hash: str | None, faults: int, note: str | None
) -> None:
    found = configuration.held(SUITES["inference"], make_record(case_hash=case_hash))
    assert len(found.faults) == faults and (note is None or note in str(found.note))


def test_a_copy_that_does_not_hold_takes_nothing_from_the_verified_run(tmp_path: Path) -> None:
    def bare(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        return Seen(["manifest.json: is not there"] if "copy" in folder.parents[1].name else (), {})

    for name in ("a-copy", "run", "z-copy"):
        put(tmp_path / "in" / name, seed())
    site = tmp_path / "site"
    assert made(tmp_path / "in", site, bare).runs == 1
    (row,) = league(site, "inference/resnet50")["rows"]
    assert row["rank"] == 1 and "<strong>Verified</strong>" in (site / "runs" / f"{row['id']}.html").read_text()
    shutil.rmtree(tmp_path / "in" / "run")
    assert made(tmp_path / "in", site, bare).read == 0
    (row,) = league(site, "inference/resnet50")["rows"]
    assert row["rank"] is None and "Not verified:" in (site / "runs" / f"{row['id']}.html").read_text()
    (listed,) = json.loads(next((site / "exports").glob("*.json")).read_text())
    assert listed["id"] == row["id"] and len(list((site / "runs").iterdir())) == 2


def test_what_one_signer_submits_takes_no_others_place(tmp_path: Path) -> None:
    """Neither a newer run of the same contender that is worse, nor a copy of its own that another has signed."""

    def signed(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        signer = {"own": "acme@lab", "later": "rival@lab", "copy": "rival@lab"}.get(folder.parents[1].name)
        return Seen([] if signer else ["manifest.json.sig: nobody has signed"], {}, signer=signer)

    record = seed()
    for name in ("own", "unsigned"):
        put(tmp_path / "in" / name, record)
    put(tmp_path / "in" / "later", record | {"started": record["started"] + 60})
    site = tmp_path / "site"
    assert made(tmp_path / "in", site, signed).runs == 2
    rows = {row["signer"]: row for row in league(site, "inference/resnet50")["rows"]}
    assert {signer: (row["rank"], row["current"]) for signer, row in rows.items()} == {
        "acme@lab": (1, True),
        "rival@lab": (1, True),
    }
    assert len({row["series"] for row in rows.values()}) == 2, "nor is there one trend of both"
    put(tmp_path / "in" / "copy", record)
    assert made(tmp_path / "in", site, signed).runs == 3
    rows = {row["id"]: row for row in league(site, "inference/resnet50")["rows"]}
    assert [row["signer"] for row in rows.values() if row["rank"]].count("acme@lab") == 1 and len(rows) == 3
    listed = json.loads(next((site / "exports").glob("*.json")).read_text())
    assert {(row["id"], row["signer"]) for row in listed} == {(row["id"], row["signer"]) for row in rows.values()}
    for identity, row in rows.items():
        assert f"signed by {row['signer']}." in (site / "runs" / f"{identity}.html").read_text()


def test_a_record_of_strange_values_is_a_line_and_the_rest_is_built(few: Path, tmp_path: Path) -> None:
    def strange(folder: Path, suites: Mapping[str, Suite]) -> Seen:
        if folder.parents[1].name == "0":
            raise TypeError("unsupported operand type(s)")
        return Seen((), {})

    built = made(few, tmp_path / "site", strange)
    assert built.runs == 3 and len(built.problems) == 1 and "cannot be verified: unsupported" in built.problems[0]


@pytest.mark.parametrize("key", ["max_noise", "repeat", "min_seconds"])
def test_a_record_of_strange_values_cannot_be_judged(tmp_path: Path, key: str) -> None:
    said = seed()
    path = put(tmp_path / "in", {**said, "config": {**said["config"], key: "x"}})
    with contextlib.suppress(UsageError):
        judge_again(path, SUITES)
    assert not verify(path.parent, SUITES).holds


def test_a_directory_in_the_place_of_a_log_is_a_finding(tmp_path: Path) -> None:
    path = put(tmp_path / "in", {**seed(), "log": {"events": 1, "head": "0" * 64}})
    path.with_name("events.jsonl").mkdir()
    assert "cannot be held to its logs" in "".join(map(str, verify(path.parent, SUITES).findings))


@pytest.mark.parametrize("name", ["record.json", "events.jsonl", "manifest.json", "monitor.jsonl"])
@pytest.mark.parametrize("lay", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_plain_file_is_found_and_never_opened(
    tmp_path: Path, name: str, lay: Callable[[Path], None]
) -> None:
    path = put(tmp_path / "in", {**seed(), "log": {"events": 1, "head": "0" * 64}})
    path.with_name(name).unlink(missing_ok=True)
    lay(path.with_name(name))
    found = verify(path.parent, SUITES)
    assert not found.records and f"{name}: is not a regular file, so not opened" in map(str, found.findings)
    built = made(tmp_path / "in", tmp_path / "site", held)
    if name == "record.json":
        assert built.runs == 0 and "is not a regular file" in built.problems[0]
    else:
        (row,) = league(tmp_path / "site", "inference/resnet50")["rows"]
        assert row["rank"] is None and "is not a regular file" in row["why"]


def test_a_run_that_passes_by_a_lax_policy_of_its_own_is_shown_unranked(tmp_path: Path) -> None:
    lax = default_policy().model_copy(update={"name": "lax", "accuracy_ratio": 0.01, "blocks": ()})
    scores = {"metric": "top1", "target": 0.5, "gate": 0.01, "framework_fp32": 0.98, "framework": 0.98, "engine": 0.6}
    record = make_record(profile="standard", policy=lax, accuracy=Accuracy(**scores))
    assert record.verdict is not None and record.verdict.kind == "PASS"
    put(tmp_path / "in", json.loads(record.text()))
    made(tmp_path / "in", tmp_path / "site")
    (row,) = league(tmp_path / "site", "inference/resnet50")["rows"]
    assert row["rank"] is None and row["why"].startswith("FAIL_ACCURACY by policy proofmark 1")


def test_a_policy_ranks_runs_behind_a_wall_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "held", lambda folder, suites, allowed: taken_as_given(folder, suites))
    (tmp_path / "lab.yaml").write_text("name: lab\nversion: 2\nranking: {isolation: wall}\n")
    for vendor, kind in (("acme", "wall"), ("zeta", "process")):
        record = make_record(profile="standard", vendor=vendor, isolation={"engine": {"kind": kind}})
        put(tmp_path / "in" / vendor, json.loads(record.text()))
    ways = {
        None: (),
        "isolation: engine ran without a wall, and policy lab 2": ("--policy", str(tmp_path / "lab.yaml")),
    }
    for why, options in ways.items():  # the second build reads all again
        assert program.main([str(tmp_path / "in"), "--out", str(tmp_path / "site"), *options]) == 0
        rows = {row["vendor"]: row for row in league(tmp_path / "site", "inference/resnet50")["rows"]}
        assert rows["acme"]["rank"] == 1 and (rows["zeta"]["why"] or "").startswith(why or "")
        assert (rows["zeta"]["rank"] is None) == (why is not None)


def test_the_outcome_of_a_comparison_is_held_to_its_bounds(tmp_path: Path) -> None:
    ratio = {"metric": "engine_core", "outcome": "SAME", "value": 0.5, "low": 0.49, "high": 0.51, "pairs": 9}
    compared = {"baseline": "main", "identity": None, "way": "rounds", "width": 0.02, "error": 0.01}
    compared |= {"metrics_of_session": 1, "ratios": [ratio]}
    path = put(tmp_path / "in", {**seed(), "compared": compared})
    expected = "compared.engine_core is SAME, its bounds give REGRESSION"
    assert expected in "".join(map(str, verify(path.parent, SUITES).findings))


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, None),
        ({"pairs": 400}, "is of 400 pairs, and there are 3 and 3 rates"),
        ({"head": [3.0]}, "is of 3 pairs, and there are 3 and 1 rates"),
        (
            {"value": 3.0, "low": 2.9, "high": 3.1},
            "is 3 times the baseline's (2.9 to 3.1, 3 pairs), and no pair is below",
        ),
        ({"low": None, "high": None}, None),
        ({"pairs": 0, "base": [], "head": []}, "not paired), and is to come of pairs"),
        ({"pairs": 0, "base": [], "head": [], "value": None, "low": None, "high": None}, None),
    ],
)
def test_a_comparison_is_held_to_the_rates_of_its_pairs(
    tmp_path: Path, changes: Mapping[str, Any], expected: str | None
) -> None:
    ratio = {"metric": "engine_core", "outcome": "AMBIGUOUS", "value": 1.1, "low": 0.9, "high": 1.2, "pairs": 3}
    ratio |= {"base": [10.0, 10.0, 10.0], "head": [9.0, 11.0, 12.0]} | changes
    ratio["outcome"] = "IMPROVEMENT" if ratio["value"] == 3.0 else "AMBIGUOUS"
    compared = {"baseline": "main", "identity": None, "way": "rounds", "width": 0.02, "error": 0.01}
    compared |= {"metrics_of_session": 1, "ratios": [ratio]}
    path = put(tmp_path / "in", {**seed(), "compared": compared})
    found = [line for line in map(str, verify(path.parent, SUITES).findings) if "compared.engine_core" in line]
    assert not found if expected is None else expected in "".join(found)


def test_without_pyarrow_there_is_no_parquet_and_a_line_says_so(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(building, "parquet_there", lambda: False)
    assert program.main([str(few), "--out", str(tmp_path / "site")]) == 0
    assert "pip install pyarrow" in capsys.readouterr().err
    assert all(len(known["exports"]) == 2 for known in leagues(tmp_path / "site").values())


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["nowhere", "--out", "site"], "nowhere: not a directory"),
        ([".", "--out", "file"], "--out file: not a directory"),
        ([".", "--out", "site", "--processes", "0"], "expected 1 to 256"),
        ([".", "--out", "site", "--processes", "two"], "expected 1 to 256"),
        ([".", "--out", "site", "--allowed-signers", "nobody"], "nobody"),
        ([".", "--out", "site", "--policy", "nowhere.yaml"], "nowhere.yaml"),
        (["."], "--out"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_4(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    put(tmp_path / "results", seed())
    try:
        code: Any = program.main(arguments)
    except SystemExit as leaving:
        code = leaving.code
    error = capsys.readouterr().err
    assert code == 4 and said in error and error.count("\n") == 1
