"""A thing that is taken out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODEL: Final = "test_queue_model.py"
CAPS: Final = "test_caps.py"
FILLED: Final = f"{CAPS}::test_a_cap_is_filled_and_never_exceeded"
SHORT_CUTS: Final = "test_short_cuts.py"
RECOVERY: Final = "test_leases_and_recovery.py"
REGRESSIONS: Final = "test_queue_regressions.py"


@dataclass(frozen=True)
class Mutation:
    """One thing that is taken out.

    Attributes:
        name: What is not so any more.
        file: Where it stands, below ``queue``; or the folder, where it stands in several files.
        pieces: What stands there, and what instead.
        tests: Those that have to fail, each.
    """

    name: str
    file: str
    pieces: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def lua(name: str, include: str, piece: str, instead: str, *tests: str) -> Mutation:
    """Something of an include."""
    return Mutation(name, f"lua/includes/{include}.lua", ((piece, instead),), tests)


def script(name: str, transition: str, piece: str, instead: str, *tests: str) -> Mutation:
    """Something of a script itself."""
    return Mutation(name, f"lua/{transition}.lua", ((piece, instead),), tests)


def mutated(mutation: Mutation, package: Path) -> dict[Path, str]:
    """The files of a package as they are without the thing; LookupError, which says where, if it is not there."""
    place = package / "queue" / mutation.file
    files = sorted(place.rglob("*.lua")) if place.is_dir() else [place]
    texts = {file: file.read_text() for file in files}
    for piece, instead in mutation.pieces:
        holders = [file for file in files if piece in texts[file]]
        if len(holders) != 1 or texts[holders[0]].count(piece) != 1:
            raise LookupError(f"{mutation.file} has this {len(holders)} times, not once: {piece}")
        texts[holders[0]] = texts[holders[0]].replace(piece, instead)
    return texts
