"""What every suite times and counts with: the compute window, probes, agreement, statistics, precision."""
