"""What public calls check before anything is sent. Each error names the argument and says what would be right."""

import difflib
import math
import re
import reprlib
import unicodedata
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeVar

from ..errors import InvalidArgumentError
from .spec import MAX_PRIORITY

MAX_DURATION: Final = timedelta(days=365_000)
MAX_CAP: Final = 2**31 - 1
MAX_FREE_ID: Final = 256

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_SCHEDULES: Final = "upsert_schedule(id, pattern, input) or upsert_schedule(id, None, input, every=...)"
_LATER: Final = "run_in(input, delay) or run_at(input, instant) (of a queue: add(data, run_in=...))"
_ELSEWHERE: Final = {
    "retry": "max_attempts= and backoff=",
    "retries": "max_attempts= and backoff=",
    "max_retries": "max_attempts= and backoff=",
    "repeat": _SCHEDULES,
    "cron": _SCHEDULES,
    "delay": _LATER,
    "countdown": _LATER,
    "eta": _LATER,
    "run_in": _LATER,
    "run_at": _LATER,
    "dedup": "throttle= or debounce=",
    "job_id": "id=",
    "keep_completed": "result_ttl=",
    "timezone": "tz= of upsert_schedule",
}

_Choice = TypeVar("_Choice", bound=str)

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = _shortened.maxlong = 80


def shown(value: object) -> str:
    """A value as it stands in an error's text: its repr, bounded; a repr that raises is survived."""
    try:
        return _shortened.repr(value)
    except Exception:  # noqa: BLE001 - a user's __repr__ may raise anything, and an int of 5,000 digits has none
        return f"<{type(value).__name__}>"


def duration_ms(value: object, name: str, *, minimum: int = 0) -> int:
    """A duration in milliseconds, rounded up, so that nothing is shorter than was asked for.

    Args:
        value: ``timedelta`` or seconds (int or float).
        name: The argument's name, for the error.
        minimum: The shortest that is allowed, in milliseconds.

    Raises:
        InvalidArgumentError: It is no duration, negative or too short, not finite, or over 365,000 days.

    Example:
        >>> duration_ms(1.5, "timeout")
        1500
    """
    if isinstance(value, bool) or not isinstance(value, (timedelta, int, float)):
        raise InvalidArgumentError(f"{name} must be a timedelta or seconds (int or float), not {shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgumentError(f"{name} must be finite, not {value}; for no limit leave it out or give None")
    duration = value if isinstance(value, timedelta) else _of_seconds(value)
    if duration > MAX_DURATION:
        raise InvalidArgumentError(f"{name} must be at most {MAX_DURATION.days} days, not {shown(value)}")
    milliseconds = -(-duration // _MILLISECOND)
    if duration < timedelta(0) or milliseconds < minimum:
        least = "0 or longer" if minimum <= 0 else "longer than 0" if minimum == 1 else f"at least {minimum / 1000:g} s"
        raise InvalidArgumentError(f"{name} must be {least}, not {shown(value)}")
    return milliseconds


def _of_seconds(value: float) -> timedelta:
    """Seconds as a duration. Its microseconds take the noise off a float: 0.1 + 0.2 s are 300 ms, and not 301."""
    try:
        return timedelta(seconds=value)
    except OverflowError:
        return timedelta.max if value > 0 else timedelta.min


def instant_ms(value: object, name: str) -> int:
    """An instant in milliseconds since the epoch, rounded up, so that nothing happens before it.

    Args:
        value: An aware ``datetime``.
        name: The argument's name, for the error.

    Raises:
        InvalidArgumentError: It is no ``datetime``, or a naive one.

    Example:
        >>> instant_ms(datetime(1970, 1, 2, tzinfo=UTC), "at")
        86400000
    """
    if not isinstance(value, datetime):
        hint = "; a date alone has no time of day" if isinstance(value, date) else ""
        raise InvalidArgumentError(f"{name} must be an aware datetime, not {shown(value)}{hint}")
    if value.utcoffset() is None:
        raise InvalidArgumentError(
            f"{name} must be an aware datetime, and {value.isoformat()} has no time zone: give it one with tzinfo=UTC "
            f"or tzinfo=ZoneInfo('Europe/Berlin'), or take datetime.now(UTC) instead of datetime.now()"
        )
    return -(-(value - _EPOCH) // _MILLISECOND)


def check_id(value: object, name: str) -> str:
    """The id of a namespace or a workflow: 1 to 128 of ``A-Z a-z 0-9 _ . -``.

    Args:
        value: The id.
        name: What it is the id of, for the error.

    Raises:
        InvalidArgumentError: It is no text, or not of this form.

    Example:
        >>> check_id("sign-up.v2", "workflow id")
        'sign-up.v2'
    """
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise InvalidArgumentError(
            f"{name} must be 1 to 128 characters out of letters, digits, '_', '.' and '-', not {shown(value)}"
        )
    return value


def check_free_id(value: object, name: str) -> str:
    """The id of a job, group or schedule: free text of 1 to 256 characters.

    Args:
        value: The id.
        name: What it is the id of, for the error.

    Raises:
        InvalidArgumentError: It is no text, empty, too long, or has a control character or a lone surrogate.

    Example:
        >>> check_free_id("user:42", "job id")
        'user:42'
    """
    if not isinstance(value, str):
        hint = "; use str(...)" if isinstance(value, int) and not isinstance(value, bool) else ""
        raise InvalidArgumentError(f"{name} must be text, not {shown(value)}{hint}")
    if not 1 <= len(value) <= MAX_FREE_ID:
        raise InvalidArgumentError(f"{name} must have 1 to {MAX_FREE_ID} characters, not {len(value)}: {shown(value)}")
    for position, character in enumerate(value):
        category = unicodedata.category(character)
        if category in {"Cc", "Cs"}:
            kind = "control character" if category == "Cc" else "lone surrogate, which UTF-8 cannot write"
            raise InvalidArgumentError(
                f"{name} must be plain text, and character {position} of {shown(value)} is a {kind}: {character!a}"
            )
    return value


def check_text(value: object, name: str) -> str:
    """A text of any length, as it is stored.

    Args:
        value: The text.
        name: What it is, for the error.

    Raises:
        InvalidArgumentError: It is no ``str``, or has a lone surrogate.

    Example:
        >>> check_text("hello", "data")
        'hello'
    """
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be a str, not {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{name} must be text that UTF-8 can write, and character {error.start} is a lone surrogate: "
            f"{value[error.start]!a}"
        ) from None
    return value


def check_priority(value: object) -> int:
    """A priority: an int from 0 to 2,097,151 (2^21-1), the higher the sooner; an ``IntEnum`` counts as its int.

    Raises:
        InvalidArgumentError: It is out of range or no int; a bool, a float and a name are none.

    Example:
        >>> check_priority(5)
        5
    """
    if isinstance(value, str):
        raise InvalidArgumentError(
            f"priority must be an int from 0 to {MAX_PRIORITY}, higher first; priorities have no names, such as "
            f"{shown(value)} (an IntEnum of your own may name them)"
        )
    return check_int(value, "priority", 0, MAX_PRIORITY)


def check_cap(value: object, name: str) -> int | None:
    """How many at once: an int from 1, or None for no cap; an ``IntEnum`` counts as its int.

    Args:
        value: The cap.
        name: The argument's name, for the error.

    Raises:
        InvalidArgumentError: It is zero, negative, or neither an int nor None.

    Example:
        >>> check_cap(10, "concurrency")
        10
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_CAP:
        hint = "; to stop a queue, pause it" if value == 0 and not isinstance(value, bool) else ""
        raise InvalidArgumentError(
            f"{name} must be an int from 1 to {MAX_CAP}, or None for no cap, not {shown(value)}{hint}"
        )
    return int(value)


def check_int(value: object, name: str, minimum: int, maximum: int) -> int:
    """An int within bounds; an ``IntEnum`` counts as its int.

    Args:
        value: The number.
        name: The argument's name, for the error.
        minimum: The least that is allowed.
        maximum: The most that is allowed.

    Raises:
        InvalidArgumentError: It is out of bounds or no int; a bool and a float are none.

    Example:
        >>> check_int(3, "max_attempts", 1, 1_000)
        3
    """
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidArgumentError(f"{name} must be an int from {minimum} to {maximum}, not {shown(value)}")
    return int(value)


def check_number(value: object, name: str, minimum: float, maximum: float) -> float:
    """A number within bounds.

    Args:
        value: The number.
        name: The argument's name, for the error.
        minimum: The least that is allowed.
        maximum: The most that is allowed.

    Raises:
        InvalidArgumentError: It is out of bounds, not a number, or a bool.

    Example:
        >>> check_number(2, "factor", 1, 10)
        2.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value <= maximum:
        raise InvalidArgumentError(f"{name} must be a number from {minimum:g} to {maximum:g}, not {shown(value)}")
    return float(value)


def check_choice(value: object, name: str, choices: Collection[_Choice]) -> _Choice:
    """One of a few words.

    Args:
        value: The word.
        name: The argument's name, for the error.
        choices: The words that are allowed.

    Raises:
        InvalidArgumentError: It is none of them; the text lists them, and names the one that was probably meant.

    Example:
        >>> check_choice("skip", "overlap", ("skip", "allow", "cancel"))
        'skip'
    """
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    listed = ", ".join(repr(choice) for choice in choices)
    raise InvalidArgumentError(f"{name} must be one of {listed}, not {shown(value)}{did_you_mean(value, choices)}")


def check_mapping(value: object, name: str) -> Mapping[str, Any]:
    """Something by name.

    Args:
        value: The mapping.
        name: What it is, for the error.

    Raises:
        InvalidArgumentError: It is no mapping.

    Example:
        >>> check_mapping({"priority": 3}, "defaults")
        {'priority': 3}
    """
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{name} must be a dict, not {shown(value)}")
    return value  # pyright: ignore[reportUnknownVariableType] - of what, its parts are asked for


def check_function(value: object, name: str) -> None:
    """A function that is called back, or None.

    Args:
        value: The function.
        name: What it is, for the error.

    Raises:
        InvalidArgumentError: It is neither.

    Example:
        >>> check_function(print, "on_error")
    """
    if value is not None and not callable(value):
        raise InvalidArgumentError(f"{name} must be a function, not {shown(value)}")


def refuse_unknown_options(options: Mapping[str, object], known: Collection[str], beside: Collection[str] = ()) -> None:
    """Refuse options that do not exist, above all those that other engines have, or that are a call here.

    Args:
        options: What the caller gave, by name.
        known: The names that are options.
        beside: What else the call takes by name, so that who has misspelt it is told.

    Raises:
        InvalidArgumentError: One of them is none; the text says what to use instead. Or a priority was given by name.

    Example:
        >>> refuse_unknown_options({"max_attempts": 3}, {"max_attempts", "priority"})
    """
    for option in options:
        if option in known:
            continue
        if option in _ELSEWHERE:
            raise InvalidArgumentError(f"there is no option {option}=: use {_ELSEWHERE[option]} instead")
        names = sorted({*known, *beside})
        hint = did_you_mean(option, names) or f"; the options are {', '.join(names)}"
        raise InvalidArgumentError(f"there is no option {shown(option)}{hint}")
    if isinstance(options.get("priority"), str):
        check_priority(options["priority"])


def did_you_mean(value: object, choices: Collection[str]) -> str:
    """The end of an error's text that names the closest choice, or the empty string when nothing is close."""
    if not isinstance(value, str):
        return ""
    folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(value.casefold()[:MAX_FREE_ID], folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""
