"""What an attempt ended in, as values: decided here without I/O, applied in one script."""

import traceback
from collections.abc import Callable
from typing import Final

import msgspec

from ..errors import JobFailedError

MAX_MESSAGE: Final = 4_000
MAX_TRACEBACK: Final = 16_000


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exception as it is kept: names and text only, never constructed again."""

    type: str
    message: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """The record of an exception, its texts bounded (the end of a traceback says most)."""
        try:
            # the traceback of a child stands in the one of its parent
            message = error.summary if isinstance(error, JobFailedError) else str(error)
        except Exception as broken:  # noqa: BLE001 - a user's __str__ may raise anything
            message = f"(its text cannot be had: {type(broken).__name__})"
        text = "".join(traceback.format_exception(error))
        if len(text) > MAX_TRACEBACK:
            text = "...\n" + text[-MAX_TRACEBACK:]
        return cls(type(error).__qualname__, _writable(message[:MAX_MESSAGE]), _writable(text))

    def with_texts(self, note: Callable[[str], str]) -> "Failure":
        """It with the texts that ``note`` gives for those it has."""
        return Failure(self.type, note(self.message), note(self.traceback))

    def dumps(self) -> str:
        """As JSON text."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def loads(cls, text: str | bytes) -> "Failure":
        """From JSON text."""
        return msgspec.json.decode(text, type=cls)


def _writable(text: str) -> str:
    """A text with what UTF-8 cannot write, as file names may have it, spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


class Completed(msgspec.Struct, frozen=True):
    """The run returned; ``result`` is its value as text."""

    result: str


class Retry(msgspec.Struct, frozen=True):
    """The attempt failed and another follows after ``delay_ms``."""

    delay_ms: int
    failure: Failure


class Failed(msgspec.Struct, frozen=True):
    """The job failed for good. ``undo``: it has so many compensations, which run first."""

    failure: Failure
    undo: int = 0


class Cancelled(msgspec.Struct, frozen=True):
    """The run was ended by a cancellation. ``undo``: it has so many compensations, which run first."""

    reason: str = ""
    undo: int = 0


class Continued(msgspec.Struct, frozen=True):
    """The run goes on as a new one with the payload ``data``, and no checkpoints."""

    data: str


class Suspended(msgspec.Struct, frozen=True):
    """The run waits and holds nothing meanwhile.

    ``until_ms`` is the first instant (Redis' clock, milliseconds since the epoch) that continues it, or None; each of
    ``events`` continues it as well.
    """

    until_ms: int | None
    events: tuple[str, ...] = ()


class Limited(msgspec.Struct, frozen=True):
    """The run was told to slow down: the job returns to its place, no attempt is used.

    For ``delay_ms`` the limiter is paused for everybody, or (without one) this job is put off.
    """

    delay_ms: int
    limiter: str = ""


class Released(msgspec.Struct, frozen=True):
    """The claim is handed back (a shutdown): the job returns to its place, no attempt is used."""


Outcome = Completed | Retry | Failed | Cancelled | Continued | Suspended | Limited | Released
