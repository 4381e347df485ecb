"""Logs of FlagPerf's monitors, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofmark.flagperf.__main__ import main

CARDS = """2024-11-21-19:19:24
34C 56W 1234MiB 40536MiB 83%
35C 60W 0MiB 40536MiB 0%

2024-11-21-19:19:29
36C [N/A] 2234MiB 40536MiB 85%
Unable to determine the device handle
"""


def read(*paths: Path) -> int:
    return main(["monitor", *map(str, paths)])


def test_cards_and_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cards, power, cpu = (tmp_path / name for name in ("acme_monitor.log", "pwr_monitor.log", "cpu_monitor.log"))
    cards.write_text(CARDS)
    power.write_text("2024-11-21-19:19:24\t1200\n2024-11-21-19:21:24\t1400\n")
    cpu.write_text("2024-11-21-19:19:24\t0.25\n2024-11-21-19:19:29\t7\n")
    assert read(cards, power, cpu) == 0
    first, second, third = json.loads(capsys.readouterr().out)
    assert (first["first"], first["last"]) == ("2024-11-21T19:19:24", "2024-11-21T19:19:29")
    assert (first["samples"], first["others"], len(first["cards"])) == (2, 2, 2)
    assert first["cards"][0]["memory_used"] == {"unit": "MiB", "lowest": 1234, "mean": 1234, "highest": 1234}
    assert first["cards"][0]["power"] == {"unit": "W", "lowest": 56, "mean": 56, "highest": 56}
    assert second["host"] == {"unit": "W", "lowest": 1200, "mean": 1300, "highest": 1400}
    assert (third["samples"], third["others"], third["host"]["highest"]) == (1, 1, 0.25), "7 is not a share"


def test_a_card_that_does_not_answer_is_nobody_elses_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who of a sample's cards did not is said nowhere: none of its lines is a card's."""
    log = tmp_path / "acme_monitor.log"
    cards = ["30C 10W 1MiB 9MiB 1%", "40C 20W 2MiB 9MiB 2%", "50C 30W 3MiB 9MiB 3%"]
    samples = [cards[1:], cards, ["the handle is lost", *cards[1:]], cards, cards[:1]]
    log.write_text("".join("\n".join(["2024-11-21-19:19:24", *lines, ""]) for lines in samples))
    assert read(log) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert [card["power"]["lowest"] for card in said["cards"]] == [10, 20, 30]
    assert [card["power"]["highest"] for card in said["cards"]] == [10, 20, 30]
    assert (said["samples"], said["others"]) == (5, 2 + 3 + 1)


def test_a_sensor_that_never_answered_has_no_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "acme_monitor.log"
    log.write_text("2024-11-21-19:19:24\nN/A ERR! 5MiB 9MiB 1%\n")
    assert read(log) == 0
    card = json.loads(capsys.readouterr().out)[0]["cards"][0]
    assert card["temperature"] == {"unit": "C", "lowest": None, "mean": None, "highest": None}
    assert card["memory_total"]["highest"] == 9


def test_files_that_are_none_are_all_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contents = {
        "empty_monitor.log": b"",
        "cpu_monitor.log": CARDS.encode(),
        "times_monitor.log": b"2024-11-21-19:19:24\n2024-99-21-19:19:24\n",
        "binary_monitor.log": bytes(range(256)) * 100,
        "timeless_monitor.log": b"34C 56W 1234MiB 40536MiB 83%\n",
        "short_monitor.log": b"2024-11-21-19:19:24\n34C 56W 1234MiB\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert read(*(tmp_path / name for name in contents), tmp_path / "missing.log", tmp_path) == 4
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err
    assert captured.err.count("is not a log of FlagPerf's monitors") == len(contents)
    assert captured.err.count("cannot be read") == 2


TABLE = """| {card}           Acme C500             | 0000:0e:00.0        | {used}                   |
| 36C         69W / 350W             | 5680/65536 MiB      |                      |
+------------------------------------+---------------------+----------------------+
"""
LATER = """| {card}  Acme C500 | 0  Off | 0000:0e:00.0 | {used}  Disabled |
| 69W / 350W   | 36C  P0  | 5680/65536 MiB | Available            |
"""


@pytest.mark.parametrize(
    ("lines", "figures"),
    [
        ("36C 69W 5680/65536 MiB\n83%\n", (36, 69, 5680, 65536, 83)),
        ("=== System Management ===\n" + TABLE.format(card=0, used="83%"), (36, 69, 5680, 65536, 83)),
        (LATER.format(card=0, used="83%"), (36, 69, 5680, 65536, 83)),
        ("36C 69 W/ 5680 MiB/ 65536 21%\n83%\n", (36, 69, 5680, 65536, 83)),
        ("36C 69 W/ 5680 MiB/ 65536 /\n83%\n", (36, 69, 5680, 65536, 83)),
        (" xpu_smi 36 69 5680 65536 83\n", (36, 69, 5680, 65536, 83)),
        (" 36C  69W 5680MiB 65536MiB 83%\n", (36, 69, 5680, 65536, 83)),
        ("36.0C 69.0W 5680.0MiB 65536MiB 83.0%\n", (36, 69, 5680, 65536, 83)),
        ("ab cd ef gh 5680MiB / 65536MiB\n", (None, None, 5680, 65536, None)),
        ("36C 69W 5680/65536 MiB\n", (36, 69, 5680, 65536, None)),
        ("[N/A] 69W [N/A] [N/A] 83%\n", (None, 69, None, None, 83)),
    ],
)
def test_layouts_of_other_monitors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str, figures: tuple[float | None, ...]
) -> None:
    log = tmp_path / "acme_monitor.log"
    log.write_text(f"2024-11-21-19:19:24\n{lines}\n2024-11-21-19:19:29\n{lines}\n")
    assert read(log) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert said["samples"] == 2 and len(said["cards"]) == 1
    assert tuple(each["highest"] for each in said["cards"][0].values()) == figures


def test_a_share_of_use_is_of_its_own_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "".join(TABLE.format(card=card, used=used) for card, used in enumerate(("1%", "N/A", "3%")))
    listed = "36C 69 W/ 5680 MiB/ 65536 0%\n" * 3 + "1%\nN/A\n3%\n"
    for lines in (table, listed):
        log = tmp_path / "acme_monitor.log"
        log.write_text(f"2024-11-21-19:19:24\n{lines}")
        assert read(log) == 0
        cards = json.loads(capsys.readouterr().out)[0]["cards"]
        assert [card["utilisation"]["highest"] for card in cards] == [1, None, 3]


@pytest.mark.parametrize("lines", ["83%", " zx-smi 1 2 3 4", "Usage: npu-smi info [-t type]", "36 69 5680 65536 83"])
def test_columns_that_nobody_names_are_not_guessed(tmp_path: Path, lines: str) -> None:
    log = tmp_path / "acme_monitor.log"
    log.write_text(f"2024-11-21-19:19:24\n{lines}\n")
    assert read(log) == 4
