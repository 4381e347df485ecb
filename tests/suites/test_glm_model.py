"""GLM's model: the shapes of the published checkpoint, what it computes, and which weights are refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from proofmark.errors import StepError
from suites.data.text.cloze import Cloze, lay_out
from suites.glm_model import Glm, build_glm
from tests.suites.conftest import config_of

SMALL = {
    "vocab_size": 40,
    "max_position_embeddings": 16,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def published(words: int, longest: int, width: int, layers: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a published checkpoint's tensors."""
    shapes: dict[str, tuple[int, ...]] = {
        "word_embeddings.weight": (words, width),
        "transformer.position_embeddings.weight": (longest + 1, width),
        "transformer.block_position_embeddings.weight": (longest + 1, width),
    }
    of_layer = {
        "attention.query_key_value": (3 * width, width),
        "attention.dense": (width, width),
        "mlp.dense_h_to_4h": (4 * width, width),
        "mlp.dense_4h_to_h": (width, 4 * width),
    }
    for layer in range(layers):
        for name, shape in of_layer.items():
            shapes[f"transformer.layers.{layer}.{name}.weight"] = shape
            shapes[f"transformer.layers.{layer}.{name}.bias"] = shape[:1]
    norms = [f"layers.{n}.{name}_layernorm" for n in range(layers) for name in ("input", "post_attention")]
    for norm in [*norms, "final_layernorm"]:
        shapes[f"transformer.{norm}.weight"] = shapes[f"transformer.{norm}.bias"] = (width,)
    return shapes


def test_the_published_checkpoint_fits() -> None:
    """GLM-Large's: 24 layers, 1024 wide, 30,592 words, 512 tokens."""
    with torch.device("meta"):
        model = build_glm(config_of("glm", "standard", suite="training"))
    assert {name: tuple(t.shape) for name, t in model.state_dict().items()} == published(30592, 512, 1024, 24)


def by_hand(tensors: dict[str, torch.Tensor], batch: list[torch.Tensor], heads: int) -> torch.Tensor:
    """The logits of one question, token by token and head by head, from the published tensors alone."""
    tokens, segments, positions, blocks = (tensor[0].tolist() for tensor in batch)

    def linear(name: str, vector: torch.Tensor) -> torch.Tensor:
        return tensors[f"{name}.weight"] @ vector + tensors[f"{name}.bias"]

    def norm(name: str, vector: torch.Tensor) -> torch.Tensor:
        centred = vector - vector.mean()
        return centred / (centred.square().mean() + 1e-5).sqrt() * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    def seen(query: int, key: int) -> bool:
        return segments[key] == 0 or (segments[key] == segments[query] and key <= query)

    hidden = [
        tensors["word_embeddings.weight"][token]
        + tensors["transformer.position_embeddings.weight"][position]
        + tensors["transformer.block_position_embeddings.weight"][block]
        for token, position, block in zip(tokens, positions, blocks, strict=True)
    ]
    width = len(hidden[0])
    for layer in (f"transformer.layers.{n}" for n in range(SMALL["num_hidden_layers"])):
        projected = [linear(f"{layer}.attention.query_key_value", norm(f"{layer}.input_layernorm", h)) for h in hidden]
        after = []
        for i, own in enumerate(projected):
            heard = []
            for head in range(heads):
                part = slice(head * width // heads, (head + 1) * width // heads)
                known = [j for j in range(len(tokens)) if seen(i, j)]
                scores = [float(own[:width][part] @ projected[j][width : 2 * width][part]) for j in known]
                shares = torch.tensor([s / math.sqrt(width / heads) for s in scores], dtype=own.dtype).softmax(0)
                heard.append(
                    sum(share * projected[j][2 * width :][part] for share, j in zip(shares, known, strict=True))
                )
            moved = hidden[i] + linear(f"{layer}.attention.dense", torch.cat(heard))  # type: ignore[arg-type]
            wide = linear(f"{layer}.mlp.dense_h_to_4h", norm(f"{layer}.post_attention_layernorm", moved))
            wide = 0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
            after.append(moved + linear(f"{layer}.mlp.dense_4h_to_h", wide))
        hidden = after
    return torch.stack([tensors["word_embeddings.weight"] @ norm("transformer.final_layernorm", h) for h in hidden])


def test_it_computes_what_the_paper_says() -> None:
    torch.manual_seed(0)
    model = Glm(**SMALL, hidden_dropout=0.5, attention_dropout=0.5).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
        question = Cloze([1, 10, 3, 11, 2], 2, [[20, 21], [22]], [False, True])
        batch = lay_out([question], 12, 1, 2)[0][:4]
        assert batch[2].tolist() == [[0, 1, 2, 3, 4, 2, 2, 2, 2, 2, 0, 0]], "a candidate stands where the blank stands"
        assert batch[3].tolist() == [[0, 0, 0, 0, 0, 1, 2, 3, 1, 2, 0, 0]]
        found = model(*batch)[0]
        wanted = by_hand(model.state_dict(), batch, SMALL["num_attention_heads"])
    assert torch.allclose(found[:10], wanted[:10], rtol=1e-9, atol=1e-12)


def built(weights: Path | None) -> Glm:
    host = {"weights": weights and str(weights)}
    return build_glm(config_of("glm", "standard", host=host, suite="training", model=SMALL))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    save_file({name: tensor.half() for name, tensor in built(None).state_dict().items()}, tmp_path / "a.safetensors")
    return tmp_path


def test_half_precision_weights_are_taken_over(weights: Path) -> None:
    model, saved = built(weights), load_file(weights / "a.safetensors")
    assert not model.training
    for name, tensor in model.state_dict().items():
        assert tensor.dtype == torch.float32 and torch.equal(tensor, saved[name].float())


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"word_embeddings.weight": None}, r"don't fit GLM; missing: word_embeddings\.weight\.$"),
        ({"lm_head.weight": torch.zeros(1)}, r"don't fit GLM; unexpected: lm_head\.weight\.$"),
        ({"transformer.final_layernorm.bias": torch.zeros(9)}, r"of another shape: transformer\.final_layernorm\.bias"),
    ],
)
def test_other_weights_are_refused_by_name(weights: Path, changed: dict[str, Any], expected: str) -> None:
    tensors = load_file(weights / "a.safetensors") | changed
    save_file({name: t for name, t in tensors.items() if t is not None}, weights / "a.safetensors")
    with pytest.raises(StepError, match=expected):
        built(weights)


def test_damaged_missing_and_pickled_weights_are_refused(weights: Path) -> None:
    path = weights / "a.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(StepError, match=r"cannot be loaded: a\.safetensors"):
        built(weights)
    path.unlink()
    with pytest.raises(StepError, match=r"holds no \*\.safetensors file"):
        built(weights)
    torch.save({}, weights / "mp_rank_00_model_states.pt")
    with pytest.raises(StepError, match="pickled weights only"):
        built(weights)
