"""From GLM's published checkpoint to the weights that the case takes.

`python -m suites.glm_weights mp_rank_00_model_states.pt DIR`. The checkpoint is a pickle: torch's restricted unpickler
reads it, which makes tensors and plain values and calls nothing else.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofmark.process.command_line import USAGE, Parser, command

WEIGHTS = "model.safetensors"


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert; 4 where the checkpoint is none, or there are weights already."""
    parser = Parser(prog="python -m suites.glm_weights", description=__doc__.partition("\n")[0])
    parser.add_argument("checkpoint", type=Path, help="as it was published: mp_rank_00_model_states.pt")
    parser.add_argument("directory", type=Path, help=f"where to write {WEIGHTS}; made if it is not there")
    given = parser.parse_args(arguments)
    try:
        _convert(given.checkpoint, given.directory)
    except (OSError, ValueError) as error:
        print(f"ERROR: {given.checkpoint}: {error}", file=sys.stderr)
        return USAGE
    return 0


def _convert(checkpoint: Path, directory: Path) -> None:
    """Write the tensors of the checkpoint's model.

    Raises:
        OSError: one can't be read, or the other written.
        ValueError: it is no checkpoint of tensors.
    """
    from safetensors.torch import save_file

    if (directory / WEIGHTS).exists():
        raise ValueError(f"{directory / WEIGHTS} is there already; give another directory")
    tensors = _tensors(checkpoint)
    directory.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.clone() for name, tensor in tensors.items()}, directory / WEIGHTS)


def _tensors(checkpoint: Path) -> dict[str, Any]:
    import torch

    try:
        with torch.serialization.safe_globals([Namespace]):  # the options it was trained with
            whole = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # on rubbish torch raises whatever its stack comes to
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"is no checkpoint of tensors: {said}") from error
    module = whole.get("module") if isinstance(whole, dict) else None
    if not isinstance(module, dict) or not module or not all(torch.is_tensor(value) for value in module.values()):
        raise ValueError("has no tensors under `module`; expected mp_rank_00_model_states.pt as it was published")
    return module


if __name__ == "__main__":
    command(main)
