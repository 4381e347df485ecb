"""FlagPerf's own files: its host file, and the logs of its trainings."""
