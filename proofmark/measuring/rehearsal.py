"""What can be known of a case before anything is trained or measured: its batch, its model's answers, their score, the
loss, and the FLOPs. Two samples tell."""

from __future__ import annotations

import math
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.errors import StepError, named
from proofmark.literal import short
from proofmark.measuring.window import check_outputs
from proofmark.metric import Mean, Scoring
from proofmark.record.parts import Flops, Identity
from proofmark.rules.case_file import numbers_of
from proofmark.rules.yaml.strict import load_mapping
from proofmark.verdict.stages import wrong_flops

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch, Case, Loader
    from proofmark.rules.config import EffectiveConfig

SAMPLES = 2
"""Of the first batch: with one, a model that answers for the batch as a whole could not be told."""


def made_model(case: Case, config: EffectiveConfig) -> torch.nn.Module:
    """The model that a case makes.

    Raises:
        StepError: it is none, as where `return` was forgotten.
    """
    import torch

    model = case.create_model(config)
    if not isinstance(model, torch.nn.Module):
        raise StepError(f"create_model: returns {description(model)}; expected a torch.nn.Module")
    return model


def checked_data(data: object, maker: str, parts: Collection[str]) -> None:
    """See that what a case's method made can be data.

    Raises:
        StepError: it lacks some of these parts, as where `return` was forgotten.
    """
    lacking = [part for part in parts if not hasattr(data, part)]
    if lacking:
        without = f" without {', '.join(lacking)}" if len(lacking) < len(parts) else ""
        raise StepError(f"{maker}: returns {description(data)}{without}; expected an object with {', '.join(parts)}")


def checked_dataset(data: object, maker: str, what: str = "the data set") -> None:
    """See that data says what it is, and has samples, as many as it says: plans are made by one number, and held to the
    other.

    Raises:
        StepError: it doesn't.
    """
    identity = getattr(data, "identity", None)
    if not isinstance(identity, Identity) or identity.items is None:
        found = "no `identity`" if identity is None else f"{description(identity)} as its `identity`"
        expected = "a proofmark.record.parts.Identity of name, sha256 and items"
        raise StepError(f"{maker}: {what}, {description(data)}, has {found}; expected {expected}")
    if not isinstance(data, Sized):
        raise StepError(f"{maker}: {what}, {description(data)}, has no length; expected one with `__len__`")
    if not len(data):
        raise StepError(f"{maker}: {what} is empty; expected one sample at least")
    if len(data) != identity.items:
        wrong = f"{what} has {len(data):,} samples, its identity says {identity.items:,}"
        raise StepError(f"{maker}: {wrong}; expected the same number")


def first_batch(loader: Loader) -> Batch:
    """What the loader yields first.

    Raises:
        StepError: there is nothing in it, or it is no batch, or the second is unlike it.
    """
    batches = iter(loader)
    batch = next(batches, None)
    if batch is None:
        raise StepError("build_dataloader: the data set is empty; expected one sample at least")
    inputs, targets = _loaded(batch)
    next(alike(batches, inputs), None)
    return inputs, targets


def _loaded(batch: object) -> Batch:
    inputs, targets = checked_batch(batch, "build_dataloader")
    rows = {each.shape[0] if each.dim() else None for each in (*inputs, targets)}
    if len(rows) > 1 or rows & {0, None}:
        raise StepError(
            f"build_dataloader: inputs and targets are {description([*inputs, targets])}; "
            "expected the batch as the first dimension of all"
        )
    return inputs, targets


def checked_batch(batch: object, maker: str) -> Batch:
    """What a case's method yields, if it can be a batch.

    Raises:
        StepError: it is no inputs with their targets.
    """
    import torch

    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        raise StepError(f"{maker}: a batch is {description(batch)}; expected (inputs, targets)")
    inputs, targets = batch
    if not (isinstance(inputs, tuple | list) and inputs and all(type(each) is torch.Tensor for each in inputs)):
        raise StepError(f"{maker}: inputs are {description(inputs)}; expected a list of tensors, one per argument")
    if not isinstance(targets, torch.Tensor):
        raise StepError(f"{maker}: targets are {description(targets)}; expected a tensor")
    return list(inputs), targets


def alike(batches: Iterable[Batch], first: Sequence[torch.Tensor]) -> Iterator[Batch]:
    """The same batches, each seen to be like the data's first: engines are compiled for its shape, fresh batches are
    spliced of any two, and what calls take is compared.

    Raises:
        StepError: one is unlike it, or no batch.
    """
    rows, shapes, short = len(first[0]), [tensor.shape[1:] for tensor in first], False
    for inputs, targets in map(_loaded, batches):
        if short or len(inputs[0]) > rows or [tensor.shape[1:] for tensor in inputs] != shapes:
            found = description(inputs) + (", after a short one" if short else "")
            expected = "the same shape in all, and as many rows in all but a pass's last"
            raise StepError(
                f"build_dataloader: a batch is {found}, the first was {description(first)}: expected {expected}"
            )
        short = len(inputs[0]) < rows
        yield inputs, targets


def rehearse(case: Case, config: EffectiveConfig, model: torch.nn.Module, batch: Batch) -> None:
    """See that the model answers a batch of the loader's and that the metric can score the answer.

    Raises:
        StepError: it doesn't.
    """
    import torch

    with torch.no_grad():
        outputs, targets = _answered(model, batch)
    try:
        check_outputs(outputs, len(targets))
    except StepError as error:
        raise StepError(f"create_model: asked for {len(targets)} samples of build_dataloader: {error}") from None
    if not any(output.is_floating_point() for output in outputs):
        expected = "a floating-point answer beside them, by which an engine's can be held to it"
        raise StepError(f"create_model: the model returns whole numbers only; expected {expected}")
    rehearse_scoring(case, config, outputs, targets)


def rehearse_scoring(
    case: Case, config: EffectiveConfig, outputs: list[torch.Tensor], targets: torch.Tensor, among_ranks: bool = False
) -> None:
    """See that the metric can score answers.

    Args:
        among_ranks: whether this process is one of several, with which the metric must not speak.

    Raises:
        StepError: it can't.
    """
    if case.metric(config) is case.metric(config):
        raise StepError("metric: returns the same object at each call; expected a new, empty one")
    scoring = Scoring.of(case, config)
    if scoring.mean is not None:
        _rehearse_mean(scoring.mean, outputs, targets)
        return
    scoring.update(outputs, targets)
    if among_ranks:
        scoring.in_one_process()
    try:
        scoring.values()
    except StepError as error:
        if error.__cause__ is None:  # else it is the metric's own: two samples may be too few for it
            raise


def _rehearse_mean(mean: Mean, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
    scored = mean.evaluator(outputs, targets)
    try:
        score, weight = map(float, scored)
    except (TypeError, ValueError, RuntimeError):
        raise StepError(f"evaluator: returns {description(scored)}; expected two numbers, sum and count") from None
    if not (math.isfinite(score) and math.isfinite(weight) and weight >= 0):
        raise StepError(f"evaluator: returns ({score:g}, {weight:g}); expected finite numbers, the second at least 0")


def rehearse_training(case: Case, model: torch.nn.Module, batch: Batch) -> None:
    """See that there is a loss to train by, of the model while it trains. It is left in evaluation mode.

    Raises:
        StepError: there is none.
    """
    import torch

    if len(batch[1]) == 1:  # norms over a batch can't train on one sample
        batch = [torch.cat([tensor, tensor]) for tensor in batch[0]], torch.cat([batch[1], batch[1]])
    model.train()
    try:
        outputs, targets = _answered(model, batch)
    finally:
        model.eval()
    loss = checked_loss(case.loss(outputs, targets))
    if case.loss_weight(targets) and not math.isfinite(float(loss.detach())):
        raise StepError(f"loss: is {float(loss.detach())} before training begins")


def checked_loss(loss: object, method: str = "loss") -> torch.Tensor:
    """What a case's `loss`, or another method of its, returned, if a model can be trained by it.

    Raises:
        StepError: it can't.
    """
    import torch

    if not isinstance(loss, torch.Tensor) or loss.dim():
        raise StepError(f"{method}: returns {description(loss)}; expected a tensor without dimensions")
    if not loss.requires_grad:
        raise StepError(f"{method}: does not depend on any weight that could be trained")
    return loss


def declared_and_counted(case: Case, config: EffectiveConfig, counted: float) -> None:
    """Hold the FLOPs that the case declares against the counted ones.

    Raises:
        StepError: they are too far apart; where to mend it.
    """
    for problem in wrong_flops(Flops(declared=config.flops, counted=counted), config.item):
        if not counted:
            kinds = "matrix products, convolutions, attention and recurrence"
            raise StepError(f"{problem}; only {kinds} are counted, and the model of create_model has none")
        where = _place(numbers_of(type(case)), config.profile, "flops")
        raise StepError(f"{problem}; if the model is as it should be, write {counted:.4g} in {where}")


def _answered(model: torch.nn.Module, batch: Batch) -> Batch:
    """What the model makes of the first samples, and their targets."""
    import torch

    inputs, targets = [tensor[:SAMPLES] for tensor in batch[0]], batch[1][:SAMPLES]
    with taking(inputs, "build_dataloader", "worker.log"):
        output = model(*inputs)
    outputs = [output] if isinstance(output, torch.Tensor) else output
    if not isinstance(outputs, tuple | list):  # a mapping would be walked by its keys
        expected = "a tensor or a tuple of tensors"
        raise StepError(f"create_model: the model returns {description(output)}; expected {expected}")
    return list(outputs), targets


@contextmanager
def taking(inputs: list[torch.Tensor], maker: str, log: str) -> Iterator[None]:
    """What the model raises within, as it is called with inputs, is told as of these.

    Args:
        inputs: of the model.
        maker: the case's method that they come from.
        log: the file that has what this process prints.

    Raises:
        StepError: it can't take them.
    """
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        problem = f"{named(error)} (traceback in {log})"
        raise StepError(
            f"create_model: the model cannot take what {maker} yields, {description(inputs)}: {problem}"
        ) from error


def _place(path: Path, profile: str, key: str) -> str:
    """Where in a case's YAML a parameter stands, the profile's own first; a host of a cluster may have no YAML."""
    profiles = load_mapping(path).get("profiles") if path.is_file() else None
    own = profiles.get(profile) if isinstance(profiles, dict) else None
    parameters = own.get("parameters") if isinstance(own, dict) else None
    within = f"profiles.{profile}." if isinstance(parameters, dict) and key in parameters else ""
    return f"{short(path)}: {within}parameters.{key}"


def description(value: object) -> str:
    """A value's kind, and the shapes of its tensors."""
    import torch

    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}" + (
            f" ({', '.join(map(description, value[:4]))})" if value else ""
        )
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
