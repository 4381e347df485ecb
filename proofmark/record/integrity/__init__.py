"""What shows that a log, a session's folder or a cache is as it was written: chained, listed, signed."""
