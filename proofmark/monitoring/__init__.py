"""Readings of host and devices while something is timed: the sampler, its process, summaries, contention."""
