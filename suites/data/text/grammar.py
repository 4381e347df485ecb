"""A small seeded grammar of English whose best possible masked-word accuracy is known exactly.

A clause reads "at dawn the old baker quietly cuts the fresh bread near the oven ." Five of its
words carry meaning and form a Markov chain, when -> who -> does -> what -> where; the words
between them (`_FILLERS`) are drawn independently and say nothing. One of who, does and what is
hidden. Guessing it well takes the meaningful word on its left and the one on its right, neither
of which stands next to it, and even both leave a doubt.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

HIDDEN_ROLES = (1, 2, 3)
"""Who, does, what. One of them is hidden in each clause, each as often."""

# Each word and what may follow it in the chain, the likeliest first; each follower is half as
# likely as the one before it.
_WHO = {
    "dawn": "baker farmer fisher nurse",
    "morning": "farmer teacher gardener clerk",
    "noon": "cook carpenter painter teacher",
    "dusk": "fisher tailor gardener sailor",
    "night": "nurse sailor baker clerk",
}
_DOES = {
    "baker": "cuts sells weighs",
    "farmer": "plants sells carries",
    "fisher": "mends cleans sells",
    "nurse": "folds washes opens",
    "teacher": "opens reads counts",
    "gardener": "plants cuts waters",
    "clerk": "counts folds reads",
    "cook": "cleans cuts weighs",
    "carpenter": "mends carries paints",
    "painter": "paints cleans opens",
    "tailor": "folds mends washes",
    "sailor": "washes paints carries",
}
_WHAT = {
    "cuts": "bread roses cloth",
    "sells": "fish bread apples",
    "weighs": "apples flour fish",
    "plants": "roses beans trees",
    "carries": "planks flour boxes",
    "mends": "nets shirts chairs",
    "cleans": "fish brushes windows",
    "folds": "shirts letters cloth",
    "washes": "shirts windows decks",
    "opens": "windows boxes books",
    "reads": "letters books maps",
    "counts": "coins books boxes",
    "waters": "beans roses trees",
    "paints": "chairs boats planks",
}
_WHERE = {
    "bread": "oven market",
    "roses": "gate church",
    "cloth": "loom market",
    "fish": "harbour market",
    "apples": "orchard market",
    "flour": "mill oven",
    "beans": "field gate",
    "trees": "orchard field",
    "planks": "mill harbour",
    "boxes": "station harbour",
    "nets": "harbour bridge",
    "shirts": "river loom",
    "chairs": "church school",
    "brushes": "bridge river",
    "windows": "church station",
    "letters": "station school",
    "decks": "harbour river",
    "books": "school church",
    "maps": "station bridge",
    "coins": "market station",
    "boats": "river harbour",
}
_FOLLOWERS = (_WHO, _DOES, _WHAT, _WHERE)

_FILLERS = {
    "adjective": ("old", "young", "tall", "tired"),
    "adverb": ("quietly", "slowly", "quickly", "gladly"),
    "quality": ("fresh", "small", "fine", "good"),
    "place": ("near", "behind", "by", "beyond"),
}
# A number is a position in the chain, a key of _FILLERS a drawn filler, another word itself.
_TEMPLATE = ("at", 0, "the", "adjective", 1, "adverb", 2, "the", "quality", 3, "place", "the", 4, ".")

CLAUSE_LENGTH = len(_TEMPLATE)
"""Words of a clause, its full stop included."""

Chain = tuple[str, ...]


@dataclass(frozen=True)
class Clause:
    """A clause, its five meaningful words, and which of them (1, 2 or 3) is hidden."""

    words: tuple[str, ...]
    chain: Chain
    hidden: int

    @property
    def position(self) -> int:
        """Where in `words` the hidden word stands."""
        return _TEMPLATE.index(self.hidden)


def vocabulary() -> list[str]:
    """Every word of the grammar, sorted."""
    chain = itertools.chain.from_iterable(words for words, _ in chains())
    fixed = (word for word in _TEMPLATE if isinstance(word, str) and word not in _FILLERS)
    return sorted({*chain, *fixed, *itertools.chain.from_iterable(_FILLERS.values())})


def words_of(role: int) -> list[str]:
    """Every word that may stand in a position of the chain, sorted."""
    return sorted({chain[role] for chain, _ in chains()})


def clauses(seed: str) -> Iterator[Clause]:
    """Clauses without end, the same for the same seed."""
    draw = random.Random(seed)  # noqa: S311 (not for secrets)
    possible, weights = zip(*chains(), strict=True)
    cumulative = list(itertools.accumulate(float(weight) for weight in weights))
    while True:
        chain = draw.choices(possible, cum_weights=cumulative)[0]
        words = tuple(_word(slot, chain, draw) for slot in _TEMPLATE)
        yield Clause(words, chain, draw.choice(HIDDEN_ROLES))


@cache
def chains() -> tuple[tuple[Chain, Fraction], ...]:
    """Every chain that the grammar allows, and its exact probability."""
    found: list[tuple[Chain, Fraction]] = [((word,), Fraction(1, len(_WHO))) for word in _WHO]
    for followers in _FOLLOWERS:
        found = [
            ((*chain, word), probability * share)
            for chain, probability in found
            for word, share in _shares(followers[chain[-1]])
        ]
    return tuple(found)


def _shares(followers: str) -> list[tuple[str, Fraction]]:
    words = followers.split()
    whole = 2 ** len(words) - 1
    return [(word, Fraction(2 ** (len(words) - 1 - rank), whole)) for rank, word in enumerate(words)]


def _word(slot: int | str, chain: Chain, draw: random.Random) -> str:
    if isinstance(slot, int):
        return chain[slot]
    return draw.choice(_FILLERS[slot]) if slot in _FILLERS else slot
