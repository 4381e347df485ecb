"""The outcome of a search: events, record, score, figures, verdict."""
