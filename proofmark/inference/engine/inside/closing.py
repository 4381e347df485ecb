"""What is put around an engine's process before a vendor's code runs in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from proofmark.process.warm.main import is_alone
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.environment import take_on
from proofmark.vendor.isolation import COMPILED, NOT_ASKED_FOR, VendorPlace
from proofmark.wall.isolation import Isolation
from proofmark.wall.other_user import become
from proofmark.wall.python import imported
from proofmark.wall.wall import Wall, linked_from


def close_in(order: dict[str, Any], config: EffectiveConfig, directory: Path) -> Isolation:
    """Become another user's, and put on the wall, if that is to be: the process has one thread, and has run no code of
    the vendor's.

    Args:
        order: the referee's, to make an engine or to rehearse one.
        config: the settings, the host's among them.
        directory: the process's own, in which it may write.
    """
    take_on()
    is_alone()  # what it asks with ends the threads that an import has left
    # looked for here, since there may be more than an order has room for; another user may not look at the data
    hidden = (*map(Path, order["hidden"]), *linked_from(config.host.data_dir))
    user = config.host.engine_user
    if user is not None:
        become(user, directory)
    if user is not None or config.host.isolation == "wall":  # what others have compiled is not theirs
        os.environ.update(dict.fromkeys(COMPILED, str(directory / "compiled")))
    walled = config.host.isolation == "wall"
    wall = _walled(order, directory, hidden) if walled else Isolation.none(NOT_ASKED_FOR)
    return wall.model_copy(update={"user": user})


def _walled(order: dict[str, Any], directory: Path, hidden: tuple[Path, ...]) -> Isolation:
    place = VendorPlace.of(order["vendor"], Path(order["vendors_dir"]))
    return place.enter(
        Wall(
            writable=(directory,),
            readable=(*imported(), *map(Path, order["files"])),
            hidden=hidden,
        )
    )
