"""Regular expressions of both languages."""

import re
from typing import Any, Self, cast


class RegExpSource(str):
    """The pattern of a ``re.Pattern`` that was read from a JavaScript ``RegExp``, with the literal it came from.

    A ``re.Pattern`` has no room for what only JavaScript has (the flags g, y, u, v, d, its spelling of named groups),
    but it does keep the very object that it was compiled from, and ``re`` caches patterns by that object's type.

    Args:
        pattern: What Python compiles.
        literal: What JavaScript wrote.
    """

    __slots__ = ("literal",)

    literal: str

    def __new__(cls, pattern: str, literal: str) -> Self:  # noqa: D102 - the class documents its construction
        source = super().__new__(cls, pattern)
        source.literal = literal
        return source

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RegExpSource) and self.literal != other.literal:
            return False
        return str.__eq__(self, cast("str", other))

    def __hash__(self) -> int:
        return str.__hash__(self)


_NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z_])")
_NAMED_REFERENCE = re.compile(r"(?<!\\)\\k<(\w+)>")
_LITERAL = re.compile(r"/(?P<body>.*)/(?P<flags>[dgimsuvy]*)", re.DOTALL)
# what JavaScript would refuse, or take for something else
_PYTHON_ONLY = re.compile(r"\(\?(?:[P#(>]|[aiLmsux-]+[:)])|\\[AZ]|[*+?}]\+")
_SHARED_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}


def regexp_literal(pattern: "re.Pattern[Any]") -> str | None:
    """The JavaScript literal of a pattern, or None where JavaScript would not read it as the same."""
    source = pattern.pattern
    if isinstance(source, RegExpSource):
        return source.literal
    shared = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.UNICODE
    if type(source) is not str or pattern.flags & ~shared or _PYTHON_ONLY.search(source):
        return None
    return f"/{source}/" + "".join(letter for letter, flag in _SHARED_FLAGS.items() if pattern.flags & flag)


def pattern_of(literal: str) -> "re.Pattern[str]":
    """The pattern of a JavaScript literal."""
    match = _LITERAL.fullmatch(literal)
    if match is None:
        raise ValueError("a RegExp is written /pattern/flags")
    body, letters = match["body"], match["flags"]
    python = _NAMED_REFERENCE.sub(r"(?P=\1)", _NAMED_GROUP.sub("(?P<", body))
    flags = re.NOFLAG
    for letter, flag in _SHARED_FLAGS.items():
        if letter in letters:
            flags |= flag
    plain = re.compile(python, flags)
    return plain if regexp_literal(plain) == literal else re.compile(RegExpSource(python, literal), flags)
