"""`cluster.yaml`: which hosts, how they are reached, and what lies where on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from proofmark.errors import ConfigurationError, Problem
from proofmark.rules.foreign import load_no_python
from proofmark.rules.yaml.typed import number_as_text

Port = Annotated[int, Field(ge=1, le=65535)]
Mount = Annotated[str, Field(pattern=r"^/[^:]*:/[^:]*(:[A-Za-z,]+)?$")]

SSH_PORT = 22
"""The port of an sshd of which nothing else is said."""

_HOST = re.compile(r"(::)?[A-Za-z0-9_]([A-Za-z0-9_.:%-]*[A-Za-z0-9_])?")

_OWN_OPTIONS = (
    "--nodes",
    "--ntasks",
    "--ntasks-per-node",
    "--no-shell",
    "--jobid",
    "--kill-command",
    "--quiet",
    "--clusters",
)
"""Options of salloc that decide how many nodes there are, whose, how long they are held, and whether it says so."""

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_USER = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.@+\\-]*[A-Za-z0-9_.-])?\$?")


def _is_a_user(user: str) -> str:
    if not _USER.fullmatch(user):
        raise ValueError(f"{user!r} is not a valid user name")
    return user


User = Annotated[str, AfterValidator(_is_a_user)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ClusterHost(_Part):
    """One host. What is null is as the file has it for all."""

    address: str = Field(description="name or address, as ssh takes it, and as the other hosts reach it")
    port: Port | None = None
    user: User | None = None

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        if not _HOST.fullmatch(address):
            raise ValueError(f"{address!r} is not a valid host name or address")
        return address


class Cluster(_Part):
    """The keys of cluster.yaml."""

    hosts: tuple[ClusterHost, ...] = Field(
        default=(), description="in the order of their node numbers; Slurm chooses its own"
    )
    port: Port | None = Field(default=None, description="null: as ssh's own configuration has it")
    user: User | None = Field(default=None, description="who logs in; null: as ssh's own configuration has it")
    key: str | None = Field(default=None, description="a private key's file; null: ssh's own choice")
    known_hosts: str | None = Field(default=None, description="a file of pinned host keys; null: ssh's own")
    work_dir: str = Field(description="an absolute path on each host, for code and runs")
    python: str = Field(default="python3", description="the interpreter on each host, with what the suite requires")
    requirements: tuple[str, ...] = Field(
        default=(),
        description="files in the tree: what they name is installed on each host, apart",
    )
    interface: str | None = Field(default=None, description="the network interface that ranks talk over")
    master_port: Port | None = Field(default=None, description="of node 0; null: a free one is found")
    data_dir: str | None = Field(
        default=None, description="where the published data is on each host; --data-dir wins over it"
    )
    checkpoints: str | None = Field(default=None, description="a directory that all hosts share, for checkpoints")
    clear_caches: bool = Field(default=False, description="have the kernel drop its caches before each run")
    answer_timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=60.0, description="seconds in which a host that is reached begins to answer, and answers each order"
    )
    silence_timeout: Annotated[float, Field(ge=10, le=900)] = Field(
        default=300.0, description="seconds of silence on the way to a host that are bridged; then it is lost"
    )
    environment: dict[str, Annotated[str, BeforeValidator(number_as_text)]] = Field(
        default_factory=dict, description="variables of all that runs on the hosts, such as NCCL's"
    )
    partition: str | None = Field(default=None, description="Slurm's")
    account: str | None = Field(default=None, description="Slurm's")
    time_limit: str | None = Field(default=None, description="Slurm's, as `[days-]hours:minutes:seconds`")
    mounts: tuple[Mount, ...] = Field(
        default=(), description="what else of each host its containers see, as -v takes it"
    )
    privileged: bool = Field(
        default=False, description="whether containers may be privileged, where a vendor's container.yaml asks for it"
    )
    slurm_options: tuple[str, ...] = Field(default=(), description="further options of salloc, such as --gres=gpu:8")
    launcher_options: dict[str, Any] = Field(default_factory=dict, description="of a launcher that a package brings")

    @field_validator("hosts", mode="before")
    @classmethod
    def _names_are_hosts(cls, hosts: Any) -> Any:
        if not isinstance(hosts, list):
            raise ValueError("expected a list")
        if not hosts:  # here, so that it is told along with what else is wrong with the file
            raise ValueError("expected at least one; remove the key where the launcher chooses hosts, as Slurm does")
        return tuple({"address": host} if isinstance(host, str) else host for host in hosts)

    @model_validator(mode="after")
    def _are_different(self) -> Self:
        places = [(host.address, host.port or self.port or SSH_PORT) for host in self.hosts]
        twice = sorted({address for address, port in places if places.count((address, port)) > 1})
        if twice:
            raise ValueError(f"hosts: named more than once: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _meet_without_a_zone(self) -> Self:
        first, *others = [host.address for host in self.hosts] or [""]
        if others and "%" in first:
            raise ValueError(
                f"hosts: ranks meet on the first one, and torch takes no address with a zone, as {first}: "
                "name it, or write an address that all hosts reach without one; the others may have zones"
            )
        return self

    @field_validator("requirements", mode="before")
    @classmethod
    def _are_in_the_tree(cls, files: Any) -> Any:
        if not isinstance(files, list):
            raise ValueError("expected a list")
        for file in files:
            if not isinstance(file, str) or not _FILE.fullmatch(file):
                raise ValueError(f"expected a file's path relative to the suite's root, found {file!r}")
        return tuple(files)

    @field_validator("python")
    @classmethod
    def _is_a_program(cls, program: str) -> str:
        if not re.fullmatch(r"[^-\s]\S*( \S+)*", program) or not program.isprintable():
            raise ValueError(f"expected a program's name or path, found {program!r}")
        return program

    @field_validator("work_dir", "data_dir", "checkpoints")
    @classmethod
    def _is_absolute(cls, path: str | None) -> str | None:
        if path is not None and not path.startswith("/"):
            raise ValueError(f"expected an absolute path, found {path!r}")
        return path

    @field_validator("slurm_options", mode="before")
    @classmethod
    def _are_options(cls, options: Any) -> Any:
        if not isinstance(options, list) or not all(isinstance(o, str) and o.startswith("--") for o in options):
            raise ValueError("expected a list of options, each beginning with --")
        for option in options:
            name = option.partition("=")[0]
            if any(own.startswith(name) for own in _OWN_OPTIONS):
                raise ValueError(f"{name} is the suite's to say")
        return tuple(options)

    @field_validator("partition", "account", "time_limit", "interface", mode="before")
    @classmethod
    def _is_a_word(cls, word: Any) -> Any:
        if isinstance(word, int):
            raise ValueError("write it in quotes: without, YAML makes a number of it")
        if isinstance(word, str) and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.:@,-]*", word):
            raise ValueError(f"{word!r} is not a valid name")
        return word


def load_cluster(path: Path) -> Cluster:
    """Read a cluster file. The files that it names are looked for from its own folder.

    Raises:
        ConfigurationError: with every problem in it; or it is Python, as FlagPerf's cluster_conf.py.
    """
    cluster = load_no_python(path, Cluster, "a cluster file of cluster_conf.py")
    files = {"key": cluster.key, "known_hosts": cluster.known_hosts}
    try:
        found = {name: str(path.parent.absolute() / Path(file).expanduser()) for name, file in files.items() if file}
    except RuntimeError as error:  # ~name of nobody
        raise ConfigurationError(
            [Problem(str(path), "", f"a path begins with a home that is not there: {error}")]
        ) from None
    return cluster.model_copy(update=found)
