"""What the platform starts on each node. It lies beside the packed code, and needs no more than Python.

`--data_url`, `--train_url` and `--job_url`, or variables of those names, are this node's folders for the object
store's: the data, what the job leaves, and its ticket.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

CHANNELS = ("data_url", "train_url", "job_url")


def channels(arguments: list[str], environment: dict[str, str]) -> dict[str, str]:
    """Where this node's folders are."""
    found = {name: environment[name] for name in CHANNELS if environment.get(name)}
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name.startswith("--") and name[2:] in CHANNELS:
            found[name[2:]] = value if equals else (arguments[index + 1 : index + 2] or [""])[0]
    return found


def packed_code(here: Path, job: Path) -> bytes:
    """The archive beside this file.

    Raises:
        ValueError: it is not the one that the job's ticket knows, or that is none.
        OSError: one can't be read.
    """
    ticket, content = json.loads((job / "ticket.json").read_bytes()), (here / "code.zip").read_bytes()
    if hashlib.sha256(content).hexdigest() != ticket.get("packed"):
        raise ValueError(f"{here.name}/code.zip is not what was sent: delete it from the bucket, and run again")
    return content


def main() -> int:
    """Unpack the code, and do this node's part."""
    here, given = Path(__file__).resolve().parent, channels(sys.argv[1:], dict(os.environ))
    try:
        content = packed_code(here, Path(given.get("job_url", "no job_url from the platform")))
    except (ValueError, OSError) as error:
        print(f"ERROR: {error}", file=sys.stderr, flush=True)
        return 1
    work = Path(tempfile.mkdtemp(prefix="proofmark-"))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as pack:
            pack.extractall(work / "code")
        sys.path[:] = [str(work / "code"), *(path for path in sys.path if Path(path or ".").resolve() != here)]
        from proofmark.launch.launchers.modelarts.in_job import run

        return run(given, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
