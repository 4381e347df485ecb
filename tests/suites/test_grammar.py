"""The grammar, and that the ceiling stated in bert.yaml is the ceiling."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from suites.data.loading import TensorData
from suites.data.text import grammar
from suites.data.text.masked import IGNORED, grammar_text, text_loader, vocabulary
from tests.suites import guessers
from tests.suites.conftest import config_of


def split_of(split: str) -> TensorData:
    config = config_of("bert")
    items = config.validation_sequences if split == "validation" else 2000
    return grammar_text(split, items, config.max_seq_length, config.seed)


def test_the_yaml_states_the_exact_ceiling() -> None:
    assert config_of("bert").best_possible == pytest.approx(guessers.best_accuracy(), abs=5e-5)


def test_the_target_takes_context_from_both_sides() -> None:
    target = config_of("bert").target
    assert target <= 0.98 * guessers.best_accuracy()
    assert target >= 1.3 * max(guessers.accuracy_of_one_side())
    assert target >= 5 * guessers.accuracy_without_context()


def test_the_ceiling_is_what_the_best_guesser_reaches() -> None:
    clauses = list(islice(grammar.clauses("another seed"), 40_000))
    right = sum(guessers.best_guess(clause) == clause.chain[clause.hidden] for clause in clauses)
    assert right / len(clauses) == pytest.approx(guessers.best_accuracy(), abs=0.005)


def test_the_best_guesser_reaches_the_stated_share_of_the_validation_set() -> None:
    """Reads the sentences back from the tensors that the model gets."""
    data, words = split_of("validation"), list(vocabulary())
    right = hidden = 0
    for tokens, targets in zip(data.inputs[0].tolist(), data.targets.tolist(), strict=True):
        sentence = [words[token] for token in tokens if words[token] not in ("[PAD]", "[CLS]", "[SEP]")]
        answers = [words[target] for target in targets if target != IGNORED]
        for answer, start in zip(answers, range(0, len(sentence), grammar.CLAUSE_LENGTH), strict=True):
            clause = sentence[start : start + grammar.CLAUSE_LENGTH]
            chain = [clause[1], clause[4], clause[6], clause[9], clause[12]]
            role = chain.index("[MASK]")
            right += guessers.best_guess(grammar.Clause(tuple(clause), tuple(chain), role)) == answer
            hidden += 1
    assert hidden > 2000
    assert right / hidden == pytest.approx(config_of("bert").best_on_validation, abs=5e-5)
    assert config_of("bert").target < right / hidden


def test_a_clause_hides_one_meaningful_word() -> None:
    for clause in islice(grammar.clauses("x"), 100):
        assert clause.hidden in grammar.HIDDEN_ROLES
        assert clause.words[clause.position] == clause.chain[clause.hidden]
        assert len(clause.words) == grammar.CLAUSE_LENGTH


def test_same_seed_same_text_another_seed_another() -> None:
    same = [grammar_text("validation", 20, 64, 0).identity for _ in range(2)]
    assert same[0] == same[1]
    assert grammar_text("validation", 20, 64, 1).identity.sha256 != same[0].sha256
    assert grammar_text("train", 20, 64, 0).identity.sha256 != same[0].sha256


def test_splits_share_no_sequence() -> None:
    train, validation = (set(map(tuple, split_of(split).inputs[0].tolist())) for split in ("train", "validation"))
    assert not train & validation


def test_sequences_fit_and_are_padded() -> None:
    data = split_of("validation")
    [tokens, attention], targets = data.inputs, data.targets
    ids = vocabulary()
    assert tokens.shape == attention.shape == targets.shape
    assert config_of("bert").model["vocab_size"] == len(ids)
    assert set(attention.sum(1).tolist()) == {44, 58}
    assert torch.equal(attention == 0, tokens == ids["[PAD]"])
    assert torch.equal(targets != IGNORED, tokens == ids["[MASK]"])


def test_loader_with_workers_gives_a_last_short_batch() -> None:
    loader = text_loader(config_of("bert", num_workers=2, batch_size=150), "validation")
    assert [len(targets) for _, targets in loader][-1] == len(loader.dataset) % 150 != 0
