"""Leaves folders within folders, and has itself ended: nobody tidies up behind it."""

from typing import Any

from vendors.fake import nests_folders

VERDICT, REASON = "ERROR", "hid a folder in its own directory"


class InferModel(nests_folders.InferModel):
    """Never answers."""

    def __call__(self, inputs: Any) -> Any:
        while True:
            pass
