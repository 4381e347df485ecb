"""The referee: configuration legality, the clock, the run record, the verdict.

Pure Python. It knows no pytest, no case and no vendor by name: a vendor is found by
name or entry point, a case is handed in.
"""

__version__ = "0.1.0"
