"""ImageNet's validation images laid out by class, from archives in the real format."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from suites.data.images.image_folder import ImageFolder
from suites.data.prepare_imagenet import META, TRUTH, main

SYNSETS = ["n02000003", "n01000001", "n01500002"]
"""By ILSVRC2012's numbers, which are not in the order of the names."""

NUMBERS = [2, 1, 3, 2]
"""Of the images."""


def jpeg(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (20, 30), (shade, shade, shade)).save(stream, "JPEG")
    return stream.getvalue()


def tar(path: Path, files: Mapping[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def image(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}.JPEG"


IMAGES = {image(number): jpeg(50 * number) for number in (3, 1, 2, 4)}


@pytest.fixture
def devkit(tmp_path: Path) -> Path:
    meta = io.BytesIO()
    types = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("gloss", "O"), ("num_children", "O")]
    rows = [(number, name, "words", "gloss", 0) for number, name in enumerate(SYNSETS, 1)]
    savemat(meta, {"synsets": np.array(rows, dtype=types)})
    files = {TRUTH: "\n".join(map(str, NUMBERS)).encode() + b"\n", META: meta.getvalue()}
    folder = "ILSVRC2012_devkit_t12"
    return tar(tmp_path / "devkit.tar.gz", {f"{folder}/{name}": each for name, each in files.items()}, "w:gz")


def laid_out(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())


EXPECTED = sorted(f"{SYNSETS[number - 1]}/{image(place)}" for place, number in enumerate(NUMBERS, 1))


def test_by_the_devkit_and_again_after_an_interruption(
    tmp_path: Path, devkit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, out = tar(tmp_path / "val.tar", IMAGES), tmp_path / "out"
    arguments = [str(archive), "--devkit", str(devkit), "--out", str(out)]
    assert main(arguments) == 0 and laid_out(out) == EXPECTED
    assert "4 images of 3 classes, 4 of them written now" in capsys.readouterr().out
    (out / EXPECTED[0]).write_bytes(b"half")
    assert main(arguments) == 0 and laid_out(out) == EXPECTED
    assert "1 of them written now" in capsys.readouterr().out
    data = ImageFolder(str(out), 3, 16, 16, (0.5,) * 3, (0.5,) * 3)
    assert len(data) == 4 and data.batch([0, 1, 2, 3])[1].tolist() == [0, 0, 1, 2]


def test_by_a_list_of_synsets(tmp_path: Path) -> None:
    listed = tmp_path / "synsets.txt"
    listed.write_text("".join(f"{SYNSETS[number - 1]}\n" for number in NUMBERS))
    archive, out = tar(tmp_path / "val.tar", {f"val/{name}": each for name, each in IMAGES.items()}), tmp_path / "out"
    assert main([str(archive), "--synsets", str(listed), "--out", str(out)]) == 0
    assert laid_out(out) == EXPECTED


@pytest.mark.parametrize(
    "files, expected",
    [
        ({**IMAGES, "../../evil.JPEG": b"x"}, "found '../../evil.JPEG'"),
        ({**IMAGES, image(5): b"x"}, "the list of classes has 4 images"),
        ({image(1): b"x"}, "image 2 of 4 and 2 more is not there"),
        ({**IMAGES, f"again/{image(1)}": b"x"}, "is in it twice"),
        ({}, "image 1 of 4 and 3 more is not there"),
    ],
)
def test_an_archive_of_something_else(
    tmp_path: Path, devkit: Path, capsys: pytest.CaptureFixture[str], files: Mapping[str, bytes], expected: str
) -> None:
    archive, out = tar(tmp_path / "val.tar", files), tmp_path / "a/out"
    assert main([str(archive), "--devkit", str(devkit), "--out", str(out)]) == 4
    error = capsys.readouterr().err
    assert expected in error and error.startswith("ERROR: ") and error.count("\n") == 1
    assert not list(tmp_path.rglob("evil*")) and set(laid_out(out)) <= set(EXPECTED)


def test_what_is_no_archive_and_what_is_no_devkit(
    tmp_path: Path, devkit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tar(tmp_path / "val.tar", IMAGES)
    torn, linked, text = tmp_path / "torn.tar", tmp_path / "linked.tar", tmp_path / "text"
    torn.write_bytes(archive.read_bytes()[:1200])
    with tarfile.open(linked, "w") as made:
        member = tarfile.TarInfo(image(1))
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made.addfile(member)
    text.write_text("n1\n")
    kit, synsets = ("--devkit", str(devkit)), ("--synsets", str(text))
    for first, second, expected in [
        (torn, kit, "not a complete tar archive"),
        (text, kit, "not a complete tar archive"),
        (linked, kit, "expected images"),
        (tmp_path / "none", kit, "No such file"),
        (archive, ("--devkit", str(text)), "not an ImageNet development kit"),
        (archive, ("--devkit", str(archive)), "it has no file data/"),
        (archive, synsets, "expected a WordNet ID such as n01440764"),
    ]:
        assert main([str(first), *second, "--out", str(tmp_path / "out")]) == 4
        error = capsys.readouterr().err
        assert expected in error and error.count("\n") == 1, error


@pytest.mark.parametrize("bad", ["damaged", "empty", "short"])
def test_a_devkit_whose_meta_file_is_damaged(
    tmp_path: Path, devkit: Path, capsys: pytest.CaptureFixture[str], bad: str
) -> None:
    meta = io.BytesIO()
    savemat(meta, {"synsets": np.arange(1000.0)}, do_compression=True)
    whole = meta.getvalue()
    damaged = whole[:160] + bytes(each ^ 0xFF for each in whole[160:])
    files = {TRUTH: b"1\n", META: {"damaged": damaged, "empty": b"", "short": whole[:60]}[bad]}
    archive, kit = tar(tmp_path / "val.tar", IMAGES), tar(tmp_path / "bad.tar", files)
    assert main([str(archive), "--devkit", str(kit), "--out", str(tmp_path / "out")]) == 4
    error = capsys.readouterr().err
    assert "not an ImageNet development kit" in error and error.count("\n") == 1, error


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_a_compressed_archive_that_is_damaged_within_an_image(
    tmp_path: Path, devkit: Path, capsys: pytest.CaptureFixture[str], compress: Callable[[bytes], bytes]
) -> None:
    noise = np.random.default_rng(0).bytes(1 << 20)  # so that nothing else is damaged
    packed = compress(tar(tmp_path / "val.tar", {image(1): noise}).read_bytes())
    middle = len(packed) // 2
    bad = tmp_path / "bad.tar"
    bad.write_bytes(packed[:middle] + b"\x06" * 4096 + packed[middle + 4096 :])
    assert main([str(bad), "--devkit", str(devkit), "--out", str(tmp_path / "out")]) == 4
    error = capsys.readouterr().err
    assert "not a complete tar archive" in error and error.count("\n") == 1, error
