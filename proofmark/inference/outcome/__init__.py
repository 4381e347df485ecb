"""What an inference run comes to: from its log to record, figures and verdict."""
