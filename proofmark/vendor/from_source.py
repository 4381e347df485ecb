"""A vendor's package is what its source says.

Python runs what `__pycache__` keeps of a module where time and length are those of its source, whatever it was made of;
what identifies the package in a record is its source.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class FromSource(MetaPathFinder):
    """Finds a package's modules where others do, and has them compiled anew."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the first of the other finders has it; None for what is not the package's."""
        if not f"{fullname}.".startswith(f"{self._package}."):
            return None
        others = (finder for finder in sys.meta_path if not isinstance(finder, FromSource))
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec

    @classmethod
    def imports(cls, package: str) -> None:
        """From now on, in this process."""
        if not any(isinstance(each, cls) and each._package == package for each in sys.meta_path):
            sys.meta_path.insert(0, cls(package))
