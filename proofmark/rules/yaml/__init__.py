"""YAML that people write: read strictly, typed, each problem with its line."""
