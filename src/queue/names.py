"""Names that nobody else has: ids of jobs, and nonces of their lives."""

import base64
import os
from typing import Final

_LETTERS_OF_ID: Final = 16
_LETTERS: Final = 24
_BYTES: Final = 18
_DRAWN_AT_ONCE: Final = 128
_drawn: Final[list[str]] = []
# what a child of a fork has inherited is its parent's
os.register_at_fork(after_in_child=_drawn.clear)


def new_names() -> tuple[str, str]:
    """A new job's id, and the nonce of its life."""
    try:
        letters = _drawn.pop()
    except IndexError:
        # to ask the system for many takes as long as for one
        text = base64.urlsafe_b64encode(os.urandom(_BYTES * _DRAWN_AT_ONCE)).decode()
        letters, *others = (text[at : at + _LETTERS] for at in range(0, len(text), _LETTERS))
        _drawn.extend(others)
    return letters[:_LETTERS_OF_ID], letters[_LETTERS_OF_ID:]


def new_nonce() -> str:
    """The mark of a new life of a job, or of a call."""
    return new_names()[1]


def new_id() -> str:
    """The id of a new job."""
    return new_names()[0]
