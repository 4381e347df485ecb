"""What decides over how modules are imported, and so over what a process that has imported them stands for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from proofmark.process.environment import passed_on

READ_ONCE = (
    *("GOMP_", "KMP_", "LD_", "MALLOC_", "MKL_", "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH_"),
    *("TORCHDYNAMO_", "TORCHINDUCTOR_", "TORCH_CPP_", "TORCH_DEVICE_BACKEND_", "TORCH_LOGS", "TRITON_"),
    *("DNNL_", "ONEDNN_", "TORCH_ALLOW_TF32_", "TORCH_BLAS_", "TORCH_LINALG_", "TORCH_ROCM_"),
)
"""How the names of variables begin that are read when a process begins or imports: a fork can't be given others."""

CACHES = frozenset({"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"})
"""Read when torch's compiler is imported, which makes the directory, and when something is compiled."""

TAKEN_ON = frozenset({"OMP_NUM_THREADS", "PYTHONPATH", "PYTHONUSERBASE"}) | CACHES
"""Of those the ones that it can be given."""

SET_BY_LIBRARIES = {"KMP_DUPLICATE_LIB_OK": "True", "KMP_INIT_AT_FORK": "FALSE"}
"""What scikit-learn puts into the environment when it is imported, unless it is set: that makes no difference."""


def suits(begun_with: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether what a process forks that began with one environment can take on another."""
    wanted = _read_once(environment)
    others = {key for key, _ in wanted.items() ^ _read_once(begun_with).items()}
    threads = wanted.get("OMP_NUM_THREADS", "")
    return others <= TAKEN_ON and ("OMP_NUM_THREADS" not in others or (threads.isdecimal() and int(threads) > 0))


def surroundings() -> Any:
    """What decides over how modules are imported."""
    known = SET_BY_LIBRARIES | os.environ
    environment = {key: value for key, value in known.items() if not key.startswith(("PYTEST_", "PROOFMARK_"))}
    passing = sorted(passed_on(known).keys() & environment.keys())  # these it has been given when it began, or not
    return os.getcwd(), list(dict.fromkeys(sys.path)), environment, passing


def _read_once(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in (SET_BY_LIBRARIES | dict(environment)).items() if key.startswith(READ_ONCE)}
