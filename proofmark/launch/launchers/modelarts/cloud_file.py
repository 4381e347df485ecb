"""`cloud.yaml`: which account's region, which machines, which buckets, which image. Never a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from proofmark.errors import ConfigurationError, Problem, UsageError
from proofmark.launch.service.contract import PORT
from proofmark.plain_json import first_of
from proofmark.rules.yaml.strict import load_mapping
from proofmark.rules.yaml.typed import problems_of

SECRET = re.compile(
    r"(^|_)(ak|sk|secret|token|password|passwd|passphrase|pass|pwd|credential"
    r"|(api|access|private|secret|auth|account|encryption|signing|ssh)_?key(_?id)?)s?(_|$)",
    re.IGNORECASE,
)
"""Names of what does not belong into a file; CAMEL is where one that is written as `accessKey` has its words' ends."""

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")

WITH_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
"""Within an address."""

EXPLAINED = (
    "a secret does not belong in this file, which is passed on and kept: set HUAWEICLOUD_SDK_AK and "
    "HUAWEICLOUD_SDK_SK in the environment, or use the SDK's credential file or `keyring` (docs/cloud.md)"
)

OBS_FOLDER = re.compile(r"/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_][A-Za-z0-9_.=-]*)*/")
REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
WITHOUT_CARDS = ".cpu."
CARDS = re.compile(r"\.(?:(\d)x|x)large(?:\.|$)")
"""In a flavor's name: `kat1.8xlarge` has 8 cards, `kat1.xlarge` one, `vm.cpu.2u` none."""

FULL = 8
"""Cards of a whole machine; only of those a job may have several."""

MOST_VARIABLES = 100

Positive = Annotated[float, Field(gt=0, le=1e7)]


class Engine(BaseModel):
    """A framework that the platform brings."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(min_length=1)
    version: str = Field(min_length=1)


class Cloud(BaseModel):
    """The keys of cloud.yaml. Each is checked by itself and against those above it, so that all problems are told."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)

    region: str = Field(description="such as cn-north-4")
    project_id: str | None = Field(default=None, description="null: HUAWEICLOUD_SDK_PROJECT_ID")
    endpoint: str | None = Field(default=None, description="of ModelArts; null: the region's")
    obs_endpoint: str | None = Field(default=None, description="of the object store; null: the region's")
    ca_file: str | None = Field(default=None, description="certificates to trust in place of the system's")
    keyring: str | None = Field(default=None, description="the service in the user's keyring that has `ak` and `sk`")
    code_dir: str = Field(description="a folder of a bucket, `/bucket/path/`: code, by its content")
    boot_file: str | None = Field(
        default=None, description="within code_dir; a file beside this one, which nodes start first: it runs boot.py"
    )
    out_url: str = Field(description="a folder of a bucket: each job's own folder, with results and logs")
    data_url: str | None = Field(default=None, description="a folder of a bucket: the published data")
    image: str | None = Field(default=None, description="a container image in SWR, `organisation/name:tag`")
    engine: Engine | None = Field(default=None, description="or one of the platform's own frameworks")
    python: str = Field(default="python3", description="the interpreter in the image")
    flavor: str = Field(description="the kind of node, such as modelarts.kat1.8xlarge")
    cards: Annotated[int, Field(ge=0, le=64)] | None = Field(default=None, description="of a node; null: by its name")
    nodes: Annotated[int, Field(ge=1, le=1000)] = Field(default=1, description="that a job may have at most")
    pool_id: str | None = Field(default=None, description="a dedicated pool; null: the public one")
    workspace_id: str = "0"
    aggregate: Literal["sum", "per_server_mean"] = "sum"
    servers: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="of per_server_mean: how many nodes, each for itself"
    )
    auto_stop: Annotated[int, Field(ge=1, le=720)] = Field(
        default=24, description="hours; the platform ends a job then"
    )
    priority: Annotated[int, Field(ge=1, le=3)] | None = None
    description: Annotated[str, Field(max_length=256)] = ""
    master_port: Annotated[int, Field(ge=1024, le=65535)] = Field(
        default=PORT, description="where ranks meet on node 0"
    )
    environment: dict[str, str] = Field(default_factory=dict, description="variables of all nodes")
    poll: tuple[Positive, Positive] = Field(
        default=(1.0, 10.0), description="seconds between two looks, first and last"
    )
    queue_timeout: Positive = Field(default=86400.0, description="seconds that a job may wait for its nodes")
    error_budget: Positive = Field(default=300.0, description="seconds that requests may fail one after another")

    @field_validator("region")
    @classmethod
    def _is_a_region(cls, region: str) -> str:
        if not REGION.fullmatch(region):
            raise ValueError(f"{region!r} is not a region: expected one such as cn-north-4")
        return region

    @field_validator("endpoint", "obs_endpoint")
    @classmethod
    def _is_an_endpoint(cls, endpoint: str | None) -> str | None:
        if endpoint is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?", endpoint):
            raise ValueError(f"{endpoint!r} is not an endpoint: expected https://host, without a path")
        if endpoint is not None and endpoint.startswith("http://") and not _is_loopback(endpoint):
            raise ValueError(f"{endpoint}: secrets and code go there, so it must be https://")
        return endpoint

    @field_validator("project_id", "pool_id", "workspace_id")
    @classmethod
    def _is_an_id(cls, identifier: str | None) -> str | None:
        if identifier is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", identifier):
            raise ValueError(f"{identifier!r} is not a valid id")
        return identifier

    @field_validator("code_dir", "out_url", "data_url")
    @classmethod
    def _is_a_folder(cls, folder: str | None) -> str | None:
        if folder is not None and not folder.endswith("/"):
            raise ValueError(f"{folder!r} must end in a slash: it is a folder")
        if folder is not None and not OBS_FOLDER.fullmatch(folder):
            raise ValueError(f"{folder!r} is not a folder in a bucket: expected /bucket/path/")
        if folder is not None and "." in (bucket := folder.split("/")[1]):
            raise ValueError(f"bucket {bucket!r} has a dot: no certificate is valid for its host name; use one without")
        return folder

    @field_validator("boot_file")
    @classmethod
    def _is_within_the_code(cls, boot: str | None, info: ValidationInfo) -> str | None:
        if boot is None:
            return boot
        code = info.data.get("code_dir")
        if code and not boot.startswith(code):
            raise ValueError(f"{boot!r} is not within code_dir, {code}")
        if not re.fullmatch(r"[A-Za-z0-9_-]+\.py", boot.rpartition("/")[2]) or (
            code and boot.count("/") != code.count("/")
        ):
            raise ValueError(f"{boot!r} is not a Python file directly in code_dir")
        return boot

    @field_validator("engine")
    @classmethod
    def _is_the_only_one(cls, engine: Engine | None, info: ValidationInfo) -> Engine | None:
        image = info.data.get("image")
        if (engine is None) == (image is None) and "image" in info.data:
            raise ValueError("expected either `image` or `engine: {name, version}`")
        return engine

    @field_validator("image", "flavor", "python", "keyring")
    @classmethod
    def _is_a_word(cls, word: str | None) -> str | None:
        if word is not None and not re.fullmatch(r"[A-Za-z0-9_/][A-Za-z0-9_./:@-]*", word):
            raise ValueError(f"{word!r} has characters that such a name cannot have")
        return word

    @field_validator("nodes", "servers")
    @classmethod
    def _are_whole_machines(cls, count: int | None, info: ValidationInfo) -> int | None:
        named = CARDS.search(info.data.get("flavor") or "")
        cards = int(named[1] or 1) if named else None
        if count is not None and count > 1 and cards is not None and cards < FULL:
            flavor = info.data["flavor"]
            raise ValueError(
                f"{count} of {flavor}, which has {cards} of a machine's {FULL} cards: several nodes must be whole"
            )
        return count

    @field_validator("servers")
    @classmethod
    def _are_asked_for(cls, servers: int | None, info: ValidationInfo) -> int | None:
        mode = info.data.get("aggregate")
        if (servers is None) != (mode == "sum") and mode is not None:
            raise ValueError("is only for `aggregate: per_server_mean`: the number of independent servers")
        return servers

    @field_validator("environment")
    @classmethod
    def _are_ours_to_set(cls, variables: dict[str, str]) -> dict[str, str]:
        if wrong := "; ".join(_wrong_variables(variables)):
            raise ValueError(wrong)
        return variables

    @field_validator("poll")
    @classmethod
    def _rises(cls, poll: tuple[float, float]) -> tuple[float, float]:
        if poll[0] > poll[1]:
            raise ValueError(f"expected the shorter one first, found {poll[0]:g}, {poll[1]:g}")
        return poll

    @property
    def boot_name(self) -> str | None:
        """What `boot_file` is called in its folder."""
        return self.boot_file.rpartition("/")[2] if self.boot_file else None

    @property
    def cards_of_node(self) -> int | None:
        """How many cards a node has; None where neither the file nor the flavor's name says so."""
        if self.cards is not None:
            return self.cards
        named = CARDS.search(self.flavor)
        return 0 if WITHOUT_CARDS in self.flavor else int(named[1] or 1) if named else None

    @classmethod
    def recalled(cls, settings: Mapping[str, Any]) -> Self:
        """What a job's file kept of it.

        Raises:
            UsageError: it is none.
        """
        try:
            return cls.model_validate_json(json.dumps(settings))
        except ValidationError as error:
            raise UsageError(f"the job's file: service.settings: {first_of(error)}") from None


def load_cloud(path: Path) -> Cloud:
    """Read cloud.yaml.

    Raises:
        ConfigurationError: with every problem in it.
    """
    values, where = load_mapping(path), str(path)
    problems = [Problem(where, key, EXPLAINED) for key in _secrets(values)]
    wrong_keys = {problem.key.partition(".")[0] for problem in problems}
    kept = {key: value for key, value in values.items() if key not in wrong_keys}
    try:
        cloud = Cloud.model_validate_json(json.dumps(kept))  # as JSON: a list will do for a tuple
    except ValidationError as error:
        raise ConfigurationError([*problems, *problems_of(error, where, model=Cloud)]) from None
    if cloud.boot_name and not (path.parent / cloud.boot_name).is_file():
        problems.append(Problem(where, "boot_file", f"no such file: {path.parent / cloud.boot_name}"))
    if cloud.ca_file is not None:
        ca_file = path.parent.absolute() / Path(cloud.ca_file).expanduser()
        problems += [] if ca_file.is_file() else [Problem(where, "ca_file", f"no such file: {ca_file}")]
        cloud = cloud.model_copy(update={"ca_file": str(ca_file)})
    if problems:
        raise ConfigurationError(problems)
    return cloud


def refuse_secrets(cloud: Cloud, is_secret: Callable[[str], bool]) -> None:
    """Refuse a file in which a value may open the account.

    Raises:
        UsageError: one may; the key is named, the value is not shown.
    """
    for key, value in _values(cloud.model_dump(mode="json")):
        if isinstance(value, str) and is_secret(value):
            raise UsageError(f"the cloud file: {key}: {EXPLAINED}")


def _secrets(values: Mapping[str, Any]) -> Iterator[str]:
    """Where something is called as a secret would be, or looks like one. What it holds is shown to nobody."""
    for key, value in _values(values):
        called = next((part for part in key.split(".") if SECRET.search(CAMEL.sub("_", part))), None)
        if called or (isinstance(value, str) and WITH_PASSWORD.search(value)):
            yield key


def _values(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """All that is plain within, by its path."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not parts:
        yield key, value
    for name, part in parts or ():
        yield from _values(part, f"{key}.{name}" if key else str(name))


def _wrong_variables(variables: Mapping[str, str]) -> Iterator[str]:
    if len(variables) > MOST_VARIABLES:
        yield f"{len(variables)} variables, and the platform takes {MOST_VARIABLES}"
    for name, value in variables.items():
        if name.startswith("MA_"):
            yield f"{name}: the platform's own variables begin with MA_"
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield f"{name!r} is not a valid variable name"
        elif "$" in value:
            yield f"{name}: the platform takes no $ in a value"


def _is_loopback(endpoint: str) -> bool:
    return re.match(r"http://(127\.\d+\.\d+\.\d+|localhost)(:|$)", endpoint) is not None
