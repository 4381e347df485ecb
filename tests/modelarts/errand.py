"""`python -m errand SPEC NODE`: a job's agent that trains nothing. What it is to do stands in its spec."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    spec, node = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    folder = Path(spec["directory"]) / f"noderank{node}"
    print(f"errand on node {node}", flush=True)
    what = spec["trouble"].get(str(node), "")
    if what.startswith("exit"):
        return int(what.removeprefix("exit"))
    if what == "where":
        print(os.environ["PYTHONPATH"], flush=True)
    if what == "sleep":
        time.sleep(120)
    now = time.time()
    result = {"rank": node, "node": node, "world": spec["world"], "steps": 4, "samples": 100.0, "began": now - 2.0}
    result |= {"ended": now, "seconds": 2.0 + node, "core": None, "metric": None if node else 0.5}
    (folder / f"result{node}.json").write_text(json.dumps(result))
    (folder / f"rank{node}.log").write_text(f"rank {node}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
