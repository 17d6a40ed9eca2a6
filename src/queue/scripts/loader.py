"""Lua scripts from files: includes are resolved once each, and errors say the file and line they came from."""

import functools
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

_INCLUDE: Final = re.compile(r"^--- @include (\w+)$")
_PLACE: Final = re.compile(r"user_script:(\d+)")


class ScriptSourceError(Exception):
    """A script's source is at fault: an include that is missing or includes itself."""


@dataclass(frozen=True, slots=True)
class Script:
    """A transition, ready to be sent.

    Attributes:
        name: Its file's name without the ending.
        text: The whole Lua text, includes first.
        sha: Its SHA-1, as EVALSHA wants it.
        origins: For each line of the text the file and line that it came from.
    """

    name: str
    text: str
    sha: str
    origins: tuple[tuple[str, int], ...]

    def locate(self, message: str) -> str:
        """A server's error text, with our files and lines in place of positions in the sent text."""

        def origin(match: re.Match[str]) -> str:
            line = int(match[1])
            if not 1 <= line <= len(self.origins):
                return match[0]
            return "{}.lua:{}".format(*self.origins[line - 1])

        return f"{self.name}: {_PLACE.sub(origin, message)}"


def _folder() -> Traversable:
    return resources.files(__name__.rpartition(".scripts.")[0]) / "lua"


@functools.cache
def load(name: str) -> Script:
    """Read a script with its includes.

    Raises:
        ScriptSourceError: An include does not exist, or includes itself.
    """
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    for text, origin in _resolve(_folder(), name, (), set()):
        lines.append(text)
        origins.append(origin)
    text = "\n".join(lines)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), tuple(origins))


def _resolve(
    folder: Traversable, name: str, path: tuple[str, ...], done: set[str]
) -> Iterable[tuple[str, tuple[str, int]]]:
    place = f"includes/{name}" if path else name
    if place in path:
        raise ScriptSourceError(f"a cycle of includes: {' -> '.join((*path, place))}")
    if place in done:
        return
    file = folder.joinpath(f"{place}.lua")
    if not file.is_file():
        wanted = f", included by {path[-1]!r}" if path else ""
        raise ScriptSourceError(f"there is no {place}.lua{wanted}")
    own: list[tuple[str, tuple[str, int]]] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        include = _INCLUDE.match(line)
        if include:
            yield from _resolve(folder, include[1], (*path, place), done)
        elif line and not line.startswith("--"):
            own.append((line, (place, number)))
    done.add(place)
    yield from own
