"""One node of a training: its agent, its monitor, and the referee's stopwatch over it."""
