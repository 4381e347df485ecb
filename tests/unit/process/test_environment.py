"""A vendor's environment.yaml: what may stand in it, what comes of it, and packages that are not there."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from proofmark.errors import ConfigurationError
from proofmark.process.environment import passed_on, passes
from proofmark.vendor.environment import (
    LATER,
    at_start,
    environment_of,
    installed,
    load_environment,
    missing_packages,
    referee_environment_of,
    require,
    strangers,
    take_on,
    variables_of,
)

FILE = """\
variables: {ACME_LOG: 1, NCCL_DEBUG: WARN}
requirements: [packaging]
cases:
  inference/net:
    variables: {NCCL_DEBUG: INFO, KMP_BLOCKTIME: 0}
    requirements: ['PyYAML>=5', 'acme-none==2; python_version < "3"']
"""


def write(folder: Path, text: str) -> Path:
    (folder / "environment.yaml").write_text(text)
    return folder


def test_a_cases_own_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, FILE)
    assert variables_of(tmp_path, "inference/other") == {"ACME_LOG": "1", "NCCL_DEBUG": "WARN"}
    of_net = {"ACME_LOG": "1", "NCCL_DEBUG": "INFO", "KMP_BLOCKTIME": "0"}
    assert variables_of(tmp_path, "inference/net") == of_net
    given = environment_of({"cache_dir": str(tmp_path), "environment": of_net})
    assert given["KMP_BLOCKTIME"] == "0" and given["TRITON_CACHE_DIR"] and not {"ACME_LOG", "NCCL_DEBUG"} & given.keys()
    monkeypatch.setattr("os.environ", given)
    take_on()
    assert given.items() >= of_net.items() and "ACME_LOG" in passed_on(given) and LATER not in given
    assert not referee_environment_of({"cache_dir": str(tmp_path), "environment": of_net}).keys() & of_net.keys()
    assert installed(tmp_path, "inference/net") == {"packaging": version("packaging"), "pyyaml": version("PyYAML")}
    assert missing_packages(tmp_path, ["inference/net", "inference/other"]) == []
    require(tmp_path, "inference/net")


def test_no_file_is_nothing(tmp_path: Path) -> None:
    assert variables_of(tmp_path, "inference/net") == {} and missing_packages(tmp_path, ["inference/net"]) == []


@pytest.mark.parametrize(
    "name, why",
    [
        *[
            (name, "changes which code runs")
            for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "ld_audit", "PYTHONPATH", "PYTHONHOME", "BASH_ENV")
        ],
        *[
            (name, "changes which code runs")
            for name in ("OPENSSL_CONF", "OMP_TOOL_LIBRARIES", "CUDA_INJECTION64_PATH", "GCONV_PATH", "GLIBC_TUNABLES")
        ],
        *[
            (name, "changes which code runs")
            for name in ("ROCP_TOOL_LIBRARIES", "HSA_TOOLS_LIB", "XPTI_SUBSCRIBERS", "ACME_TOOL_LIBRARY", "CPATH", "CC")
        ],
        *[
            (name, "changes which code runs")
            for name in ("LOKY_PICKLER", "TORCH_LOGS", "TORCH_PYTHON_NATIVE_USER_GRAPH_ORDER_FN", "ROCM_HOME")
        ],
        *[(name, "changes which code runs") for name in ("TRITON_PLUGIN_PATHS", "TRITON_PASS_PLUGIN_PATH")],
        *[(name, "the suite's own") for name in ("PROOFMARK_PASSES", "PYTEST_ADDOPTS")],
        *[(name, "torchrun's") for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID")],
        *[(name, "the suite assigns") for name in ("CUDA_VISIBLE_DEVICES", "ACME_VISIBLE_DEVICES")],
        *[(name, "the user's or the suite's") for name in ("HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME")],
        *[(name, "looks like a secret") for name in ("HF_TOKEN", "ACME_API_KEY", "DB_PASSWORD")],
        *[(name, "not a valid variable name") for name in ("A-B", "A B", "A=1", "9A", "")],
    ],
)
def test_variables_that_are_not_the_vendors(tmp_path: Path, name: str, why: str) -> None:
    for text in (f"variables: {{'{name}': x}}", f"cases: {{inference/net: {{variables: {{'{name}': x}}}}}}"):
        with pytest.raises(ConfigurationError, match=why) as refused:
            load_environment(write(tmp_path, text))
        assert "environment.yaml: " in str(refused.value) and len(str(refused.value).splitlines()) == 1


def test_what_torch_reads_as_it_is_imported_is_there_from_the_beginning() -> None:
    declared = dict.fromkeys(("TORCH_BLAS_PREFER_HIPBLASLT", "ONEDNN_DEFAULT_FPMATH_MODE", "ATEN_CPU_CAPABILITY"), "x")
    assert at_start(declared) == declared


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS", "PYTORCH_ALLOC_CONF"])
def test_variables_that_a_vendor_may_need(tmp_path: Path, name: str) -> None:
    assert variables_of(write(tmp_path, f"variables: {{{name}: 'x'}}"), "a/b") == {name: "x"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("variables: [A]", "variables: "),
        ("variables: {A: [1]}", "variables.A: "),
        ("variables: {A: true}", "variables.A: "),
        ("variables: {A: 1.20}", "variables.A: write it in quotes: the number 1.2 may stand there as another text"),
        ("cases: {a/b: {variables: {A: 1e3}}}", "cases.a/b.variables.A: write it in quotes"),
        ("variables: {A: [1], LD_PRELOAD: x}", "variables.LD_PRELOAD: LD_PRELOAD changes which code runs"),
        ('variables: {A: "a\\nb"}', "has a value that is not one line of text"),
        ("requirements: ['-r other.txt']", "is not a package with versions"),
        ("requirements: ['a @ https://x.test/a.whl']", "is an address"),
        ("requirement: [a]", "requirement: unknown key"),
        ("cases: {inference/net: {vars: {}}}", "cases.inference/net.vars: unknown key"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_environment(write(tmp_path, text))
    assert expected in str(refused.value)


def test_what_is_missing_is_one_line_with_what_installs_it(tmp_path: Path) -> None:
    write(tmp_path, "requirements: [acme-none>=2]\ncases: {a/b: {requirements: ['packaging<1']}}\n")
    (problem,) = missing_packages(tmp_path, ["a/b", "a/c"])
    assert str(problem).endswith(": python -m pip install 'acme-none>=2' 'packaging<1'")
    with pytest.raises(ConfigurationError, match="not installed on .*: python -m pip install 'acme-none>=2'$"):
        require(tmp_path, "a/c")


def test_an_entry_of_no_case_is_told(tmp_path: Path) -> None:
    write(tmp_path, "cases: {inference/nett: {}}")
    (problem,) = strangers(tmp_path, ["inference/net"])
    assert str(problem).endswith("cases.inference/nett: there is no such case; did you mean 'inference/net'?")


@pytest.mark.parametrize(
    "name, expected",
    [
        ("NCCL_IB_PKEY", True),
        ("NCCL_PAT_ENABLE", True),
        ("NCCL_KEY", False),
        ("NCCL_PAT", False),
    ],
)
def test_a_partition_of_a_network_is_no_secret(name: str, expected: bool) -> None:
    assert passes(name, ["NCCL_*"]) == expected
