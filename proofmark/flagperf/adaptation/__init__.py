"""What a vendor made for FlagPerf, read as data and written as ours."""
