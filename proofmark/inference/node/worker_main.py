"""The child's end of a case's process: `python -m proofmark.inference.node.worker_main ANSWER_FD`."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from proofmark.errors import ProofmarkError
from proofmark.inference.case import InferenceCase
from proofmark.inference.engine.engines import Engines
from proofmark.inference.steps.pipeline import Pipeline
from proofmark.launch.engine_container import EngineContainer
from proofmark.plain_json import plain_text
from proofmark.process.answering.line import write_line
from proofmark.process.lifetime import end_own_group, leave, tidy_at_exit
from proofmark.process.log_level import log_from
from proofmark.process.memory import keep_freed
from proofmark.process.threads import heed_environment
from proofmark.process.warm.modules import split_off
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor import torch_extensions
from proofmark.vendor.introduction.asking import introduced


def main() -> None:
    """Read commands until the parent says stop; if the parent is gone, take the group along."""
    keep_freed()
    torch_extensions.hold_back()
    split_off(("torch",))  # what engines are forked from: nothing of the case is here yet, and no thread
    torch_extensions.import_without()  # where that could not be
    heed_environment()
    tidy_at_exit()
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = _Answers(int(sys.argv[1]))
    commands: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read_commands, args=(_take_standard_input(), commands), daemon=True).start()
    spec = commands.get()
    pipeline: Pipeline | ProofmarkError | None = None

    def ask_engines(*_: object) -> None:
        """Whoever asks this process where it is hears where its engines are too."""
        if isinstance(pipeline, Pipeline):
            pipeline.engines.stacks()

    signal.signal(signal.SIGUSR1, ask_engines)
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)
    while (step := commands.get()["step"]) is not None:
        if pipeline is None:
            pipeline = _make_pipeline(spec, answers)
        answers.send(outcome=_run(pipeline, step))
    if isinstance(pipeline, Pipeline):
        pipeline.engines.close()


def _run(pipeline: Pipeline | ProofmarkError, step: str) -> dict[str, Any]:
    if isinstance(pipeline, ProofmarkError):
        return {"status": "failed", "reason": str(pipeline), "kind": "error", "detail": None}
    return pipeline.run(step)


def _make_pipeline(spec: dict[str, Any], answers: _Answers) -> Pipeline | ProofmarkError:
    try:
        config = EffectiveConfig.from_dict(spec["config"])
        log_from(config.host.log_level)
        found = introduced(spec["vendor"], spec["introduced"], Path(spec["vendors_dir"]))
        compiler = found.compiler(spec["compiler"])[1] if spec["compiler"] else None
    except ProofmarkError as error:
        return error
    case_class = getattr(importlib.import_module(spec["case_module"]), spec["case_class"])
    case: InferenceCase = case_class()
    run_dir = Path(spec["run_dir"])
    place = spec["engine_container"] and EngineContainer(**spec["engine_container"])
    engines = Engines((spec["case_module"], spec["case_class"]), found, config, Path(spec["own_directory"]), place)
    return Pipeline(case, found, compiler, config, run_dir, answers, answers.progress, engines)


def _take_standard_input() -> BinaryIO:
    """The command pipe under another number, and nothing on standard input.

    A forked child (a loader's worker) closes its standard input. Were a thread reading that very object here, the child
    would wait for a lock that nobody in it can release.
    """
    stream = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return stream


def _read_commands(stream: BinaryIO, commands: queue.Queue[dict[str, Any]]) -> None:
    for line in stream:
        command = json.loads(line)
        commands.put(command)
        if "step" in command and command["step"] is None:
            return
    end_own_group()


class _Answers:
    """The pipe back. Progress and signs of life are held to twice a second, and so cost the measured loop nothing.

    Notes, events, the beginning and the end of a phase, and a turn to something else, always pass.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writing = threading.Lock()  # loaders run in threads of their own
        self._last = self._last_sign = 0.0
        self._phase: str | None = None
        self._alive = "setup"
        os.set_inheritable(descriptor, False)

    def send(self, **message: Any) -> None:
        with self._writing:
            write_line(self._descriptor, message)

    def write(self, kind: str, /, **fields: Any) -> None:
        """Tell of an event: the session writes the log."""
        self.send(event={"event": kind, **plain_text(fields)})

    def progress(self, **message: Any) -> None:
        now = time.monotonic()
        if "alive" in message:
            if message["alive"] != self._alive or now - self._last_sign > 0.5:
                self._last_sign, self._alive = now, message["alive"]
                self.send(**message)
            return
        phase = message.get("phase")
        turning = phase != self._phase or message["step"] == message["steps"] if phase else True
        if turning or now - self._last > 0.5:
            self._last, self._phase = now, phase
            self.send(**message)


if __name__ == "__main__":
    main()
    leave(0)
