"""A house whose engines are alone in an image that has its vendor's runtime and nothing of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cluster.engines import ROOT, Engine
from tests.cluster.site import Site
from tests.e2e.conftest import House
from tests.waiting import until

RUNTIME = (
    "torch torchgen functorch sympy mpmath networkx jinja2 markupsafe filelock fsspec typing_extensions.py numpy "
    "numpy.libs setuptools"
).split()
"""What torch needs, and no more: no pydantic, psutil, yaml, transformers."""

ENGINE = """
from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import torch

from proofmark.vendor import StepError


def attempt(what):
    try:
        return repr(what())
    except BaseException as error:
        return type(error).__name__


class InferModel:
    def __init__(self, config, onnx_path, model):
        self.model = model
        {init}

    @torch.inference_mode()
    def __call__(self, inputs):
        {call}
        answer = self.model(*inputs)
        return [answer] if isinstance(answer, torch.Tensor) else list(answer), 0.0
"""


class Imaged(Site):
    """A house whose inference has its engines in the fake vendor's image, on this machine."""

    def __init__(self, house: House, engine: Engine, folder: Path) -> None:
        self.engine, self.runtime = engine, folder / "runtime"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.runtime], check=True)
        (site,) = self.runtime.glob("lib/python*/site-packages")
        (installed,) = Path(sys.prefix).glob("lib/python*/site-packages")
        for name in RUNTIME:
            (site / name).symlink_to(installed / name)
        shown = [path for path in engine.mounts if path != ROOT]
        self.mounts = [f"{path}:{path}:ro" for path in (*shown, self.runtime)]
        super().__init__(house, folder, ("--container-engine", str(engine.path)), {"mounts": self.mounts})
        self.image(f"ENV PATH={self.runtime}/bin:/usr/bin:/bin")

    def image(self, *lines: str) -> None:
        """What its Containerfile says."""
        content = "\n".join(("FROM scratch", 'ENTRYPOINT ["/bin/false"]', *lines))
        (self.house.root / "vendors/fake/Containerfile").write_text(content + "\n")

    def engine_is(self, init: str = "pass", call: str = "pass") -> None:
        """What the vendor's default compiler does beside honest work."""
        (self.house.root / "vendors/fake/honest.py").write_text(ENGINE.format(init=init, call=call))


def nothing_is_left(engine: Engine) -> None:
    until(lambda: not engine.containers(), "no containers", every=0.2)
