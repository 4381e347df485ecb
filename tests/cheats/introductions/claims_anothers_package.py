"""Says that its package is another vendor's: the record would have that one's hash, its chips and settings."""

from pathlib import Path

REASON = "it says that its package is"

__file__ = str(Path(__file__).parents[1] / "honest" / "__init__.py")
