"""What rich lays out, as text."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def rendered(what: RenderableType, width: int, coloured: bool) -> str:
    """Lines at most `width` wide. Whether they are coloured is decided by who calls, by nothing in the environment."""
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if coloured else None,
        force_terminal=coloured,
        no_color=not coloured,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as captured:
        console.print(what)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
