"""What may be configured: strict YAML, case files, legality of overrides, the effective configuration."""
