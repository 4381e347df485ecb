"""Results that cannot be written: one clear line, no traceback, nothing left running."""

from __future__ import annotations

import contextlib
import subprocess

import psutil
import pytest

from tests.disks import MakeDisk, fill
from tests.e2e.conftest import House, Ran, clean, one_line_answer


def answer(ran: Ran, expected: str) -> None:
    """A failure that says why."""
    assert ran.code not in (0, 1, 5), ran.output
    assert expected in ran.output, ran.output
    clean(ran)


def test_full_from_the_start(house: House, make_disk: MakeDisk) -> None:
    disk = make_disk(16)
    fill(disk)
    ran = house.run("--results-dir", str(disk / "results"))
    answer(ran, "No space left on device")
    assert house.becomes_empty()


@pytest.mark.parametrize("kib", [8, 12])
def test_full_in_mid_run(house: House, make_disk: MakeDisk, kib: int) -> None:
    disk = make_disk(kib)
    ran = house.run("--results-dir", str(disk), "--set", "batch_size=4", "--repeat=60")
    answer(ran, "No space left on device")
    assert house.becomes_empty()


def test_full_when_the_record_is_written(house: House, make_disk: MakeDisk) -> None:
    """The engine's last step fills the disk: the summary finds no room."""
    disk = make_disk(64)
    session = house.start("--vendor=fake", "--results-dir", str(disk), trouble="tiny.compile=sleep")
    house.wait_for_trouble(session)
    fill(disk)
    for process in house.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.pid != session.pid and process.ppid() == session.pid:
                process.kill()
    answer(house.end(session), "No space left on device")


def test_results_dir_is_a_file(house: House) -> None:
    (house.root / "results").write_text("")
    ran = house.run()
    one_line_answer(ran, f"{house.root}/results: results cannot be written: Not a directory")


def test_results_dir_is_read_only(house: House, make_disk: MakeDisk) -> None:
    disk = make_disk(64)
    remount = ["mount", "-o", "remount,ro", str(disk)]
    subprocess.run(remount, check=True, capture_output=True)
    ran = house.run("--results-dir", str(disk / "results"))
    assert ran.code == 4, ran.output
    answer(ran, "Read-only file system")


def test_results_dir_refuses_everybody(house: House) -> None:
    ran = house.run("--results-dir", "/proc/1/results")  # root too: the kernel makes no folder there
    one_line_answer(ran, "ERROR: --results-dir /proc/1/results: results cannot be written: No such file or directory")


REPORTS = {
    "--junitxml": "junit.xml",
    "--benchmark-json": "benchmark.json",
    "--alluredir": "allure",
    "--summary": "summary.md",
    "--annotations": "annotations.json",
}


def test_reports_on_a_disk_that_is_full_take_nothing_with_them(house: House, make_disk: MakeDisk) -> None:
    """Each is a line; the results, their list and the one report that has room are there, and the verdict."""
    disk = make_disk(64)
    fill(disk)
    options = [f"{option}={disk / name}" for option, name in REPORTS.items() if option != "--summary"]
    saving = ("--benchmark-save=here", f"--benchmark-storage={disk / 'storage'}")
    ran = house.run("--summary", "summary.md", *options, *saving)
    assert ran.code == 3, ran.output
    lines = [line for line in ran.output.splitlines() if line.endswith(": cannot be written: No space left on device")]
    named = sorted(line.split()[0].rstrip(":") for line in lines)
    assert named == sorted({*REPORTS, "--benchmark-save"} - {"--summary"}), "each once"
    assert "Traceback" not in ran.output and "INTERNALERROR" not in ran.output
    assert "\nPASS " in ran.output and "1 run, exit code 3" in (house.root / "summary.md").read_text()
    assert (ran.run_dir / "manifest.json").is_file() and (ran.run_dir / "report.html").is_file()


def test_reports_that_cannot_be_written_are_refused_before_anything_is_measured(house: House) -> None:
    """All at once, and each once."""
    ran = house.run(*(f"{option}=/proc/1/{name}" for option, name in REPORTS.items()))
    assert ran.code == 4, ran.output
    clean(ran)
    refused = sorted(line.removeprefix("ERROR: ") for line in ran.output.splitlines() if "cannot be written" in line)
    assert refused == sorted(
        f"{option} /proc/1/{name}: cannot be written: No such file or directory" for option, name in REPORTS.items()
    )
    assert not ran.results.exists()


def test_figures_that_cannot_be_saved_are_refused_before_anything_is_measured(house: House) -> None:
    (house.root / "baselines").write_text("")
    one_line_answer(
        house.run("--benchmark-save=main"), "--benchmark-save", "baselines: cannot be written: Not a directory"
    )


def test_the_folder_of_a_report_is_made(house: House) -> None:
    options = [f"{option}=new/{number}/{name}" for number, (option, name) in enumerate(REPORTS.items())]
    ran = house.run(*options)
    assert ran.code == 0, ran.output
    clean(ran)
    assert sorted(path.parent.name for path in (house.root / "new").glob("*/*.*")) == ["0", "1", "3", "4"]
