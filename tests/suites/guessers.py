"""Guessers who know a grammar: what the best model of it can reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from suites.data.text import chinese
from suites.data.text.grammar import HIDDEN_ROLES, Chain, Clause, chains

Visible = Callable[[int, int], bool]


def best_accuracy() -> float:
    """The share of hidden words that a guesser who knows the grammar gets right: the ceiling."""
    return accuracy(lambda hidden, other: True)


def accuracy_without_context() -> float:
    """The same for one who sees only the hidden word's role: all that its neighbours tell."""
    return accuracy(lambda hidden, other: False)


def accuracy_of_one_side() -> tuple[float, float]:
    """The same for one who sees only what stands before the hidden word, and only what stands after."""
    return accuracy(lambda hidden, other: other < hidden), accuracy(lambda hidden, other: other > hidden)


def accuracy(visible: Visible) -> float:
    """What the best guesser reaches who sees the words for which `visible(hidden, other)` holds.

    For each role and context the best guess is the likeliest word; its joint probability with
    the context, summed over the contexts, is the share that it gets right.
    """
    total = sum(
        (max(words.values()) for hidden in HIDDEN_ROLES for words in _joint(hidden, visible).values()), Fraction()
    )
    return float(total / len(HIDDEN_ROLES))


def best_guess(clause: Clause) -> str:
    """The likeliest hidden word, given all others."""
    context = tuple(word for role, word in enumerate(clause.chain) if role != clause.hidden)
    words = _full_context(clause.hidden)[context]
    return max(words, key=words.__getitem__)


def _joint(hidden: int, visible: Visible) -> dict[Chain, dict[str, Fraction]]:
    """Probability of each context (the visible words) together with each hidden word."""
    joint: dict[Chain, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for chain, probability in chains():
        context = tuple(word for role, word in enumerate(chain) if role != hidden and visible(hidden, role))
        joint[context][chain[hidden]] += probability
    return joint


@cache
def _full_context(hidden: int) -> dict[Chain, dict[str, Fraction]]:
    return _joint(hidden, lambda hidden, other: True)


def best_guesses(sentence: str, knows_chain: bool = True) -> str:
    """The likeliest character at each place of a Chinese sentence, given all before it.

    Args:
        sentence: a sentence of the grammar.
        knows_chain: whether the guesser relates a meaningful word to the one before it in the chain; otherwise all
            that it knows is the place in the sentence and the beginning of the word there.
    """
    words: list[str] = []
    guesses = ""
    for slot in chinese._TEMPLATE:
        shares = chinese._choices(slot, chinese._chain_of(words)) if knows_chain else _anywhere(slot)
        start = len(guesses)
        word = sentence[start : start + len(next(iter(shares)))]
        for place in range(len(word)):
            following: dict[str, float] = defaultdict(float)
            for candidate, share in shares.items():
                if candidate[:place] == word[:place]:
                    following[candidate[place]] += share
            guesses += max(following, key=following.__getitem__)
        words.append(word)
    return guesses


def _anywhere(slot: int | str) -> chinese.Shares:
    """What may stand in a slot, and how likely it is, for who does not know the chain so far."""
    if not isinstance(slot, int) or slot == 0:
        return chinese._choices(slot, [])
    together: dict[str, float] = defaultdict(float)
    for word, share in _anywhere(slot - 1).items():
        for follower, of_word in chinese._shares(chinese._FOLLOWERS[slot - 1][word]).items():
            together[follower] += share * of_word
    return together
