"""A small seeded grammar of Chinese for next-character prediction.

A sentence reads "清晨，年轻的农民悄悄种下新鲜小麦，去了田野。". Five of its words form a Markov chain,
when -> who -> does -> what -> where; the adjective, adverb and quality between them are drawn independently and say
nothing. Each meaningful word thus depends on one that stands several characters before it, and which of its followers
comes is never certain. All drawn words have two characters: nothing but the grammar tells what comes next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import chain

# Each word and what may follow it in the chain, the likeliest first.
_WHO = {
    "清晨": "农民 渔夫 护士",
    "上午": "老师 园丁 商人",
    "中午": "厨师 木匠 老师",
    "傍晚": "裁缝 渔夫 园丁",
    "深夜": "护士 水手 厨师",
}
_DOES = {
    "农民": "种下 运走 卖掉",
    "渔夫": "修补 清洗 卖掉",
    "护士": "叠好 打开 清洗",
    "老师": "打开 阅读 清点",
    "园丁": "种下 剪下 浇灌",
    "商人": "清点 卖掉 阅读",
    "厨师": "切开 清洗 称量",
    "木匠": "修补 油漆 运走",
    "裁缝": "剪下 叠好 修补",
    "水手": "油漆 清洗 运走",
}
_WHAT = {
    "种下": "小麦 玫瑰 果树",
    "运走": "木板 面粉 箱子",
    "卖掉": "鲜鱼 苹果 面包",
    "修补": "渔网 椅子 衬衫",
    "清洗": "窗户 鲜鱼 甲板",
    "叠好": "衬衫 信纸 布料",
    "打开": "箱子 书本 窗户",
    "阅读": "书本 地图 信纸",
    "清点": "硬币 箱子 书本",
    "剪下": "布料 玫瑰 渔网",
    "浇灌": "果树 玫瑰 小麦",
    "切开": "面包 苹果 鲜鱼",
    "称量": "面粉 苹果 硬币",
    "油漆": "椅子 甲板 木板",
}
_WHERE = {
    "小麦": "田野 磨坊",
    "玫瑰": "花园 教堂",
    "果树": "果园 田野",
    "木板": "码头 工地",
    "面粉": "磨坊 厨房",
    "箱子": "车站 码头",
    "鲜鱼": "港口 市场",
    "苹果": "果园 市场",
    "面包": "厨房 市场",
    "渔网": "港口 河边",
    "椅子": "学校 教堂",
    "衬衫": "河边 商店",
    "窗户": "教堂 车站",
    "甲板": "码头 河边",
    "信纸": "邮局 学校",
    "布料": "商店 市场",
    "书本": "学校 邮局",
    "地图": "车站 码头",
    "硬币": "银行 市场",
}
_FOLLOWERS: tuple[Mapping[str, str], ...] = (_WHO, _DOES, _WHAT, _WHERE)

_FILLERS = {
    "adjective": "年轻 年老 勤劳",
    "adverb": "悄悄 慢慢 匆匆",
    "quality": "新鲜 漂亮 沉重",
}
# A number is a position in the chain, a key of _FILLERS a drawn filler, anything else itself.
_TEMPLATE = (0, "，", "adjective", "的", 1, "adverb", 2, "quality", 3, "，去了", 4, "。")

SENTENCE_LENGTH = sum(2 if isinstance(slot, int) or slot in _FILLERS else len(slot) for slot in _TEMPLATE)
"""Characters of a sentence, its full stop included."""

Shares = dict[str, float]


def characters() -> list[str]:
    """Every character of the grammar, sorted."""
    words = chain.from_iterable((word, *followers.split()) for part in _FOLLOWERS for word, followers in part.items())
    fixed = (slot for slot in _TEMPLATE if isinstance(slot, str) and slot not in _FILLERS)
    return sorted(set("".join([*words, *fixed, *chain.from_iterable(_FILLERS.values())])))


def sentences(seed: str) -> Iterator[str]:
    """Sentences without end, the same for the same seed."""
    draw = random.Random(seed)  # noqa: S311 (not for secrets)
    while True:
        words: list[str] = []
        for slot in _TEMPLATE:
            shares = _choices(slot, _chain_of(words))
            words += draw.choices(list(shares), list(shares.values()))
        yield "".join(words)


def _chain_of(words: list[str]) -> list[str]:
    """The meaningful words among the first words of a sentence."""
    return [word for word, slot in zip(words, _TEMPLATE, strict=False) if isinstance(slot, int)]


def _choices(slot: int | str, chain_so_far: list[str]) -> Shares:
    """What may stand in a slot, and how likely it is."""
    if slot == 0:
        return _shares(" ".join(_WHO), 1.25)
    if isinstance(slot, int):
        return _shares(_FOLLOWERS[slot - 1][chain_so_far[-1]])
    return _shares(_FILLERS.get(slot, slot))


def _shares(text: str, steepness: float = 4) -> Shares:
    """Words and how likely each is, every one `steepness` times likelier than the next."""
    words = text.split()
    weights = [steepness**-rank for rank in range(len(words))]
    return {word: weight / sum(weights) for word, weight in zip(words, weights, strict=True)}
