"""Searches as fixtures: a case is one run, its record is judged once, and all its tests share it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fixtures.cases.case_files import CASE_FILES, resolved
from fixtures.cases.suites import case_of, case_path
from fixtures.cluster import tasks
from fixtures.devices.device_lock import holding
from fixtures.gate.comparing import finished
from fixtures.live.page import live_page
from fixtures.live.progress import TELL
from fixtures.options.policy import POLICY
from fixtures.options.settings import SETTINGS, Settings
from fixtures.outputs.reporting import recorded
from fixtures.sessions.session import end_session, make_case_dir
from proofmark.automl.case import AutoMLCase
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.places import Places, places_here, places_of_tasks
from proofmark.automl.resuming import to_be_resumed
from proofmark.automl.run import SearchOptions, SearchRun
from proofmark.errors import UsageError
from proofmark.launch.launchers import TaskCluster

TASKS: pytest.StashKey[TaskCluster | None] = pytest.StashKey()
RESUMED: pytest.StashKey[dict[type, Path]] = pytest.StashKey()
"""The search that each case goes on with."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A search wants the whole machine for itself."""
    found = {case_of(item) for item in items}
    cases = [case for case in found if case is not None and issubclass(case, AutoMLCase)]
    if cases and os.environ.get("PYTEST_XDIST_WORKER"):
        raise pytest.UsageError("searches use all devices of the machine: run them without -n")
    whole = config.option.changed_since is None  # else it may be for cases that a change doesn't reach
    if cases and whole and config.option.step_timeout is not None and not found - {None, *cases}:
        raise pytest.UsageError("--step-timeout: a search has no steps, and --max-duration ends it: remove it")
    if cases and not config.option.collectonly:
        _connect(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is to be resumed must be there, and wait for this session: a link to it may soon lead to another one."""
    config = session.config
    config.stash[RESUMED] = resumed = dict[type, Path]()
    for cls in dict.fromkeys(filter(None, map(case_of, session.items))):
        if not (config.option.resume and issubclass(cls, AutoMLCase) and cls in config.stash[CASE_FILES]):
            continue  # one that lacks the profile is skipped
        resolution = resolved(config, cls)
        if not resolution.problems:
            earlier, name = Path(config.option.resume).resolve(), f"{cls.suite}/{case_path(cls).stem}"
            try:
                resumed[cls] = to_be_resumed(earlier, name, resolution.config)
            except (UsageError, OSError) as error:
                raise pytest.UsageError(f"--resume {config.option.resume}: {error}") from None


def _connect(config: pytest.Config) -> None:
    """Where --launcher places trials: that must be there before anything runs."""
    try:
        cluster = tasks(config, config.stash[SETTINGS].found.vendor.torch_device() != "cpu")
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[TASKS] = cluster
    if cluster is not None:
        config.add_cleanup(cluster.close)


@pytest.fixture(scope="class")
def search_run(request: pytest.FixtureRequest, settings: Settings) -> Iterator[SearchRun]:
    """The run of the class's case. Whatever happens, it ends with a record."""
    cls, config = request.cls, request.config
    case, option = case_path(cls).stem, config.option
    resolution, found = resolved(config, cls), settings.found
    with holding(config, case, slice(None), resolution.problems):
        try:
            run_dir = make_case_dir(config, cls.suite, case)
            run = SearchRun(
                resolution=resolution,
                found=found,
                case=cls,
                run_dir=run_dir,
                places=_places(config, resolution.config.devices_per_trial),
                options=SearchOptions(
                    option.hang_timeout,
                    option.setup_timeout,
                    option.monitor_interval or None,
                    config.stash[RESUMED].get(cls),
                    config.stash[POLICY],
                ),
                on_progress=partial(config.stash[TELL], case),
            )
        except UsageError as error:
            end_session(config, str(error))
        except OSError as error:
            end_session(config, f"results cannot be written: {error}")
        with recorded(config, case, run):
            yield run


def _places(config: pytest.Config, each: int) -> Places:
    cluster, found = config.stash[TASKS], config.stash[SETTINGS].found
    return places_here(found, each) if cluster is None else places_of_tasks(cluster, found, each)


@pytest.fixture(scope="class")
def search_record(request: pytest.FixtureRequest, search_run: SearchRun) -> AutoMLRecord:
    """The search, run to its end, collected and judged."""
    try:
        search_run.begin()
        with live_page(request.config, case_path(request.cls).stem, search_run.so_far):
            search_run.search()
        return finished(request, search_run)
    except UsageError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    except OSError as error:
        pytest.exit(f"results cannot be written: {error}", returncode=pytest.ExitCode.INTERNAL_ERROR)
