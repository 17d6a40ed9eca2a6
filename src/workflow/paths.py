"""Where a step stands in its run: names joined by "/", escaped as in a JSON Pointer."""

import re
from typing import Final

from ..errors import StepError
from ..queue.validation import shown

MAX_NAME: Final = 256

_UNFIT: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def escaped(name: object) -> str:
    """A step's name as it stands in a path.

    Raises:
        StepError: It is no text, empty, longer than 256 characters, or has control characters or lone surrogates.

    Example:
        >>> escaped("a/b")
        'a~1b'
    """
    # `isprintable` is the faster one, and says no to more than it should
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or (not name.isprintable() and _UNFIT.search(name)):
        raise StepError(_objection(name))
    if "/" in name or "~" in name:
        return name.replace("~", "~0").replace("/", "~1")
    return name


def _objection(name: object) -> str:
    if not isinstance(name, str):
        return f"a step's name must be text, not {shown(name)}" + "; use str(...)" * isinstance(name, int)
    if not name:
        return "a step's name must not be empty: its checkpoint is found by it"
    if len(name) > MAX_NAME:
        return f"a step's name must have at most {MAX_NAME} characters, and {shown(name)} has {len(name)}"
    return f"a step's name must have no control characters or lone surrogates: {shown(name)}"
