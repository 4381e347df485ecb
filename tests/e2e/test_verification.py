"""What a session left is verified where it was brought; any byte that is another is found, and named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proofmark import __main__ as program
from proofmark.errors import UsageError
from proofmark.record.integrity.manifest import MANIFEST, SIGNATURE, write_manifest
from proofmark.record.load import load_record
from proofmark.record.policy import default_policy
from proofmark.suite import Suite, find_suites
from proofmark.verification import configuration
from proofmark.verification.configuration import Held, held
from proofmark.verification.judged import judge_again
from proofmark.verification.verify import verify
from tests.e2e.conftest import ROOT, House, one_line_answer


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Mapping[str, Path]:
    """An inference and a training, each of one session that has ended, away from where they ran.

    The first was signed: its signature lies beside it, with the public key.
    """
    house = House(tmp_path_factory.mktemp("verified") / "house", trained)
    key = tmp_path_factory.mktemp("brought") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    left = {}
    signed = ("--sign", str(key), "--scenario", "latency")
    for suite, options in (("inference", signed), ("training", ("-k", "1x1", "--set", "train_batch_size=8"))):
        ran = house.run(*options, vendor="cpu", suite=suite)
        assert ran.code == 0, ran.output
        left[suite] = Path(shutil.copytree(ran.run_dir, key.with_name(suite)))
    (left["inference"] / SIGNATURE).rename(key.with_name(SIGNATURE))
    assert house.becomes_empty()
    shutil.rmtree(house.root)  # nothing of it is looked at
    return left


@pytest.fixture(scope="module")
def suites() -> Mapping[str, Suite]:
    """Those of this checkout."""
    return find_suites(ROOT / "suites")


@pytest.fixture(params=["inference", "training"])
def session(request: pytest.FixtureRequest, sessions: Mapping[str, Path], tmp_path: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copytree(sessions[request.param], tmp_path / "session"))


def here(house: House, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Suite]:
    """The suites of this checkout, whose cases' files are those of a house."""
    monkeypatch.setattr(configuration, "folder_of", lambda suite: house.root / "suites" / suite.name)
    return find_suites(ROOT / "suites")


def named(folder: Path, suites: Mapping[str, Suite]) -> dict[str, str]:
    """What is found, by file."""
    by_file: dict[str, str] = {}
    for finding in verify(folder, suites).findings:
        by_file[finding.file] = f"{by_file.get(finding.file, '')}\n{finding.what}"
    return by_file


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def record_of(folder: Path) -> Path:
    (path,) = folder.rglob("record.json")
    return path


def rewritten(folder: Path) -> None:
    """Somebody writes the manifest anew, after having changed what it lists."""
    (folder / MANIFEST).unlink()
    write_manifest(folder)


def test_it_holds_as_it_was_left(session: Path, suites: Mapping[str, Suite]) -> None:
    verified = verify(session, suites)
    assert verified.holds and verified.findings == (), verified
    assert all("has no such case here" in note.what for note in verified.notes)
    (record,) = verified.records.values()
    assert record.verdict is not None and record.verdict.kind == "PASS"


def test_a_flipped_bit_of_any_file_is_found(session: Path, suites: Mapping[str, Suite]) -> None:
    for path in files(session):
        content = path.read_bytes()
        for position in {0, len(content) // 2, len(content) - 1} if content else ():
            changed = bytearray(content)
            changed[position] ^= 1
            path.write_bytes(changed)
            found = verify(session, suites)
            assert not found.holds, (path, position)
            if path.name != MANIFEST:
                assert str(path.relative_to(session)) in {finding.file for finding in found.findings}
        path.write_bytes(content)
    assert verify(session, suites).holds


def test_what_is_added_removed_or_cut_short_is_named(session: Path, suites: Mapping[str, Suite]) -> None:
    home = record_of(session).parent
    log = home / "events.jsonl"
    whole = log.read_bytes()
    (home / "added.txt").write_text("")
    log.write_bytes(whole[: len(whole) // 2])
    (session / "report.html").unlink()
    found = named(session, suites)
    place = home.relative_to(session)
    assert "was added" in found[f"{place}/added.txt"]
    assert "was edited" in found[f"{place}/events.jsonl"]
    assert "is missing" in found["report.html"]
    assert f"{place}/record.json" in found, "its figures no longer follow from the log"


def last_event_gone(folder: Path) -> None:
    log = record_of(folder).with_name("events.jsonl")
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


def better_figure(folder: Path) -> None:
    record = json.loads(record_of(folder).read_text())
    figure = next(each for each in record["figures"] if each["kind"] in ("speed", "cost") and each.get("value"))
    figure["value"] *= 2
    record_of(folder).write_text(json.dumps(record))


def better_verdict(folder: Path) -> None:
    path = record_of(folder)
    path.write_text(path.read_text().replace('"kind": "PASS"', '"kind": "AMBIGUOUS"'))


def another_config(folder: Path) -> None:
    record = json.loads(record_of(folder).read_text())
    record["config"]["batch_size"] = 7
    record_of(folder).write_text(json.dumps(record))


@pytest.mark.parametrize(
    "change, expected",
    [
        (last_event_gone, "its logs say"),
        (better_figure, "figures["),
        (better_verdict, "its verdict is AMBIGUOUS, and its figures give PASS"),
        (another_config, "config.batch_size is 7, its logs say"),
    ],
)
def test_a_manifest_written_anew_hides_nothing_that_follows_from_logs(
    session: Path, suites: Mapping[str, Suite], change: Callable[[Path], None], expected: str
) -> None:
    change(session)
    rewritten(session)
    (found,) = named(session, suites).values()
    assert expected in found


@pytest.mark.parametrize(
    "key, value, expected",
    [
        ("vendor", "acme", "config_hash is not that"),
        ("metric", "top5", "config.metric is 'top5', its case's files and its overrides give 'top1'"),
        ("seed", 17, "config.seed is 17"),
        ("target", 0.1, "config.target is 0.1"),
    ],
)
def test_a_configuration_is_held_to_its_cases_files(
    session: Path, house: House, monkeypatch: pytest.MonkeyPatch, key: str, value: Any, expected: str
) -> None:
    suites = here(house, monkeypatch)
    record = load_record(record_of(session), suites.get)
    suite = suites[record.suite]
    assert held(suite, record) == Held()
    changed = {"config": {**record.config, key: value}} if key in record.config else {key: value}
    assert expected in "".join(held(suite, record.model_copy(update=changed)).faults)
    if suite.compiles:
        chosen = tuple(
            replace(each, origin="--compiler") if each.key == "compiler" else each for each in record.overrides
        )
        overrides = tuple(sorted(chosen, key=lambda each: each.key == "batch_size"))
        assert held(suite, record.model_copy(update={"overrides": overrides})) == Held(), "another's than the default"
    illegal = replace(record.overrides[0], key="target", old=None, new=0.1, origin="--set")
    more = record.model_copy(update={"overrides": (illegal, *record.overrides)})
    assert "is a parameter of the task" in "".join(held(suite, more).faults)
    assert "its overrides give" in "".join(held(suite, record.model_copy(update={"overrides": ()})).faults)


@pytest.mark.parametrize(
    "suite, options, key",
    [
        ("inference", ("--set", "fp16=true", "--precision", "bf16"), "precision"),
        ("training", ("-k", "1x1", "--set", "train_batch_size=8", "--set", "global_batch_size=100"), ""),
    ],
)
def test_what_a_record_tells_of_its_own_configuration_is_no_fault(
    house: House, monkeypatch: pytest.MonkeyPatch, suite: str, options: tuple[str, ...], key: str
) -> None:
    """It is FAIL_LEGALITY by its own word; one that keeps it to itself is at fault."""
    ran = house.run(*options, vendor="cpu", suite=suite)
    assert ran.code == 16, ran.output
    suites = here(house, monkeypatch)
    verified = verify(ran.run_dir, suites)
    assert verified.holds and not verified.findings and not verified.notes, verified
    (record,) = verified.records.values()
    assert record.verdict is not None and record.verdict.kind == "FAIL_LEGALITY"
    silent = held(suites[suite], record.model_copy(update={"problems": ()}))
    assert any(fault.startswith("its configuration is not legal: ") and key in fault for fault in silent.faults)


def test_a_configuration_of_other_files_is_said_to_be_of_those(
    session: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = here(house, monkeypatch)
    record = load_record(record_of(session), suites.get)
    suite = suites[record.suite]
    for changes, expected in (
        ({"case_hash": "0" * 64}, "the files of its case are others"),
        ({"case": "../../tiny"}, "has no such case here"),
    ):
        found = held(suite, record.model_copy(update=changes))
        assert not found.faults and expected in str(found.note)
    unsaid = held(suite, record.model_copy(update={"case_hash": None}))
    assert "does not say of which files" in "".join(unsaid.faults)


def test_without_a_manifest_the_session_did_not_end(session: Path, suites: Mapping[str, Suite]) -> None:
    (session / MANIFEST).unlink()
    assert "the session did not finish" in named(session, suites)[MANIFEST]


def test_a_record_of_another_place_schema_or_suite_is_named(session: Path, suites: Mapping[str, Suite]) -> None:
    path = record_of(session)
    place = str(path.relative_to(session))
    assert "is not installed" in "".join(map(str, verify(session, {}).findings))
    shutil.copytree(path.parent, session / "other")
    assert "which does not belong here" in named(session, suites)["other/record.json"]
    for text, expected in (
        ('{"schema_version": 1}', "schema version 1"),
        ('{"schema_version": "<script>\\u001b[2J"}', "schema version '<script>\\x1b[2J'"),
        (path.read_text()[:-40], "not a run record"),
        ("", "not a run record"),
    ):
        path.write_text(text)
        assert expected in named(session, suites)[place], text


def test_a_record_of_any_size_is_refused_in_bounded_memory(session: Path, suites: Mapping[str, Suite]) -> None:
    with record_of(session).open("r+b") as stream:
        stream.truncate(200 << 20)  # a sparse one
    assert "larger than 64 MiB" in named(session, suites)[str(record_of(session).relative_to(session))]


def test_a_log_of_any_size_is_refused_in_bounded_memory(session: Path, suites: Mapping[str, Suite]) -> None:
    (session / MANIFEST).unlink()  # to hash it takes long
    log = record_of(session).with_name("monitor.jsonl")
    with log.open("ab") as stream:
        stream.truncate(2 << 30)
    assert "too large to be read again" in "".join(map(str, verify(session, suites).findings))


def test_an_event_log_of_any_size_is_not_read_for_hours(
    session: Path, suites: Mapping[str, Suite], monkeypatch: pytest.MonkeyPatch
) -> None:
    (session / MANIFEST).unlink()
    with record_of(session).with_name("events.jsonl").open("ab") as stream:
        stream.truncate(2 << 30)  # of 5 TiB it did not end
    monkeypatch.setattr("proofmark.verification.again.changes", lambda *_: pytest.fail("it was read"))
    assert "too large to be read again" in "".join(map(str, verify(session, suites).findings))


@pytest.fixture
def looked_at(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`python -m proofmark ...` in this checkout: the exit code and what it printed."""
    monkeypatch.chdir(ROOT)

    def look(*arguments: object) -> str:
        code = program.main([str(each) for each in arguments])
        printed = capsys.readouterr()
        return f"{code} {printed.out}{printed.err}"

    return look


def test_the_command_says_what_holds(sessions: Mapping[str, Path], looked_at: Callable[..., str]) -> None:
    output = looked_at("--verify", *sessions.values())
    assert output.startswith("0 VERIFIED") and output.count("VERIFIED") == 2 and "NOT VERIFIED" not in output
    assert "  inference/tiny/record.json: PASS" in output


def test_a_record_judged_again_gives_its_own_verdict_bit_for_bit(
    sessions: Mapping[str, Path], suites: Mapping[str, Suite], looked_at: Callable[..., str]
) -> None:
    for session in sessions.values():
        path = record_of(session)
        judged = judge_again(path, suites)
        said = json.loads(path.read_text())
        assert judged.holds and json.loads(judged.verdict.model_dump_json()) == said["verdict"]
        assert said["policy"]["name"] == "proofmark" and said["policy_hash"] == default_policy().sha256
    output = looked_at("--judge", *map(record_of, sessions.values()))
    assert output.startswith("0 PASS  inference/tiny") and output.endswith("exit code 0\n"), output


def test_another_policy_judges_otherwise(
    sessions: Mapping[str, Path], tmp_path: Path, looked_at: Callable[..., str]
) -> None:
    policy = tmp_path / "strict.yaml"
    policy.write_text("name: strict\nversion: 3\nleast_rounds: 10\nleast_seeds: 2\n")
    output = looked_at("--judge", *map(record_of, sessions.values()), "--policy", policy)
    assert output.startswith("12 INSUFFICIENT  inference/tiny") and "was PASS" in output and "strict 3 (" in output
    assert "the policy asks for 10" in output and "the policy asks for 2" in output
    policy.write_text(policy.read_text() + "blocks: []\n")
    output = looked_at("--judge", *map(record_of, sessions.values()), "--policy", policy)
    assert output.startswith("0 INSUFFICIENT") and "lets it pass" in output


def test_a_record_that_says_otherwise_is_an_error(session: Path, looked_at: Callable[..., str]) -> None:
    path = record_of(session)
    whole = path.read_text()
    for old, new in (('"kind": "PASS"', '"kind": "AMBIGUOUS"'), ('"least_seeds": 1', '"least_seeds": 0.5')):
        path.write_text(whole.replace(old, new))
        output = looked_at("--judge", path)
        assert (output.startswith("17 ") and "WRONG" in output) or output.startswith("4 ERROR"), output
    path.write_text(whole.replace('"failing_seeds": 0.2', '"failing_seeds": 0.9'))
    assert looked_at("--judge", path).startswith("17 "), "not the policy that its hash is of"


def test_what_cannot_be_judged_is_one_line(session: Path, tmp_path: Path, looked_at: Callable[..., str]) -> None:
    path = record_of(session)
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.yaml").write_text("name: <b>\nnoise: 3\n")
    for arguments, expected in (
        ((tmp_path / "nothing.json",), "No such file"),
        ((session,), f"is a directory; name the records in it: {path}"),
        ((tmp_path / "empty",), "is a directory; expected a run's record.json, and there is none in it"),
        (
            (path.with_name("events.jsonl"),),
            "events.jsonl: not a run record: it is not JSON, or it is more than one value",
        ),
        ((path, "--allowed-signers", path), "--allowed-signers is for --verify"),
    ):
        line = looked_at("--judge", *arguments)
        assert line.startswith("4 ERROR: ") and expected in line and len(line.splitlines()) == 1
    odd = looked_at("--judge", path, "--policy", tmp_path / "odd.yaml")
    assert odd.startswith("4 ERROR: ") and all(key in odd for key in ("name", "version", "noise")), odd
    path.write_text(path.read_text().replace('"suite": "', '"suite": "\\u001bun'))
    assert "suite '\\x1bun" in (output := looked_at("--judge", path)) and "is not installed" in output


def test_the_command_refuses_what_is_no_directory(tmp_path: Path, looked_at: Callable[..., str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for wrong, why in (("file", "not a directory"), ("none", "No such file"), ("loop", "")):
        output = looked_at("--verify", tmp_path / wrong)
        assert output.startswith("4 ERROR: ") and why in output and len(output.splitlines()) == 1
    assert "no record" in looked_at("--verify", tmp_path) or "is missing" in looked_at("--verify", tmp_path)


def test_a_part_of_a_session_is_no_session_that_is_wrong(
    session: Path, tmp_path: Path, looked_at: Callable[..., str]
) -> None:
    (tmp_path / "latest").symlink_to(session)
    folder = record_of(session).parent
    by_link = tmp_path / "latest" / folder.relative_to(session)
    for part, whole in ((folder, session), (folder.parent, session), (by_link, tmp_path / "latest")):
        output = looked_at("--verify", part)
        assert output.startswith("4 ERROR: ") and output.endswith(f": name that folder, {whole}\n")


def test_a_session_signs_what_it_leaves(
    sessions: Mapping[str, Path], tmp_path: Path, looked_at: Callable[..., str]
) -> None:
    signed = Path(shutil.copytree(sessions["inference"], tmp_path / "session"))
    allowed = tmp_path / "allowed"
    allowed.write_text(f"me@example.org {(sessions['inference'].parent / 'key.pub').read_text()}")
    shutil.copy(sessions["inference"].parent / SIGNATURE, signed)
    output = looked_at("--verify", signed, "--allowed-signers", allowed)
    assert "signed by me@example.org" in output and output.startswith("0 "), output
    (signed / SIGNATURE).unlink()
    output = looked_at("--verify", signed, "--allowed-signers", allowed)
    assert output.startswith("17 NOT VERIFIED") and "nobody has signed" in output


@pytest.mark.parametrize("key, why", [("nothing", "cannot be read"), ("pytest.ini", "does not sign with it")])
def test_a_key_that_cannot_sign_is_refused_before_anything_runs(house: House, key: str, why: str) -> None:
    one_line_answer(house.run("--sign", key, vendor="cpu"), "--sign", why)


def test_a_session_is_held_to_the_policy_that_it_is_given(house: House, tmp_path: Path) -> None:
    policy = tmp_path / "lab.yaml"
    policy.write_text("name: lab\nversion: 2\nleast_rounds: 100\nblocks: [AMBIGUOUS, FAIL_PERF]\n")
    ran = house.run("--policy", str(policy), "--accuracy-gate", "0.995", vendor="cpu")
    assert ran.code == 0 and "INSUFFICIENT" in ran.output and "policy: lab 2 (" in ran.output, ran.output
    record = ran.record()
    assert (record.policy.name, record.policy.accuracy_ratio, record.policy.least_rounds) == ("lab", 0.995, 100)
    assert record.verdict is not None and record.verdict.kind == "INSUFFICIENT"
    policy.write_text("version: two\nblocks: [ERROR]\nacuracy_ratio: 0.9\n")
    refused = house.run("--policy", str(policy), vendor="cpu")
    assert refused.code == 4 and all(key in refused.output for key in ("name", "version", "blocks", "acuracy_ratio"))


def test_the_suites_are_those_of_the_program_wherever_it_is_started(
    tmp_path: Path, looked_at: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def names(path: Path, suites: Mapping[str, Suite], policy: object = None) -> None:
        raise UsageError(" ".join(suites))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "judge_again", names)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if Path(path).resolve() != ROOT])
    output = looked_at("--judge", "record.json")
    assert output.startswith("4 ERROR: ") and "inference" in output and "training" in output
    assert sys.path[0] == str(ROOT)


def test_a_path_that_cannot_be_looked_at_hides_no_other(tmp_path: Path, looked_at: Callable[..., str]) -> None:
    lines = looked_at("--verify", tmp_path / "none", tmp_path, tmp_path / "neither").splitlines()
    assert lines[0] == f"4 NOT VERIFIED {tmp_path}"
    errors = [line for line in lines if line.startswith("ERROR: ")]
    assert len(errors) == 2 and "/none: " in errors[0] and "/neither: " in errors[1]
    judged = looked_at("--judge", tmp_path / "none", tmp_path / "neither")
    assert judged.startswith("4 ERROR: ") and len(judged.splitlines()) == 2


@pytest.mark.parametrize("option", ["--verify", "--judge"])
def test_an_empty_path_is_not_the_working_directory(
    option: str, looked_at: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="4"):
        looked_at(option, "")
    expected = f"ERROR: argument {option}: expected a path, found none; is a variable not set?\n"
    assert capsys.readouterr().err == expected
