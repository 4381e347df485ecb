"""`vendors/<name>/container.yaml`: what a vendor's containers are given, of what any may be given.

Whoever writes it gains by a better figure. So it is held to a list: devices, what lies with their driver, and options
that devices need. Nothing of it changes which image runs, who runs it, or what it sees of results, data and the host.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from proofmark.errors import ConfigurationError, Problem
from proofmark.rules.device_files import DRIVERS, is_device_file, is_drivers, is_hosts_own
from proofmark.rules.yaml.typed import load_model, problems_of
from proofmark.vendor.registry import FoundVendor

FILE = "container.yaml"

_CDI_DEVICE = re.compile(r"[a-z][\w.-]*/[\w.-]+=[\w.:-]+")

OPTIONS = {
    "--gpus": (r'all|\d+|"?device=[\w,:.-]+"?', "all, a number, or device=0,1"),
    "--device": (r".*", "as under devices"),
    "--runtime": (r"[A-Za-z][\w-]*", "a name that the engine's own configuration knows"),
    "--ulimit": (
        r"(memlock|stack|nofile|nproc|core)=-?\d+(:-?\d+)?",
        "memlock, stack, nofile, nproc or core, as memlock=-1",
    ),
    "--group-add": (r"video|render|keep-groups|[1-9]\d*", "video, render, keep-groups, or a group's number"),
    "--cap-add": (r"(CAP_)?IPC_LOCK", "IPC_LOCK"),
    "--security-opt": (r"label=disable", "label=disable"),
    "--env": (
        r"[A-Z][A-Z0-9_]*_(VISIBLE_DEVICES|DRIVER_CAPABILITIES)=[\w,.:-]+",
        "a variable ..._VISIBLE_DEVICES or ..._DRIVER_CAPABILITIES with its value; others go into environment.yaml",
    ),
}
"""What may stand under `options`, and how people say that. None of it can hold a secret: it stands in the record."""

_INSTEAD = {
    "--privileged": "write privileged: true, which cluster.yaml must allow, and the record says so",
    "--volume": "write it under mounts, as /opt/acme:/opt/acme:ro",
    "--mount": "write it under mounts, as /opt/acme:/opt/acme:ro",
    "--shm-size": "write shm_size: 16g",
    "--pull": "--container says which image runs, and hosts have it",
    "--env-file": "a run's variables are in cluster.yaml, under environment",
}

_SHORT = {"-v": "--volume", "-e": "--env", "-u": "--user", "-w": "--workdir"}


def _is_device(text: str) -> str:
    """A device file, `/dev/acme0:/dev/acme0:rwm`, or a CDI name, `acme.com/npu=0`."""
    if _CDI_DEVICE.fullmatch(text):
        return text
    *paths, last = text.split(":")
    paths += [] if paths and re.fullmatch("[rwm]{1,3}", last) else [last]
    if len(paths) > 2 or not all(map(is_device_file, paths)):
        raise ValueError(f"{text!r} is not a device: expected a file (/dev/acme0) or a CDI name (acme.com/npu=0)")
    if any(map(is_hosts_own, paths)):
        raise ValueError(f"{text!r} is the host's own, not an accelerator")
    return text


def _is_drivers(text: str) -> str:
    """A mount of what lies with a driver: read-only, at its own place, so that it covers nothing else."""
    path, target, *how = text.split(":")[:3] if text.count(":") in (1, 2) else ("", "")
    if not path.startswith("/") or not target.startswith("/"):
        raise ValueError(f"{text!r} is not a mount: expected /opt/acme:/opt/acme:ro")
    if not is_drivers(path):
        places = ", ".join(place.rstrip("/") for place in DRIVERS)
        raise ValueError(
            f"{path!r} is not visible to a vendor's container: drivers are below {places}; the user may add "
            "other paths in cluster.yaml, under mounts"
        )
    if target != path or how != ["ro"]:
        raise ValueError(f"{text!r} is not read-only at its own place: write {path}:{path}:ro")
    return text


def _is_option(word: str) -> str:
    """One of OPTIONS with a value."""
    if not word.startswith("-"):
        raise ValueError(f"{word!r} is not an option: --container says which image runs")
    name, _, value = word.partition("=")
    name = _SHORT.get(name[:2], name) if not name.startswith("--") else name
    if name in _INSTEAD:
        raise ValueError(f"{word!r} is not among the options: {_INSTEAD[name]}")
    if name not in OPTIONS:
        raise ValueError(f"{word!r} is not among the options: {', '.join(OPTIONS)}")
    allowed, expected = OPTIONS[name]
    if not re.fullmatch(allowed, value):
        raise ValueError(f"{word!r} is more than a device needs: {name} may be {expected}")
    if not word.startswith("--"):
        raise ValueError(f"{word!r}: write it out, as {name}=...")
    if name == "--device":
        _is_device(value)
    return word


def _joined(words: Any) -> Any:
    """Each option and its value in one word."""
    if not isinstance(words, list | tuple):
        return words
    if not all(isinstance(word, str) for word in words):
        return tuple(words)
    joined: list[str] = []
    for word in words:
        if joined and joined[-1].startswith("-") and "=" not in joined[-1] and not word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return tuple(joined)


Options = Annotated[tuple[Annotated[str, AfterValidator(_is_option)], ...], BeforeValidator(_joined)]


class ContainerSettings(BaseModel):
    """The keys of a vendor's container.yaml: what its containers are given. All may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    devices: tuple[Annotated[str, AfterValidator(_is_device)], ...] = Field(
        default=(), description="device files, as --device takes them"
    )
    mounts: tuple[Annotated[str, AfterValidator(_is_drivers)], ...] = Field(
        default=(), description="what lies with a driver, as /opt/acme:/opt/acme:ro"
    )
    shm_size: str | None = Field(default=None, pattern=r"^\d+[bkmgBKMG]?$", description="size of /dev/shm, as 16g")
    options: Options = Field(default=(), description="of docker's or podman's run, those in OPTIONS")
    privileged: bool = Field(default=False, description="all of the host, where its user allows that; it is on record")


def device_files(settings: ContainerSettings) -> list[str]:
    """The host's files that a container is given as devices, under either key; CDI names are none."""
    named = [*settings.devices, *(word[9:] for word in settings.options if word.startswith("--device="))]
    return [device.split(":")[0] for device in named if device.startswith("/")]


def settings_of(found: FoundVendor) -> ContainerSettings:
    """What a vendor's containers are given, by its file and by its `container_options`.

    Raises:
        ConfigurationError: all that is wrong with either.
    """
    path, settings, problems = found.directory / FILE, ContainerSettings(), list[Problem]()
    if path.exists():
        try:
            settings = load_model(path, ContainerSettings, found.directory)
        except ConfigurationError as error:
            problems += error.problems
    try:
        options = TypeAdapter(Options).validate_python(tuple(found.vendor.container_options))
    except ValidationError as error:
        problems += problems_of(error, str(found.directory / "__init__.py"), "container_options")
    if problems:
        raise ConfigurationError(problems)
    return settings.model_copy(update={"options": (*options, *settings.options)})
