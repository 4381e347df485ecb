"""cloud.yaml: every problem at once, before anything is asked; and what the original's configuration becomes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from proofmark.errors import ConfigurationError, UsageError
from proofmark.launch.launchers.modelarts.cloud_file import Cloud, load_cloud, refuse_secrets
from proofmark.launch.launchers.modelarts.credentials import Credentials, find_credentials
from proofmark.launch.launchers.modelarts.original import main, read_original

SOUND: dict[str, Any] = {
    "region": "cn-north-4",
    "code_dir": "/bench/code/",
    "out_url": "/bench/runs/",
    "image": "team/proofmark:1",
    "flavor": "modelarts.kat1.8xlarge",
}


def load(tmp_path: Path, **changes: Any) -> Cloud:
    path = tmp_path / "cloud.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in {**SOUND, **changes}.items() if value is not None}))
    return load_cloud(path)


def refused(tmp_path: Path, **changes: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **changes)
    return str(caught.value)


def test_a_sound_one(tmp_path: Path) -> None:
    cloud = load(tmp_path, nodes=4, data_url="/bench/imagenet/", boot_file=None)
    assert cloud.cards_of_node == 8 and cloud.auto_stop == 24
    assert load(tmp_path, flavor="modelarts.kat1.2xlarge").cards_of_node == 2
    assert load(tmp_path, flavor="modelarts.vm.cpu.2u").cards_of_node == 0
    assert load(tmp_path, flavor="modelarts.vm.cpu.2u", cards=1).cards_of_node == 1
    assert Cloud.recalled(cloud.model_dump(mode="json")) == cloud
    with pytest.raises(UsageError, match=r"service\.settings: region"):
        Cloud.recalled({})


def test_all_problems_at_once(tmp_path: Path) -> None:
    message = refused(
        tmp_path,
        region="cn north",
        code_dir="/bench/code",
        boot_file="/bench/other/boot.py",
        out_url="bench/runs/",
        engine={"name": "PyTorch", "version": "2.1"},
        nodes=0,
        auto_stop=0,
        environment={"MA_NUM_GPUS": "8", "A": "$HOME"},
        unknown=1,
    )
    lines = message.splitlines()
    keys = ["region", "code_dir", "out_url", "engine", "nodes", "auto_stop", "environment", "unknown"]
    for key in keys:
        assert any(f"cloud.yaml: {key}: " in line for line in lines), (key, message)
    assert (
        "must end in a slash" in message
        and "MA_NUM_GPUS: the platform's own" in message
        and "A: the platform takes no $" in message
    )


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"boot_file": "/bench/other/first.py"}, "is not within code_dir, /bench/code/"),
        ({"boot_file": "/bench/code/../first.py"}, "is not a Python file directly in code_dir"),
        ({"boot_file": "/bench/code/first.py"}, "boot_file: no such file"),
        ({"image": None}, "expected either `image` or `engine: {name, version}`"),
        ({"flavor": "modelarts.kat1.2xlarge", "nodes": 2}, "which has 2 of a machine's 8 cards"),
        ({"aggregate": "per_server_mean"}, "the number of independent servers"),
        ({"servers": 2}, "is only for `aggregate: per_server_mean`"),
        ({"endpoint": "http://modelarts.example.org"}, "it must be https://"),
        ({"endpoint": "modelarts.example.org"}, "expected https://host, without a path"),
        ({"ca_file": "none.pem"}, "ca_file: no such file"),
        ({"environment": {f"V{number}": "" for number in range(101)}}, "the platform takes 100"),
        ({"poll": [10, 1]}, "expected the shorter one first"),
        ({"pool_id": "a b"}, "'a b' is not a valid id"),
        ({"out_url": "/my.bench/runs/"}, "bucket 'my.bench' has a dot"),
        ({"image": "team/proofmark; rm"}, "has characters that such a name cannot have"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert words in refused(tmp_path, **changes)


@pytest.mark.parametrize(
    "changes, key",
    [
        ({"secret_access_key": "s3cr3t-value"}, "secret_access_key"),
        ({"sk": "s3cr3t-value"}, "sk"),
        ({"environment": {"HUAWEICLOUD_SDK_SK": "s3cr3t-value"}}, "environment.HUAWEICLOUD_SDK_SK"),
        ({"region": {"security_token": "s3cr3t-value"}}, "region.security_token"),
        ({"regions": [{"accessKey": "s3cr3t-value"}]}, "regions.0.accessKey"),
        ({"secretAccessKey": "s3cr3t-value"}, "secretAccessKey"),
        *(
            ({"environment": {name: "s3cr3t-value"}}, f"environment.{name}")
            for name in (
                "WANDB_API_KEY",
                "API_KEY",
                "PRIVATE_KEY",
                "PASSPHRASE",
                "MYSQL_PWD",
                "OPENAI_APIKEY",
                "DB_PASS",
            )
        ),
        ({"environment": {"http_proxy": "http://me:s3cr3t-value@proxy:8080"}}, "environment.http_proxy"),
        ({"endpoint": "https://me:s3cr3t-value@modelarts.example.org"}, "endpoint"),
    ],
)
def test_secrets_are_refused_and_not_shown(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    message = refused(tmp_path, **changes, out_url="/bench/runs")
    assert f"cloud.yaml: {key}: a secret does not belong in this file" in message and "s3cr3t-value" not in message
    assert "out_url" in message, "other problems are told with it"


def test_names_that_are_no_secrets(tmp_path: Path) -> None:
    names = ("TOKENIZERS_PARALLELISM", "MONKEY", "NCCL_IB_PKEY", "KEYBOARD", "BYPASS", "http_proxy")
    assert load(tmp_path, environment=dict.fromkeys(names, "http://proxy:8080/a@b"), keyring="lab")


@pytest.mark.parametrize("held", ["AK-of-mine", "sk-of-mine", "token-of-mine"])
def test_the_users_own_key_in_a_value_is_refused(tmp_path: Path, held: str) -> None:
    """Whatever its name is."""
    who = Credentials("AK-of-mine", "sk-of-mine", "token-of-mine")
    cloud = load(tmp_path, environment={"SETTINGS": "plain"})
    refuse_secrets(cloud, who.is_in)
    for changes, key in (
        ({"environment": {"SETTINGS": f"a={held};"}}, "environment.SETTINGS"),
        ({"flavor": held}, "flavor"),
    ):
        with pytest.raises(UsageError, match=f"the cloud file: {key}: a secret does not belong") as caught:
            refuse_secrets(load(tmp_path, **changes), who.is_in)
        assert held not in str(caught.value)


def test_secrets_are_hidden_however_they_are_written() -> None:
    who = Credentials("AK-of-mine", "sk/of+mine=\u00fc", "token")
    for held in ("sk/of+mine=\u00fc", "sk%2Fof%2Bmine%3D%C3%BC", "sk%2fof+mine%3d%c3%bc", "%73k/of+mine=\u00fc"):
        assert who.is_in(f"a {held}") and who.hidden(f"GET /?sign={held}&x=token") == "GET /?sign=***&x=***"
    assert who.is_in("AK%2Dof-mine") and who.hidden("sk/of") == "sk/of"


def test_where_secrets_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AK", "SK", "SECURITY_TOKEN", "PROJECT_ID", "CREDENTIALS_FILE"):
        monkeypatch.delenv(f"HUAWEICLOUD_SDK_{name}", raising=False)
    with pytest.raises(UsageError, match=r"no access key: looked for HUAWEICLOUD_SDK_AK and .*\[basic\] in"):
        find_credentials(None)
    folder = tmp_path / ".huaweicloud"
    folder.mkdir()
    (folder / "credentials").write_text("[basic]\nak = A\nsk = s%cret\nproject_id = p\n")
    found = find_credentials(None)
    assert (found.ak, found.sk, found.project) == ("A", "s%cret", "p") and "s%cret" not in repr(found)
    (folder / "credentials").write_text("[basic\nsk = s%cret\n")
    with pytest.raises(UsageError) as caught:
        find_credentials(None)
    assert "MissingSectionHeaderError" in str(caught.value) and "s%cret" not in str(caught.value)
    monkeypatch.setenv("HUAWEICLOUD_SDK_AK", "B")
    monkeypatch.setenv("HUAWEICLOUD_SDK_SK", "t")
    assert find_credentials(None).ak == "B", "the environment comes first"


ORIGINAL = """
from easydict import EasyDict as ed
access_config = ed({
    # as its documentation has it
    'access_key': 'AKVALUE', 'secret_access_key': 's3cr3t-value', 'server': 'obs.cn-central-221.ovaijisuan.com',
    'region_name': 'cn-central-221', 'project_id': '0a1b',
    'iam_endpoint': 'https://iam.example.org', 'obs_endpoint': 'obs.example.org',
    'modelarts_endpoint': 'https://modelarts.example.org',
})
session_config = ed({
    'hyperparameters': [{'label': 'epoch_size', 'value': '90'}],
    'inputs': '/bench/imagenet/', 'code_dir': '/bench/code/resnet', 'boot_file': '/bench/code/resnet/train.py',
    'job_name': 'aisbench-debug', 'framework_type': 'Ascend-Powered-Engine', 'framework_version': 'MindSpore-1.3',
    'pool_id': None, 'train_instance_type': 'modelarts.kat1.8xlarge', 'train_instance_count': 2,
    'nas_type': None, 'out_base_url': '/bench/out', 'job_description_prefix': 'lab',
})
"""


def test_the_originals_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, cloud = tmp_path / "modelarts_config.py", tmp_path / "cloud.yaml"
    original.write_text(ORIGINAL + "open('/nowhere/at/all', 'w')\n")
    assert main([str(original), str(cloud)]) == 0, "nothing of it is run"
    output = capsys.readouterr().out
    assert "secret_access_key: left out" in output and "boot_file: left out" in output
    assert "s3cr3t-value" not in output + cloud.read_text() and "AKVALUE" not in cloud.read_text()
    read = load_cloud(cloud)
    assert (read.region, read.nodes, read.flavor) == ("cn-central-221", 2, "modelarts.kat1.8xlarge")
    assert (read.code_dir, read.out_url, read.data_url) == ("/bench/code/resnet/", "/bench/out/", "/bench/imagenet/")
    assert (read.endpoint, read.obs_endpoint) == ("https://modelarts.example.org", "https://obs.example.org")
    assert read.engine is not None and read.engine.version == "MindSpore-1.3"
    assert main([str(original), str(cloud)]) == 4 and "exists" in capsys.readouterr().err
    cloud.unlink()
    assert main([str(original), str(cloud), "--single-server-mode"]) == 0
    assert (load_cloud(cloud).servers, load_cloud(cloud).nodes) == (2, 1)
    original.write_text(ORIGINAL.replace("'out_base_url': '/bench/out', ", ""))
    cloud.unlink()
    capsys.readouterr()
    assert main([str(original), str(cloud)]) == 4
    said = capsys.readouterr()
    assert f"{cloud} is written" in said.out and "boot_file: left out" in said.out and "out_url" in said.err


@pytest.mark.parametrize(
    "text, expected",
    [
        ("access_config = ed({'region_name': f()})", "access_config.region_name: expected a plain value"),
        ("access_config = 3", "access_config: expected a dictionary"),
        ("access_config = {", "cannot be read as Python"),
        ("x = 1", "expected access_config and session_config_v2 or session_config"),
        (ORIGINAL.replace("/bench/code/resnet/train.py", "/bench/train.py"), "is not within /bench/code/resnet"),
    ],
)
def test_originals_that_are_none(tmp_path: Path, text: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    original = tmp_path / "modelarts_config.py"
    original.write_text(text)
    assert main([str(original), str(tmp_path / "cloud.yaml")]) == 4
    errors = capsys.readouterr().err
    assert expected in errors and errors.count("\n") == 1 and not (tmp_path / "cloud.yaml").exists()


def test_the_second_version_of_the_session_wins(tmp_path: Path) -> None:
    path = tmp_path / "c.py"
    path.write_text("session_config_v2 = dict(a=1)\nsession_config = {'a': 2}\n")
    assert read_original(path) == {"session_config_v2": {"a": 1}, "session_config": {"a": 2}}


PAGE = (Path(__file__).parents[2] / "docs" / "cloud.md").read_text(encoding="utf-8")


def test_the_page(tmp_path: Path) -> None:
    """Its files are read by the product, and every key is on it."""
    texts = re.findall(r"^```yaml\n# cloud\.yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert texts
    for text in texts:
        (tmp_path / "cloud.yaml").write_text(text)
        load_cloud(tmp_path / "cloud.yaml")
    table = PAGE[PAGE.index("## Every key") :]
    assert not [key for key in Cluster_keys() if f"`{key}`" not in table]


def Cluster_keys() -> list[str]:
    return list(Cloud.model_fields)
