"""Seeing that a Python file has changed."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

LOOK_AGAIN: Final = 0.5
NOT_OURS: Final = frozenset({"__pycache__", "node_modules", "site-packages"})


async def changes(directory: Path) -> AsyncGenerator[Path]:
    """The Python files below the directory that change, come or go: one of them each time that any do.

    Hidden directories and virtual environments are passed over.
    """
    before = await anyio.to_thread.run_sync(_snapshot, directory)
    while True:
        await anyio.sleep(LOOK_AGAIN)
        now = await anyio.to_thread.run_sync(_snapshot, directory)
        changed = [path for path in before.keys() | now.keys() if before.get(path) != now.get(path)]
        before = now
        if changed:
            yield min(changed).relative_to(directory)


def _snapshot(directory: Path) -> dict[Path, int]:
    seen: dict[Path, int] = {}
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if _is_ours(Path(folder, name))]
        for name in files:
            if name.endswith(".py"):
                path = Path(folder, name)
                try:
                    seen[path] = path.stat().st_mtime_ns
                except OSError:  # it went meanwhile, or leads nowhere
                    continue
    return seen


def _is_ours(folder: Path) -> bool:
    return not folder.name.startswith(".") and folder.name not in NOT_OURS and not (folder / "pyvenv.cfg").exists()
