"""Building a site: what is new is read, the leagues that it touches are made anew, and one file switches to them.

Pages of runs are called by their record, data by its own content, so none takes the place of another. All that is shown
hangs on `data/site.js`, which is replaced last: until then, and if the build dies, the site is the earlier one. What
nothing hangs on any more is deleted after that.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import itertools
import re
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from pydantic import ValidationError

from proofmark.errors import UsageError
from proofmark.process.lifetime import die_with_parent
from proofmark.record.policy import Policy, default_policy
from proofmark.suite import Suite
from reports.site import pages, ranking
from reports.site.discover import Session, discover
from reports.site.export import Table, export, parquet_there
from reports.site.files import as_json, script, sweep, write, write_script
from reports.site.index import Index, Read, key_of
from reports.site.league import league, summary
from reports.site.reading import Look, Reader, held

INDEX, LOCK, SWITCH = ".index.sqlite", ".lock", "site.js"
FEW = 16
"""Sessions that are read without other processes."""

RARELY = 500_000
"""Objects more than there were, after which a process that reads looks for those that nobody has."""

HOUSE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Built:
    """What a build did: how many runs the site has, how many it read, and what it could not read, in lines."""

    runs: int
    read: int
    problems: Sequence[str]
    parquet: bool


def build(
    directories: Sequence[Path],
    site: Path,
    suites: Mapping[str, Suite],
    look: Look = held,
    processes: int = 2,
    by: str = "",
    policy: Policy | None = None,
) -> Built:
    """Build the site of all records below some directories, or bring it up to date.

    Args:
        directories: in which sessions' folders lie, at any depth.
        site: new, or a site's.
        suites: by name, as `find_suites` finds them.
        look: verifies a session's folder.
        processes: that read records.
        by: what `look` goes by beside the code; where it is another than at the last build, all is looked at again.
        policy: that all are ranked by; None for the suite's own.

    Raises:
        ProofmarkError: a directory can't be read, or nothing be verified; the site is another's folder, or another
            build is at it.
        OSError: no space, no permission.
    """
    found, policy = list(discover(directories)), policy or default_policy()
    with _alone(site):
        for name in ("runs", "data", "exports"):
            (site / name).mkdir(exist_ok=True)
        assets = pages.write_assets(site)
        try:
            pages.write_shells(site, assets)
            with Index(site / INDEX, _maker() + by + policy.sha256) as index:
                reader = Reader(suites, look, site / "runs", assets, policy)
                built = _brought_up_to_date(index, site, found, _reading(reader, processes))
                pages.sweep_assets(site, assets)
                return built
        except sqlite3.OperationalError as error:  # no space, no permission
            raise UsageError(f"{site / INDEX}: {error}") from None
        except (sqlite3.DatabaseError, ValidationError) as error:
            first = str(error).partition("\n")[0]
            raise UsageError(f"{site / INDEX}: damaged: {first}; delete it and build again") from None


def _brought_up_to_date(
    index: Index, site: Path, found: Sequence[Session], reading: Callable[[Sequence[Session]], Iterator[list[Read]]]
) -> Built:
    known, now = index.states(), time.time()
    changed = [each for each in found if any(known.get(key_of(path)) != each.state for path in each.records)]
    anew = {key_of(path) for each in changed for path in each.records}
    gone = known.keys() - {key_of(path) for each in found for path in each.records}
    touched = index.names_of(gone | anew) | index.names_due(now, ranking.AHEAD)
    index.forget(gone)
    for read in itertools.chain.from_iterable(reading(changed)):
        index.put(read)
        touched |= {read.entry.name} if read.entry else set()
    parquet = parquet_there()
    for name in sorted(touched):
        index.set_league(name, _league(index, site, name, parquet), now)
    leagues, ids, problems = index.leagues(), index.ids(), index.problems()
    problem_rows = [{"file": Path(path).name, "where": path, "what": problem} for path, problem in problems]
    write(site / "data" / SWITCH, script("site", as_json({"leagues": leagues, "problems": problem_rows})))
    sweep(site / "runs", {f"{identity}.{kind}" for identity in ids for kind in ("html", "js")})
    sweep(site / "data", {SWITCH, *(f"{each['data']}.js" for each in leagues.values())})
    sweep(site / "exports", {name for each in leagues.values() for name in each["exports"]})
    runs = sum(each["runs"] for each in leagues.values())
    return Built(runs, len(anew), [problem for _, problem in problems], parquet)


def _league(index: Index, site: Path, name: str, parquet: bool) -> dict[str, object] | None:
    """Write what is shown of a case; what the first page says of it."""
    entries = index.entries(name)
    if not entries:
        return None
    standings = ranking.standings(entries)
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower())[:60]  # a name may be of any characters
    stem = f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
    figures = partial(index.figures, name, {entry.id for entry in entries})
    exports = export(Table(entries, standings, figures), site / "exports", stem, parquet)
    data = write_script(site / "data", stem, league(entries, standings, exports))
    return {**summary(entries, standings), "data": data, "exports": exports}


def _reading(reader: Reader, processes: int) -> Callable[[Sequence[Session]], Iterator[list[Read]]]:
    def reading(found: Sequence[Session]) -> Iterator[list[Read]]:
        if len(found) <= FEW or processes == 1:
            yield from map(reader.read, found)
            return
        context = get_context("fork")
        with ProcessPoolExecutor(processes, context, _begin, (reader,)) as pool:
            try:
                yield from pool.map(_read, found, chunksize=FEW)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    return reading


_reader: Reader
"""Of a process that reads."""


def _begin(reader: Reader) -> None:
    """A process that reads ends with the one that builds, and leaves interrupts to it."""
    global _reader
    _reader = reader
    gc.freeze()  # what it begins with stays, and a session leaves little that goes round in circles
    gc.set_threshold(RARELY)
    die_with_parent(signal.SIGKILL)()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read(session: Session) -> list[Read]:
    return _reader.read(session)


@contextmanager
def _alone(site: Path) -> Iterator[None]:
    """The site's folder, which nobody else builds meanwhile.

    Raises:
        UsageError: somebody does, or it is a folder of other things.
    """
    if site.exists() and not site.is_dir():
        raise UsageError(f"--out {site}: not a directory")
    if site.is_dir() and any(site.iterdir()) and not (site / LOCK).exists():
        raise UsageError(f"--out {site}: has files that no site made; give a new or an empty directory")
    site.mkdir(parents=True, exist_ok=True)
    with (site / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"--out {site}: another build writes it; wait until it has ended") from None
        yield


def _maker() -> str:
    """Changes with all that pages are made by: what another Proofmark made is made anew."""
    digest = hashlib.sha256()
    for room in ("proofmark", "reports", "suites"):
        for path in sorted((HOUSE / room).rglob("*")):
            if path.suffix in (".py", ".j2", ".css", ".js", ".yaml"):
                digest.update(path.read_bytes())
    return digest.hexdigest()
