"""Seeing that a Python file has changed."""

from collections.abc import AsyncGenerator
from pathlib import Path

from .exits import MisuseError


def check_watchable() -> None:
    """See that changes can be seen.

    Raises:
        MisuseError: What sees them is not installed.
    """
    try:
        import watchfiles  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport] - it comes with an extra
    except ImportError:
        raise MisuseError("--reload needs watchfiles: pip install 'lanner[cli]'") from None


async def changes(directory: Path) -> AsyncGenerator[Path]:
    """The Python files below the directory that change, come or go: one of them each time that any do.

    Hidden directories and virtual environments are passed over.
    """
    from watchfiles import (  # noqa: PLC0415 - it comes with an extra
        PythonFilter,
        awatch,  # pyright: ignore[reportUnknownVariableType] - its optional event has no type
    )

    async for changed in awatch(directory, watch_filter=PythonFilter()):
        yield min(Path(path) for _, path in changed).relative_to(directory)
