"""A batch on its way out of a loader's worker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proofmark.errors import StepError, first_line

if TYPE_CHECKING:
    import torch

PLACE = "/dev/shm"  # noqa: S108 (it is the system's)
"""Where torch has its workers put batches."""


def share(batch: Sequence[torch.Tensor]) -> None:
    """In a worker of torch's loader put a batch where the loader reads it; elsewhere do nothing.

    torch does so later, in a thread whose failure nobody hears of: the loader would wait for ever.

    Raises:
        StepError: there is no room for it.
    """
    from torch.utils.data import get_worker_info

    if get_worker_info() is None:
        return
    try:
        for tensor in batch:
            tensor.share_memory_()  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError) as error:
        size = f"{sum(tensor.nbytes for tensor in batch) / 2**20:.4g} MiB"
        raise StepError(
            f"a loader's worker has no {size} of shared memory for a batch ({first_line(error)}); {_left()}: "
            "set a smaller num_workers or batch, or in a container a larger shm_size in the vendor's container.yaml "
            "(--shm-size of docker and podman)"
        ) from None


def _left() -> str:
    found = os.statvfs(PLACE)
    free, size = (blocks * found.f_frsize / 2**20 for blocks in (found.f_bavail, found.f_blocks))
    return f"{PLACE} has {free:.4g} of its {size:.4g} MiB left"
