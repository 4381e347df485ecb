"""Damage: valid inputs with values dropped, retyped, repeated, nested or out of all bounds, and wrong bytes."""

from __future__ import annotations

import copy
import json
from typing import Any

import yaml
from hypothesis import strategies as st

DEEP = json.loads("[" * 80 + "]" * 80)
STRANGE = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63 - 1, 2**63, -(2**63), 10**400),
    *(0.0, -0.0, 0.5, -1.5, 1e9, 1e18, -1e18, 1e300, -1e300, 1.7e308, 1e-9, 1e-300, 5e-324),
    *(float("nan"), float("inf"), float("-inf")),
    *("", "x", "7", "1e-4", "nan", "2026-01-01", "\x1b[31mred\x07", "<script>alert(1)</script>", "\ud800", "\x00"),
    *("../../etc/passwd", "x" * 5000, "a\nb", "\N{RIGHT-TO-LEFT OVERRIDE}", "=HYPERLINK(1)", "{{7*7}}"),
    *([], [[]], [None], {}, {"": None}, {"a": {"b": 1}}, [1e308, 5e-324, 1e308], list(range(200)), DEEP),
]
"""What takes the place of a value."""


RUBBISH = (b"\n", b"\x00", b"[" * 3000, b"{", b'"', b"\xff", b"9" * 400, b"- " * 2000, b"&a *a")


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value.keys() if isinstance(value, dict) else range(min(len(value), 6)) if isinstance(value, list) else ()
    return [path, *(place for key in keys for place in _places(value[key], (*path, key)))]


@st.composite
def damaged(draw: st.DrawFn, whole: Any, most: int = 3) -> Any:
    """A value with up to `most` of its parts changed."""
    value = copy.deepcopy(whole)
    for _ in range(draw(st.integers(0, most))):
        path = draw(st.sampled_from(_places(value)))
        if not path:
            continue
        *outer, key = path
        parent = value
        for step in outer:
            parent = parent[step]
        change = draw(st.sampled_from(("replace", "replace", "replace", "drop", "rename", "repeat", "nest")))
        if change == "drop":
            del parent[key]
        elif change == "rename" and isinstance(parent, dict):
            parent[draw(st.sampled_from([k for k in STRANGE if isinstance(k, str)]))] = parent.pop(key)
        elif change == "repeat" and isinstance(parent, list):
            parent[key:key] = [copy.deepcopy(parent[key])] * draw(st.integers(1, 3))
        elif change == "nest":
            parent[key] = [parent[key]]
        else:
            strange = st.sampled_from(STRANGE) | st.floats() | st.integers()
            parent[key] = copy.deepcopy(draw(strange))  # the next change may be within it
    return value


FLOATS = [*(0.0, -0.0, -1.5, 5e-324, -5e-324, 1e-300, 1e-9, 0.999, 1.0, 1e6, 1e9, 1.79e9, 253402300799.0, 1e15, 1e18)]
FLOATS += [*(1e30, 1e100, 1e300, 1.7e308, -1e300, -1.7e308, -62135596800.0)]
WHOLE = [*(0, -1, 1, 2, 3, 10**6, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63) + 1)]
TEXTS = [text for text in STRANGE if isinstance(text, str)]


@st.composite
def extreme(draw: st.DrawFn, whole: Any, most: int = 6) -> Any:
    """A value of the same form: numbers and text are others of their type, lists are empty or short."""
    value = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, most))):
        *outer, key = draw(st.sampled_from([path for path in _places(value) if path]))
        parent = value
        for step in outer:
            parent = parent[step]
        old = parent[key]
        if isinstance(old, list):
            parent[key] = copy.deepcopy(old[: draw(st.integers(0, 1))] * draw(st.sampled_from((1, 1, 3))))
        elif isinstance(old, bool):
            parent[key] = not old
        elif isinstance(old, int):
            parent[key] = draw(st.sampled_from(WHOLE))
        elif isinstance(old, float):
            parent[key] = draw(st.sampled_from(FLOATS))
        elif isinstance(old, str):
            parent[key] = draw(st.sampled_from(TEXTS))
    return value


@st.composite
def damaged_text(draw: st.DrawFn, content: bytes, most: int = 3) -> bytes:
    """Bytes with up to `most` changes: cut, flipped, inserted, repeated."""
    for _ in range(draw(st.integers(0, most))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        to = min(len(content), at + draw(st.integers(1, 40)))
        change = draw(st.sampled_from(("cut", "flip", "insert", "repeat", "truncate")))
        if change == "cut":
            content = content[:at] + content[to:]
        elif change == "flip":
            content = content[:at] + draw(st.binary(min_size=1, max_size=2)) + content[at + 1 :]
        elif change == "insert":
            content = content[:at] + draw(st.sampled_from(RUBBISH)) + content[at:]
        elif change == "repeat":
            content = content[:to] + content[at:]
        else:
            content = content[:to]
    return content


def lines(events: list[Any]) -> bytes:
    """A log of these events."""
    return b"".join(_json(event) + b"\n" for event in events)


def logs(events: list[Any]) -> st.SearchStrategy[bytes]:
    """Logs whose events or bytes are damaged."""
    return extreme(events).map(lines) | damaged(events).map(lines) | damaged_text(lines(events))


def jsons(value: Any) -> st.SearchStrategy[bytes]:
    """JSON files whose values or bytes are damaged."""
    return extreme(value).map(_json) | damaged(value).map(_json) | damaged_text(_json(value))


TAGGED = b"""
a: !!bool 3
b: !!int ''
c: !!timestamp x
d: 2026-01-01
e: .nan
f: !!binary aGVsbG8=
g: !!set {x, y}
h: !!omap [x: 1]
i: &i [*i]
j: !!float x
k: 0x_
l: 1:30:00
? [m]
: 1
<<: {n: 1}
o: !!python/object/apply:os.system [true]
p: "\\e[31m"
q: 1e-4
"""
_TAGS = [line for line in TAGGED.splitlines(keepends=True) if line.strip()]


def yamls(value: Any) -> st.SearchStrategy[bytes]:
    """YAML files whose values, bytes or tags are damaged."""
    whole = _yaml(value)
    tagged = st.lists(st.sampled_from(_TAGS), min_size=1, max_size=2).map(lambda more: whole + b"".join(more))
    return extreme(value).map(_yaml) | damaged(value).map(_yaml) | damaged_text(whole) | tagged


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _yaml(value: Any) -> bytes:
    return yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
