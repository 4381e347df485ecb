"""`--container vendor`, and an image whose own Python does what its vendor gains by."""

from __future__ import annotations

import signal

import pytest

from tests.cluster.engines import on_podman
from tests.cluster.imaged import Imaged, nothing_is_left
from tests.waiting import until

pytestmark = on_podman


def python_begins(imaged: Imaged, code: str) -> None:
    """What the image's Python runs before anything else."""
    (site,) = imaged.runtime.glob("lib/python*/site-packages")
    (site / "sitecustomize.py").write_text(code)


SAYS_AS_ITS_VERSION = """
import os, sys, types
torch = types.ModuleType("torch")
torch.__version__ = {version}
if "-c" in sys.orig_argv:
    sys.modules["torch"] = torch
"""


def test_no_proxys_password_is_told_as_a_version(imaged: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "geheim")
    version = '(os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or "none")'
    python_begins(imaged, SAYS_AS_ITS_VERSION.format(version=version))
    ran = imaged.infer("--container", "vendor")
    (host,) = ran.record().launched
    assert host.container is not None and host.container.torch == "none", ran.output


@pytest.mark.parametrize(
    "code, expected",
    [
        (SAYS_AS_ITS_VERSION.format(version=r'"\x1b[31m<b>"'), "expected an image with python3"),
        (r"import os; os.write(2, b'\x1b[2JPASS\n'); os._exit(1)", "?[2JPASS; expected an image with python3"),
        ("import os\nwhile True: os.write(1, bytes(65536))", "it printed more than 1048576 bytes"),
    ],
)
def test_an_image_that_answers_garbage(imaged: Imaged, code: str, expected: str) -> None:
    python_begins(imaged, code)
    ran = imaged.infer("--container", "vendor", "--preflight-only")
    assert ran.code == 4 and expected in ran.output and "\x1b[2J" not in ran.output, ran.output
    nothing_is_left(imaged.engine)


def test_an_image_with_a_volume(imaged: Imaged) -> None:
    """On the host's disk, beyond what counts what an engine keeps."""
    imaged.image(f"ENV PATH={imaged.runtime}/bin:/usr/bin:/bin", "VOLUME /scratch")
    ran = imaged.infer("--container", "vendor", "--preflight-only")
    assert ran.code == 4 and "has a VOLUME" in ran.output, ran.output


def test_a_look_ends_with_who_looks(imaged: Imaged) -> None:
    python_begins(imaged, "import time; time.sleep(3600)")
    session = imaged.start_inference("--container", "vendor", "--preflight-only")
    until(imaged.engine.containers, "the look", every=0.2)
    session.send_signal(signal.SIGINT)
    imaged.house.end(session)
    nothing_is_left(imaged.engine)
