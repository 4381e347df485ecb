"""Whether a Ray cluster can be talked to: `python -m proofmark.launch.ray.probe ADDRESS`; why not, in its last line."""

from __future__ import annotations

import importlib
import sys


def main() -> int:
    """Connect and disconnect; 0 where that went well."""
    ray = importlib.import_module("ray")
    try:
        ray.init(sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
        ray.shutdown()
    except Exception as error:  # noqa: BLE001 (that is what is asked)
        print(f"{type(error).__name__}: {' '.join(str(error).split())}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
