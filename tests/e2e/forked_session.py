"""A session that is forked from a process that has imported pytest, torch and what else is not ours: to start it so
takes a tenth of a second, and to start it as a user does two to five.

What is a house's own is imported anew; and all of ours, where a test brings packages along: they are looked for then.
Its own warm process is forked too, before anything else.
"""

from __future__ import annotations

import importlib
import io
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path

from proofmark.process.lifetime import leave
from proofmark.process.warm.process import Forked, Warm

ROOT = Path(__file__).parents[2]

SHARED = ("proofmark", "fixtures", "reports")
"""Packages that are the same in all houses."""

OWN = ("suites", "vendors", "tests")
"""Those that are each house's own."""


def _modules() -> list[str]:
    """What sessions and their processes import: pytest with its plugins, torch, and what is shared; but no programs:
    those are not to be there before they run."""
    others = (
        "pytest execnet allure_commons cpuinfo attr yaml pydantic psutil numpy unittest.mock xml.etree.ElementTree "
        "torch torch.utils.data torch.utils.flop_counter torch._dynamo sklearn.datasets onnx onnxscript.function_libs "
        "torch.onnx._internal.exporter._core torch.onnx._internal.exporter._torchlib.ops sympy.combinatorics"
    )
    plugins = [entry.value for entry in entry_points(group="pytest11") if "hypothesis" not in entry.value]
    files = [path for name in SHARED for path in sorted((ROOT / name).rglob("*.py")) if path.stem != "__init__"]
    shared = [path.relative_to(ROOT).with_suffix("") for path in files if "__main__" not in path.read_text()]
    return [*others.split(), *plugins, *(".".join(path.parts) for path in shared), f"{__package__}.parent_of_sessions"]


READ_EARLY = ("HOME", "LD_", "MALLOC", "MKL_", "OMP_", "OPENBLAS_", "PYTHONHASHSEED", "PYTHONUTF8", "TORCH", "XDG_")
"""How the names of variables begin that an import looks at: with others a session is started as users do."""

SETTLED = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
"""What a session gives its processes, and an import looks at: who has imported otherwise can't fork them."""

ENVIRONMENT = os.environ | SETTLED
"""What the parent of sessions has: that of the tests themselves."""

_parent: Warm | None = None


class ForkedSession(Forked):
    """What tests use of a `Popen`."""

    def __init__(self, pid: int, output: int) -> None:
        super().__init__(pid)
        self.stdout = io.TextIOWrapper(os.fdopen(output, "rb"), errors="replace")

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        texts: list[str] = []
        reader = threading.Thread(target=lambda: texts.append(self.stdout.read()), daemon=True)
        reader.start()
        reader.join(timeout)
        if reader.is_alive():
            raise subprocess.TimeoutExpired("a session", timeout or 0)
        self.wait(timeout)
        self.stdout.close()
        return texts[0], None

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork_session(
    root: Path, arguments: list[str], environment: Mapping[str, str], home_is_new: bool = False
) -> ForkedSession | None:
    """Begin `python -m pytest ARGUMENTS` in a house; None where it has to be started as a user does.

    Where `home_is_new`, a test does not look for what an import leaves there.
    """
    global _parent
    if sys.platform != "linux" or not (home_is_new or early(environment) == early(ENVIRONMENT)):
        return None
    _parent = _parent or Warm.start(_modules(), ENVIRONMENT)
    nothing, (read, write) = os.open(os.devnull, os.O_RDONLY), os.pipe()
    try:
        pid = _parent.fork(__name__, [str(root), *arguments], (nothing, write, write), environment, ())
    finally:
        os.close(nothing)
        os.close(write)
    if pid is None:
        os.close(read)
        _parent = None
        return None
    return ForkedSession(pid, read)


def early(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment an import looks at."""
    return {key: value for key, value in environment.items() if key.startswith(READ_EARLY)}


def main(root: str, arguments: list[str]) -> None:
    """In the fork: be `python -m pytest` in the house."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(root)
    own = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    installed = [entry for entry in sys.path if entry.startswith((sys.prefix, sys.base_prefix))]
    sys.path[:] = [root, *own, *(entry for entry in installed if entry not in own)]
    parent = importlib.import_module(f"{__package__}.parent_of_sessions")
    anew = (*OWN, "fixtures", "reports") if own else OWN
    for name in [name for name in sys.modules if name.partition(".")[0] in anew]:
        del sys.modules[name]
    importlib.import_module("proofmark.process.warm.modules").split_off(())
    if not own:
        parent.remember(root)
    sys.argv = ["pytest", "-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments]  # for plugins that are there
    try:
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        leave(int(end.code or 0))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
