"""Releases of servers, and which of them read what another has written."""

from dataclasses import dataclass
from typing import Final

# The format that each release writes its AOF base file in. A server reads the formats up to its own; Redis and Valkey
# have only those up to 11 in common.
_FORMATS: Final[dict[str, tuple[tuple[tuple[int, int], int], ...]]] = {
    "redis": (((8, 8), 14), ((8, 6), 13), ((7, 4), 12), ((7, 2), 11), ((7, 0), 10), ((0, 0), 9)),
    "valkey": (((9, 0), 80), ((0, 0), 11)),
}
_LAST_COMMON_FORMAT: Final = 11


@dataclass(frozen=True, slots=True)
class Release:
    """A release of a server: ``redis`` or ``valkey``, and its version."""

    kind: str
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.kind.capitalize()} {'.'.join(map(str, self.version))}"

    def reads(self, writer: "Release") -> bool:
        """Whether it is known to read what ``writer`` has written."""
        if self.kind == writer.kind:
            return self.version[:2] >= writer.version[:2] or _format(self) >= _format(writer)
        return _format(writer) <= min(_format(self), _LAST_COMMON_FORMAT)


def _format(release: Release) -> int:
    return next(number for since, number in _FORMATS[release.kind] if release.version[:2] >= since)
