"""Loading weights: the ones that fit, and every kind that doesn't."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from proofmark.errors import StepError
from suites.models import ImageLogits, LikeliestTokens, build_model
from tests.suites.conftest import config_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SMALL_VIT = {
    "image_size": 16,
    "patch_size": 8,
    "num_channels": 3,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
SMALL_BERT = {
    "vocab_size": 40,
    "max_position_embeddings": 16,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


def vit(weights: Path | None = None, labels: int = 10, **values: Any) -> PreTrainedModel:
    from transformers import ViTForImageClassification

    config = config_of("vit", host={"weights": weights and str(weights)}, model=SMALL_VIT | values)
    return build_model(ViTForImageClassification, config, labels=labels)


def bert(weights: Path | None = None) -> PreTrainedModel:
    from transformers import BertForMaskedLM

    return build_model(
        BertForMaskedLM, config_of("bert", "standard", host={"weights": weights and str(weights)}, model=SMALL_BERT)
    )


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    vit().save_pretrained(tmp_path / "vit")
    return tmp_path / "vit"


def edit(directory: Path, change: Any) -> None:
    tensors = load_file(directory / "model.safetensors")
    change(tensors)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def test_saved_weights_give_the_same_logits(weights: Path) -> None:
    images = torch.rand(2, 3, 16, 16)
    loaded = ImageLogits(vit(weights)).eval()
    torch.manual_seed(1)
    fresh = ImageLogits(vit()).eval()
    assert torch.equal(fresh(images), loaded(images))
    assert loaded(images).shape == (2, 10)


def test_bert_loads_published_weights(tmp_path: Path) -> None:
    """With the words of input and output tied, the old names of the norms, and heads of pre-training."""

    def as_published(tensors: dict[str, torch.Tensor]) -> None:
        for key in [key for key in tensors if "LayerNorm" in key]:
            tensors[key.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")] = tensors.pop(key)
        tensors |= {"bert.pooler.dense.bias": torch.zeros(16), "cls.seq_relationship.bias": torch.zeros(2)}

    bert().save_pretrained(tmp_path)
    edit(tmp_path, as_published)
    ids = torch.arange(16).view(2, 8)
    model = LikeliestTokens(bert(tmp_path))
    assert model.train()(ids, torch.ones_like(ids)).shape == (2, 8, 40)


def test_a_language_model_answers_with_each_tokens_likeliest_word_and_is_trained_on_all() -> None:
    """Of published size all logits of 32 sequences are 2 GB."""
    model, ids = LikeliestTokens(bert()), torch.arange(16).view(2, 8)
    highest, words = model.eval()(ids, torch.ones_like(ids))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    logits = model.train()(ids, torch.ones_like(ids))
    assert torch.equal(logits.argmax(-1), words) and torch.equal(logits.amax(-1), highest)
    assert highest.shape == words.shape == (2, 8) and not words.is_floating_point()


def test_missing_weights_are_listed(weights: Path) -> None:
    edit(weights, lambda tensors: tensors.pop("classifier.weight"))
    with pytest.raises(StepError, match=r"don't fit ViTForImageClassification; missing: classifier\.weight\."):
        vit(weights)


def test_unexpected_weights_are_listed(weights: Path) -> None:
    edit(weights, lambda tensors: tensors.update({f"extra.{index}": torch.zeros(1) for index in range(7)}))
    with pytest.raises(StepError, match=r"unexpected: extra\.0, extra\.1, .* and 2 more\."):
        vit(weights)


def test_weights_of_another_shape_are_listed(weights: Path) -> None:
    edit(weights, lambda tensors: tensors.update({"classifier.bias": torch.zeros(11)}))
    with pytest.raises(StepError, match=r"of another shape: classifier\.bias"):
        vit(weights)


def test_weights_for_other_classes_are_refused(weights: Path) -> None:
    with pytest.raises(StepError, match="num_labels is 10, the case has 1000"):
        vit(weights, labels=1000)


def test_weights_of_another_size_are_refused(weights: Path) -> None:
    with pytest.raises(StepError, match="num_attention_heads is 2, the case has 4"):
        vit(weights, num_attention_heads=4)


def test_weights_of_another_kind_are_refused(weights: Path) -> None:
    with pytest.raises(StepError, match="type 'vit', the case is of type 'bert'"):
        bert(weights)


def test_damaged_weights_are_refused(weights: Path) -> None:
    path = weights / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(StepError, match="cannot be loaded"):
        vit(weights)


def test_pickled_weights_are_never_read(weights: Path) -> None:
    (weights / "model.safetensors").unlink()
    torch.save({}, weights / "pytorch_model.bin")
    with pytest.raises(StepError, match=r"pickled weights only \(pytorch_model\.bin\).*convert them to safetensors"):
        vit(weights)


def test_missing_directory_weights_and_configuration_are_refused(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="nowhere does not exist"):
        vit(tmp_path / "nowhere")
    (weights / "config.json").rename(tmp_path / "config.json")
    with pytest.raises(StepError, match=r"holds no config\.json"):
        vit(weights)
    (weights / "config.json").write_text("[]")
    with pytest.raises(StepError, match="is not a model's configuration"):
        vit(weights)
    (weights / "model.safetensors").unlink()
    with pytest.raises(StepError, match=r"holds no \*\.safetensors file"):
        vit(weights)


def test_of_a_token_it_is_known_how_much_less_likely_it_is() -> None:
    model, ids = LikeliestTokens(bert()).eval(), torch.arange(16).view(2, 8)
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        _, words = model(ids, mask)
        logits = model.model(input_ids=ids, attention_mask=mask).logits
        second = logits.topk(2).indices[..., 1]
        least = (logits.topk(2).values[..., 0] - logits.topk(2).values[..., 1]) / logits.std(-1)
        assert not model.shortfall(ids, mask, words).any()
        assert torch.allclose(model.shortfall(ids, mask, second.to(torch.uint8)), least)
        for none in (-1, 40, 2**62):
            assert model.shortfall(ids, mask, torch.full_like(ids, none)).isinf().all()
