"""Made-up hosts, trials and records, for what no machine here is large enough for."""
