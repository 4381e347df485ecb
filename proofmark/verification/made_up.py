"""Exceptions that a forged record or log may cause: none of them may end the program that reads it."""

from __future__ import annotations

MADE_UP = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, RecursionError)
"""What values of a strange kind may raise where something is computed of them; pydantic's are among these."""

UNREADABLE = (*MADE_UP, OSError)
"""Those, and what strange files may raise."""
