"""Results of others, and old ones: verified against what lies beside them, and judged again. Nothing is run."""
