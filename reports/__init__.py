"""Reports: from run records, and nothing else, to something that a person or a CI server reads."""
