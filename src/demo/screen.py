import os
import shutil
import textwrap
import time
from typing import Final, TextIO

NARROW: Final = 64
WIDEST: Final = 110
STYLES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "1;31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
    "magenta": "35",
}


class Screen:
    """Lines for a person to read as they come: a terminal of any width, or a file."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._colours = out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()

    def heading(self, text: str) -> None:
        """Begin a part."""
        self._print("")
        self._wrapped("", text, "bold")

    def text(self, text: str) -> None:
        """A paragraph."""
        self._wrapped("  ", text, "")

    def said(self, who: str, text: str, style: str = "") -> None:
        """Something that somebody does now."""
        passed = time.monotonic() - self._began
        wide = self._width() >= NARROW
        label = f"{passed:5.1f} s  {who:<9} " if wide else f"{who}: "
        self._wrapped(label, text, style, hanging=len(label) if wide else 2)

    def check(self, text: str, kept: bool) -> None:  # noqa: FBT001 - the one thing that is said of the text
        """A promise, and whether it was kept."""
        self._wrapped("  [kept]   " if kept else "  [BROKEN] ", text, "green" if kept else "red")

    def columns(self, *words: str) -> None:
        """A line of a table."""
        self._wrapped("  ", "  ".join(words), "", hanging=4)

    def _wrapped(self, label: str, text: str, style: str, *, hanging: int | None = None) -> None:
        indent = " " * (len(label) if hanging is None else hanging)
        lines = textwrap.wrap(text, self._width(), initial_indent=label, subsequent_indent=indent) or [label]
        for line in lines:
            self._print(line, style)

    def _print(self, line: str, style: str = "") -> None:
        coloured = f"\033[{STYLES[style]}m{line}\033[0m" if style and self._colours else line
        print(coloured, file=self._out, flush=True)

    def _width(self) -> int:
        return max(min(shutil.get_terminal_size().columns, WIDEST), 24)
