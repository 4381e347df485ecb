"""The Chinese grammar and its ceiling, text files as next tokens, and what the embedding average counts."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from suites.data.loading import BatchDataset
from suites.data.text import chinese
from suites.data.text.causal import causal_dataset, chinese_text, vocabulary
from suites.data.text.masked import IGNORED
from suites.training.test_cpm import TestCpm as Cpm
from tests.suites import guessers
from tests.suites.conftest import config_of


def guessed(knows_chain: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """A guesser's tokens for the embedded validation set, read back from what the model gets, and the true ones."""
    config, ids = config_of("cpm", suite="training"), vocabulary()
    data = chinese_text("validation", config.validation_sequences, config.max_seq_length, config.seed)
    characters, step = list(ids), chinese.SENTENCE_LENGTH
    rows = []
    for tokens in data.inputs[0].tolist():
        text = "".join(characters[token] for token in tokens)
        starts = range(0, len(text), step)
        guesses = "".join(guessers.best_guesses(text[start : start + step], knows_chain) for start in starts)
        rows.append([*(ids[character] for character in guesses[1:]), ids["[END]"]])
    return torch.tensor(rows), data.targets


def score(guesses: torch.Tensor, targets: torch.Tensor, embeddings: torch.Tensor | None = None) -> float:
    table = torch.eye(int(max(guesses.max(), targets.max())) + 1) if embeddings is None else embeddings
    logits = torch.nn.functional.one_hot(guesses, len(table)).float()
    total, count = Cpm().evaluator([logits, table], targets)
    assert count == len(targets)
    return total / count


@pytest.mark.parametrize(("knows_chain", "key"), [(True, "best_possible"), (False, "best_without_context")])
def test_the_yaml_states_what_the_guessers_reach(knows_chain: bool, key: str) -> None:
    assert score(*guessed(knows_chain)) == pytest.approx(config_of("cpm", suite="training")[key], abs=5e-5)


def test_no_character_follows_more_often_than_the_guessed_one() -> None:
    """The verb after its subject, with an adverb between."""
    sentences = list(islice(chinese.sentences("another seed"), 20_000))
    for who in ("农民", "护士", "水手"):
        following = [text[10] for text in sentences if text[6:8] == who]
        guesses = {guessers.best_guesses(text)[10] for text in sentences[:3000] if text[6:8] == who}
        assert guesses == {max(set(following), key=following.count)}


def test_sentences_are_of_one_length_and_read_as_documented() -> None:
    assert "清晨，年轻的农民悄悄种下新鲜小麦，去了田野。" in set(islice(chinese.sentences("0"), 20_000))
    assert {len(text) for text in islice(chinese.sentences("1"), 500)} == {chinese.SENTENCE_LENGTH}
    assert set("".join(islice(chinese.sentences("1"), 2000))) <= set(chinese.characters())


def test_the_model_of_the_yaml_fits_the_grammar() -> None:
    config = config_of("cpm", suite="training")
    assert config.model["vocab_size"] == len(vocabulary())
    assert config.max_seq_length == 2 * chinese.SENTENCE_LENGTH == config.model["n_positions"]


def test_right_guesses_in_any_order_score_one_and_padding_does_not_count() -> None:
    targets = torch.tensor([[1, 2, 3, IGNORED]])
    assert score(torch.tensor([[1, 2, 3, 5]]), targets) == pytest.approx(1)
    assert score(torch.tensor([[3, 1, 2, 5]]), targets) < 1, "two of these repeat the token before them"
    assert score(torch.tensor([[2, 3, 1, 5]]), targets) == pytest.approx(1), "the published metric's blind spot"
    assert score(torch.tensor([[4, 4, 4, 4]]), targets) == pytest.approx(0)


def test_repeating_the_input_earns_nothing() -> None:
    """What a fresh model with tied embeddings does: the published metric would give it more than its own target."""
    config, case = config_of("cpm", suite="training", train_sequences=40, validation_sequences=40), Cpm()
    torch.manual_seed(0)
    model = case.create_model(config).eval()
    [tokens], targets = case.build_dataset(config, "validation").__getitems__(list(range(40)))
    with torch.no_grad():
        logits, table = model(tokens)
    guesses = logits.argmax(-1)
    published = torch.cosine_similarity(table[guesses].sum(1), table[targets].sum(1)).mean()
    assert published > config.target
    assert score(guesses, targets, table) < 0.5


def test_a_repetition_that_is_right_counts() -> None:
    assert score(torch.tensor([[7, 7, 7]]), torch.tensor([[7, 7, 7]])) == pytest.approx(1)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two splits of Chinese text, and a tokenizer of characters."""
    lines = {"train": "清晨农民种下小麦\n\n傍晚渔夫修补渔网\n", "val": "老师阅读书本\n" + "水手清洗甲板" * 20 + "\n"}
    for split, text in lines.items():
        (tmp_path / split).mkdir()
        (tmp_path / split / "a.txt").write_text(text, encoding="utf-8")
    characters = sorted(set("".join(lines.values()).replace("\n", "")))
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]), encoding="utf-8"
    )
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return tmp_path


def folder_of(root: Path | None, split: str = "validation", **values: Any) -> BatchDataset:
    host = {"data_dir": root and str(root)}
    return causal_dataset(
        config_of("cpm", "standard", host=host, suite="training", **{"max_seq_length": 16} | values), split
    )


def test_each_line_is_followed_by_the_end_and_shifted_by_one(corpus: Path) -> None:
    data = folder_of(corpus)
    [tokens], targets = data.batch([0, 1])
    assert tokens.shape == targets.shape == (2, 16)
    assert (targets != IGNORED).sum(1).tolist() == [6, 16]
    assert torch.equal(tokens[0, 1:6], targets[0, :5])
    assert targets[0, 5] == 3, "the separator ends a line"
    assert torch.equal(tokens[1, 1:], targets[1, :-1])
    assert 3 not in targets[1], "a long line is cut before its end"
    assert len(folder_of(corpus, "train")) == 2


def test_a_line_of_which_no_token_is_made_is_an_empty_one(corpus: Path) -> None:
    """A space without width, say, that the blank lines which are left out have not."""
    (corpus / "val" / "a.txt").write_text("\u200b\n老师阅读书本\n", encoding="utf-8")
    [tokens], targets = folder_of(corpus).batch([0, 1])
    assert (targets != IGNORED).sum(1).tolist() == [1, 6] and targets[0, 0] == tokens[0, 0] == 3


def test_bad_folders_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="needs --data-dir: the folder with train and val, each with text files"):
        folder_of(None)
    with pytest.raises(StepError, match="has 5 tokens|has \\d+ tokens, the case's model knows 7"):
        folder_of(corpus, model={"vocab_size": 7})
    (corpus / "val" / "b.txt").write_bytes("中文".encode("gb18030"))
    with pytest.raises(StepError, match=r"b\.txt is not UTF-8"):
        folder_of(corpus)
    (corpus / "val" / "b.txt").unlink()
    (corpus / "val" / "a.txt").rename(corpus / "a.txt")
    with pytest.raises(StepError, match=r"val holds no \.txt files"):
        folder_of(corpus)
    (corpus / "val").rmdir()
    with pytest.raises(StepError, match="has no folder val; expected train and val"):
        folder_of(corpus)


def test_missing_tokenizer_is_refused(corpus: Path) -> None:
    (corpus / "vocab.txt").unlink()
    with pytest.raises(StepError, match="The data directory .* holds no tokenizer"):
        folder_of(corpus)
