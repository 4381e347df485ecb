"""A compiler whose name clears the screen; its module is there, under that name."""

from pathlib import Path

from proofmark.vendor import Compiler, Vendor

REASON = "compilers (names): expected one line of text"

NAME = "\x1b[2J==== 12 passed ===="

Path.is_file = lambda self: True  # type: ignore[method-assign]
for own in Vendor.__subclasses__():
    own.compilers = {**own.compilers, NAME: Compiler(frozenset({"fp32"}), consumes="model")}
