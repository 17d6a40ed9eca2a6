"""What a run says of itself while it runs: progress and log lines, as they are stored, and how long they may be."""

import secrets
from typing import Final

from ..errors import InvalidArgumentError

LOG_LINES: Final = 1000
LONGEST_LINE: Final = 4000
LONGEST_PROGRESS: Final = 65_536


def check_progress(text: str) -> str:
    """A progress as it is stored.

    Raises:
        InvalidArgumentError: It is too long.
    """
    if len(text) > LONGEST_PROGRESS:
        raise InvalidArgumentError(
            f"progress may have up to {LONGEST_PROGRESS:,} characters as text, not {len(text):,}: it is told to "
            "all who watch; keep results in a step, or in the job's output"
        )
    return text


def log_entry(line: str) -> str:
    """A line as it stands in a log: marked, so that the call that writes it may be made twice."""
    return f"{secrets.token_urlsafe(6)}\n{line}"


def log_line(entry: str) -> str:
    """The line of an entry."""
    return entry.partition("\n")[2]
