"""The log of a case: typed events, written by the referee alone, read as they come."""
