"""Inference cases."""
