"""The original's config.yml: what becomes of each of its keys, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proofmark.automl.config_yml import read_config_yml
from proofmark.errors import ConfigurationError
from suites.automl.from_config_yml import arguments, fates
from tests.automl.searches import ROOT, session

ORIGINAL = r"""
authorName: default
experimentName: example
trialConcurrency: 1
maxExecDuration: 24h
maxTrialNum: 6000
#choice: local, remote, pai
trainingServicePlatform: local
useAnnotation: false
tuner:
  builtinTunerName: NetworkMorphism
  classArgs:
    optimize_mode: maximize
    task: cv
    input_width: 224
    input_channel: 3
    n_output_node: 1000
trial:
    command: CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
             srun -N 1 -n 1 --ntasks-per-node=1 --cpus-per-task=30 \
             python3 imagenet_train.py \
             --slave 1 \
             --ip 127.0.0.1 \
             --batch_size 448 \
             --epochs 60 \
             --initial_lr 2e-1 \
             --final_lr 0 \
             --train_data_dir /gdata/train/ \
             --val_data_dir /gdata/val/ \
             --warmup_1 15 \
             --warmup_2 31 \
             --warmup_3 45 \
             --num_parallel_calls 48

    codeDir: .
    gpuNum: 0
"""
SIXTEEN = (
    "trialConcurrency maxExecDuration CUDA_VISIBLE_DEVICES --cpus-per-task --slave --ip --batch_size --epochs "
    "--initial_lr --final_lr --train_data_dir --val_data_dir --warmup_1 --warmup_2 --warmup_3 --num_parallel_calls"
).split()


def written(folder: Path, text: str) -> Path:
    path = folder / "config.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_of_the_sixteen_parameters_has_its_fate(tmp_path: Path) -> None:
    read = read_config_yml(written(tmp_path, ORIGINAL))
    fates = {fate.key: fate for fate in read.fates}
    assert set(SIXTEEN) <= fates.keys()
    assert not [fate for fate in read.fates if fate.came == "unknown"]
    assert str(fates["maxExecDuration"]) == "maxExecDuration 24h: taken over as max_seconds=86400.0"
    assert str(fates["--ip"]) == "--ip 127.0.0.1: not needed: there is no master to reach: no port listens"
    assert read.data_dir == "/gdata"
    assert read.settings["warmup_2"] == 31 and read.settings["learning_rate"] == 0.2


def test_what_the_profile_has_already_is_no_argument(tmp_path: Path) -> None:
    read = read_config_yml(written(tmp_path, ORIGINAL))
    assert arguments(read, "config.yml") == [
        "suites/automl",
        "--profile=standard",
        "--data-dir=/gdata",
        "--max-duration=86400.0",
        "--max-trials=6000",
        "--set=learning_rate=0.2",
        "--set=warmup_2=31",
    ]


def test_what_is_no_argument_says_that_a_vendors_file_may_have_another_value(tmp_path: Path) -> None:
    lines = list(fates(read_config_yml(written(tmp_path, ORIGINAL))))
    assert "--warmup_2 31: taken over as warmup_2=31" in lines
    own = "--epochs 60: taken over as epochs=60, which the profile has: add --set=epochs=60 where a vendor's file has"
    assert f"{own} another" in lines


def test_a_nodes_threads_are_not_taken_for_each_devices_loaders(tmp_path: Path) -> None:
    """Of which each of eight trials has two, and as many while the next ones make themselves ready."""
    read = read_config_yml(written(tmp_path, ORIGINAL))
    (fate,) = (str(fate) for fate in read.fates if fate.key == "--num_parallel_calls")
    assert fate.startswith("--num_parallel_calls 48: yours to say: num_workers is of each loader")
    assert "num_workers" not in read.settings


def test_unknown_keys_are_named_and_folders_of_other_names_are_not_guessed(tmp_path: Path) -> None:
    text = ORIGINAL.replace("/gdata/val/", "/elsewhere/val/").replace("authorName", "autorName")
    read = read_config_yml(written(tmp_path, text.replace("--ip", "--pi")))
    lines = [str(fate) for fate in read.fates]
    assert read.data_dir is None
    assert "autorName default: unknown, so it is ignored" in lines
    assert "--pi 127.0.0.1: unknown, so it is ignored" in lines
    assert any(line.startswith("--val_data_dir /elsewhere/val/: yours to say: give --data-dir") for line in lines)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (("24h", "a day"), "maxExecDuration: expected a number with s, m, h or d, such as 12h, found 'a day'"),
        (("6000", "many"), "maxTrialNum: expected a whole number, found 'many'"),
        (("2e-1", "$(touch /tmp/x)"), "--initial_lr: expected a number"),
        (("2e-1", "nan"), "--initial_lr: expected a number, found 'nan'"),
        (("--warmup_1 15", "--epoch 61"), "--epoch: sets epochs a second time"),
        (("--warmup_1 15", "--warmup_2 15"), "--warmup_2: is given more than once"),
        (("task: cv", "task: [cv]"), "tuner.classArgs.task: expected a single value, found a list"),
        (("--slave 1", "--slave '1"), "trial.command: cannot be read: No closing quotation"),
        (("authorName: default", "authorName: !!python/object:os.system x"), "not valid YAML"),
        (("authorName: default", "authorName: {{"), "not valid YAML"),
        (("authorName: default", "authorName: " + "x" * (1 << 20)), "larger than 1 MiB"),
    ],
)
def test_what_is_no_value_is_refused_in_a_line(tmp_path: Path, wrong: tuple[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_config_yml(written(tmp_path, ORIGINAL.replace(*wrong)))
    assert any(reason in str(problem) for problem in refused.value.problems), refused.value
    assert all("\n" not in str(problem) for problem in refused.value.problems)


def test_a_word_that_comes_again_and_again_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_config_yml(written(tmp_path, ORIGINAL.replace("--warmup_1 15", "- " * 500)))
    assert [problem.key for problem in caught.value.problems].count("-") == 1


def test_all_problems_are_told_at_once_and_a_setting_is_held_to_its_bounds(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_config_yml(written(tmp_path, ORIGINAL.replace("24h", "0").replace("6000", "0.5")))
    assert len(refused.value.problems) == 2
    read = read_config_yml(written(tmp_path, ORIGINAL.replace("--epochs 60", "--epochs 0")))
    with pytest.raises(ConfigurationError, match=r"epochs: expected at least 1, found 0"):
        arguments(read, "config.yml")


def test_the_command_writes_arguments_that_a_session_takes(tmp_path: Path) -> None:
    def run(text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "suites.automl.from_config_yml", str(written(tmp_path, text))]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)

    done = run(ORIGINAL)
    assert done.returncode == 0 and len(done.stderr.splitlines()) >= len(SIXTEEN), done.stderr
    (tmp_path / "arguments").write_text(done.stdout, encoding="utf-8")
    with session(f"@{tmp_path / 'arguments'}", "--collect-only", "-q") as running:
        collected, _ = running.communicate(timeout=600)
    assert running.returncode == 0 and "test_score" in collected, collected
    refused = run(ORIGINAL.replace("24h", "soon").replace("6000", "-1"))
    assert refused.returncode == 4 and len(refused.stderr.splitlines()) == 2 and not refused.stdout, refused.stderr


@pytest.mark.parametrize("folder", ["/x\n-pevil\n--rootdir=/tmp", "/x\t"])
def test_a_value_of_several_lines_is_no_argument(tmp_path: Path, folder: str) -> None:
    """Each line of what is printed would be one of its own."""
    command = f"train.py --train_data_dir '{folder}/train' --val_data_dir '{folder}/val'"
    path = tmp_path / "config.yml"
    path.write_text(json.dumps({"trial": {"command": command}}), encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        read_config_yml(path)
    texts = [str(problem) for problem in refused.value.problems]
    assert len(texts) == 2 and all("expected a text of one line" in each and each.isprintable() for each in texts)
