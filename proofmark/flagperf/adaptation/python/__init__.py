"""A vendor's Python sources: read, never run."""
