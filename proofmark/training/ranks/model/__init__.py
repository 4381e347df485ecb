"""The model: spread over ranks, evaluated, and held against the case's own."""
