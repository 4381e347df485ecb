"""A case's agent on a host: `python -m proofmark.inference.node.agent SPEC NODE`.

It starts the case's process and its monitor, passes on the steps that it is told on standard input, one line each, and
writes what comes of them into its node's folder, from where that goes home. It ends with its parent: standard input
closes, whichever way that one goes.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proofmark.errors import ProofmarkError
from proofmark.inference.node.answers import FILE
from proofmark.inference.node.processes import ProcessesHere
from proofmark.inference.node.spec import CaseSpec
from proofmark.inference.node.worker import WorkerLost
from proofmark.process.answering.line import write_line
from proofmark.process.lifetime import end_own_group, leave, tidy_at_exit
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.environment import require
from proofmark.vendor.hardware.devices import assign
from proofmark.vendor.introduction.asking import introduce

HEARTBEAT = 5.0
"""Seconds between two signs of life of the agent itself."""


def main() -> int:
    """Run the steps; exit code 0 if it was told to end."""
    tidy_at_exit(leaves_results=True)
    spec, node = CaseSpec.load(Path(sys.argv[1])), int(sys.argv[2])
    directory = spec.node_directory(node)
    answers = Answers(directory / FILE)
    threading.Thread(target=answers.heartbeat, daemon=True).start()
    try:
        host = EffectiveConfig.from_dict(spec.config).host
        found = introduce(spec.vendor, Path(spec.vendors_dir), host.device, host.isolation == "wall")
        if spec.engine_container is None:  # else its image has what its engines need
            require(found.directory, f"{spec.config['suite']}/{spec.config['case']}")
        device = assign(found.vendor, node)
        processes = ProcessesHere(spec, found, directory, device)
    except (ProofmarkError, OSError) as error:
        answers.say(lost={"reason": str(error)[:4096], "detail": None})
        return 1
    steps: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_listen, args=(steps, processes), daemon=True).start()
    answers.say(ready={"device": device.index})
    while (step := steps.get()) is not None:
        try:
            answers.say(outcome=processes.run(step, lambda report: answers.say(**report)))
        except WorkerLost as lost:
            answers.say(lost={"reason": str(lost)[:4096], "detail": lost.detail})
    answers.say(closed=asdict(processes.close()))
    return 0


def _listen(steps: queue.Queue[str | None], processes: ProcessesHere) -> None:
    """Steps until the last; where the parent goes before that, all goes."""
    with os.fdopen(os.dup(0), "rb") as stream:
        for line in stream:
            step = json.loads(line)["step"]
            steps.put(step)
            if step is None:
                break
        else:
            processes.kill()
            processes.close()
            end_own_group()


class Answers:
    """The file of what is answered, a line each."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("ab", buffering=0)
        self._writing = threading.Lock()

    def say(self, **message: Any) -> None:
        """Add a line.

        Raises:
            OSError: the disk is full or gone.
        """
        with self._writing:
            write_line(self._stream.fileno(), message)

    def heartbeat(self) -> None:
        """Say now and then that there is an agent."""
        while True:
            time.sleep(HEARTBEAT)
            self.say(agent="alive")


if __name__ == "__main__":
    leave(main())
