"""How many images the ranks of a trial were handed: counted by those who load them, and told by the trial's process."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial

from proofmark.automl.trial.spec import HANDED_OUT, TrialSpec
from proofmark.record.events.log import EventLog
from proofmark.training.feeding.counts import Counts
from proofmark.training.ranks.walled import dictated

PAGES = "PROOFMARK_PAGES"
"""Variable with descriptors, in the trial's process, of the pages in which is counted what its ranks are handed."""


class HandedOut:
    """A trial's counts, in its own process. No rank writes them: one behind its wall reaches neither a page of another
    process nor this file, which is not its log.

    Attributes:
        variable: by which ranks find their pages.
    """

    def __init__(self, spec: TrialSpec) -> None:
        """Have a page for each rank.

        Raises:
            OSError: there can't be one.
        """
        self._path = spec.folder / HANDED_OUT
        pages = [Counts.make() for _ in range(spec.nproc)]
        self._counts = [Counts(os.dup(page)) for page in pages]
        self.variable = {PAGES: ",".join(map(str, pages))}

    def tell(self) -> None:
        """Write them down, now that no rank runs.

        Raises:
            OSError: the file can't be written.
        """
        trained, evaluated = (sum(each) for each in zip(*((c.laid, c.evaluated) for c in self._counts), strict=True))
        log = EventLog(self._path)
        log.write("handed_out", trained=trained, evaluated=evaluated)
        log.close()


class Counters:
    """A rank's page, before its wall: what counts what it is handed, each in the process that hands it out."""

    def __init__(self, rank: int) -> None:
        self._descriptor = os.open(dictated(PAGES, rank), os.O_RDWR | os.O_CLOEXEC)
        page = cache(partial(Counts, self._descriptor))  # mapped by who counts first, in its own process: never here
        self.trained: Callable[[int], None] = lambda samples: page().lay(samples)
        self.evaluated: Callable[[int], None] = lambda samples: page().evaluate(samples)

    def close(self) -> None:
        """Let go of it, before there is a vendor's code."""
        os.close(self._descriptor)
