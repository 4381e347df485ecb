"""What real adaptations to FlagPerf have in them, and simple ones do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proofmark.flagperf.adaptation.bring import bring
from proofmark.flagperf.adaptation.fates import Row
from proofmark.flagperf.adaptation.moved import Moved
from tests.flagperf.tree import FILES, write

ROOT = Path(__file__).parents[2]
BASE, BERT = "training/benchmarks/bert/pytorch/config", "training/acme/bert-pytorch/config"
PADDLE, GONE = "training/acme/bert-paddle/config", "training/acme/wav2vec2-pytorch/config"
ONE, EIGHT = f"{BERT}/config_Z100x1x1.py", f"{BERT}/config_Z100x1x8.py"
TEST_CONF, CLUSTER_CONF = (f"training/run_benchmarks/config/{name}_conf.py" for name in ("test", "cluster"))
HOST, VIT = "inference/configs/host.yaml", "inference/configs/vit_l_16"
BERT_INFERENCE = "inference/configs/bertLarge"


def again(folder: Path, files: dict[str, str]) -> Moved:
    """The tree with other files beside or in place of its own."""
    return bring(write(folder / "FlagPerf", FILES | files), "acme", folder / "out", ROOT)


def rows(moved: Moved, file: str, key: str = "") -> list[Row]:
    return [row for row in moved.rows if row.file == file and row.key == key]


def test_of_another_vendors_list_no_runs_and_no_hosts_are_taken_over(tmp_path: Path) -> None:
    """A cluster_conf.py names the hosts of the test_conf.py beside it."""
    files = {path: FILES[path].replace('"acme"', '"forge"') for path in (TEST_CONF, HOST)}
    moved = again(tmp_path, files)
    assert not {"runs.yaml", "cluster.yaml"} & moved.files.keys()
    for file, key, where in (
        (TEST_CONF, "CASES", TEST_CONF),
        (CLUSTER_CONF, "HOSTS", TEST_CONF),
        (HOST, "HOSTS", HOST),
    ):
        (found,) = rows(moved, file, key)
        assert (found.fate, found.why) == ("illegal", f"is of vendor forge, as VENDOR in {where} says")
    assert "of another's list no CASES, HOSTS and ACCE_ keys" in rows(moved, TEST_CONF, "VENDOR")[0].why


def test_a_list_of_the_vendors_own_stands_beside_anothers(tmp_path: Path) -> None:
    moved = again(tmp_path, {TEST_CONF: FILES[TEST_CONF].replace('"acme"', '"forge"')})
    assert list(yaml.safe_load(moved.files["runs.yaml"])["CASES"]) == ["vit:pytorch_1.13", "bert:pytorch_1.13"]
    assert rows(moved, HOST, "VENDOR")[0].fate == "taken over"


def test_each_run_of_a_list_is_told_at_its_line(tmp_path: Path) -> None:
    moved = again(tmp_path, {})
    lines = [row.line for row in moved.rows if row.file == TEST_CONF and row.key.startswith("CASES: ")]
    assert lines == [13, 14, 15, 16]
    listed = "VENDOR = 'acme'\nCASES = [\n    'ONE',\n    'TWO',\n]\nONE = {}\n"
    moved = again(tmp_path / "2022", {TEST_CONF: listed})
    assert [rows(moved, TEST_CONF, f"CASES: {name}")[0].line for name in ("ONE", "TWO")] == [3, 4]


def test_what_an_inference_case_shares_is_not_written_as_the_vendors(tmp_path: Path) -> None:
    """But for what it ran with and might set; nothing is held against the rules for a vendor's own."""
    shared = "batch_size: 256\nfp16: true\ncompiler: tensorrt\nrepeat: 9\nlog_freq: 3\nflops: 1\ninput_size: 224\n"
    slower = FILES[f"{BERT_INFERENCE}/configurations.yaml"].replace("fp16: true", "fp16: false")
    moved = again(tmp_path, {f"{VIT}/configurations.yaml": shared, f"{BERT_INFERENCE}/configurations.yaml": slower})
    found = [row for row in moved.rows if row.file == f"{VIT}/configurations.yaml"]
    assert {row.key: row.fate for row in found} == {
        **dict.fromkeys(shared.replace(": ", "\n").split("\n")[:-1:2], "redundant"),
        "batch_size": "taken over",
        **dict.fromkeys(("log_freq", "flops"), "differs"),
    }
    written = yaml.safe_load(moved.files["vendors/acme/configs/inference/vit.yaml"])
    assert set(written) == {"repeat", "forge_tmp_path", "batch_size"} and written["repeat"] == 5
    assert yaml.safe_load(moved.files["vendors/acme/configs/inference/bert.yaml"]) == {"fp16": False}
    assert '"fp16"' in moved.files["vendors/acme/__init__.py"]


def test_of_an_inference_case_that_is_not_here_what_is_shared_is_told(tmp_path: Path) -> None:
    case = "inference/configs/sam_h"
    own = {
        "vendor_config/acme_configurations.yaml": "repeat: 1\n",
        "configurations.yaml": "",
        "parameters.yaml": "a: 1\n",
    }
    moved = again(tmp_path, {f"{case}/{name}": text for name, text in own.items()})
    for name in ("configurations.yaml", "parameters.yaml"):
        assert [row.fate for row in rows(moved, f"{case}/{name}")] == ["unknown"]


def test_settings_whose_name_nobody_finds_are_told(tmp_path: Path) -> None:
    names = ("config_C500x2x8py", "config_C500x1x8.py.bak", "config_old_common.py")
    moved = again(tmp_path, {f"{BERT}/{name}": "lr = 1\n" for name in names})
    for name in names:
        (found,) = rows(moved, f"{BERT}/{name}")
        assert found.fate == "illegal" and "is not a config_<chip>x<nodes>x<processes>.py" in found.why
    assert not rows(moved, f"{BERT}/config_common.py"), "settings import it"


REAL = """\
import os
import torch_acme
from torch.cuda.amp import GradScaler
from acme.modules import Layer
scaler = torch.cuda.amp.GradScaler(init_scale=float(os.environ["A"]), growth_interval=2000)
num_workers = 2 * 3 - -1
train_data = f"shards"
log_freq = 9 ** 9 ** 9
eval_batch_size = 10 ** 9
max_steps = 999999999 * 999999999 * 2
train_batch_size = 0.5 * 8
print("done")
"""


def test_a_file_of_settings_with_code_in_it_is_read(tmp_path: Path) -> None:
    moved = again(tmp_path, {EIGHT: REAL})
    refused = {row.key: row.why for row in moved.rows if row.file == EIGHT and row.fate == "refused"}
    assert set(refused) == {
        *("line: import torch_acme", "line: from acme.modules import Layer", "line: print('done')"),
        *("log_freq", "eval_batch_size", "max_steps", "train_batch_size"),
    }
    assert refused["line: import torch_acme"].endswith("not a file of the adaptation, so it is not read")
    by_hand = [row for row in moved.rows if row.file == EIGHT and row.fate == "by hand"]
    assert [row.key for row in by_hand] == ["line: from torch.cuda.amp import GradScaler", "scaler"]
    assert {row.here for row in by_hand} == {"vendors/acme/training/bert.py: TrainingAdapter.autocast"}
    assert rows(moved, EIGHT, "train_data")[0].value == "shards"
    assert "num_workers: 7\n" in moved.files["vendors/acme/configs/training/bert/Z100x1x8.yaml"]


@pytest.mark.parametrize("text", ["1" + " + 1" * 3000, "-" * 5000 + "1", "1" + " * 999999999" * 300])
def test_arithmetic_without_end_is_refused(tmp_path: Path, text: str) -> None:
    moved = again(tmp_path, {EIGHT: f"num_workers = {text}\nlog_freq = 7\n"})
    assert any(row.fate == "refused" for row in moved.rows if row.file == EIGHT)


def test_where_there_is_no_base_nobody_says_what_is_not_in_it(tmp_path: Path) -> None:
    case = "training/benchmarks/wav2vec2/pytorch/config"
    moved = again(tmp_path, {f"{case}/mutable_params.py": 'mutable_params = ["vendor"]\n'})
    assert rows(moved, f"{GONE}/config_Z100x1x8.py", "lr")[0].theirs == "not in FlagPerf's mutable_params"


def test_a_case_that_is_here_in_another_framework_is_told_so(tmp_path: Path) -> None:
    script = "export LD_PRELOAD=a\nexport A=int16\n"
    shared = "training/benchmarks/bert/paddle/config/_base.py"
    needs = {f"{folder}/environment_variables.sh": script for folder in (PADDLE, GONE)}
    moved = again(tmp_path, {**needs, shared: "lr = 1\n", f"{PADDLE}/requirements.txt": "h5py\n"})
    here = "its framework paddle is not here"
    assert rows(moved, f"{PADDLE}/config_Z100x1x8.py", "lr")[0].why == here
    assert rows(moved, f"{PADDLE}/requirements.txt", "h5py")[0].why == here
    assert rows(moved, shared)[0].why == f"{here}, nor a use for any of its keys"
    for folder, why in ((PADDLE, here), (GONE, "its case is not here")):
        found = [rows(moved, f"{folder}/environment_variables.sh", key)[0] for key in ("LD_PRELOAD", "A")]
        assert {(row.fate, row.why) for row in found} == {("unknown", why)}


def test_what_each_scale_sets_again_is_told_where(tmp_path: Path) -> None:
    common = "dist_backend = 'xccl'\nnum_workers = 1\nlog_freq = 1\n"
    scales = {ONE: "from config_common import *\nnum_workers = 2\nlog_freq = 3\n"}
    scales[EIGHT] = "from config_common import *\n\nnum_workers = 4\nseed = 1\nseed = 2\n"
    moved = again(tmp_path, {f"{BERT}/config_common.py": common, **scales})
    (found,) = rows(moved, f"{BERT}/config_common.py", "num_workers")
    assert (found.fate, found.value, found.why) == ("redundant", 1, f"set again in {ONE}:2")
    assert [row.fate for row in rows(moved, f"{BERT}/config_common.py", "log_freq")] == ["taken over"]
    assert [(row.line, row.fate) for row in rows(moved, EIGHT, "seed")] == [(5, "illegal"), (4, "redundant")]


def test_what_images_are_made_by_is_moved_by_hand(tmp_path: Path) -> None:
    files = [
        f"{place}/{name}"
        for name in ("Dockerfile", "pytorch_install.sh")
        for place in ("training/acme/docker_image/pytorch", "inference/docker_images/acme/pytorch_1.13")
    ]
    moved = again(tmp_path, dict.fromkeys(files, "FROM x\n"))
    found = [rows(moved, file)[0] for file in files]
    assert {(row.fate, row.here) for row in found} == {("by hand", "vendors/acme/Containerfile")}
    assert ["--container IMAGE" in row.why for row in found] == [True, True, False, False]


def test_sizes_of_a_model_that_others_call_otherwise_are_compared(tmp_path: Path) -> None:
    shared = "training/benchmarks/cpm/pytorch/config/_base.py"
    base = "num_layers = 12\nhidden_size = 1024\nlr_decay_style = 'linear'\n"
    moved = again(tmp_path, {shared: base, "training/acme/cpm-pytorch/config/config_Z100x1x8.py": ""})
    reasons = [rows(moved, shared, key)[0].why for key in ("num_layers", "hidden_size", "lr_decay_style")]
    assert reasons == [
        "the case's own: theirs 12, here model: n_layer 24 in profile standard",
        "the case's own, the same here (model: n_embd)",
        "the case's own, the same here (schedule)",
    ]


def test_what_an_engine_needs_is_told_and_what_it_loads_declared(tmp_path: Path) -> None:
    engine = "inference/inference_engine/acme/forge.py"
    needs = "import os, nonesuch.log\nfrom absent import logger\nfrom beside import one\nimport __main__\n"
    loads = "        self.plan = config.exist_compiler_path\n"
    beside = {"inference/inference_engine/acme/beside.py": "one = 1\n"}
    text = FILES[engine].replace("        self.model =", f"{loads}        self.model =")
    moved = again(tmp_path, {engine: needs + text, **beside})
    reasons = {row.fate: row.why for row in rows(moved, engine)}
    assert set(reasons) == {"taken over", "by hand"}
    assert reasons["by hand"] == "it imports what is not installed here: nonesuch, absent"
    assert 'consumes="model", loads_compiled=True)' in moved.files["vendors/acme/__init__.py"]
    plain = again(tmp_path / "plain", {})
    assert {row.fate for row in rows(plain, engine)} == {"taken over"}
    assert "loads_compiled" not in plain.files["vendors/acme/__init__.py"]


def test_settings_that_cannot_be_read_are_no_share_of_those_that_break_the_list(tmp_path: Path) -> None:
    read = again(tmp_path, {}).check
    assert read == again(tmp_path / "more", {f"{BERT}/config_Z100x4x8.py": "lr = (\n"}).check
    empty = again(tmp_path / "empty", {f"{BERT}/config_Z100x4x8.py": "\n"}).check
    assert (empty.files, empty.breaking) == (read.files + 1, read.breaking)
