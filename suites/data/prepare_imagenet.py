"""`python -m suites.data.prepare_imagenet ILSVRC2012_img_val.tar --devkit ILSVRC2012_devkit_t12.tar.gz --out DIR`.

Lays ImageNet's validation images out as its cases read them: a folder per class, named by its WordNet ID. The archives
are the user's to bring, under ImageNet's terms. Run again, it goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from proofmark.errors import UsageError, reason
from proofmark.process.command_line import Parser, command, reporting_errors

TRUTH, META = "data/ILSVRC2012_validation_ground_truth.txt", "data/meta.mat"
"""Within the devkit: of each image its class's number, and the numbers' WordNet IDs."""

LARGEST = 1 << 26
"""Bytes of an image, or of a file of the devkit."""

MOST = 100_000
"""Images."""

DAMAGED = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError)
"""What reading an archive raises that is cut off or damaged, whichever way it is compressed."""

_IMAGE = re.compile(r"(?:.*/)?(ILSVRC2012_val_(\d{8})\.JPEG)")
_WORDNET = re.compile(r"n\d{8}")


@reporting_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; the exit code."""
    parser = Parser(prog="python -m suites.data.prepare_imagenet", description=__doc__)
    parser.add_argument("archive", type=Path, help="ILSVRC2012_img_val.tar")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--devkit", type=Path, metavar="FILE", help="ILSVRC2012_devkit_t12.tar.gz")
    source.add_argument(
        "--synsets", type=Path, metavar="FILE", help="a WordNet ID per line, in the order of the images"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to fill")
    options: argparse.Namespace = parser.parse_args(arguments)
    synsets = of_devkit(options.devkit) if options.devkit else of_list(options.synsets)
    written = prepare(options.archive, synsets, options.out)
    print(f"{options.out}: {len(synsets)} images of {len(set(synsets))} classes, {written} of them written now")
    return 0


def of_list(path: Path) -> list[str]:
    """The WordNet ID of each image, from a file with one per line.

    Raises:
        UsageError: a line is none.
        OSError: it can't be read.
    """
    with path.open("rb") as stream:
        lines = stream.read(LARGEST).decode("ascii", "replace").split()
    return _checked(lines, path)


def of_devkit(path: Path) -> list[str]:
    """The same from ImageNet's development kit, as it is offered or as a plain tar.

    Raises:
        UsageError: it is no such kit.
        OSError: it can't be read.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        with tarfile.open(path) as kit:
            truth, meta = (_read(kit, path, name) for name in (TRUTH, META))
        rows = loadmat(io.BytesIO(meta), squeeze_me=True)["synsets"]
        names = {int(row[0]): str(row[1]) for row in rows}
        return _checked([names[int(number)] for number in truth.decode("ascii").split()], path)
    except (*DAMAGED, MatReadError, ValueError, LookupError, TypeError, NotImplementedError) as error:
        raise UsageError(
            f"{path}: not an ImageNet development kit: expected {TRUTH} and {META}: {reason(error)}"
        ) from None


def _read(archive: tarfile.TarFile, path: Path, name: str) -> bytes:
    member = next((each for each in archive if each.name.endswith(name)), None)
    stream = archive.extractfile(member) if member is not None and member.isreg() else None
    if member is None or stream is None or member.size > LARGEST:
        raise UsageError(f"{path}: not an ImageNet development kit: it has no file {name} of at most 64 MiB")
    return stream.read()


def _checked(synsets: list[str], path: Path) -> list[str]:
    wrong = next((each for each in synsets if not _WORDNET.fullmatch(each)), None)
    if wrong is not None or not 0 < len(synsets) <= MOST:
        found = f"found {wrong[:40]!r}" if wrong is not None else f"found {len(synsets)}"
        raise UsageError(f"{path}: expected a WordNet ID such as n01440764 for each of at most {MOST} images, {found}")
    return synsets


def prepare(archive: Path, synsets: Sequence[str], out: Path) -> int:
    """Lay the images of an archive out in a folder; how many were not there yet.

    Nothing is written but images by their own names, into folders of their classes, each whole or not at all.

    Raises:
        UsageError: it is no archive of those images, all of them.
        OSError: it can't be read, or the folder not be written.
    """
    seen, written = set[int](), 0
    try:
        with tarfile.open(archive) as images:
            for member in images:
                if member.isdir():
                    continue
                number, target = _place(archive, member, synsets, out)
                if number in seen:
                    raise UsageError(f"{archive}: {member.name} is in it twice")
                seen.add(number)
                if not (target.is_file() and target.stat().st_size == member.size):
                    _write(images, member, target)
                    written += 1
    except DAMAGED as error:
        raise UsageError(f"{archive}: not a complete tar archive: {reason(error)}") from None
    if missing := [number for number in range(1, len(synsets) + 1) if number not in seen]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UsageError(f"{archive}: image {missing[0]} of {len(synsets)}{more} is not there: download it again")
    return written


def _place(archive: Path, member: tarfile.TarInfo, synsets: Sequence[str], out: Path) -> tuple[int, Path]:
    """The number of a member's image, and where it belongs."""
    named = _IMAGE.fullmatch(member.name)
    if named is None or not member.isreg() or member.size > LARGEST:
        expected = "expected images ILSVRC2012_val_00000001.JPEG and so on, of at most 64 MiB"
        raise UsageError(f"{archive}: {expected}, found {member.name[:80]!r}")
    number = int(named[2])
    if not 1 <= number <= len(synsets):
        raise UsageError(f"{archive}: {named[1]}: the list of classes has {len(synsets)} images")
    return number, out / synsets[number - 1] / named[1]


def _write(images: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    stream = images.extractfile(member)
    assert stream is not None, "a plain file has a content"
    content = stream.read()
    if len(content) != member.size:
        raise EOFError(f"{member.name} is cut off")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.part")
    draft.write_bytes(content)
    draft.replace(target)


if __name__ == "__main__":
    command(main)
