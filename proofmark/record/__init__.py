"""What was measured, written down: the envelope of every record, its parts, events, identities."""
