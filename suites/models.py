"""Models of the transformers library: built fresh, or loaded from a directory whose weights must fit exactly.

The library initialises at random what a weights directory lacks and only logs it; here that is an error.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from proofmark.errors import StepError
from proofmark.literal import some
from suites.data.given import SETTINGS, without_weights

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from proofmark.rules.config import EffectiveConfig

_NAMED = 5


class ImageLogits(torch.nn.Module):
    """Returns the logits, (batch, classes), of images, (batch, channels, height, width)."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Call the model."""
        logits: torch.Tensor = self.model(pixel_values=pixel_values).logits
        return logits


class LogitsAndBoxes(torch.nn.Module):
    """Returns a detector's logits, (batch, queries, classes + 1), and boxes, (batch, queries, 4), of images."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Call the model."""
        output = self.model(pixel_values=pixel_values)
        return output.logits, output.pred_boxes


class LikeliestTokens(torch.nn.Module):
    """Returns of each token the highest logit, and the id of the token that has it: each (batch, tokens).

    While it is trained, all logits, (batch, tokens, words), of which there is a loss. To copy those to the host would
    take longer than to compute them: they are thousands of times as many bytes.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Call the model with token ids and their mask, each (batch, tokens)."""
        logits: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        if self.training:
            return logits
        highest, tokens = logits.max(-1)
        return highest, tokens

    def shortfall(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """By how much each of `tokens` is less likely than the likeliest: of its logit, in deviations of all words'.

        Infinite for what is no word. The forward pass has no part of it, so that no engine computes it.
        """
        logits: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        tokens, words = tokens.long(), logits.shape[-1]
        given = logits.gather(-1, tokens.clamp(0, words - 1).unsqueeze(-1)).squeeze(-1)
        spread = logits.std(-1).clamp(min=torch.finfo(logits.dtype).tiny)
        return ((logits.amax(-1) - given) / spread).masked_fill((tokens < 0) | (tokens >= words), torch.inf)


class LogitsAndEmbeddings(torch.nn.Module):
    """Returns a causal model's logits, (batch, tokens, words), and its words' embeddings, (words, features)."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Call the model."""
        # without a mask the library would look into the positions for packed sequences, at each call
        mask = torch.ones_like(input_ids)
        logits: torch.Tensor = self.model(input_ids=input_ids, attention_mask=mask, use_cache=False).logits
        return logits, self.model.get_input_embeddings().get_parameter("weight").detach()


class CandidateScores(torch.nn.Module):
    """Returns the log-likelihood of each candidate for a blank, (questions, candidates), laid out by `lay_out`."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        tokens: torch.Tensor,
        segments: torch.Tensor,
        positions: torch.Tensor,
        blocks: torch.Tensor,
        expected: torch.Tensor,
        present: torch.Tensor,
    ) -> torch.Tensor:
        """Call the model once, and add up what it gives each candidate's tokens."""
        logits = self.model(tokens, segments, positions, blocks)
        # nothing where no token is expected
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), expected, reduction="none")
        scores = losses.new_zeros(present.shape).scatter_add(1, (segments - 1).clamp(min=0), -losses)
        return scores.masked_fill(~present, torch.finfo(scores.dtype).min)


def blank_infilling_mask(segments: torch.Tensor) -> torch.Tensor:
    """What to add to attention scores, (batch, queries, keys): 0 where a token is seen, very little where not.

    The context, segment 0, is seen by all. Within any other segment a token sees itself and those before it (GLM, Du
    et al. 2022, section 2.1, with several independent parts B).
    """
    queries, keys = segments.unsqueeze(2), segments.unsqueeze(1)
    earlier = torch.ones(segments.shape[1], segments.shape[1], dtype=torch.bool, device=segments.device).tril()
    seen = (keys == 0) | ((keys == queries) & earlier)
    hidden = torch.finfo(torch.float32).min
    return torch.zeros(seen.shape, device=segments.device).masked_fill(~seen, hidden)


def resnet50(config: EffectiveConfig) -> ImageLogits:
    """ResNet-50. Each bottleneck of a fresh one starts as the identity: it then trains in a few epochs."""
    from transformers import ResNetForImageClassification
    from transformers.models.resnet.modeling_resnet import ResNetBottleNeckLayer

    model = build_model(ResNetForImageClassification, config, labels=config.classes)
    if config.host.weights is None:
        for module in model.modules():
            if isinstance(module, ResNetBottleNeckLayer):
                torch.nn.init.zeros_(module.get_parameter("layer.2.normalization.weight"))
    return ImageLogits(model)


def yolos(config: EffectiveConfig) -> LogitsAndBoxes:
    """YOLOS. The tokens of a fresh one differ by more than the library's noughts: it then trains in minutes."""
    from transformers import YolosForObjectDetection

    model = build_model(YolosForObjectDetection, config, labels=config.classes)
    if config.host.weights is None:
        for name in ("position_embeddings", "detection_tokens"):
            torch.nn.init.normal_(model.get_parameter(f"vit.embeddings.{name}"), std=0.5)
    return LogitsAndBoxes(model)


def build_model(
    architecture: type[PreTrainedModel], config: EffectiveConfig, labels: int | None = None
) -> PreTrainedModel:
    """A model as the case's parameter `model` describes it, with the weights of `--weights` if given, to evaluate.

    Attention is computed by plain matrix products: an exported file then holds operators that every compiler knows.

    Args:
        architecture: a model class of transformers.
        config: `parameters.model` holds the entries of the library's configuration that define the
            task; `parameters.unused_weights`, where it is given, names modules that a weights file
            may hold beyond the model.
        labels: how many classes there are, for a classifier.

    Raises:
        StepError: the weights are not there, not in safetensors, or don't fit.
    """
    declared = config.as_dict()["parameters"]["model"] | ({} if labels is None else {"num_labels": labels})
    if config.host.weights is None:
        settings = _config_class(architecture)(**declared)
        fresh: Any = architecture._from_config  # the library's own way to choose the attention of a fresh model
        return _evaluating(fresh(settings, attn_implementation="eager"))
    directory = Path(config.host.weights)
    weights_files(directory)
    settings = _read_settings(directory, architecture)
    _hold_against(directory, settings, declared)
    return _load(directory, architecture, settings, config.parameters.get("unused_weights", ()))


def weights_files(directory: Path) -> list[Path]:
    """The safetensors files, sorted. Nothing else is read: a pickle can run code.

    Raises:
        StepError: the directory or the files are missing.
    """
    if not directory.is_dir():
        raise StepError(f"The weights directory {directory} does not exist.")
    files = sorted(directory.glob("*.safetensors"))
    if files:
        return files
    raise StepError(f"The weights directory {without_weights(directory)}.")


def _read_settings(directory: Path, architecture: type[PreTrainedModel]) -> Any:
    path = directory / SETTINGS
    try:
        kind = json.loads(path.read_text(encoding="utf-8")).get("model_type")
        wanted = _config_class(architecture).model_type
        if kind != wanted:
            raise StepError(f"The file {path} describes a model of type {kind!r}, the case is of type {wanted!r}.")
        return _config_class(architecture).from_pretrained(directory, local_files_only=True)
    except FileNotFoundError:
        raise StepError(f"The weights directory {directory} holds no config.json.") from None
    except (OSError, ValueError, AttributeError) as error:
        raise StepError(f"The file {path} is not a model's configuration: {error}") from error


def _hold_against(directory: Path, settings: Any, declared: Mapping[str, Any]) -> None:
    """Refuse weights of another model than the case's: of other sizes, or for other classes."""
    wrong = []
    for key, wanted in declared.items():
        found = getattr(settings, key, None)
        found = list(found) if isinstance(found, tuple) else found
        if found != wanted:
            wrong.append(f"{key} is {found!r}, the case has {wanted!r}")
    if wrong:
        raise StepError(f"The weights in {directory} are of another model: {'; '.join(wrong)}.")


def _load(
    directory: Path, architecture: type[PreTrainedModel], settings: Any, unused: Iterable[str]
) -> PreTrainedModel:
    try:
        load: Any = architecture.from_pretrained  # it answers a pair when asked for loading information
        with _quiet():
            model, info = load(
                directory,
                config=settings,
                local_files_only=True,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # to list them all below, instead of one error without names
                output_loading_info=True,
                attn_implementation="eager",
                dtype=torch.float32,
            )
    except Exception as error:  # safetensors raises its own type for a damaged file
        raise StepError(f"The weights in {directory} cannot be loaded: {error}") from error
    unexpected = [key for key in info["unexpected_keys"] if not any(f"{key}.".startswith(f"{u}.") for u in unused)]
    wrong = {
        "missing": info["missing_keys"],
        "unexpected": unexpected,
        "of another shape": [key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]],
    }
    if problems := misfits(wrong):
        raise StepError(f"The weights in {directory} don't fit {architecture.__name__}; {problems}.")
    return _evaluating(model)


def _evaluating(model: Any) -> PreTrainedModel:
    evaluating: PreTrainedModel = model.eval()
    return evaluating


def _config_class(architecture: type[PreTrainedModel]) -> type[PreTrainedConfig]:
    assert architecture.config_class is not None  # only the library's abstract base has none
    return architecture.config_class


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's progress bar and its report of what doesn't fit."""
    from transformers import utils

    logging: Any = utils.logging  # not annotated
    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def misfits(wrong: Mapping[str, Collection[str]]) -> str:
    """What is wrong with which tensors, the first of each kind by name; empty where nothing is."""
    return "; ".join(f"{what}: {some(sorted(keys), _NAMED)}" for what, keys in wrong.items() if keys)
