"""A search as a session runs it, from its folder to its record. The parent's side."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofmark.automl.case import AutoMLCase
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.init_model import read_init_models
from proofmark.automl.outcome.collect import FOLDER, collect
from proofmark.automl.outcome.conditions import conditions_of
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.places import Places
from proofmark.automl.resuming import may_go_on, other_configuration
from proofmark.automl.search.driver import Driver
from proofmark.automl.search.examination import examine
from proofmark.automl.search.journal import Journal
from proofmark.automl.search.running import IMPORTED
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.study import Study
from proofmark.automl.search.telling import Telling
from proofmark.automl.trial.spec import HELD_OUT, TrialSpec
from proofmark.errors import ProofmarkError, UsageError, in_a_line
from proofmark.monitoring.contention import ContentionMeter
from proofmark.process.scratch.own_directory import remove
from proofmark.record.events.log import Event
from proofmark.record.parts import Kept
from proofmark.record.policy import Policy, default_policy
from proofmark.rules.config import Resolution
from proofmark.training.logged_run import LoggedRun
from proofmark.vendor.hardware.machine import describe_host
from proofmark.vendor.registry import FoundVendor

LISTINGS = "listings"
"""The folder, within the search's, by which trials of a session tell one another what lies in a folder of data."""


@dataclass(frozen=True)
class SearchOptions:
    """What the user decides about a search, beside its configuration. Seconds; None for no monitor.

    `resume` is the folder of an earlier session's search to go on with.
    """

    hang_timeout: float = 30.0
    setup_timeout: float = 1800.0
    monitor_interval: float | None = 1.0
    resume: Path | None = None
    policy: Policy = field(default_factory=default_policy)


class SearchRun(LoggedRun[AutoMLRecord]):
    """Searches; `finish` turns what happened into a record."""

    def __init__(
        self,
        resolution: Resolution,
        found: FoundVendor,
        case: type[AutoMLCase],
        run_dir: Path,
        places: Places,
        options: SearchOptions,
        on_progress: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__(run_dir, found, resolution, case.packages, options.policy)
        self._case, self._places, self._options, self._on_progress = case, places, options, on_progress
        self._imports = (*IMPORTED, *case.imported())

    def search(self) -> None:
        """Run the whole search, unless the configuration is illegal or the vendor does not declare the precision.

        An interrupt ends the trials that run and is raised again; the search can be resumed from its journal.

        Raises:
            UsageError: there is another driver, or what is to be resumed can't be.
        """
        if not self._is_to_be_done():
            return
        meter = ContentionMeter(os.getpid())
        folder = self._folder()
        journal = Journal(folder)
        try:
            self._have_listings(folder)
            self._hold_to_configuration(journal)
            self._log.write("search", folder=str(folder), resumed=not journal.is_new)
            self._drive(folder, journal, meter)
        except KeyboardInterrupt:
            self._log.write("interrupted", step="the search")
            raise
        except (ProofmarkError, OSError) as error:
            with contextlib.suppress(OSError):  # a full disk may be what failed
                self._log.write("search_failed", reason=in_a_line(error))
            if isinstance(error, UsageError):
                raise
        finally:
            remove(folder / LISTINGS)
            journal.close()
            with contextlib.suppress(OSError):
                self._log.write("contention", **meter.seen().model_dump())

    def _have_listings(self, folder: Path) -> None:
        """None of an earlier session's: data may have changed since."""
        remove(folder / LISTINGS)
        (folder / LISTINGS).mkdir()

    def _collect(self, begun: Event | None, going_on: bool) -> AutoMLRecord:
        return collect(self.run_dir, begun, going_on, self._log.seal)

    def _kept(self, record: AutoMLRecord) -> tuple[Kept, ...]:
        if not record.failed or not Path(record.journal).is_file():  # a session that began none leads to none
            return ()
        advice = "; to go on from with --resume" if may_go_on(record) else ""
        return (Kept(what=f"the journal, and what each trial left{advice}", path=str(self._options.resume or FOLDER)),)

    def _hold_to_configuration(self, journal: Journal) -> None:
        begun = next((event for event in journal.events if event["event"] == "driver_begin"), None)
        if begun is not None and begun["config_hash"] != self.config.hash:
            raise UsageError(f"--resume {self._options.resume}: {other_configuration(None, self.config)}")

    def _drive(self, folder: Path, journal: Journal, meter: ContentionMeter) -> None:
        from proofmark.automl.search.networks import Morphisms

        seeds, timeouts = self._seeds(journal), (self._options.hang_timeout, self._options.setup_timeout)
        settings = SearchSettings.of(self.config, self._places, len(seeds), *timeouts, self._imports)
        study = Study(folder, settings.ranges, settings.seed, settings.startup)
        networks = Morphisms(seeds, settings.seed, self.config.growth)
        telling = Telling(self._on_progress, self.config.metric, settings)
        driver = Driver(folder, journal, settings, networks, study, self._places.launcher, self._spec, telling)
        session = describe_host().model_dump(), self.config.hash, conditions_of(self._begun or {})
        was_over = driver.is_over
        best = driver.run(*session).best()
        if not was_over:  # now: who only has the best network judged may be another session
            journal.write("contention", **meter.seen().model_dump())
        if best is None or is_examined(journal, best.number):
            return
        if was_over:
            driver.take_over(*session)
        self._on_progress({"note": f"trial {best.number} is judged on held-out data"})
        examine(folder, journal, best, self._places.launcher, self._spec, settings)

    def _seeds(self, journal: Journal) -> list[Graph]:
        """The networks that the search begins with: the user's init models, written down, or the case's own.

        Raises:
            UsageError: it was begun with others.
        """
        models = read_init_models(self.config)
        networks = [model.identity.model_dump() for model in models]
        before = next((event["networks"] for event in journal.events if event["event"] == "init_models"), None)
        if before is None and networks:
            journal.write("init_models", networks=networks)
        elif before is not None and [each["sha256"] for each in before] != [each["sha256"] for each in networks]:
            raise UsageError(f"{self.config.init_model}: these are not the networks that the search started with")
        return [model.graph for model in models] or [self._case().seed_network(self.config)]

    def _spec(self, directory: Path, **trial: Any) -> TrialSpec:
        config = self.config.as_dict()
        if self._places.here and trial.get("split") != HELD_OUT:  # who judges looks for himself, as do other machines
            config["host"] = {**config["host"], "listings": str(self._folder() / LISTINGS)}
        return TrialSpec(
            case=(self._case.__module__, self._case.__qualname__),
            vendor=self._found.name,
            vendors_dir=str(self._found.vendors_dir),
            config=config,
            directory=str(directory),
            sys_path=tuple(sys.path),
            monitor_interval=self._options.monitor_interval,
            backend=self._found.vendor.distributed_backend,
            **trial,
        )

    def _folder(self) -> Path:
        """The search's: an earlier session's, where one is resumed."""
        return self._options.resume or self.run_dir / FOLDER

    def _facts(self) -> dict[str, Any]:
        return {"devices": self._places.devices, "trials_among_others": not self._places.ours}


def is_examined(journal: Journal, best: int) -> bool:
    """Whether the best trial was evaluated on held-out data; an examination that gave no number is repeated. Where a
    search gave up and was gone on with, the best one may be another by now."""
    examined = (event for event in journal.events if event["event"] == "examined")
    return any(event["accuracy"] is not None and event["trial"] == best for event in examined)
