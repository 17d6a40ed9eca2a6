from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..queue.outcome import Failure
from .journal import CANCELLED, DONE, FAILED, UNFIT, Kind

if TYPE_CHECKING:
    from ..queue.job import Record
    from .codec import Notes


def readable(record: Record, notes: Notes) -> Record:
    """A job's record with its values as the serializer wrote them, whatever codec they are stored with."""
    return replace(
        record,
        data=notes.read_value(record.data),
        progress=None if record.progress is None else notes.read_value(record.progress),
        result=None if record.result is None else notes.read_value(record.result),
        steps={path: _readable_checkpoint(text, notes) for path, text in record.steps.items()},
    )


def _readable_checkpoint(text: str, notes: Notes) -> str:
    kind = next((each for each in Kind if text.startswith(each)), None)
    if kind is None:  # of a compensation: how often the job had failed, and what that one failed with
        failures, separator, note = text.partition(":")
        return failures + separator + notes.read(note)
    state, rest = text[len(kind) : len(kind) + 1], text[len(kind) + 1 :]
    if state in (DONE, UNFIT):
        rest = notes.read_value(rest)
    elif state == FAILED:
        rest = Failure.loads(rest).with_texts(notes.read).dumps()
    elif state == CANCELLED:
        rest = notes.read(rest)
    return f"{kind.value}{state}{rest}"
