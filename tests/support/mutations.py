"""Takes checks out of the scripts, to see that a test would notice."""

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from lanner.queue import calling
from lanner.queue.scripts.loader import Script, load

Mutate = Callable[[str, str], None]


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Mutate:
    """Replaces a piece of Lua in every script that has it. It must be there, or the test fails."""
    mutations: list[tuple[str, str]] = []

    def load_mutated(name: str) -> Script:
        script = load(name)
        text = script.text
        for piece, replacement in mutations:
            text = text.replace(piece, replacement)
        return replace(script, text=text, sha=hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    def mutate(piece: str, replacement: str) -> None:
        assert piece in load("settle").text, f"there is no such piece any more: {piece}"
        mutations.append((piece, replacement))
        monkeypatch.setattr(calling, "load", load_mutated)

    return mutate
