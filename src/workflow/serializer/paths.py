"""Places inside a value: for people, as in ``$.user.tags[3]``, and as the annotations of the text write them."""

import json
import reprlib
from collections.abc import Iterable

# a place this deep is told by its two ends
_SHOWN_SEGMENTS = 12


class MapKey:
    """The key of a dict whose keys are not all strings, as part of a place."""

    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key


Segment = str | int | MapKey


def render(segments: Iterable[Segment]) -> str:
    """A place as people write it, from the root ``$``."""
    parts: list[str] = []
    in_row = False
    for segment in segments:
        if in_row:
            # the text holds such a dict as rows of key and value; 0 and 1 would mean nothing to a reader
            parts.append("" if segment == 1 else " (the key)")
            in_row = False
        elif isinstance(segment, MapKey):
            parts.append(f"[{reprlib.repr(segment.key)}]")
            in_row = True
        elif isinstance(segment, int):
            parts.append(f"[{segment}]")
        elif segment.isidentifier():
            parts.append(f".{segment if len(segment) <= 100 else segment[:100] + '…'}")  # noqa: PLR2004 - a line's worth
        else:
            parts.append(f"[{json.dumps(reprlib.repr(segment)[1:-1], ensure_ascii=False)}]")
    if len(parts) > _SHOWN_SEGMENTS:
        half = _SHOWN_SEGMENTS // 2
        parts[half:-half] = [f" … ({len(parts) - 2 * half} more) … "]
    return "$" + "".join(parts)


def escape(key: str) -> str:
    """A key as a segment of an annotation's path."""
    if "\\" not in key and "." not in key:
        return key
    return key.replace("\\", "\\\\").replace(".", "\\.")


def split(path: str, *, legacy: bool) -> list[str]:
    """The segments of an annotation's path.

    Args:
        path: The path.
        legacy: The text has no version: a backslash stands for itself unless a dot follows.

    Raises:
        ValueError: It escapes what cannot be escaped.
    """
    if "\\" not in path:
        return path.split(".")
    segments: list[str] = []
    segment: list[str] = []
    letters = iter(path)
    for letter in letters:
        if letter == ".":
            segments.append("".join(segment))
            segment = []
        elif letter == "\\":
            escaped = next(letters, "")
            if escaped == "." or (escaped == "\\" and not legacy):
                segment.append(escaped)
            elif legacy:
                segment.append(letter + escaped)
            else:
                raise ValueError(f"the path {reprlib.repr(path)} of an annotation has a backslash before {escaped!r}")
        else:
            segment.append(letter)
    segments.append("".join(segment))
    return segments
