"""Where a house's folders are looked for, and which of a vendor's devices is asked for."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import House, one_line_answer


@pytest.mark.parametrize("surroundings", ["[pytest]\n", None])
def test_a_path_outside_moves_nothing(house: House, surroundings: str | None) -> None:
    """pytest takes an option's value for a test path when it looks for its rootdir."""
    house.cache = house.root / ".cache"
    outside = house.root.parent / "outside"
    (outside / "results").mkdir(parents=True)
    if surroundings is not None:
        (house.root.parent / "pytest.ini").write_text(surroundings)
    house.vendor_yaml().write_text("batch_size: 20\n")
    ran = house.run("--results-dir", "../outside/results", "--repeat", "3")
    assert ran.code == 0, ran.output
    (run_dir,) = (path for path in (outside / "results").iterdir() if not path.is_symlink())
    assert (run_dir / "inference/tiny/record.json").is_file()
    assert ("write --option=../path" in ran.output) == (surroundings is not None)


def test_a_device_that_the_vendor_has(house: House) -> None:
    ran = house.run("--device", "other chip")
    assert ran.code == 0, ran.output
    assert ran.record().chip.name == "other chip"
    assert "chip other chip" in ran.output and "--device other chip" in ran.output


def test_a_device_that_the_vendor_does_not_have(house: House) -> None:
    expected = "vendor 'fake': --device third chip: expected 'fake chip' or 'other chip'"
    one_line_answer(house.run("--device", "third chip"), expected)


def test_a_device_of_a_vendor_with_nothing_to_select(house: House) -> None:
    one_line_answer(house.run("--device", "CPU", vendor="cpu"), "vendor 'cpu': --device CPU: the vendor has one kind")


LOOKS = """

def pytest_unconfigure(config):
    import sys
    print("vendors here:", sorted(name for name in sys.modules if name.startswith("vendors")))
"""


def test_the_session_imports_no_vendors_code(house: House) -> None:
    with (house.root / "conftest.py").open("a") as stream:
        stream.write(LOOKS)
    ran = house.run("--compiler=null")
    assert ran.record().isolation["introduction"].kind in ran.output
    assert "vendors here: ['vendors']" in ran.output, "the folder of all vendors, which is the house's own"
