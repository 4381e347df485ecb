"""A vendor's adaptation to FlagPerf brought along: what is written, what is told of each key, what is refused."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from proofmark.errors import ConfigurationError, UsageError
from proofmark.flagperf import __main__
from proofmark.flagperf.adaptation.bring import bring
from proofmark.flagperf.adaptation.fates import FATES, MutableCheck, Row, as_markdown
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.python.code import returned_by
from proofmark.flagperf.adaptation.python.source import read_python
from proofmark.flagperf.adaptation.settings.environment_files import lowers_precision
from proofmark.flagperf.host_file import load_host_file
from proofmark.launch.cluster.cluster_file import load_cluster
from proofmark.vendor.environment import load_environment
from proofmark.vendor.hardware.chips import load_chips
from proofmark.vendor.isolation import IsolationSettings
from tests.flagperf.tree import FILES, write

ROOT = Path(__file__).parents[2]
HOST = ["inference/configs/host.yaml"]
THEIRS = 'VENDOR = "forge"\nACCE_CONTAINER_OPT = " --gpus all"\nACCE_VISIBLE_DEVICE_ENV_NAME = "FORGE_DEVICES"\n'
BERT, RESNET = "training/acme/bert-pytorch/config", "training/acme/resnet50-pytorch/config"


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> tuple[Moved, Path]:
    folder = tmp_path_factory.mktemp("flagperf")
    return bring(write(folder / "FlagPerf"), "acme", folder / "out", ROOT), folder / "out"


def rows(moved: Moved, file: str, key: str) -> list[Row]:
    return [row for row in moved.rows if row.file == file and row.key == key]


def row(moved: Moved, file: str, key: str) -> Row:
    return rows(moved, file, key)[0]


def again(folder: Path, files: dict[str, str], vendor: str = "acme") -> Moved:
    """The tree with other files beside or in place of its own."""
    return bring(write(folder / "FlagPerf", FILES | files), vendor, folder / "out", ROOT)


@pytest.mark.parametrize(
    "file, key, fate, expected",
    [
        (f"{BERT}/config_Z100x1x8.py", "train_batch_size", "taken over", "training/bert/Z100x1x8.yaml"),
        (f"{BERT}/config_Z100x1x8.py", "learning_rate", "taken over", "training/bert/Z100x1x8.yaml"),
        (f"{BERT}/config_Z100x1x8.py", "weight_decay_rate", "renamed", "weight_decay: 0.02"),
        (f"{BERT}/config_Z100x1x8.py", "fp16", "redundant", "is already 'fp16'"),
        (f"{BERT}/config_Z100x1x8.py", "gradient_accumulation_steps", "redundant", "is already 1"),
        (f"{BERT}/config_Z100x1x8.py", "hidden_size", "illegal", "not in FlagPerf's mutable_params"),
        (f"{BERT}/config_Z100x1x8.py", "acme_fuse", "unknown", "nor in its _base"),
        (f"{BERT}/config_common.py", "target_mlm_accuracy", "illegal", "parameter of the task"),
        (f"{BERT}/config_common.py", "dist_backend", "renamed", "distributed_backend"),
        (f"{BERT}/config_common.py", "vendor", "redundant", "--vendor"),
        (f"{BERT}/environment_variables.sh", "ACME_CACHE", "taken over", "environment.yaml"),
        (f"{BERT}/environment_variables.sh", "ACME_GEMM_DTYPE", "illegal", "declare it in training_precisions"),
        (f"{BERT}/environment_variables.sh", "LD_PRELOAD", "illegal", "changes which code runs"),
        (f"{BERT}/environment_variables.sh", "PATH", "refused", "only a shell could compute"),
        (f"{BERT}/requirements.txt", "h5py", "taken over", "requirements"),
        (f"{BERT}/requirements.txt", "acme-ext", "refused", "install it yourself"),
        (f"{RESNET}/config_Z100x1x8.py", "lr", "renamed", "learning_rate: 0.8"),
        (f"{RESNET}/config_Z100x1x8.py", "fp16", "renamed", "precision: fp16"),
        (
            "training/acme/resnet50-pytorch/extern/trainer_adapter.py",
            "model_to_fp16()",
            "by hand",
            "training/resnet50.py: TrainingAdapter.autocast",
        ),
        ("training/acme/wav2vec2-pytorch", "", "unknown", "it has bert, cpm, glm, resnet50"),
        ("training/acme/bert-paddle", "", "unknown", "only pytorch is here"),
        ("inference/configs/vit_l_16", "", "renamed", "inference/vit"),
        ("inference/configs/vit_l_16/configurations.yaml", "flops", "differs", "theirs 61600000000.0, here"),
        ("inference/configs/vit_l_16/configurations.yaml", "batch_size", "redundant", "the same here"),
        (
            "inference/configs/vit_l_16/vendor_config/acme_configurations.yaml",
            "repeat",
            "taken over",
            "FlagPerf exits with an error",
        ),
        (
            "inference/configs/vit_l_16/vendor_config/acme_configurations.yaml",
            "no_validation",
            "illegal",
            "the user may",
        ),
        ("inference/configs/vit_l_16/vendor_config/acme_configurations.yaml", "compiler", "redundant", "forge"),
        (
            "inference/configs/bertLarge/configurations.yaml",
            "compiler",
            "differs",
            "the case's own: theirs 'tensorrt'",
        ),
        ("inference/configs/host.yaml", "CASES: bertLarge:pytorch_1.13", "renamed", "bert:pytorch_1.13"),
        ("training/run_benchmarks/config/test_conf.py", "FLAGPERF_LOG_PATH", "redundant", "--results-dir"),
        ("training/run_benchmarks/config/test_conf.py", "FLAGPERF_LOG_LEVEL", "taken over", "runs.yaml"),
        (
            "training/run_benchmarks/config/test_conf.py",
            "CASES: bert:paddle:Z100:1:8:1",
            "illegal",
            "only the framework",
        ),
        ("training/run_benchmarks/config/cluster_conf.py", "SSH_PORT", "renamed", "cluster.yaml: port"),
        ("inference/docker_images/acme/acme_analysis.py", "fp16_flops", "renamed", "chips.yaml"),
        ("training/acme/acme_monitor.py", "", "by hand", "monitor()"),
        ("base/vendors/acme", "", "unknown", "no suite"),
    ],
)
def test_each_key_has_its_fate(brought: tuple[Moved, Path], file: str, key: str, fate: str, expected: str) -> None:
    found = row(brought[0], file, key)
    assert found.fate == fate and expected in str(found), found


@pytest.mark.parametrize(
    "value, named",
    [
        ("int16", "int16"),
        ("XDNN_FP16", "FP16"),
        ("fp32,bf16", "bf16"),
        ("half", "half"),
        ("tf32", "tf32"),
        ("float32", None),
        ("sprint16", None),
        ("-O2 -Lamp", "-Lamp"),
        ("amp", "amp"),
        ("clamp", None),
        ("example", None),
        ("fc_autotune_fp16.log", None),
        ("/opt/fp16/lib", None),
        ("torch.half", "half"),
        ("torch.int8", "int8"),
        ("16", None),
    ],
)
def test_a_variable_that_lowers_the_precision_is_not_taken_over(value: str, named: str | None) -> None:
    why = lowers_precision(value)
    assert (why is None) == (named is None)
    assert named is None or f"names the precision {named}," in str(why)


@pytest.mark.parametrize(
    "name, value, named",
    [
        ("XTCL_USE_FP16", "1", "FP16"),
        ("NVIDIA_TF32_OVERRIDE", "1", "TF32"),
        ("ACME_AMP", "on", "AMP"),
        ("NVIDIA_TF32_OVERRIDE", "0", None),
        ("XTCL_USE_FP16", "false", None),
        ("XDNN_FC_INT16_FILE", "tuned.log", None),
        ("ACME_DISABLE_FP16", "1", None),
        ("ACME_CHAMPION", "1", None),
    ],
)
def test_a_variable_may_name_the_precision_itself_and_have_it_on(name: str, value: str, named: str | None) -> None:
    why = lowers_precision(value, name)
    assert (why is None) == (named is None)
    assert named is None or f"names the precision {named}," in str(why)


def test_what_is_written_is_what_our_readers_take(brought: tuple[Moved, Path]) -> None:
    moved, out = brought
    vendor = out / "vendors/acme"
    scale = yaml.safe_load((vendor / "configs/training/bert/Z100x1x8.yaml").read_text())
    assert scale == {
        "train_batch_size": 27,
        "eval_batch_size": 27,
        "learning_rate": 1e-4,
        "weight_decay": 0.02,
    }
    assert yaml.safe_load((vendor / "configs/inference/vit.yaml").read_text())["repeat"] == 5
    needs = load_environment(vendor)
    assert needs.variables_of("training/bert") == {"ACME_FUSE": "1", "ACME_CACHE": "8 GiB", "ACME_MODE": "fast$"}
    assert needs.requirements_of("inference/bert") == ("transformers>=4",)
    (chip,) = load_chips(vendor / "chips.yaml")
    assert chip.name == "Z100" and chip.peaks["fp16"].flops == 96e12
    listed = load_host_file(out / "runs.yaml")
    assert (listed.FLAGPERF_LOG_LEVEL, listed.CLEAR_CACHES) == ("DEBUG", True)
    entries = [(entry.suite, entry.case, entry.scale) for entry in listed.entries]
    assert entries == [
        *[("training", "bert", "Z100x1x8"), ("training", "resnet50", "Z100x1x8")],
        *[("inference", "vit", ""), ("inference", "bert", "")],
    ]
    cluster = load_cluster(out / "cluster.yaml")
    assert [host.address for host in cluster.hosts] == ["10.1.2.3", "10.1.2.4"] and cluster.master_port == 29501
    table = json.loads((out / "import.json").read_text())
    assert len(table["rows"]) == len(moved.rows) and {each["fate"] for each in table["rows"]} == set(FATES)
    assert f"| {BERT}/config_Z100x1x8.py:9 | fp16 | true | redundant |" in (out / "import.md").read_text()


def test_the_package_keeps_the_contract(brought: tuple[Moved, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source = (brought[1] / "vendors/acme/__init__.py").read_text()
    module: dict[str, Any] = {"__name__": "acme"}
    exec(compile(source, "acme", "exec"), module)
    vendor = module["vendor"]
    assert vendor.distributed_backend == "xccl" and vendor.visible_devices_variable == "ACME_VISIBLE_DEVICES"
    assert vendor.default_compiler == "forge" and vendor.training_precisions == {"fp32", "fp16"}
    assert vendor.devices() == [] or vendor.chip()


def test_who_breaks_flagperfs_own_list_is_counted(brought: tuple[Moved, Path]) -> None:
    check = brought[0].check
    assert (check.files, check.breaking, check.off_the_list) == (3, 2, 5)
    assert (
        "2 of 3 training settings (67 %) break FlagPerf's own mutable_params" in (brought[1] / "import.md").read_text()
    )


def test_what_several_settings_import_is_no_setting_and_told_once(tmp_path: Path) -> None:
    """Under whatever name: FlagPerf's own bert has config_Ampere_common.py."""
    own = {f"{BERT}/config_Z100x1x{n}.py": "from config_Z_common import *\nwarmup_proportion = 0\n" for n in (1, 8)}
    moved = again(tmp_path, own | {f"{BERT}/config_Z_common.py": "seed = 3\nlearning_rate = 2e-4\n"})
    assert [(each.key, each.fate) for each in moved.rows if each.file.endswith("config_Z_common.py")] == [
        ("seed", "illegal"),
        *[("learning_rate", "taken over")] * 2,
    ]
    assert "a parameter of the task (warmup)" in row(moved, f"{BERT}/config_Z100x1x8.py", "warmup_proportion").why


@pytest.mark.parametrize(
    "returned, expected", [("0", "stays 0.0"), ("0.0", "stays 0.0"), ("spent", "may be other than 0.0")]
)
def test_a_compiler_whose_foo_time_is_not_nothing_is_told(tmp_path: Path, returned: str, expected: str) -> None:
    file = "inference/inference_engine/acme/forge.py"
    text = f"class InferModel:\n    def __call__(self, inputs):\n        spent = 1\n        return [], {returned}\n"
    assert expected in row(again(tmp_path, {file: text}), file, "").why


@pytest.mark.parametrize(
    "body, returned",
    [
        ("    if a:\n        return 1, 2\n    return 3, 4", "34"),
        ("    if a:\n        if b:\n            return 1, 2\n    else:\n        return 3, 4", "34"),
        ("    return 3, 4\n    def f():\n        return 1, 2", "34"),
        ("    return 3, 4\n    return 5", ""),
    ],
)
def test_what_a_function_returns_is_what_stands_last_in_it(tmp_path: Path, body: str, returned: str) -> None:
    (tmp_path / "a.py").write_text(f"def g(a, b):\n{body}\n")
    assert "".join(map(ast.unparse, returned_by(tmp_path / "a.py", tmp_path, "g"))) == returned


def test_what_containers_are_given_is_of_the_vendor_of_the_list(tmp_path: Path) -> None:
    moved = again(tmp_path, {"training/run_benchmarks/config/test_conf.py": THEIRS, **dict.fromkeys(HOST, "")})
    for key in ("ACCE_CONTAINER_OPT", "ACCE_VISIBLE_DEVICE_ENV_NAME"):
        why = row(moved, "training/run_benchmarks/config/test_conf.py", key).why
        assert why == "is of vendor forge, as VENDOR in training/run_benchmarks/config/test_conf.py says"
    assert "vendors/acme/container.yaml" not in moved.files
    assert "visible_devices_variable = None" in moved.files["vendors/acme/__init__.py"]


def test_what_is_computed_and_has_no_use_shows_what_it_was(brought: tuple[Moved, Path], tmp_path: Path) -> None:
    path = row(brought[0], "training/run_benchmarks/config/test_conf.py", "FLAGPERF_LOG_PATH")
    assert path.value == "/home/FlagPerf/training/result/"
    moved = again(tmp_path, {"training/run_benchmarks/config/test_conf.py": "FLAGPERF_LOG_PATH = open('a').read()\n"})
    path = row(moved, "training/run_benchmarks/config/test_conf.py", "FLAGPERF_LOG_PATH")
    assert (path.fate, path.value) == ("redundant", "open('a').read()")


SWITCHES = {
    "fp16 = False\namp = True\n": {"amp": ("renamed", "fp16"), "fp16": ("redundant", "amp says precision fp16")},
    "amp = True\nfp16 = False\n": {"amp": ("renamed", "fp16"), "fp16": ("redundant", "amp says precision fp16")},
    "fp16 = True\namp = True\n": {"fp16": ("renamed", "fp16"), "amp": ("redundant", "fp16 says so already")},
    "fp16 = True\nbf16 = True\n": {"fp16": ("renamed", "fp16"), "bf16": ("illegal", "fp16 sets precision too")},
    "fp16 = False\namp = False\n": {"fp16": ("redundant", "fp32"), "amp": ("redundant", "fp16 says precision fp32")},
}


@pytest.mark.parametrize("text", SWITCHES)
def test_a_switch_of_a_precision_that_is_off_overrules_none_that_is_on(tmp_path: Path, text: str) -> None:
    file = f"{RESNET}/config_Z100x1x8.py"
    moved = again(tmp_path, {file: f"num_workers = 3\n{text}"})
    for key, (fate, expected) in SWITCHES[text].items():
        found = row(moved, file, key)
        assert (found.fate, expected in f"{found.here} {found.why}") == (fate, True), found


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/runs.yaml").write_text("mine")
    with pytest.raises(UsageError, match="runs.yaml would be written over: choose an empty folder"):
        again(tmp_path, {})
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["runs.yaml"]


def test_2022s_lists_of_runs(tmp_path: Path) -> None:
    entry = {"model": "bert", "framework": "pytorch", "config": "config_Z100x1x8", "repeat": 2, "nnodes": 1, "nproc": 8}
    text = f'VENDOR = "acme"\nCASES = ["DEMO", "GONE"]\nDEMO = { ({**entry, "data_dir_host": "/data/bert"})!r}\n'
    moved = again(tmp_path, {"training/run_benchmarks/config/test_conf.py": text})
    assert "\n  bert:pytorch:Z100:1:8:2: /data/bert\n" in moved.files["runs.yaml"]
    assert row(moved, "training/run_benchmarks/config/test_conf.py", "CASES: GONE").fate == "illegal"


COMPUTED = """\
import torch_acme
from config_common import *
train_batch_size = 16
train_batch_size = train_batch_size * 2
if True:
    learning_rate = 1e-4
eval_batch_size, other = 4, 5
weight_decay = open("/etc/passwd").read()
num_workers = 3
gradient_accumulation_steps += 1
log_freq = 1e999
"""


def test_what_computes_is_refused_with_its_line_and_the_rest_is_read(tmp_path: Path) -> None:
    file = f"{BERT}/config_Z100x1x8.py"
    moved = again(tmp_path, {file: COMPUTED})
    refused = {(each.line, each.key) for each in moved.rows if each.file == file and each.fate == "refused"}
    assert refused == {
        *[
            (1, "line: import torch_acme"),
            (3, "train_batch_size"),
            (4, "train_batch_size"),
            (5, "learning_rate"),
            (7, "eval_batch_size"),
            (7, "other"),
        ],
        *[(8, "weight_decay"), (10, "gradient_accumulation_steps"), (11, "log_freq")],
    }
    assert (
        "imports torch_acme, which is not a file of the adaptation" in row(moved, file, "line: import torch_acme").why
    )
    assert moved.files["vendors/acme/configs/training/bert/Z100x1x8.yaml"].endswith("\nnum_workers: 3\n")


JOINED = """\
VENDOR = "acme"
ACCE_CONTAINER_OPT = " --device=/dev/acme0" + \\
    " --device=/dev/acme1"
CASES = {}
"""


def test_texts_and_lists_that_are_put_together_are_read(tmp_path: Path) -> None:
    """As the guide of FlagPerf's test_conf.py has it for several devices, and each mutable_params.py with +=."""
    moved = again(tmp_path, {"training/run_benchmarks/config/test_conf.py": JOINED})
    written = yaml.safe_load(moved.files["vendors/acme/container.yaml"])
    assert written["options"] == ["--device=/dev/acme0", "--device=/dev/acme1"]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("from common import train_batch_size", {"lr": 0.1}),
        ("from common import seed, train_batch_size as lr", {"seed": 3, "train_batch_size": 32}),
        ("from common import *", {"seed": 3, "lr": 0.1}),
        ("from nowhere import *", {}),
        ("from nowhere import lr", {"train_batch_size": 32}),
        ("import nowhere as lr", {"train_batch_size": 32}),
        ("def lr(): ...", {"train_batch_size": 32}),
        ("class lr: ...", {"train_batch_size": 32}),
        ("from common import seed as lr, seed as more, absent as b", {"train_batch_size": 32, "lr": 3, "more": 3}),
        ("try:\n    from nowhere import lr\nexcept ImportError:\n    pass", {"train_batch_size": 32}),
        ("if 1:\n    def lr(): ...", {"train_batch_size": 32}),
        ("match 1:\n    case lr: ...", {"train_batch_size": 32}),
        ("match 1:\n    case {**lr}: ...", {"train_batch_size": 32}),
        ("class C:\n    def lr(self): ...", {"train_batch_size": 32, "lr": 0.1}),
        ("import common as c\nimport nowhere as c\nlr = c.seed", {"train_batch_size": 32}),
        ("if 1:\n    from nowhere import *", {}),
        ("import math", {"lr": 0.1, "train_batch_size": 32}),
    ],
)
def test_what_a_line_that_cannot_be_read_would_have_set_is_no_longer_known(
    tmp_path: Path, line: str, expected: dict[str, Any]
) -> None:
    (tmp_path / "common.py").write_text("seed = 3\ntrain_batch_size = int('64')\n")
    config = tmp_path / "config.py"
    config.write_text(f"train_batch_size = 32\nlr = 0.1\n{line}\n")
    found = read_python(config, tmp_path)
    assert found.plain == expected and found.refused
    lost = {"train_batch_size", "lr"} - {*expected}
    assert {each.name for each in found.replaced if not each.known} == lost


def test_what_a_container_is_given_of_devices_a_wall_shows_too(tmp_path: Path) -> None:
    joined = JOINED.replace("/dev/acme1", "/dev/acme1:/dev/acme1 --device=acme.com/card=all --shm-size=8g")
    moved = again(tmp_path, {"training/run_benchmarks/config/test_conf.py": joined})
    written = yaml.safe_load(moved.files["vendors/acme/isolation.yaml"])
    assert written == {"devices": ["/dev/acme0", "/dev/acme1"]} and IsolationSettings.model_validate_json(
        json.dumps(written)
    )
    told = [row.here for row in moved.rows if row.key == "ACCE_CONTAINER_OPT" and "isolation.yaml" in row.here]
    assert [here.rpartition("; ")[2] for here in told] == [
        f"vendors/acme/isolation.yaml: devices: /dev/acme{number}" for number in range(2)
    ]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a = [1]\n" + "a = [a, a]\n" * 40, "is larger than a setting can be: a = [a, a]"),
        ("a = [1]\n" + "a = [a]\n" * 40, "is larger than a setting can be: a = [a]"),
        ("a = {'x' * 3: 1}\n", "has a key that is not text"),
        ("a = 'xx'\n" + "a = a + a\n" * 40, "computes: a + a"),
        ("a = 'x'\n" + "a += a\n" * 40, "computes: a += a"),
        ("".join(f"a{n} = 1\n" for n in range(2500)), "is where reading ends"),
        ("open('a')\n" * 2500, "is where reading ends"),
    ],
)
def test_a_short_file_that_says_a_large_one_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    file = f"{BERT}/config_Z100x1x8.py"
    moved = again(tmp_path, {file: text})
    assert any(expected in each.why for each in moved.rows if each.file == file and each.fate == "refused")


@cache
def _large() -> str:
    return "a = 1\n" * 2_000_000


@pytest.mark.parametrize(
    "content, expected",
    [
        (lambda: _large().encode(), "larger than 1 MiB"),
        (lambda: "x = 'schön'".encode("latin-1"), "not UTF-8"),
        (lambda: b"x = (1\n", "is not valid Python: '(' was never closed (line 1)"),
        (lambda: b"x = 1\0", "is not "),
        (lambda: b"x = " + b"(" * 5000 + b")" * 5000, "is not "),
        (lambda: b"x = " + b"-" * 5000 + b"1", ""),
        (lambda: "\ufefflearning_rate = open('a')".encode(), "computes: open('a')"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_and_the_rest_is_read(
    tmp_path: Path, content: Callable[[], bytes], expected: str
) -> None:
    path = write(tmp_path / "FlagPerf") / BERT / "config_Z100x1x8.py"
    path.write_bytes(content())
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # a library may have raised it, and what is deep would be read
    try:
        moved = bring(tmp_path / "FlagPerf", "acme", tmp_path / "out", ROOT)
    finally:
        sys.setrecursionlimit(limit)
    refused = [each for each in moved.rows if each.file.endswith(path.name) and each.fate == "refused"]
    assert refused and expected in refused[0].why
    assert row(moved, f"{BERT}/config_Z100x1x1.py", "learning_rate").fate == "taken over"


@pytest.mark.parametrize("name", ["config_Z100xY200x1x8", "config_Z100", "config_Z100x1x", "config_1x8"])
def test_a_name_of_no_chip_or_two_is_illegal(tmp_path: Path, name: str) -> None:
    moved = again(tmp_path, {f"{BERT}/{name}.py": "learning_rate = 3e-4\n"})
    found = row(moved, f"{BERT}/{name}.py", "")
    assert (found.fate == "illegal" and "expected one chip" in found.why) or "is not a scale" in found.why


@pytest.mark.parametrize("name", ["../acme", "acme/..", "", "class", "a-b", "acme\n", "ácme", "$(id)", "9acme"])
def test_a_name_that_no_folder_may_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="expected a name of letters, digits and underscores"):
        again(tmp_path, {}, name)
    assert not (tmp_path / "out").exists()


def test_who_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing of vendor 'acne' is there: it has acme; did you mean 'acme'"):
        again(tmp_path, {}, "acne")


@pytest.mark.parametrize("name", ["", "training/benchmarks", "missing", "inference/configs/host.yaml"])
def test_what_is_no_checkout_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "FlagPerf")
    with pytest.raises(UsageError, match="expected"):
        bring(tmp_path / "FlagPerf" / name if name else tmp_path, "acme", tmp_path / "out", ROOT)


def test_it_is_called_in_our_checkout(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="call it in Proofmark's checkout"):
        bring(write(tmp_path / "FlagPerf"), "acme", tmp_path / "out", tmp_path)


def test_a_link_out_of_the_checkout_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("learning_rate = 1e-4\n")
    tree = write(tmp_path / "FlagPerf")
    (tree / BERT / "config_Z100x2x8.py").symlink_to(tmp_path / "secret.py")
    moved = bring(tree, "acme", tmp_path / "out", ROOT)
    assert "a link out of" in row(moved, f"{BERT}/config_Z100x2x8.py", "").why


def test_the_command_prints_the_table_and_ends_with_4_where_nothing_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = write(tmp_path / "FlagPerf")
    monkeypatch.chdir(ROOT)
    arguments = ["import", str(tree), "--vendor", "acme", "--out", str(tmp_path / "out")]
    assert __main__.main(arguments) == 0
    printed = capsys.readouterr().out
    assert f"renamed     {RESNET}/config_Z100x1x8.py:1  lr = 0.8 -> " in printed
    assert "break FlagPerf's own mutable_params" in printed
    assert "WARNING" not in printed
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").symlink_to(ROOT / "suites")
    write(tmp_path, {"vendors/acme/__init__.py": ""})
    assert __main__.main([*arguments[:-1], "again"]) == 0
    expected = "WARNING: to copy them writes over what is here already: vendors/acme/__init__.py"
    assert capsys.readouterr().out.splitlines()[-1] == expected
    assert __main__.main(arguments) == 4
    assert len(capsys.readouterr().err.splitlines()) == 1
    for wrong in (arguments[:-1], ["imports"], []):
        with pytest.raises(SystemExit, match="4"):
            __main__.main(wrong)
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_their_list_of_runs_is_no_run_list(tmp_path: Path) -> None:
    (tmp_path / "test_conf.py").write_text("CASES = {}\n")
    with pytest.raises(ConfigurationError, match=r"test_conf.py: is Python.*python -m proofmark.flagperf import"):
        load_host_file(tmp_path / "test_conf.py")


def test_what_cannot_change_a_text_leaves_it(tmp_path: Path) -> None:
    file = f"{BERT}/config_Z100x1x8.py"
    moved = again(tmp_path, {file: "dist_backend = 'xccl'\nacme_mode = dist_backend.upper()\n"})
    assert row(moved, file, "dist_backend").fate == "renamed" and row(moved, file, "acme_mode").fate == "refused"


def test_what_computes_in_a_case_that_is_not_here_is_told_too(tmp_path: Path) -> None:
    file = "training/acme/wav2vec2-pytorch/config/config_Z100x1x8.py"
    moved = again(tmp_path, {file: "lr = 0.1\nwarmup = int('3')\n"})
    assert row(moved, file, "warmup").fate == "refused" and row(moved, file, "lr").fate == "unknown"


BASE = "training/benchmarks/bert/pytorch/config"


@pytest.mark.parametrize(
    "file, text, expected",
    [
        (f"{BASE}/mutable_params.py", 'mutable_params = ["vendor"]\nmutable_params += more()\n', "computes: more()"),
        (f"{BASE}/mutable_params.py", 'mutable_params = ["vendor"]\nmutable_params.append("lr")\n', "computes"),
        (f"{BASE}/mutable_params.py", "mutable_params = (\n", "is not valid Python"),
        (f"{BASE}/mutable_params.py", "mutable_params = 'vendor'\n", "is not a list of names there"),
    ],
)
def test_of_a_list_that_cannot_be_read_nobody_says_what_is_not_on_it(
    tmp_path: Path, file: str, text: str, expected: str
) -> None:
    moved = again(tmp_path, {file: text})
    assert any(expected in each.why for each in moved.rows if each.file == file and each.fate == "refused")
    assert moved.check.files == 1, "resnet50's alone"
    assert not any("mutable_params" in each.theirs for each in moved.rows if each.file.startswith(BERT))


def test_what_of_the_base_cannot_be_read_is_told_and_not_denied(tmp_path: Path) -> None:
    moved = again(tmp_path, {f"{BASE}/_base.py": FILES[f"{BASE}/_base.py"] + "acme_fuse = bool(1)\n"})
    refused = row(moved, f"{BASE}/_base.py", "acme_fuse")
    assert (refused.fate, refused.why) == ("refused", "computes: bool(1)")
    assert row(moved, f"{BERT}/config_Z100x1x8.py", "acme_fuse").theirs == "not in FlagPerf's mutable_params"


TEST_CONF, CLUSTER_CONF = (f"training/run_benchmarks/config/{name}_conf.py" for name in ("test", "cluster"))


def test_a_peak_of_several_chips_is_the_users_to_write(tmp_path: Path) -> None:
    moved = again(tmp_path, {f"{BERT}/config_Y200x1x8.py": "theoryflops = 1e15\n"})
    for file, key in (("inference/docker_images/acme/acme_analysis.py", "fp16_flops"),):
        found = row(moved, file, key)
        assert (found.fate, found.here) == ("by hand", "") and "the adaptation is of Y200, Z100" in found.why
        assert f"{key} = 96000000000000.0" in str(found)
    assert "vendors/acme/chips.yaml" not in moved.files


def test_a_peak_of_fp32_or_tf32_is_taken_for_neither(brought: tuple[Moved, Path]) -> None:
    found = row(brought[0], "inference/docker_images/acme/acme_analysis.py", "fp32_or_tf32_flops")
    assert (found.fate, found.value) == ("by hand", 24e12) and "of fp32, or of tf32 where the chip has it" in found.why
    (chip,) = load_chips(brought[1] / "vendors/acme/chips.yaml")
    assert list(chip.peaks) == ["fp16"]


def test_a_listed_case_says_where_the_layout_of_its_data_is_told(brought: tuple[Moved, Path]) -> None:
    rows = [row for row in brought[0].rows if row.key.startswith("CASES: ") and row.here]
    cases = ["training/bert", "training/resnet50", "inference/vit", "inference/bert"]
    assert sorted(re.findall(r"docs/cases/(\S+)\.md says what", " ".join(row.why for row in rows))) == sorted(cases)
    for case in cases:
        assert "**Data.**" in (ROOT / f"docs/cases/{case}.md").read_text(encoding="utf-8")


def test_two_peaks_of_one_chip_are_told(tmp_path: Path) -> None:
    moved = again(tmp_path, {f"{BERT}/config_Z100x2x8.py": "theoryflops = 95e12\n"})
    found = row(moved, "inference/docker_images/acme/acme_analysis.py", "fp16_flops")
    assert found.fate == "illegal" and "config_Z100x2x8.py says 9.5e+13" in found.why


def test_what_goes_into_a_file_that_is_not_written_is_told(tmp_path: Path) -> None:
    text = 'VENDOR = "acme"\nFLAGPERF_LOG_LEVEL = "debug"\nCLEAR_CACHES = True\nSSH_PORT = "22"\n'
    files = {
        TEST_CONF: text + 'CASES = {"gone:pytorch:Z100:1:8:1": "/data"}\n',
        CLUSTER_CONF: "",
        **dict.fromkeys(HOST, ""),
    }
    moved = again(tmp_path, files)
    assert not {"runs.yaml", "cluster.yaml"} & moved.files.keys()
    for key, expected in (
        ("VENDOR", "there is no runs.yaml"),
        ("FLAGPERF_LOG_LEVEL", "there is no runs.yaml"),
        ("CLEAR_CACHES", "there is no cluster.yaml"),
        ("SSH_PORT", "there is no cluster.yaml"),
    ):
        found = row(moved, TEST_CONF, key)
        assert (found.fate, found.here) == ("by hand", "") and expected in found.why
    assert not any(each.here.startswith(("runs.yaml", "cluster.yaml")) for each in moved.rows)


def test_what_has_its_place_in_the_run_list_is_told_to_be_there(tmp_path: Path) -> None:
    files = {CLUSTER_CONF: "HOSTS = []\n", **dict.fromkeys(HOST, "")}
    moved = again(tmp_path, files)
    found = row(moved, TEST_CONF, "CLEAR_CACHES")
    assert (found.fate, found.here) == ("taken over", "runs.yaml: CLEAR_CACHES")
    assert "CLEAR_CACHES: true" in moved.files["runs.yaml"]
    assert row(moved, CLUSTER_CONF, "HOSTS").fate == "by hand"


def test_no_case_sets_the_variable_by_which_devices_are_chosen(tmp_path: Path) -> None:
    """A vendor with that in its environment.yaml is refused."""
    file = "training/acme/bert-pytorch/config/environment_variables.sh"
    text = FILES[TEST_CONF].replace("ACME_VISIBLE_DEVICES", "ACME_VISIBLE_MODULES")
    exported = "export ACME_VISIBLE_MODULES=0,1\nexport ACME_FUSE=1\n"
    moved = again(tmp_path, {TEST_CONF: text, file: exported, **dict.fromkeys(HOST, "")})
    assert 'visible_devices_variable = "ACME_VISIBLE_MODULES"' in moved.files["vendors/acme/__init__.py"]
    assert row(moved, file, "ACME_VISIBLE_MODULES").fate == "illegal"
    written = moved.files["vendors/acme/environment.yaml"]
    assert "ACME_FUSE" in written and "ACME_VISIBLE_MODULES" not in written


@pytest.mark.parametrize("name", ["A;B", "", "1A", "A B"])
def test_a_variable_that_has_no_name_is_told(tmp_path: Path, name: str) -> None:
    text = FILES[TEST_CONF].replace('"ACME_VISIBLE_DEVICES"', repr(name))
    found = row(
        again(tmp_path, {TEST_CONF: text, **dict.fromkeys(HOST, "")}), TEST_CONF, "ACCE_VISIBLE_DEVICE_ENV_NAME"
    )
    assert found.fate == "illegal" and "is not a valid variable name" in found.why


@pytest.mark.parametrize("chip", ["../../x", "Z 1", "-", "A100xB100", "A100_H100", "A100-H100", "H100andA100"])
def test_a_chip_that_is_none_or_two_is_not_taken_over(tmp_path: Path, chip: str) -> None:
    key = f"bert:pytorch:{chip}:1:8:1"
    moved = again(tmp_path, {TEST_CONF: f"VENDOR = 'acme'\nCASES = {{{key!r}: '/data'}}\n"})
    found = row(moved, TEST_CONF, f"CASES: {key}")
    assert found.fate == "illegal" and ("names two chips" in found.why or "is not a scale" in found.why)
    (tmp_path / "host.yaml").write_text(f"CASES: {{'{key}': x}}\n")
    with pytest.raises(ConfigurationError, match="names two chips|is not a scale"):
        load_host_file(tmp_path / "host.yaml")


def test_a_key_that_moves_what_is_shown_is_refused(tmp_path: Path) -> None:
    text = 'CASES = {"bert:pytorch:Z\\x1b[2J:1:8:1": "/data"}\n'
    moved = again(tmp_path, {TEST_CONF: text, **dict.fromkeys(HOST, "")})
    assert "is not a plain value" in row(moved, TEST_CONF, "CASES").why and "runs.yaml" not in moved.files


@pytest.mark.parametrize(
    "name", ["config_A100_H100x1x8", "config_A100.H100x1x8", "config_A100-BI-V100x1x8", "config_HX-9_HX-8x1x8"]
)
def test_two_chips_in_a_files_name(tmp_path: Path, name: str) -> None:
    found = row(again(tmp_path, {f"{BERT}/{name}.py": "learning_rate = 3e-4\n"}), f"{BERT}/{name}.py", "")
    assert found.fate == "illegal" and "names two chips: expected one chip" in found.why


def test_what_a_shared_file_sets_and_a_case_may_set_again_is_told(tmp_path: Path) -> None:
    shared, file = f"{BERT}/own_common.py", f"{BERT}/config_Z100x1x8.py"
    own = "from own_common import *\nif fp16:\n    seed = 7\n"
    moved = again(tmp_path, {shared: "num_workers = 3\nfp16 = True\nseed = 1\n", file: own})
    found = row(moved, shared, "seed")
    assert (found.fate, found.line) == ("refused", 3) and f"{file}:2 may set it again, and computes" in found.why


def test_settings_of_which_nothing_can_be_read_are_no_scale(tmp_path: Path) -> None:
    file = f"{BERT}/config_Z100x1x8.py"
    moved = again(tmp_path, {file: "x = ("})
    assert row(moved, file, "").fate == "refused"
    assert "vendors/acme/configs/training/bert/Z100x1x8.yaml" not in moved.files


def test_a_number_for_a_switch_of_the_precision_is_illegal(tmp_path: Path) -> None:
    file = f"{BERT}/config_Z100x1x8.py"
    found = row(again(tmp_path, {file: "fp16 = 1\nnum_workers = 3\n"}), file, "fp16")
    assert found.fate == "illegal" and "expected True or False, found 1" in found.why


def test_a_file_of_a_compiler_under_another_name_is_named(tmp_path: Path) -> None:
    folder = "inference/configs/vit_l_16/vendor_config"
    names = ("acme_forge.yaml", "forge.yaml", "acme/forge.yaml", "acme_configurations.yml")
    files = {f"{folder}/{name}": "batch_size: 64\n" for name in (*names, "other.yaml", "acme_pro.yaml")}
    moved = again(tmp_path, files | {"inference/inference_engine/acme_pro/x.py": ""})
    found = [each for each in moved.rows if each.why.startswith("is never read: expected acme_configurations.yaml")]
    assert {each.file for each in found} == {f"{folder}/{name}" for name in names}


@pytest.mark.parametrize(
    "folder, expected",
    [("bert-deepspeed", "the case in pytorch is training/bert"), ("llama2_7b-deepspeed", "there is no such case in")],
)
def test_of_another_framework_the_case_here_is_told(tmp_path: Path, folder: str, expected: str) -> None:
    moved = again(tmp_path, {f"training/acme/{folder}/config/config_Z100x1x8.py": "learning_rate = 1e-4\n"})
    why = row(moved, f"training/acme/{folder}", "").why
    assert why.startswith("its framework is deepspeed; only pytorch is here: ") and expected in why


def test_another_vendors_settings_whose_name_begins_alike_are_left_to_it(tmp_path: Path) -> None:
    folder = "inference/configs/vit_l_16/vendor_config"
    names = {"acme_pro": "repeat: 7\n", "acme_forge": "repeat: 8\n", "acme_fire": "repeat: 9\n"}
    files = {f"{folder}/{name}_configurations.yaml": text for name, text in names.items()}
    moved = again(tmp_path, files | {"inference/inference_engine/acme_pro/x.py": ""})
    assert not [each for each in moved.rows if "acme_pro" in each.file]
    assert row(moved, f"{folder}/acme_forge_configurations.yaml", "repeat").fate == "illegal"
    other = row(moved, f"{folder}/acme_fire_configurations.yaml", "")
    assert other.fate == "unknown" and other.why == "is for no compiler of acme's, which has forge"


@pytest.mark.parametrize(
    "file",
    [
        "inference/inference_engine/acme/forge.py",
        "inference/docker_images/acme/acme_analysis.py",
        "training/acme/resnet50-pytorch/extern/trainer_adapter.py",
    ],
)
@pytest.mark.parametrize(
    "content, expected", [("x = 'schön'".encode("latin-1"), "not UTF-8"), (b"x = (", "is not valid Python")]
)
def test_code_that_cannot_be_read_is_told_so(tmp_path: Path, file: str, content: bytes, expected: str) -> None:
    (write(tmp_path / "FlagPerf") / file).write_bytes(content)
    found = rows(bring(tmp_path / "FlagPerf", "acme", tmp_path / "out", ROOT), file, "")
    assert [each.fate for each in found] == ["refused"] and expected in found[0].why


@pytest.mark.parametrize("line", ["del learning_rate", "learning_rate[0] = 1", "learning_rate.append(1)"])
def test_what_a_refused_line_changes_is_unknown(tmp_path: Path, line: str) -> None:
    file = f"{BERT}/config_Z100x1x8.py"
    moved = again(tmp_path, {file: f"learning_rate = [3e-4]\nnum_workers = 3\n{line}\n"})
    assert [(each.line, each.fate) for each in rows(moved, file, "learning_rate")] == [(3, "refused"), (1, "refused")]
    assert f"{file}:3 may set it again" in rows(moved, file, "learning_rate")[1].why
    assert moved.files["vendors/acme/configs/training/bert/Z100x1x8.yaml"].endswith("\nnum_workers: 3\n")


@pytest.mark.parametrize(
    "imported, whole", [("import config_common as c", "c"), ("import config_common", "config_common")]
)
def test_names_of_a_module_that_is_imported_whole_are_resolved(tmp_path: Path, imported: str, whole: str) -> None:
    file, text = f"{BERT}/config_Z100x1x8.py", "dist_backend = {0}.dist_backend\nnum_workers = {0}.none\n"
    moved = again(tmp_path, {file: f"from typing import Any\n{imported}\n{text.format(whole)}"})
    assert (row(moved, file, "dist_backend").fate, row(moved, file, "dist_backend").value) == ("renamed", "xccl")
    assert row(moved, file, "num_workers").why == f"computes: {whole}.none"
    assert not rows(moved, file, ""), "of types nothing is told"


@pytest.mark.parametrize("name", ["test_conf.py", "test_conf", "test_conf.yaml"])
@pytest.mark.parametrize("text", [FILES[TEST_CONF], FILES[CLUSTER_CONF]])
def test_python_under_whatever_name_is_told_with_the_command(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(
        ConfigurationError, match="is Python, .*proofmark.flagperf import.* makes a run list of test_conf.py"
    ):
        load_host_file(tmp_path / name)
    with pytest.raises(
        ConfigurationError, match="is Python, .*proofmark.flagperf import.* makes a cluster file of cluster_conf.py"
    ):
        load_cluster(tmp_path / name)


def test_yaml_that_is_wrong_is_not_taken_for_python(tmp_path: Path) -> None:
    (tmp_path / "host.yaml").write_text("VENDOR: a=b\nHOST: c\n")
    with pytest.raises(ConfigurationError, match="HOST: unknown key"):
        load_host_file(tmp_path / "host.yaml")


def test_no_text_of_others_is_markup_in_the_table() -> None:
    evil = "<img src=x> [a](http://b) `c` *d* _e_ https://f www.g | @h \\\\"
    table = as_markdown([Row("f.py", 1, "key", evil, "unknown", why=evil)], MutableCheck(0, 0, 0, 0), "title")
    line = table.splitlines()[-1]
    assert line.count("|") == 7 and not set("<>[]`*@\\") & set(line)
    assert "://" not in line and "www." not in line and " _" not in line
