"""What came of a search: events, record, score, figures, verdict."""
