"""What a training run comes to: from its logs to record, figures and verdict."""
