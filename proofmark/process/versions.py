"""Which version of a package is installed. Part of the far end's program: nothing of ours is imported."""

from __future__ import annotations


def version_of(package: str) -> str | None:
    """The version of a distribution, or of the one that provides what is imported by this name; None without either.

    Imports none of them. Where several of different versions provide it, each is named.
    """
    from importlib import machinery, metadata  # half of what a far end imports; there is an order less to wait for

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        pass
    if not package.isidentifier() or machinery.PathFinder.find_spec(package) is None:
        return None  # to read what all distributions provide takes a second where there are many
    search = getattr(metadata, "packages_distributions", dict)  # which a Python before 3.10 lacks
    provided: dict[str, list[str]] = search()
    found = {name: metadata.version(name) for name in provided.get(package, ())}
    if len(set(found.values())) > 1:
        return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    return next(iter(found.values()), None)
