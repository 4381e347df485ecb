"""A search as it goes on: the driver, its journal, and the hyper-parameters' study."""
