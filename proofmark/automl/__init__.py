"""A search for networks: architectures, morphisms, proposals; the driver and its trials; what they come to."""
