"""A new job at a service. Whether a request that failed was carried out, only the job's name tells."""

from __future__ import annotations

import re
import secrets
import time

from proofmark.launch.job_file import AtService
from proofmark.launch.service.contract import Places, Service, ServiceError, Timing
from proofmark.launch.service.patience import Patience, Stopped

LAST_LOOK = 15.0
"""Seconds that a service's search, or its word of a job, may lag behind what the service has created."""

LONGEST_NAME = 64
"""Characters that services take."""


def name_for(job: str) -> str:
    """A name at the service for a job of ours that no other has."""
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", f"proofmark-{job}")
    tail = f"-{secrets.token_hex(6)}"
    return readable[: LONGEST_NAME - len(tail)] + tail


def in_doubt(name: str) -> str:
    """What a user is told of a job that nobody knows to have been created, nor the contrary."""
    return f"whether it was created is in doubt: look for {name} among the service's jobs"


class Creation:
    """Of one job, under a name that no other has.

    Attributes:
        in_doubt: whether there may be a job whose id nobody has.
    """

    def __init__(self, service: Service, at: AtService, places: Places) -> None:
        self._service, self._at, self._places = service, at, places
        self.in_doubt = False

    def ask(self, patience: Patience) -> str:
        """The job's id.

        Raises:
            ServiceError: it is refused for good, or requests have failed for longer than the budget.
            Stopped: whoever waits is wanted elsewhere. Of both, no job was found after seconds of looking for one.
        """
        try:
            return patience.ask(self._attempt)
        except (ServiceError, Stopped):
            if self.in_doubt and (known := self._last_look()) is not None:
                return known
            raise

    def _attempt(self) -> str:
        """A request after one in doubt is made only once the service says that it has no job of the name."""
        if self.in_doubt and (known := self._find()) is not None:
            return known
        try:
            return self._service.create(self._at.name, self._at.nodes, self._places)
        except ServiceError as error:
            if not (error.transient or error.taken):
                raise
            self.in_doubt = True
            raise ServiceError(str(error), transient=True) from None  # taken: a search that lags shows it later

    def _find(self) -> str | None:
        return self._service.find(self._at.name)

    def _last_look(self) -> str | None:
        deadline, patience = time.monotonic() + LAST_LOOK, Patience(Timing(self._service.timing.poll, LAST_LOOK))
        try:
            while (known := patience.ask(self._find)) is None and time.monotonic() < deadline:
                patience.look_again()
        except ServiceError:
            return None
        return known
