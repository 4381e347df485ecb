"""What all vendors share of FlagPerf's cases, and what a script or another file of the same case says twice."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proofmark.flagperf.adaptation.bring import bring
from proofmark.flagperf.adaptation.fates import Row
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.settings.environment_files import exports
from tests.flagperf.tree import FILES, write

ROOT = Path(__file__).parents[2]
BASE, BERT = "training/benchmarks/bert/pytorch/config", "training/acme/bert-pytorch/config"
VIT, NEEDS = "inference/configs/vit_l_16", "vendors/acme/environment.yaml"
SCRIPT = f"{BERT}/environment_variables.sh"


def again(folder: Path, files: dict[str, str]) -> Moved:
    """The tree with other files beside or in place of its own."""
    return bring(write(folder / "FlagPerf", FILES | files), "acme", folder / "out", ROOT)


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    parameters = "weights: vit.pth\nseq_len: 3\ninput_size: 224\nnum_classes: 7\nlog_freq: 5\nbatch_size: 3\n"
    base = FILES[f"{BASE}/_base.py"] + "theoryflops = 312e12\n_helper = 3\ndo_train = True\n"
    files = {
        f"{VIT}/parameters.yaml": parameters,
        f"{VIT}/configurations.yaml": FILES[f"{VIT}/configurations.yaml"].replace("log_freq: 30\n", ""),
        f"{BASE}/_base.py": base,
        "training/benchmarks/wav2vec2/pytorch/config/_base.py": "lr = 0.1\nwd = 0.2\n",
        "inference/benchmarks/vit_l_16/pytorch/requirements.txt": "torch==1.13\nAcme_Timm>=1\n",
        "inference/benchmarks/bertLarge/pytorch/requirements.txt": "acme-unused\n",
    }
    return again(tmp_path_factory.mktemp("flagperf"), files)


def rows(moved: Moved, file: str, key: str) -> list[Row]:
    return [row for row in moved.rows if row.file == file and row.key == key]


@pytest.mark.parametrize(
    "file, key, fate, expected",
    [
        (f"{BASE}/_base.py", "gradient_accumulation_steps", "redundant", "the case's own, the same here"),
        (f"{BASE}/_base.py", "weight_decay_rate", "redundant", "the case's own, the same here (weight_decay)"),
        (f"{BASE}/_base.py", "log_freq", "differs", "theirs 1, here 10 in profile standard"),
        (f"{BASE}/_base.py", "fp16", "differs", "theirs 'fp32', here precision 'fp16' in profile standard"),
        (f"{BASE}/_base.py", "target_mlm_accuracy", "differs", "theirs 0.67, here target 0.71 in profile standard"),
        (f"{BASE}/_base.py", "learning_rate", "redundant", "acme's own settings say it at every scale"),
        (f"{BASE}/_base.py", "max_samples_termination", "redundant", "the case's own, the same here"),
        (f"{BASE}/_base.py", "hidden_size", "redundant", "the case's own, the same here (model: hidden_size)"),
        (f"{BASE}/_base.py", "seed", "differs", "theirs 42, here 0 in profile standard"),
        (f"{BASE}/_base.py", "local_rank", "redundant", "torchrun says it"),
        (f"{BASE}/_base.py", "theoryflops", "redundant", "each vendor says its own: vendors/acme/chips.yaml"),
        (f"{BASE}/_base.py", "train_data", "unknown", "nothing that is called so"),
        (f"{BASE}/mutable_params.py", "mutable_params", "redundant", "is in suites/training/bert.yaml"),
        ("training/benchmarks/wav2vec2/pytorch/config/_base.py", "", "unknown", "its case is not here"),
        (f"{VIT}/parameters.yaml", "weights", "redundant", "use --weights"),
        (f"{VIT}/parameters.yaml", "input_size", "redundant", "the same here (image_size)"),
        (f"{VIT}/parameters.yaml", "num_classes", "unknown", "nothing that is called so"),
        (f"{VIT}/parameters.yaml", "log_freq", "differs", "theirs 5, here 30 in profile standard"),
        (f"{VIT}/parameters.yaml", "batch_size", "redundant", "exits with an error: the key is in both"),
        (f"{VIT}/configurations.yaml", "compiler", "redundant", "acme_configurations.yaml says it"),
        ("inference/benchmarks/vit_l_16/pytorch/requirements.txt", "torch", "redundant", "requirements.txt here"),
        ("inference/benchmarks/vit_l_16/pytorch/requirements.txt", "Acme_Timm", "taken over", NEEDS),
        ("inference/benchmarks/bertLarge/pytorch/requirements.txt", "", "redundant", "acme_requirements.txt in its"),
    ],
)
def test_each_key_that_vendors_share_has_its_fate(
    brought: Moved, file: str, key: str, fate: str, expected: str
) -> None:
    (found,) = rows(brought, file, key)
    assert found.fate == fate and expected in str(found), found


def test_what_is_shared_breaks_no_rule_of_a_vendors(brought: Moved) -> None:
    """And is not counted among who breaks FlagPerf's own list."""
    shared = [row for row in brought.rows if row.file.startswith("training/benchmarks/")]
    assert {row.fate for row in shared} == {"redundant", "differs", "unknown"}
    assert not rows(brought, f"{BASE}/_base.py", "_helper")
    assert (brought.check.files, brought.check.breaking, brought.check.off_the_list) == (3, 2, 5)
    needs = yaml.safe_load(brought.files[NEEDS])["cases"]
    assert needs["inference/vit"] == {"requirements": ["Acme_Timm>=1"]}


def test_what_one_scale_says_is_not_said_by_all(tmp_path: Path) -> None:
    (found,) = rows(again(tmp_path, {}), f"{BASE}/_base.py", "eval_batch_size")
    assert found.why == "the case's own, the same here"


def test_a_line_of_settings_that_computes_says_its_key_too(tmp_path: Path) -> None:
    only = {f"{BERT}/config_Z100x1x{n}.py": "log_freq = int('3')\n" for n in (1, 8)}
    assert "at every scale" in rows(again(tmp_path, only), f"{BASE}/_base.py", "log_freq")[0].why


CONDITIONS = """\
export A=1
if [ "$(hostname)" = "fi" ]; then  # fi
    export B=1
    case $B in
        1) echo done ;;
        2)
            export C=1
            ;;
    esac
else
    export D=1 D2=2
fi
for i in 1 2; do
    export E=1
done
function acme() {
    export F=1
}
acme_too()
{
    export G=1; }
(
    export H=1
)
while read x; do if true; then
    export I=1
done
export J=1 # if
if true; then export K=1; fi
export L=if
"""


def test_what_only_some_runs_of_a_script_come_by_is_not_taken_over(tmp_path: Path) -> None:
    moved = again(tmp_path, {SCRIPT: CONDITIONS})
    by_hand = {row.key: row for row in moved.rows if row.file == SCRIPT and row.fate == "by hand"}
    assert set(by_hand) == {"B", "C", "D", "D2", "E", "F", "G", "H", "I"}
    expected = (
        'only under a condition: if [ "$(hostname)" = "fi" ]; then  # fi (line 2); write it there if it always holds'
    )
    assert (by_hand["B"].line, by_hand["B"].why) == (3, expected)
    assert "only under a condition: case $B in (line 4)" in by_hand["C"].why
    assert yaml.safe_load(moved.files[NEEDS])["cases"]["training/bert"]["variables"] == {"A": "1", "J": "1", "L": "if"}


def test_the_rules_hold_under_a_condition_too(tmp_path: Path) -> None:
    moved = again(tmp_path, {SCRIPT: "if true; then\nexport LD_PRELOAD=a\nexport B=$A\nfi\n"})
    assert [rows(moved, SCRIPT, key)[0].fate for key in ("LD_PRELOAD", "B")] == ["illegal", "refused"]


@pytest.mark.parametrize("script", ["fi\ndone\n}\n)\nesac\nexport A=1\n", "if\n" * 3 + "export A=1\n"])
def test_a_script_that_no_shell_takes_is_read(script: str) -> None:
    assert [line.name for line in exports(script) if line.value == "1"] == ["A"]


@pytest.mark.parametrize(
    "script, expected",
    [
        ("export A=1 B=$(nproc) C=3", [("A", "1"), ("B", None), ("C", None)]),
        ("export A=1; export B='2; 3';  # and; so on", [("A", "1"), ("B", "2; 3")]),
        ("export A=1; if x; then export B=2; fi", [("A", "1"), ("if x; then export B", None)]),
        ("if x; then echo; export B=2; fi", [("if x; then echo; export B", None)]),
        ("export A=1 B", [("A", "1"), ("B", None)]),
    ],
)
def test_no_variable_of_a_line_is_lost(script: str, expected: list[tuple[str, str | None]]) -> None:
    assert [(line.name, line.value) for line in exports(script)] == expected


def test_of_a_variable_that_is_set_twice_the_last_counts(tmp_path: Path) -> None:
    text = "export W=1 W=2\nexport V=1\nexport V=3\nif true; then\nexport V=4\nfi\n"
    moved = again(tmp_path, {SCRIPT: text})
    assert [(row.value, row.fate) for row in rows(moved, SCRIPT, "W")] == [("1", "redundant"), ("2", "taken over")]
    assert [row.fate for row in rows(moved, SCRIPT, "V")] == ["redundant", "taken over", "by hand"]
    assert rows(moved, SCRIPT, "V")[0].why == "is set again in line 3"
    assert yaml.safe_load(moved.files[NEEDS])["cases"]["training/bert"]["variables"] == {"W": "2", "V": "3"}


def test_a_variable_that_is_unset_later_is_not_taken_over(tmp_path: Path) -> None:
    moved = again(tmp_path, {SCRIPT: "export V=1 W=2\nunset V X\nexport Y=3\nunset Y\nexport Y=4\n"})
    assert [row.why for row in rows(moved, SCRIPT, "V")] == ["is unset in line 2"]
    assert rows(moved, SCRIPT, "unset V X")[0].fate == "refused"
    assert yaml.safe_load(moved.files[NEEDS])["cases"]["training/bert"]["variables"] == {"W": "2", "Y": "4"}


def test_two_scripts_of_one_case_that_differ_are_told(tmp_path: Path) -> None:
    other = "training/acme/bert-pytorch_2/config/environment_variables.sh"
    moved = again(tmp_path, {other: "export ACME_FUSE=2\nexport ACME_CACHE='8 GiB'\n"})
    assert [rows(moved, other, key)[0].fate for key in ("ACME_FUSE", "ACME_CACHE")] == ["illegal", "taken over"]
    assert rows(moved, other, "ACME_FUSE")[0].why == "another script of this case says '1'"


def test_a_second_backend_is_told(tmp_path: Path) -> None:
    file = "training/acme/resnet50-pytorch/config/config_Z100x1x8.py"
    moved = again(tmp_path, {file: 'dist_backend = "yccl"\n'})
    (found,) = rows(moved, file, "dist_backend")
    assert found.fate == "illegal" and f"{BERT}/config_common.py says 'xccl': a vendor has one backend" in found.why
    assert 'distributed_backend = "xccl"' in moved.files["vendors/acme/__init__.py"]


def test_what_is_no_backends_name_is_not_taken_over(tmp_path: Path) -> None:
    common = f"{BERT}/config_common.py"
    moved = again(tmp_path, {common: FILES[common].replace("xccl", "x ccl")})
    assert rows(moved, common, "dist_backend")[0].why == "is not a backend's name"
    assert 'distributed_backend = "gloo"' in moved.files["vendors/acme/__init__.py"]


def test_a_list_of_what_may_be_changed_that_is_none_has_one_fate(tmp_path: Path) -> None:
    file = f"{BASE}/mutable_params.py"
    moved = again(tmp_path, {file: "mutable_params = 'vendor'\n"})
    assert [row.fate for row in moved.rows if row.file == file] == ["refused"]
