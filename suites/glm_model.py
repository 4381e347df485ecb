"""GLM as it was published in 2022 (Du et al., "GLM: General Language Model Pretraining with Autoregressive Blank
Infilling"): a transformer with the norms before its parts, and two learned positions for each token, its own in the
text and its place in the blank that it fills. Tensors have the names and the shapes of the published checkpoints.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from proofmark.errors import StepError
from suites.models import blank_infilling_mask, misfits, weights_files

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig

NAME = "GLM"
_SPREAD = 0.02
"""Standard deviation of fresh weights."""


class _Attention(nn.Module):
    """Of several heads; queries, keys and values lie one after the other in one matrix."""

    def __init__(self, width: int, heads: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.query_key_value, self.dense = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.attention_dropout, self.dropout = heads, nn.Dropout(attention_dropout), nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        items, tokens, width = hidden.shape
        split = self.query_key_value(hidden).view(items, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = (query / math.sqrt(width // self.heads)) @ key.transpose(-1, -2) + mask
        mixed = self.attention_dropout(scores.softmax(-1).to(value.dtype)) @ value
        mixed = self.dense(mixed.transpose(1, 2).reshape(items, tokens, width))
        found: torch.Tensor = self.dropout(mixed)
        return found


class _Feedforward(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dense_h_to_4h, self.dense_4h_to_h = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.dropout(
            self.dense_4h_to_h(functional.gelu(self.dense_h_to_4h(hidden), approximate="tanh"))
        )
        return found


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _Attention(width, heads, dropout, attention_dropout)
        self.mlp = _Feedforward(width, dropout)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = hidden + self.attention(self.input_layernorm(hidden), mask)
        found: torch.Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return found


class _Transformer(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, longest: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.position_embeddings = nn.Embedding(longest + 1, width)
        self.block_position_embeddings = nn.Embedding(longest + 1, width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(_Layer(width, heads, dropout, attention_dropout) for _ in range(layers))
        self.final_layernorm = nn.LayerNorm(width)

    def forward(
        self, words: torch.Tensor, positions: torch.Tensor, blocks: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        hidden = words + self.position_embeddings(positions) + self.block_position_embeddings(blocks)
        hidden = self.dropout(hidden)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        found: torch.Tensor = self.final_layernorm(hidden)
        return found


class Glm(nn.Module):
    """Fresh weights: normal ones; those that end a residual part are smaller, the more layers there are.

    Args:
        vocab_size: words, by whose embeddings the next one is guessed too.
        max_position_embeddings: the highest of either position.
        hidden_size: features of a token.
        num_hidden_layers: layers.
        num_attention_heads: heads of each.
        hidden_dropout: of embeddings and of what each part of a layer adds.
        attention_dropout: of the share that each token has in another.
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        max_position_embeddings: int,
        hidden_size: int,
        num_hidden_layers: int,
        num_attention_heads: int,
        hidden_dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size)
        sizes = (hidden_size, num_hidden_layers, num_attention_heads, max_position_embeddings)
        self.transformer = _Transformer(*sizes, hidden_dropout, attention_dropout)
        for name, parameter in self.named_parameters():
            ends = name.endswith(("attention.dense.weight", "dense_4h_to_h.weight"))
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=_SPREAD / math.sqrt(2 * num_hidden_layers) if ends else _SPREAD)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(
        self, tokens: torch.Tensor, segments: torch.Tensor, positions: torch.Tensor, blocks: torch.Tensor
    ) -> torch.Tensor:
        """Logits, (questions, tokens, words), of what `lay_out` lays out."""
        mask = blank_infilling_mask(segments).unsqueeze(1)
        hidden = self.transformer(self.word_embeddings(tokens), positions, blocks, mask)
        return functional.linear(hidden, self.word_embeddings.weight)


def build_glm(config: EffectiveConfig) -> Glm:
    """A model as the case's parameter `model` describes it, with the weights of `--weights` if given.

    Raises:
        StepError: the weights are not there, not in safetensors, or don't fit.
    """
    model = Glm(**config.as_dict()["parameters"]["model"]).eval()
    if config.host.weights is not None:
        _load(model, Path(config.host.weights))
    return model


def _load(model: Glm, directory: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    found: dict[str, torch.Tensor] = {}
    for path in weights_files(directory):
        try:
            found |= load_file(path)
        except (OSError, SafetensorError) as error:
            raise StepError(f"The weights in {directory} cannot be loaded: {path.name}: {error}") from error
    own = model.state_dict()
    shaped = own.keys() & found.keys()
    wrong = {
        "missing": own.keys() - found.keys(),
        "unexpected": found.keys() - own.keys(),
        "of another shape": {name for name in shaped if own[name].shape != found[name].shape},
    }
    if problems := misfits(wrong):
        raise StepError(f"The weights in {directory} don't fit {NAME}; {problems}.")
    model.load_state_dict({name: tensor.float() for name, tensor in found.items()})
