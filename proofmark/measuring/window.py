"""The compute window: one call of an engine under the referee's clock, and what counts as its answer.

It runs from the moment the engine gets its inputs until its answer lies in the host's memory, in a copy of the
referee's own. Whatever an engine or `synchronize()` puts off has been paid for by then. No code of the vendor's runs
between two windows: the device is idle at the beginning of one since the one before ended with `synchronize()`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from proofmark.errors import StepError
from proofmark.process.threads import one_thread

if TYPE_CHECKING:
    import torch

Compute = Callable[["list[torch.Tensor]"], "tuple[list[torch.Tensor], float]"]
Synchronize = Callable[[], None]

FOO_TIME_EXPECTED = "expected 0.0, or why there is some in InferModel.foo_time_reason"
"""Of an engine that declares nothing."""


class Apart(ABC):
    """A target in a process of its own: its inputs have to be where it can see them before the clock runs.

    No protocol: at each call it is asked for, and one with so many members is slow to be recognised.
    """

    foo_time_reason: str | None
    """Why its calls hold what is not inference, as it declares; None where it declares nothing."""

    trees: tuple[int, ...] = ()
    """Processes of its with all that descends from them, where those are no descendants of this process's family."""

    @abstractmethod
    def ask(self, placed: list[torch.Tensor]) -> Any:
        """Run one batch that was placed, and wait for its answer: a copy that no other process can write into."""

    @abstractmethod
    def read(self, answer: Any) -> tuple[list[torch.Tensor], float]:
        """What it answered: outputs, and foo_time in seconds."""

    @abstractmethod
    def place(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """The same inputs where it sees them; as they are, if they are there."""

    @abstractmethod
    def reserve(self, inputs: list[torch.Tensor]) -> None:
        """Have room for as many such batches as are placed ahead."""

    @abstractmethod
    def device_memory(self) -> tuple[int | None, int | None]:
        """(peak bytes that it used on its device, total bytes); None where not readable."""

    @abstractmethod
    def reset_peak(self) -> None:
        """Forget how much of the host's memory its process took until now."""

    @abstractmethod
    def peak_resident_bytes(self) -> int | None:
        """How much of it its process took since, at most; None where not readable."""


@runtime_checkable
class Rests(Protocol):
    """A target whose process can be held still while it isn't asked."""

    def rest(self) -> None:
        """Keep its process from doing anything until its next call."""


def trees_of(target: Compute) -> tuple[int, ...]:
    """Processes of a target's, with all that descends from them, that are not of this process's family."""
    return target.trees if isinstance(target, Apart) else ()


def foo_time_declared(compute: Compute) -> str | None:
    """Why a target's calls hold what is not inference, as it declares."""
    return compute.foo_time_reason if isinstance(compute, Apart) else None


class Window(NamedTuple):
    """One call and its result.

    Attributes:
        given: the inputs where the engine saw them.
        outputs: the engine's own tensors; the copies themselves, where it is in a process of its own.
        answer: copies of them on the host, as they were when the clock was stopped.
        foo_seconds: what the engine reported as `foo_time`.
        nanoseconds: from the call to the copied answer.
    """

    given: list[torch.Tensor]
    outputs: list[torch.Tensor]
    answer: list[torch.Tensor]
    foo_seconds: float
    nanoseconds: int

    @property
    def seconds(self) -> float:
        """The window's length."""
        return self.nanoseconds / 1e9


def run_window(compute: Compute, inputs: list[torch.Tensor], synchronize: Synchronize) -> Window:
    """Call an engine with one batch, wait for the device, and copy the answer to the host, all under the clock.

    Raises:
        StepError: what it returned is no answer.
    """
    batch = len(inputs[0])  # before the engine has them in hand
    clock = time.perf_counter_ns
    if isinstance(compute, Apart):
        given = compute.place(inputs)
        start = clock()
        copied = compute.ask(given)  # waits for the device, too
        nanoseconds = clock() - start
        outputs, foo_seconds = compute.read(copied)
        check_rows(outputs, batch)
        return Window(given, outputs, outputs, foo_seconds, nanoseconds)
    start = clock()
    returned = compute(inputs)
    synchronize()
    outputs, foo_seconds = check_answer(returned, batch)
    answer = on_host(outputs)
    return Window(inputs, outputs, answer, foo_seconds, clock() - start)


def check_answer(returned: object, batch: int) -> tuple[list[torch.Tensor], float]:
    """What an engine returned: exactly a tuple of outputs and a float.

    Exactly these types, since a subclass may compute when it is walked, copied or compared.

    Raises:
        StepError: it is something else.
    """
    if type(returned) is not tuple or len(returned) != 2:
        raise StepError(f"the engine returned {_named(returned)}; expected a tuple of outputs and foo_time")
    outputs, foo_seconds = returned
    if type(foo_seconds) is not float:
        raise StepError(f"the engine's foo_time is {_named(foo_seconds)}; expected a float, 0.0")
    return check_outputs(outputs, batch), foo_seconds


def check_outputs(outputs: object, batch: int) -> list[torch.Tensor]:
    """Outputs, in a list of our own: exactly a list of plain tensors, one row per sample.

    Raises:
        StepError: they are something else.
    """
    import torch

    if type(outputs) is not list:
        raise StepError(f"the outputs are {_named(outputs)}; expected a list of tensors")
    kept = [*outputs]
    for index, output in enumerate(kept):
        if type(output) is not torch.Tensor or not is_dense(output):
            raise StepError(f"output {index} is {_named(output)}; expected a plain, dense torch.Tensor")
        if own := [name for name in vars(output) if hasattr(torch.Tensor, name)]:  # torch.compile leaves others
            names = ", ".join(own)
            raise StepError(f"output {index} has methods of its own ({names}): return output.detach() in its place")
    check_rows(kept, batch)
    return kept


def is_dense(output: torch.Tensor) -> bool:
    """Whether each of its elements lies somewhere."""
    import torch

    return output.layout is torch.strided and not output.is_meta


def check_rows(outputs: list[torch.Tensor], batch: int) -> None:
    """That there are outputs, each with one row per sample.

    Raises:
        StepError: it is otherwise.
    """
    if not outputs:
        raise StepError(f"the outputs are {_named(outputs)}; expected a list of tensors")
    for index, output in enumerate(outputs):
        if output.ndim == 0 or output.shape[0] != batch:
            shape = tuple(output.shape)
            raise StepError(f"output {index} has shape {shape}; expected one row for each of {batch} samples")


def _named(what: object) -> str:
    """For a message: the type, and the length of what is one of the expected types."""
    name = type(what).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name} of {len(what)}" if type(what) in (tuple, list) else f"{article} {name}"  # type: ignore[arg-type]


def on_host(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies on the host, also of what is there already: its owner may go on writing into it."""
    import torch

    with one_thread():
        return [torch.Tensor.to(torch.Tensor.detach(output), "cpu", copy=True) for output in outputs]
