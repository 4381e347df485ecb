"""Asks for an export, then runs the framework's model all the same."""

from vendors.fake.honest import InferModel

__all__ = ["InferModel"]
