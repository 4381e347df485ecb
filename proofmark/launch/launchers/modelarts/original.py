"""From the original's `modelarts_config.py` to a cloud.yaml, its secrets left out:

`python -m proofmark.launch.launchers.modelarts.original modelarts_config.py cloud.yaml`
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from proofmark.errors import ConfigurationError, Problem, UsageError
from proofmark.launch.launchers.modelarts.cloud_file import load_cloud
from proofmark.process.command_line import Parser, command, reporting_errors

ACCESS, SESSIONS = "access_config", ("session_config_v2", "session_config")
LARGEST = 1 << 20

LEFT_OUT = {
    "access_key": "a secret: set HUAWEICLOUD_SDK_AK in the environment",
    "secret_access_key": "a secret: set HUAWEICLOUD_SDK_SK in the environment",
    "hyperparameters": "what a case may have changed is set by --set, or in the vendor's configs/",
    "parameters": "what a case may have changed is set by --set, or in the vendor's configs/",
    "boot_file": "the original's own program: Proofmark's worker is started in its place",
    "job_name": "each job is given a name of its own",
    "iam_endpoint": "nobody is asked there: the project's id is in the file",
    "nas_type": "no shared disk is mounted",
    "nas_share_addr": "no shared disk is mounted",
    "nas_mount_path": "no shared disk is mounted",
}


def read_original(path: Path) -> dict[str, dict[str, Any]]:
    """The literal fields of its configuration objects, by the objects' names. Nothing of it is run.

    Raises:
        UsageError: it is no Python file, or a field is computed.
    """
    try:
        text = path.read_bytes()[: LARGEST + 1].decode("utf-8")
        tree = ast.parse(text[:LARGEST])
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = getattr(error, "strerror", None) or type(error).__name__
        raise UsageError(f"{path}: cannot be read as Python: {what}") from None
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in (ACCESS, *SESSIONS):
                found[name] = _fields(node.value, f"{path}: {name}")
    return found


def _fields(node: ast.expr, where: str) -> dict[str, Any]:
    """The fields of `EasyDict({...})`, `EasyDict(key=...)` or a plain dictionary."""
    keywords: dict[str, ast.expr] = {}
    if isinstance(node, ast.Call):
        keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        node = node.args[0] if node.args else ast.Dict([], [])
    if not isinstance(node, ast.Dict):
        raise UsageError(f"{where}: expected a dictionary")
    pairs = {str(_literal(key, where)): value for key, value in zip(node.keys, node.values, strict=True)}
    return {key: _literal(value, f"{where}.{key}") for key, value in {**pairs, **keywords}.items()}


def _literal(node: ast.expr | None, where: str) -> Any:
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise UsageError(f"{where}: expected a plain value; what is computed is not read") from None


def converted(
    original: Mapping[str, Mapping[str, Any]], origin: str, single_server: bool
) -> tuple[dict[str, Any], list[str]]:
    """The keys of cloud.yaml, and what was left out and why.

    Raises:
        ConfigurationError: there is none of the objects, or its boot file is not within its code.
    """
    session_name = next((name for name in SESSIONS if name in original), None)
    if session_name is None or ACCESS not in original:
        what = f"expected {ACCESS} and {' or '.join(SESSIONS)}"
        raise ConfigurationError([Problem(origin, "", what)])
    access, session = original[ACCESS], original[session_name]
    code, boot = session.get("code_dir"), session.get("boot_file")
    if code and boot and not str(boot).startswith(str(code)):
        raise ConfigurationError([Problem(origin, f"{session_name}.boot_file", f"{boot} is not within {code}")])
    nodes = session.get("train_instance_count")
    private = all(access.get(f"{name}_endpoint") for name in ("iam", "obs", "modelarts"))
    framework = session.get("framework_type"), session.get("framework_version")
    values = {
        "region": access.get("region_name"),
        "project_id": access.get("project_id"),
        "endpoint": _endpoint(access.get("modelarts_endpoint")) if private else None,
        "obs_endpoint": _endpoint(access.get("obs_endpoint") if private else access.get("server")),
        "code_dir": _folder(code),
        "out_url": _folder(session.get("out_base_url")),
        "data_url": _folder(session.get("inputs")),
        "engine": {"name": framework[0], "version": framework[1]} if all(framework) else None,
        "flavor": session.get("train_instance_type"),
        "nodes": 1 if single_server else nodes,
        "pool_id": session.get("pool_id"),
        "aggregate": "per_server_mean" if single_server else None,
        "servers": nodes if single_server else None,
        "description": session.get("job_description_prefix"),
    }
    left = [f"{key}: left out: {LEFT_OUT[key]}" for key in {**access, **session} if key in LEFT_OUT]
    return {key: value for key, value in values.items() if value not in (None, "")}, left


def _endpoint(host: Any) -> str | None:
    return None if not host else str(host) if "://" in str(host) else f"https://{host}"


def _folder(path: Any) -> str | None:
    if not path:
        return None
    return "/" + str(path).removeprefix("obs:/").removeprefix("s3:/").strip("/") + "/"


@reporting_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code, 4 for what can't be read."""
    parser = Parser(prog="python -m proofmark.launch.launchers.modelarts.original", description=__doc__)
    parser.add_argument("original", type=Path, metavar="modelarts_config.py")
    parser.add_argument("cloud", type=Path, metavar="cloud.yaml", help="the file to write; must not exist")
    parser.add_argument("--single-server-mode", action="store_true", help="as SINGLESERVER_MODE=True in its config.sh")
    options = parser.parse_args(arguments)
    read = read_original(options.original)
    values, left = converted(read, str(options.original), options.single_server_mode)
    with options.cloud.open("x", encoding="utf-8") as stream:
        stream.write(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))
    print("\n".join([f"{options.cloud} is written", *left]))
    load_cloud(options.cloud)  # what is missing still is told last
    return 0


if __name__ == "__main__":
    command(main)
