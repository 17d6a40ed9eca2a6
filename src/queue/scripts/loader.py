"""Lua scripts from files: includes are resolved once each, and errors say the file and line they came from.

An include is a local function, or a constant that several files need. Making a function costs the server 0.2 µs each
time a script runs, so that what is seldom called is included ``when needed``: such functions stand inside of one,
``whenNeeded``, which makes them all at the first call of any. And a script may begin before its last includes, which
are then made if it comes so far.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

_INCLUDE: Final = re.compile(r"^--- @include (\w+)( when needed)?$")
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


_Line = tuple[str, tuple[str, int]]


@dataclass(slots=True)
class _File:
    """A file's own lines, and what it includes: the names, and which of them only when needed.

    ``begins`` says how many of the lines stand before the last includes, and ``early`` what is included before them.
    """

    lines: list[_Line]
    includes: list[str]
    when_needed: set[str]
    begins: int = 0
    early: tuple[str, ...] = ()

    def is_constant(self) -> bool:
        """Whether it is a constant, and no function."""
        return not any(line.startswith("local function ") for line, _ in self.lines)


@functools.cache
def load(name: str) -> Script:
    """Read a script with its includes.

    Raises:
        ScriptSourceError: An include does not exist, or includes itself.
    """
    files: dict[str, _File] = {}
    own = _read(_folder(), name, (), files)
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    for text, origin in _arrange(own, files):
        lines.append(text)
        origins.append(origin)
    text = "\n".join(lines)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), tuple(origins))


def _read(folder: Traversable, name: str, path: tuple[str, ...], files: dict[str, _File]) -> _File:
    """Read a file, and enter before it the files that it includes."""
    place = f"includes/{name}" if path else name
    if place in path:
        raise ScriptSourceError(f"a cycle of includes: {' -> '.join((*path, place))}")
    file = folder.joinpath(f"{place}.lua")
    if not file.is_file():
        wanted = f", included by {path[-1]!r}" if path else ""
        raise ScriptSourceError(f"there is no {place}.lua{wanted}")
    read = _File([], [], set())
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        include = _INCLUDE.match(line)
        if include:
            if len(read.lines) > read.begins:
                read.begins, read.early = len(read.lines), tuple(read.includes)
            read.includes.append(include[1])
            if include[2]:
                read.when_needed.add(include[1])
            if include[1] not in files:
                files[include[1]] = _read(folder, include[1], (*path, place), files)
        elif line and not line.startswith("--"):
            read.lines.append((line, (place, number)))
    return read


def _arrange(own: _File, files: dict[str, _File]) -> Iterator[_Line]:
    """The lines of a script: its includes, those for when they are needed, its own."""
    always, early = _reached(own.includes, own.when_needed, files), _reached(own.early, set(), files)
    rest = [each for each in files if each not in always]
    for each, file in files.items():
        if each in early:
            if file.when_needed:
                raise ScriptSourceError(f"{each} comes before the last includes: it can have none for when needed")
            yield from file.lines
    yield from own.lines[: own.begins]
    here = own.lines[0][1]
    if rest:
        yield "local whenNeeded", here
    for each, file in files.items():
        if each in always and each not in early:
            yield from _calling(file, file.lines, rest)
    if rest:
        yield "do local made whenNeeded = function() if made then return made end", here
        for each in rest:
            yield from files[each].lines
        made = ", ".join(f"{_camel(each)} = {_camel(each)}" for each in rest if not files[each].is_constant())
        yield f"made = {{ {made} }} return made end end", here
    yield from _calling(own, own.lines[own.begins :], rest)


def _reached(includes: Iterable[str], when_needed: set[str], files: dict[str, _File]) -> set[str]:
    """What is included, directly or not, and not only when needed."""
    found = {each for each in includes if each not in when_needed}
    left = list(found)
    while left:
        file = files[left.pop()]
        more = {each for each in file.includes if each not in file.when_needed} - found
        found |= more
        left += more
    return found


def _calling(file: _File, lines: Iterable[_Line], rest: list[str]) -> Iterator[_Line]:
    names = "|".join(_camel(each) for each in file.includes if each in rest)
    for line, origin in lines:
        yield (re.sub(rf"\b({names})\(", r"whenNeeded().\1(", line) if names else line), origin


def _camel(name: str) -> str:
    head, *parts = name.split("_")
    return head + "".join(part.capitalize() for part in parts)
