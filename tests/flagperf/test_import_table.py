"""What the import's table says is true: the line of each key, each reason, and that no file is left out of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proofmark.flagperf.adaptation.bring import bring
from proofmark.flagperf.adaptation.fates import FATES, MutableCheck, Row, as_markdown, work_last
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.rules.yaml.key_lines import lines_of
from tests.flagperf.tree import FILES, write

ROOT = Path(__file__).parents[2]
HOST, INFERENCE = "inference/configs/host.yaml", "inference/configs"
TEST_CONF = "training/run_benchmarks/config/test_conf.py"
VIT, OWN = f"{INFERENCE}/vit_l_16", f"{INFERENCE}/vit_l_16/vendor_config/acme_configurations.yaml"


def again(folder: Path, files: dict[str, str]) -> Moved:
    """The tree with other files beside or in place of its own."""
    return bring(write(folder / "FlagPerf", FILES | files), "acme", folder / "out", ROOT)


def rows(moved: Moved, file: str, key: str = "") -> list[Row]:
    return [row for row in moved.rows if row.file == file and row.key == key]


def test_each_key_of_a_yaml_file_is_told_at_its_line(tmp_path: Path) -> None:
    gone = f"{INFERENCE}/gone/vendor_config/acme_configurations.yaml"
    files = {
        OWN: '# forge\'s\ncompiler: forge\n\nforge_tmp_path: /tmp/forge\n"repeat": 5\n',
        f"{VIT}/parameters.yaml": "\n\nweights: vit.pth\n",
        gone: "# a case that is not here\ncompiler: forge\n",
    }
    moved = again(tmp_path, files)
    for file, text in {
        **files,
        HOST: FILES[HOST],
        f"{VIT}/configurations.yaml": FILES[f"{VIT}/configurations.yaml"],
    }.items():
        for row in moved.rows:
            if row.file == file and row.key:
                line = text.splitlines()[row.line - 1]
                assert row.line and line.strip().strip('"').startswith(row.key.removeprefix("CASES: ")), row
    assert rows(moved, OWN, "repeat")[0].line == 5
    assert rows(moved, HOST, "CASES: bertLarge:pytorch_1.13")[0].line == 17


def test_what_is_left_to_do_ends_the_terminals_lines_and_begins_the_table() -> None:
    told = [Row(f"{number}.py", 1, fate, None, fate) for number in range(2) for fate in reversed(FATES)]
    last = work_last(told)
    assert [(row.fate, row.file) for row in last] == [(fate, f"{number}.py") for fate in FATES for number in range(2)]
    table = as_markdown(told, MutableCheck(0, 0, 0, 0), "title").partition("| file |")[2]
    places = [table.index(f"| {fate} |") for fate in reversed(FATES)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "text, within, lines",
    [
        ("a: 1\n\n'b': {c: 1}\n", "", {"a": 1, "b": 3}),
        ("a: 1\nb:\n  c.d: 1\n  e: 2\n", "b", {"c.d": 3, "e": 4}),
        ("a: 1\n", "b", {}),
        ("a: 1\n", "a", {}),
        ("- a\n", "", {}),
        ("a: [\n", "", {}),
        ("", "", {}),
    ],
)
def test_lines_of_a_mapping(text: str, within: str, lines: dict[str, int]) -> None:
    assert lines_of(text, within) == lines


def test_a_switch_that_our_case_has_too_is_compared_with_it(tmp_path: Path) -> None:
    """And not with the setting that the switch stands for where there is none."""
    path = f"{INFERENCE}/resnet50/configurations.yaml"
    moved = again(tmp_path, {path: "batch_size: 256\nfp16: true\n"})
    assert [(row.fate, row.why) for row in rows(moved, path, "fp16")] == [
        ("redundant", "the case's own, the same here")
    ]


def test_what_the_task_says_already_is_not_told_as_a_breach(tmp_path: Path) -> None:
    """A parameter of the task that is the same here may stay out of a vendor's file; another value breaks the rule."""
    scale = "training/acme/bert-pytorch/config/config_Z100x1x8.py"
    lines = (
        "max_samples_termination = 14000000\nwarmup_proportion = 0.02\ntarget_mlm_accuracy = 0.71\nhidden_size = 1024\n"
    )
    moved = again(tmp_path, {scale: lines, OWN: "image_size: 224\nflops: 6.16e10\n"})
    fates = {row.key: row.fate for row in moved.rows if row.file in (scale, OWN)}
    same = ("max_samples_termination", "target_mlm_accuracy", "hidden_size", "image_size")
    assert fates == dict.fromkeys(same, "redundant") | dict.fromkeys(("warmup_proportion", "flops"), "illegal")
    assert rows(moved, scale, "target_mlm_accuracy")[0].why == "the case's own, the same here (target)"


def test_of_cases_that_are_not_here_no_name_is_called_near_that_is_not_like_it(tmp_path: Path) -> None:
    moved = again(
        tmp_path, {f"{INFERENCE}/{name}/vendor_config/acme_configurations.yaml": "" for name in ("bart", "zzz")}
    )
    why = {name: rows(moved, f"{INFERENCE}/{name}")[0].why for name in ("bart", "zzz")}
    assert why["bart"] == "there is no such case in inference; the nearest is 'bert'"
    assert why["zzz"].startswith("there is no such case in inference; it has bert, ")


def test_an_engine_whose_file_no_module_may_be_called_is_told_so(tmp_path: Path) -> None:
    engine = "inference/inference_engine/acme/forge"
    moved = again(tmp_path, {f"{engine}-2.py": FILES[f"{engine}.py"], f"{engine}_2.py": "x = 1\n"})
    assert "its name cannot be a module's" in rows(moved, f"{engine}-2.py")[0].why
    assert rows(moved, f"{engine}_2.py")[0].why == "defines no InferModel that can be called"


def test_what_two_lists_say_differently_is_told_with_what_counts(tmp_path: Path) -> None:
    moved = again(tmp_path, {HOST: FILES[HOST].replace('SHM_SIZE: "32G"', 'SHM_SIZE: "64G"')})
    (found,) = rows(moved, HOST, "SHM_SIZE")
    assert (found.fate, found.why) == (
        "redundant",
        "training/run_benchmarks/config/test_conf.py says '32G', which is what counts",
    )


def test_a_variable_by_which_an_engine_lowers_its_precision_is_told(tmp_path: Path) -> None:
    """The engine is taken over as it is: what it does in silence is the vendor's to declare."""
    engine = "inference/inference_engine/acme/forge.py"
    lines = (
        '["FORGE_LOG"] = "1"',
        '["FORGE_USE_FP16"] = "1"',
        '[X] = os.environ["Y_FP16"] = Z',
        '["\\ud800_FP16"] = "1"',
    )
    code = "import os\n" + "".join(f"os.environ{line}\n" for line in lines)
    moved = again(tmp_path, {engine: code + FILES[engine]})
    found = [row for row in moved.rows if row.file == engine and row.key]
    assert [(row.key, row.line, row.fate, row.here) for row in found] == [
        ("FORGE_USE_FP16", 3, "by hand", "vendors/acme/forge.py")
    ]
    assert "names the precision FP16, which nothing would tell: declare it" in found[0].why


def test_each_file_of_the_vendors_is_in_the_table(tmp_path: Path) -> None:
    """But for documents, and those that were read and have no key of their own."""
    unread = (
        "training/acme/plot.py",
        "training/acme/bert-pytorch/config/layers/fused.py",
        "training/acme/docker_image/pytorch/Dockerfile.source",
        "inference/docker_images/acme/pytorch/pip.conf",
        "inference/benchmarks/gone/pytorch/acme_requirements.txt",
    )
    listed = (
        "training/acme/gone-pytorch/config/net.sh",
        "training/acme/bert-pytorch/config/config_Z100x2x8.py",
        "training/acme/bert-pytorch/config/shared.py",
        "training/acme/glm-pytorch/config/requirements.txt",
        "training/acme/README.md",
    )
    files = dict.fromkeys((*unread, *listed), "# nothing\n")
    moved = again(tmp_path, files | {listed[1]: "from shared import *\n"})
    found = {row.file for row in moved.rows if row.why.startswith("nothing here reads it")}
    assert found == set(unread)
    assert {row.fate for file in unread for row in rows(moved, file)} == {"unknown"}


def test_a_mount_of_a_driver_is_taken_over_and_of_another_the_rule_is_told(tmp_path: Path) -> None:
    """What a container is given by -v; our own rule for mounts decides."""
    options = " -v /opt/acme:/opt/acme --volume=/usr/lib/acme:/usr/lib/acme:ro -v /data:/data -v /opt/a:/opt/a:rw"
    moved = again(tmp_path, {TEST_CONF: FILES[TEST_CONF].replace(" --device /dev/acme0 -v /data:/data", options)})
    written = yaml.safe_load(moved.files["vendors/acme/container.yaml"])
    assert written["mounts"] == ["/opt/acme:/opt/acme:ro", "/usr/lib/acme:/usr/lib/acme:ro"]
    assert "vendors/acme/isolation.yaml" not in moved.files
    by_option = {row.value: row for row in rows(moved, TEST_CONF, "ACCE_CONTAINER_OPT")}
    assert [row.fate for row in by_option.values()] == ["renamed", "renamed", "illegal", "illegal"]
    assert by_option["-v=/opt/acme:/opt/acme"].here.endswith("container.yaml: mounts: /opt/acme:/opt/acme:ro")
    assert "the user may add other paths in cluster.yaml, under mounts" in by_option["-v=/data:/data"].why
    assert "write /opt/a:/opt/a:ro" in by_option["-v=/opt/a:/opt/a:rw"].why
