"""Overrides from a vendor's file, the command line and a host file."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import House, clean, one_line_answer


def test_legal_ones_are_applied_and_recorded_with_their_origin(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(house.root))
    house.home_is_new = True
    house.vendor_yaml().write_text("batch_size: 20\nnew_key: [1, {a: null}]\n")
    host = house.root / "host.yaml"
    host.write_text("VENDOR: fake\nFLAGPERF_LOG_PATH: ~/elsewhere\nSHM_SIZE: 32G\n")
    options = "--host-config=host.yaml --set log_freq=7 --repeat=3 --compiler=slow".split()
    ran = house.end(house.start(*options), results="elsewhere")
    assert ran.code == 0, ran.output
    record = ran.record()
    assert record.vendor == "fake"
    found = {entry.key: (entry.old, entry.new, entry.origin, entry.kind) for entry in record.overrides}
    file = "vendors/fake/configs/inference/tiny.yaml"
    assert found == {
        "batch_size": (16, 20, file, "changed"),
        "new_key": (None, [1, {"a": None}], file, "added"),
        "log_freq": (30, 7, "--set", "changed"),
        "repeat": (2, 3, "--repeat", "changed"),
        "compiler": ("default", "slow", "--compiler", "changed"),
    }
    assert record.engine is not None
    assert [timed.batches for timed in record.engine.rounds] == [5, 5, 5]
    warning = [line for line in ran.output.splitlines() if line.startswith("WARNING")]
    assert len(warning) == 1 and "new_key" in warning[0]
    assert "host file: no effect, with any launcher: SHM_SIZE" in ran.output


def test_all_illegal_ones_are_told_at_once(house: House) -> None:
    house.vendor_yaml().write_text(
        "batch_size: 16\ntarget: 0.1\nfp16: 1\nVENDOR: other\nmodel: x\nmy_seed: 3\nno_validation: true\n"
    )
    options = ("--set", "num_workers=-1", "--set", "data_dir=/x", "--repeat=2", "--compiler=honest", "--precision=fp32")
    ran = house.run(*options)
    assert ran.code == 16, ran.output
    kind, reasons = ran.verdict()
    assert kind == "FAIL_LEGALITY"
    file = "vendors/fake/configs/inference/tiny.yaml"
    for expected in (
        f"{file}: batch_size: is already 16",
        f"{file}: target: is a parameter of the task (0.9) and may not be overridden (asked for 0.1)",
        f"{file}: fp16: expected bool, found int 1",
        f"{file}: VENDOR: is a host setting",
        f"{file}: my_seed: names a target or a seed",
        "--set: num_workers: expected at least 0, found -1",
        "--set: data_dir: is a reserved name; use --data-dir (asked for '/x')",
        "--repeat: repeat: is already 2",
        "--compiler: compiler: is 'default', which comes to 'honest' already",
        "--precision: precision: is null, which comes to 'fp32' already",
        f"{file}: no_validation: leaves out whose model the engine is, which a vendor's file may not",
    ):
        assert expected in reasons, reasons
    assert "step init" not in reasons
    blocks = ran.output.partition("= FAILURES =")[2].partition("\n-- inference/tiny")[0]
    assert blocks.count("VENDOR: is a host setting") == 1, "once, however many tests were not reached"
    assert not (ran.case_dir() / "worker.log").exists()
    clean(ran)


def test_a_missing_file_is_told_before_any_work(house: House) -> None:
    ran = house.run("--set", "exist_onnx_path=/none.onnx", "--compiler=onnx")
    assert ran.verdict() == ("FAIL_LEGALITY", "case tiny: exist_onnx_path: no such file: /none.onnx")
    assert ran.code == 16


def test_every_file_that_cannot_be_read_is_told_by_name_and_key(house: House) -> None:
    for case in "syntax twice toplevel wrongtype vendorsyntax vendorlist".split():
        house.add_case(case)
    folder = house.case_yaml.parent
    text = house.case_yaml.read_text()
    (folder / "syntax.yaml").write_text(text + "x: [1\n")
    (folder / "twice.yaml").write_text(text.replace("batch_size: 16", "batch_size: 16\n  batch_size: 8"))
    (folder / "toplevel.yaml").write_text(text + "colour: red\n")
    (folder / "wrongtype.yaml").write_text(text.replace("target: 0.9", "target: high").replace("16", "many"))
    house.vendor_yaml("vendorsyntax").write_text("batch_size: 'x\n")
    house.vendor_yaml("vendorlist").write_text("- batch_size\n")
    ran = house.run("--keep-artifacts")
    assert ran.code == 4, ran.output
    clean(ran)
    for expected in (
        "syntax.yaml: not valid YAML: line ",
        "twice.yaml: not valid YAML: line ",
        "duplicate key 'batch_size'",
        "toplevel.yaml: colour: unknown key",
        "wrongtype.yaml: parameters.target: ",
        "wrongtype.yaml: configurations.batch_size: expected int, found str 'many'",
        "vendorsyntax.yaml: not valid YAML",
        "vendorlist.yaml: expected a mapping",
    ):
        assert [line for line in ran.output.splitlines() if expected in line], ran.output
    assert not ran.results.exists()


def test_a_file_that_nobody_selects_does_not_matter(house: House) -> None:
    house.add_case("broken")
    house.case_yaml.with_name("broken.yaml").write_text("[")
    ran = house.end(house.start("--vendor=fake", "-k", "tiny", "--set", "target=1"))
    assert ran.code == 16, ran.output


def test_case_without_yaml(house: House) -> None:
    house.case_yaml.unlink()
    one_line_answer(house.run(), "tiny.yaml: is not there; expected the numbers of test_tiny.py")


def test_a_misnamed_file_is_refused_with_the_nearest_case(house: House) -> None:
    for name, expected in (("tinny.yaml", "did you mean 'inference/tiny.yaml'?"), ("tiny.json", "inference/tiny.yaml")):
        path = house.vendor_yaml().with_name(name)
        path.write_text("batch_size: 8\n")
        one_line_answer(house.run(), f"vendors/fake/configs/inference/{name}: is ", expected)
        path.unlink()
