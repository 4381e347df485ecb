"""Both sides of a comparison as sessions: loaded and timed in turns, or run whole where a suite can't do that."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from proofmark.errors import harmless
from proofmark.gate.alike import few, new_by, other_settings, other_task, unsound, unsupported
from proofmark.gate.race import Side, SideLost
from proofmark.gate.session import GRACE, Session, Task, Tree
from proofmark.plain_json import read_json
from proofmark.record.envelope import RECORD_FILE
from proofmark.record.parts import VerdictKind
from proofmark.record.policy import default_policy

NO_RUN = "there is no such run here"
"""What a side says that lacks the run, by whose name it was started: its vendor may have a scale more by now."""


class BaseLacks(Exception):
    """The base has the case, and not this run of it; the text says so."""


class BaseUnsupported(Exception):
    """The base does not support the case, and says so: there is nothing that the head could be slower than."""


@dataclass
class Sides:
    """Starts both sides, and holds their tasks against each other.

    Attributes:
        trees: base and head.
        house: that of the session that leads.
        run: what is compared.
        module: its case's, within the house.
        options: of both.
        scale: at which it runs; empty without one.
        short_rounds: whether both can be timed in short rounds.
        configurations: keys that a vendor may set.
        folder: for their results.
        base_cache: the base's cache of weights.
        tell: shows a line.
        coin: whether the base is loaded first: what the second finds differs, as memory does that the first left.
        seconds: that a side's session may take, beside GRACE.
        differences: between the two, as far as they are known.
    """

    trees: tuple[Tree, Tree]
    house: Path
    run: str
    module: Path
    options: Sequence[str]
    scale: str
    short_rounds: bool
    configurations: Collection[str]
    folder: Path
    base_cache: Path
    tell: Callable[[str], None]
    coin: Callable[[], bool]
    seconds: float = 0.0
    differences: tuple[str, ...] = ()
    _tasks: dict[str, Task] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def loaded(self) -> Iterator[tuple[Side, Side]]:
        """Load both sides anew."""
        if not self.short_rounds:
            whole = [WholeRuns(self, tree) for tree in self.trees]
            yield whole[0], whole[1]
            return
        with ExitStack() as stack:
            sessions = {}
            for tree in self.trees if self.coin() else self.trees[::-1]:
                self.tell(f"loading the {tree.name}")
                sessions[tree.name], _ = self.start(tree)
                stack.callback(sessions[tree.name].end)
                self.look_at(tree, sessions[tree.name].ready())
            self.tell("timing base and head in turns")
            base, head = (sessions[tree.name] for tree in self.trees)
            yield base, head

    def start(self, tree: Tree) -> tuple[Session, Path]:
        """Start a side's session; also the place of its record."""
        results = self.folder / f"{tree.name}{next(self._numbers)}"
        options = [*self.options, *([f"--cache-dir={self.base_cache}"] if tree is self.trees[0] else [])]
        if self.short_rounds:  # what a side's rest does not stop would compute in the other's turns
            options.append("--monitor-interval=0")
        elif self.scale:
            options += ["-k", self.scale]  # for a version that doesn't know of sides
        command = tree.command(self.module, options, results)
        environment, seconds = tree.environment(self.house), self.seconds + GRACE
        session = Session(tree, command, environment, self.run, rounds=self.short_rounds, seconds=seconds)
        return session, results / "latest" / self.run / RECORD_FILE

    def look_at(self, tree: Tree, task: Task) -> None:
        """Accuracy, honesty and legality first; and both sides must be the same task.

        Raises:
            SideLost: a side's speed is that of nothing, or of something else.
            BaseUnsupported: the case is new.
        """
        if tree is self.trees[0] and tree.name not in self._tasks and (why := unsupported(task)):
            raise BaseUnsupported(new_by(why))
        if wrong := unsound(tree.name, task):
            raise SideLost("; ".join(wrong))
        self._tasks[tree.name] = task
        if len(self._tasks) < len(self.trees):
            return
        base, head = (self._tasks[each.name] for each in self.trees)
        if different := other_task(base, head, self.configurations):
            raise SideLost(f"base and head are different tasks: {few(different)}")
        self.differences = tuple(map(harmless, other_settings(base, head, self.configurations)))


class WholeRuns:
    """A side that is run from its beginning to its end each time."""

    def __init__(self, sides: Sides, tree: Tree) -> None:
        self._sides, self._tree = sides, tree

    def rates(self) -> Mapping[str, float]:
        """The figures of a run's record."""
        self._sides.tell(f"running the {self._tree.name}")
        session, path = self._sides.start(self._tree)
        try:
            last = session.wait()
        finally:
            session.end()
        try:
            raw = read_json(path)
            task = Task.model_validate(raw)
            figures = {str(figure["key"]): figure.get("value") for figure in raw.get("figures", ())}
            # whichever version wrote it
            blocks = raw.get("policy", {}).get("blocks", default_policy().blocks)
            policy = default_policy().model_copy(update={"blocks": tuple(blocks)})
        except (OSError, ValueError, RecursionError, ValidationError, KeyError, TypeError, AttributeError):
            if self._tree is self._sides.trees[0] and NO_RUN in last:
                raise BaseLacks(f"it has no run {self._sides.run}") from None
            raise SideLost(harmless(f"the {self._tree.name} left no record: {last}")) from None
        self._sides.look_at(self._tree, task)
        assert task.verdict is not None
        kind = VerdictKind[task.verdict.kind]
        right = 0 if policy.lets_pass(kind) else kind.exit_code
        if session.exit_code != right:  # as where somebody else has written into its log
            end = f"ended with exit code {session.exit_code}, but its record says {kind}"
            raise SideLost(harmless(f"the {self._tree.name}'s session {end}: {last}"))
        return {key: value for key, value in figures.items() if isinstance(value, int | float)}
