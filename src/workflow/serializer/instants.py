"""Dates and times as text that loses nothing: ISO 8601, with the time zone and the fold behind it (RFC 9557)."""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import TypeVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

T = TypeVar("T", datetime, time)

_FOLD = "[_fold=1]"
_EXTENDED = re.compile(r"(?P<iso>[^\[\]]+)(?:\[(?P<zone>[A-Za-z][A-Za-z0-9_+/-]{0,63})\])?(?P<fold>\[_fold=1\])?")


def is_date(value: datetime) -> bool:
    """Whether JavaScript reads the text of a datetime as the same instant: it has an offset of whole minutes."""
    offset = _fixed_offset(value.tzinfo)
    return offset is not None and not value.fold and not offset % timedelta(minutes=1)


def _fixed_offset(zone: tzinfo | None) -> timedelta | None:
    """The offset of a zone that has only one; a named zone is more than an offset, even if it has one only."""
    return None if zone is None or isinstance(zone, ZoneInfo) else zone.utcoffset(None)


def text_of(value: datetime | time) -> str:
    """The text of a datetime or time.

    Raises:
        ValueError: Its time zone has no name that could be written.
    """
    zone = value.tzinfo
    # milliseconds, when they say it all, are what JavaScript writes
    text = value.isoformat(timespec="microseconds" if value.microsecond % 1000 else "milliseconds")
    if isinstance(zone, ZoneInfo):
        # a zone that was read from a file has no key, whatever the type stubs say
        key = cast("str | None", zone.key)
        if key is None or not _EXTENDED.fullmatch(f"{text}[{key}]"):
            raise ValueError(f"its time zone {zone!r} has no name that could be read back")
        text += f"[{key}]"
    elif zone is not None:
        offset = _fixed_offset(zone)
        if offset is None:
            raise ValueError(f"its time zone is a {_name(zone)}: use zoneinfo.ZoneInfo or datetime.timezone")
        if offset % timedelta(seconds=1):
            # fromisoformat takes an offset of less than a second for none
            raise ValueError(f"its time zone {zone!r} has no offset of whole seconds")
        if not offset:
            text = text.removesuffix("+00:00") + "Z"
    return text + (_FOLD if value.fold else "")


def _name(zone: tzinfo) -> str:
    return f"{type(zone).__module__}.{type(zone).__qualname__}"


def read(cls: type[T], text: str) -> T:
    """The datetime or time of a text.

    Raises:
        ValueError: The text is none, or its time zone is not known here.
    """
    match = _EXTENDED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is no {cls.__name__}")
    value = cls.fromisoformat(match["iso"])
    if match["zone"]:
        try:
            value = value.replace(tzinfo=ZoneInfo(match["zone"]))
        except (ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(f"the time zone {match['zone']!r} is not known here: install tzdata") from error
    return value.replace(fold=1) if match["fold"] else value


def read_date(text: str) -> datetime:
    """The datetime of a JavaScript ``Date``.

    Raises:
        ValueError: The text is none that Python can represent.
    """
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError(f"{text[:80]!r} has no offset from UTC")
    return value if value.utcoffset() else value.replace(tzinfo=UTC)
