"""A process that has imported what cases need, from which theirs are forked."""
