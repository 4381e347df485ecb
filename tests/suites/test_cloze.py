"""Blank infilling: how questions are laid out and scored, and what of ReCoRD's files is read and refused."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from suites.data.loading import BatchDataset
from suites.data.text import grammar
from suites.data.text.cloze import Cloze, cloze_dataset, grammar_cloze, lay_out
from suites.data.text.masked import IGNORED, vocabulary
from suites.models import blank_infilling_mask
from suites.training.test_glm import TestGlm as Glm
from tests.suites import guessers
from tests.suites.conftest import config_of

BEGIN, END = 1, 2
QUESTION = Cloze([BEGIN, 10, 3, 11, END], 2, [[20, 21], [22]], [False, True])


def test_layout() -> None:
    [tokens, segments, positions, blocks, expected, present], targets = lay_out([QUESTION], 12, BEGIN, END)
    assert tokens.tolist() == [[1, 10, 3, 11, 2, 1, 20, 21, 1, 22, 0, 0]]
    assert segments.tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 2, 2, -1, -1]]
    assert positions.tolist() == [[0, 1, 2, 3, 4, 2, 2, 2, 2, 2, 0, 0]], "a candidate stands where the blank stands"
    assert blocks.tolist() == [[0, 0, 0, 0, 0, 1, 2, 3, 1, 2, 0, 0]]
    assert expected.tolist() == [[*[IGNORED] * 5, 20, 21, 2, 22, 2, IGNORED, IGNORED]]
    assert present.tolist() == [[True, True]] and targets.tolist() == [[0, 1]]


def test_who_sees_whom() -> None:
    mask = blank_infilling_mask(torch.tensor([[0, 0, 1, 1, 2, -1]]))[0] == 0
    assert mask.int().tolist() == [
        [1, 1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 0],
        [1, 1, 0, 0, 0, 1],
    ]


def test_candidates_score_together_as_they_would_alone() -> None:
    torch.manual_seed(0)
    model = Glm().create_model(config_of("glm", suite="training")).eval()
    other = Cloze([BEGIN, 3, END], 1, [[30], [31, 32, 33], [34]], [True, False, False])

    def scores(*questions: Cloze) -> torch.Tensor:
        with torch.no_grad():
            return model(*lay_out(questions, 24, BEGIN, END)[0])

    together = scores(QUESTION, other)
    assert together.shape == (2, 3)
    assert together[0, 2] < -1e30, "there is no third candidate"
    for row, question in enumerate((QUESTION, other)):
        for number, candidate in enumerate(question.candidates):
            alone = scores(Cloze(question.context, question.blank, [candidate], [True]))
            assert together[row, number] == pytest.approx(float(alone), abs=1e-4)


def test_any_right_candidate_will_do() -> None:
    lowest = torch.finfo(torch.float32).min
    outputs = [torch.tensor([[1.0, 3.0, 2.0], [5.0, 0.0, lowest]])]
    assert Glm().evaluator(outputs, torch.tensor([[1, 1, 0], [0, 1, IGNORED]])) == (1, 2)
    loss = Glm().loss([outputs[0][:1]], torch.tensor([[0, 1, 1]]))
    assert float(loss) == pytest.approx(-float(torch.softmax(outputs[0][0], 0)[1:].sum().log()))
    assert float(Glm().loss([outputs[0][1:]], torch.tensor([[1, 0, IGNORED]]))) == pytest.approx(0.0067, abs=1e-4)


def test_the_yaml_states_the_ceiling() -> None:
    config = config_of("glm", suite="training")
    assert config.best_possible == pytest.approx(guessers.best_accuracy(), abs=5e-5)
    clauses = list(islice(grammar.clauses(f"grammar/validation/{config.seed}"), config.validation_sequences))
    right = sum(guessers.best_guess(clause) == clause.chain[clause.hidden] for clause in clauses)
    assert right / len(clauses) == pytest.approx(config.best_on_validation, abs=5e-5)
    assert config.target == pytest.approx(0.97 * config.best_possible, abs=1e-3)


def test_grammar_questions_hide_one_word_among_all_of_its_role() -> None:
    config, words = config_of("glm", suite="training"), list(vocabulary())
    data = grammar_cloze("validation", 50, config.max_seq_length, config.seed)
    [tokens, segments, _, _, _, present], targets = data.batch(list(range(50)))
    assert config.model["vocab_size"] == len(words)
    for row, clause in enumerate(islice(grammar.clauses("grammar/validation/0"), 50)):
        context = [words[token] for token in tokens[row][segments[row] == 0]]
        assert context.count("[MASK]") == 1 and context.index("[MASK]") == clause.position + 1
        assert (targets[row] == 1).sum() == 1
        answer = int(targets[row].argmax())
        assert words[int(tokens[row][segments[row] == answer + 1][1])] == clause.chain[clause.hidden]
        assert int(present[row].sum()) == len(grammar.words_of(clause.hidden)) >= 12


PASSAGE = "The old baker sells bread. @highlight\nA young sailor paints boats."


def entity(text: str) -> dict[str, int]:
    """Both ends are within the entity."""
    start = PASSAGE.index(text)
    return {"start": start, "end": start + len(text) - 1}


ENTITIES = [entity(text) for text in ("old baker", "young sailor", "bread", "old baker")]


def item(**values: Any) -> dict[str, Any]:
    asked = {"query": "@placeholder paints the end", "answers": [{"start": 0, "end": 0, "text": "The Young Sailor."}]}
    return {
        "passage": {"text": PASSAGE, "entities": ENTITIES},
        "qas": [asked, asked | {"query": "bread by @placeholder"}],
    } | values


def written(root: Path, *items: Any) -> Path:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in items]
    for name in ("train.jsonl", "val.jsonl"):
        (root / name).write_text("\n".join(lines), encoding="utf-8")
    return root


def record_of(root: Path | None, weights: Path, split: str = "validation", **values: Any) -> BatchDataset:
    host = {"data_dir": root and str(root), "weights": str(weights)}
    sizes = {"max_seq_length": 80, "num_workers": 0}
    return cloze_dataset(config_of("glm", "standard", host=host, suite="training", **sizes | values), split)


def test_each_query_is_a_question_about_the_entities(tmp_path: Path, tokenizer_files: Path) -> None:
    from transformers import AutoTokenizer

    data = record_of(written(tmp_path, item(), "", item()), tokenizer_files)
    assert len(data) == data.identity.items == 4
    [tokens, segments, _, _, expected, present], targets = data.batch([0, 1])
    assert targets.tolist() == [[0, 1, 0]] * 2 and present.all(), "compared as SuperGLUE's scorer does; no entity twice"
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_files)
    context = tokens[0][segments[0] == 0]
    assert tokenizer.decode(context).split("[SEP]")[1].strip() == "[MASK] paints the end"
    for number, name in enumerate(("old baker", "young sailor", "bread"), 1):
        assert tokenizer.decode(expected[0][segments[0] == number]) == f"{name} [SEP]"
    mask = int((context == tokenizer.mask_token_id).nonzero())
    assert mask > 10 and "highlight" not in tokenizer.decode(context)


def test_a_candidate_lies_between_the_tokenizers_own_pieces(tmp_path: Path, tokenizer_files: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tokenizer_files)
    tokenizer.add_tokens(["<|startofpiece|>", "<|endofpiece|>"])
    tokenizer.save_pretrained(tokenizer_files)
    [tokens, segments, _, _, expected, _], _ = record_of(written(tmp_path, item()), tokenizer_files).batch([0])
    assert tokenizer.decode(tokens[0][segments[0] == 3]) == "<|startofpiece|> bread"
    assert tokenizer.decode(expected[0][segments[0] == 3]) == "bread <|endofpiece|>"


def test_long_passages_lose_their_end_never_the_query(tmp_path: Path, tokenizer_files: Path) -> None:
    long = item(passage={"text": PASSAGE + " the end" * 200, "entities": ENTITIES})
    [tokens, segments, _, _, _, present], _ = record_of(written(tmp_path, long), tokenizer_files).batch([0])
    assert (segments >= 0).all() and present.sum() == 3
    mask = int(record_of(tmp_path, tokenizer_files)._tokenizer.mask_token_id)  # type: ignore[attr-defined]
    assert (tokens == mask).sum() == 1
    with pytest.raises(StepError, match=r"Question 1 of .*val\.jsonl takes \d+ tokens of query and candidates"):
        record_of(tmp_path, tokenizer_files, max_seq_length=12).batch([0])


def test_training_draws_candidates_anew_each_epoch(tmp_path: Path, tokenizer_files: Path) -> None:
    entities = [*ENTITIES, *map(entity, ("The", "sells", "boats"))]
    data = record_of(
        written(tmp_path, item(passage={"text": PASSAGE, "entities": entities})), tokenizer_files, "train",
        train_candidates=2,
    )  # fmt: skip
    drawn = []
    for epoch in [*range(8), *range(8)]:
        data.epoch = epoch
        [tokens, segments, *_], targets = data.batch([0])
        assert targets.tolist() == [[1, 0]], "the answer is always there"
        drawn.append(tuple(tokens[0][segments[0] == 2].tolist()))
    assert drawn[:8] == drawn[8:]
    assert len(set(drawn)) > 2


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ("{", "line 2: is not JSON"),
        ("[]", "line 2: list indices .*expected ReCoRD's passage.text"),
        ({"passage": {"text": PASSAGE}, "qas": []}, "line 2: has no 'entities'; expected"),
        (item(qas=[{"query": "paints the end", "answers": []}]), "has 0 @placeholders, expected one"),
        (
            item(qas=[{"query": "@placeholder", "answers": [{"text": "nobody"}]}]),
            "no entity of the passage is an answer",
        ),
        (item(qas=[{"query": "@placeholder"}]), "has no 'answers'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, tokenizer_files: Path, bad: Any, expected: str) -> None:
    with pytest.raises(StepError, match=expected):
        record_of(written(tmp_path, item(), bad), tokenizer_files)


def test_bad_files_are_refused(tmp_path: Path, tokenizer_files: Path) -> None:
    with pytest.raises(StepError, match="needs --data-dir: the folder with SuperGLUE's train.jsonl and val.jsonl"):
        record_of(None, tokenizer_files)
    with pytest.raises(StepError, match=r"val\.jsonl cannot be read \(No such file.*expected ReCoRD's train\.jsonl"):
        record_of(tmp_path, tokenizer_files)
    with pytest.raises(StepError, match="holds no questions"):
        record_of(written(tmp_path, ""), tokenizer_files)
    (tmp_path / "val.jsonl").write_bytes(json.dumps(item(query="café"), ensure_ascii=False).encode("latin-1"))
    with pytest.raises(StepError, match="line 1: is not UTF-8"):
        record_of(tmp_path, tokenizer_files)
