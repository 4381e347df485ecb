"""Ranks without their imports: torchrun's are forked from a process that the agent has split off from itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

from proofmark.errors import StepError
from proofmark.process.warm.main import cores_kept
from proofmark.process.warm.modules import fork_module, split_off
from proofmark.process.warm.process import Forked
from proofmark.vendor import torch_extensions
from proofmark.vendor.environment import at_start

Ends = MutableMapping[int, tuple[int, ...]]
"""By rank, descriptors that it alone gets."""

IMPORTED = (
    "torch.distributed.run",
    "torch.nn.parallel",
    "torch.utils.data",
    "torch._dynamo",  # an optimizer's first step imports it
    "proofmark.training.outside.metric",
    "proofmark.training.feeding.fed",
    "proofmark.training.feeding.loading",
    "proofmark.training.ranks.trainer",
)
"""What an agent and each of its ranks import."""


def fork_ranks(declared: Mapping[str, str], ends: Ends | None = None) -> Mapping[int, int]:
    """Import what ranks need, and have torchrun fork them: gives the process of each rank that it has started by now.

    The environment that they share is that of this process, and what the vendor declared, which this process is not
    given.

    To be called before this process has threads, or has run any of the vendor's code. Where ranks can't be forked, or
    torchrun starts them otherwise than today's, each is started from nothing.

    Args:
        declared: variables.
        ends: their numbers follow a rank's arguments; it may be filled later. None where ranks get none.

    Raises:
        StepError: torchrun starts them otherwise, and they can't be given that.
    """
    split_off(IMPORTED)  # nothing, where there are extensions of torch
    started: dict[int, int] = {}
    try:
        with torch_extensions.held_back(), cores_kept():
            from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler
    except ImportError:
        known: dict[str, Any] = {}
    else:
        known = vars(subprocess_handler)
    if known.get("Popen") is subprocess.Popen:
        known["Popen"] = partial(_begin, at_start(declared), started, {} if ends is None else ends)
    elif declared:
        raise StepError(f"this torchrun's ranks can't be given what environment.yaml declares: {', '.join(declared)}")
    elif ends is not None:
        raise StepError("this torchrun starts ranks in an unknown way: they can't be given their data")
    return started


def _begin(
    declared: Mapping[str, str],
    started: dict[int, int],
    ends: Ends,
    args: Sequence[str],
    env: Mapping[str, str],
    stdout: Any = None,
    stderr: Any = None,
    **others: Any,
) -> subprocess.Popen[bytes] | Forked:
    """`Popen` as torchrun calls it for `python -u -m MODULE ...`, which begins a session; `started` gets its id, and it
    what `ends` has for it."""
    env, rank = {**env, **declared}, int(env.get("RANK", -1))
    passed = ends.pop(rank, ())
    plain = others == {"start_new_session": True} and stdout is stderr is None
    forked = None
    if plain and tuple(args[:3]) == (sys.executable, "-u", "-m"):
        forked = fork_module(args[3], args[4:], (0, 1, 2, *passed), env)
    own = {"env": env, "stdout": stdout, "stderr": stderr, "pass_fds": passed}
    process = forked or subprocess.Popen([*args, *map(str, passed)], **own, **others)
    for descriptor in passed:
        os.close(descriptor)
    if rank >= 0:
        started[rank] = process.pid
    return process
