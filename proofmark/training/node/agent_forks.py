"""Ranks without their imports: torchrun's are forked from a process that the agent has split off from itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from proofmark.errors import StepError
from proofmark.process.warm.modules import fork_module, split_off
from proofmark.process.warm.process import Forked

ALONE = ("--standalone", "--local-addr", "127.0.0.1", "--log-dir", os.devnull)
"""Of torchrun's command line on a machine by itself. Ranks have logs of their own: it would leave a folder in /tmp."""

IMPORTED = (
    "torch.distributed.run",
    "torch.nn.parallel",
    "torch.utils.data",
    "torch._dynamo",  # an optimizer's first step imports it
    "proofmark.training.outside.metric",
    "proofmark.training.ranks.loading",
    "proofmark.training.ranks.trainer",
)
"""What an agent and each of its ranks import."""


def fork_ranks(declared: Mapping[str, str]) -> Mapping[int, int]:
    """Import what ranks need, and have torchrun fork them: gives the process of each rank that it has started by now.

    The environment that they share is that of this process, and what the vendor declared, which this process is not
    given.

    To be called before this process has threads, or has run any of the vendor's code. Where ranks can't be forked, or
    torchrun starts them otherwise than today's, each is started from nothing.

    Raises:
        StepError: torchrun starts them otherwise, and they can't be given what was declared.
    """
    split_off(IMPORTED)
    started: dict[int, int] = {}
    try:
        from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler
    except ImportError:
        known: dict[str, Any] = {}
    else:
        known = vars(subprocess_handler)
    if known.get("Popen") is subprocess.Popen:
        known["Popen"] = partial(_begin, declared, started)
    elif declared:
        raise StepError(f"this torchrun's ranks can't be given what environment.yaml declares: {', '.join(declared)}")
    return started


def _begin(
    declared: Mapping[str, str],
    started: dict[int, int],
    args: Sequence[str],
    env: Mapping[str, str],
    stdout: Any = None,
    stderr: Any = None,
    **others: Any,
) -> subprocess.Popen[bytes] | Forked:
    """`Popen` as torchrun calls it for `python -u -m MODULE ...`, which begins a session; `started` gets its id."""
    env = {**env, **declared}
    plain = others == {"start_new_session": True} and stdout is stderr is None
    forked = None
    if plain and tuple(args[:3]) == (sys.executable, "-u", "-m"):
        forked = fork_module(args[3], args[4:], (0, 1, 2), env)
    process = forked or subprocess.Popen(args, env=env, stdout=stdout, stderr=stderr, **others)
    if "RANK" in env:
        started[int(env["RANK"])] = process.pid
    return process
