"""Cron patterns, and the instants that they mean on the wall clock of a zone."""

import copy
import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from croniter import CroniterBadDateError, croniter

from ..errors import InvalidArgumentError
from .validation import did_you_mean, shown

MAX_PATTERN: Final = 1_000

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FORM: Final = "give five fields (minute hour day month weekday), six with seconds first, or one of " + ", ".join(
    _NAMED
)
_WITH_SECONDS: Final = 6
_FIELDS: Final = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day": "1-31 or L",
    "month": "1-12 or jan-dec",
    "weekday": "0-7 (0 and 7 are Sunday) or sun-sat",
}
_NTH_WEEKDAY: Final = re.compile(r"#|l\d", re.IGNORECASE)
_RANGE: Final = re.compile(r"(\w+)-(\w+)")
_HASHED_OR_RANDOM: Final = re.compile(r"[hr]($|[(/])", re.IGNORECASE)
# a day pattern comes back within 28 years, or 40 over a year such as 2100: what does not within 50 never does
_HORIZON: Final = 50 * 366 * 86_400
# years of five digits have no datetime
_LAST: Final = int(datetime(9900, 1, 1, tzinfo=UTC).timestamp())


def normalized(pattern: object) -> str:
    """A pattern with single spaces between its fields, so that equal ones are equal text.

    Raises:
        InvalidArgumentError: It is no text, has not the form of a pattern, or means something else to every cron. The
            numbers in it are not looked into.
    """
    if not isinstance(pattern, str):
        raise InvalidArgumentError(f"pattern must be text such as '0 3 * * *', not {shown(pattern)}")
    if len(pattern) > MAX_PATTERN:
        raise InvalidArgumentError(f"pattern must have at most {MAX_PATTERN} characters, not {len(pattern)}")
    fields = pattern.split()
    if fields and fields[0].startswith("@"):
        named = " ".join(fields).lower()
        if named not in _NAMED:
            hint = (
                "for an interval use every=" if fields[0].lower() == "@every" else _FORM + did_you_mean(named, _NAMED)
            )
            raise InvalidArgumentError(f"pattern {shown(pattern)} is unknown: {hint}")
        return named
    if len(fields) not in {_WITH_SECONDS - 1, _WITH_SECONDS}:
        raise InvalidArgumentError(f"pattern {shown(pattern)} has {len(fields)} fields: {_FORM}")
    if doubt := _doubt(fields):
        raise InvalidArgumentError(f"pattern {shown(pattern)} has {doubt}")
    return " ".join(fields)


def _doubt(fields: list[str]) -> str:
    """What croniter takes in a pattern and reads otherwise than its author, or the empty string."""
    if any(_HASHED_OR_RANDOM.match(field) for field in fields):
        return (
            "a hashed or random field (H, R), which has no fixed instants: write the number, and spread schedules with "
            "jitter="
        )
    for part in ",".join(fields).split(","):
        # one library reads 5-5 as 5, another as everything
        if (ends := _RANGE.match(part.lower())) and ends[1].lstrip("0") == ends[2].lstrip("0"):
            return f"a range with equal ends, {part!r}: write {ends[1]!r}, or '*' for all"
    day, weekday = fields[-3], fields[-1]
    if (_NTH_WEEKDAY.search(weekday) or "w" in day.lower()) and not {day, weekday} & {"*", "?"}:
        # croniter would pass over one of the two
        return (
            "a day with W or a weekday with # or L, which cannot be joined with the other: write '*' for one of them, "
            "or make it two schedules"
        )
    return ""


def _fault(fields: list[str]) -> str:
    """What is wrong with a pattern that croniter refuses, or the empty string when each field alone is right."""
    for (name, values), field in zip(list(_FIELDS.items())[-len(fields) :], fields, strict=True):
        alone = [field if name == other else "*" for other in _FIELDS]
        if not croniter.is_valid(" ".join(alone), second_at_beginning=True):
            return f"has a bad {name} field, {shown(field)}: it takes {values}, lists of them, ranges and steps (*/5)"
    return ""


def zone_of(tz: object) -> ZoneInfo:
    """The zone of an IANA name.

    Raises:
        InvalidArgumentError: It is no name, or none that this machine knows.
    """
    key = tz.key if isinstance(tz, ZoneInfo) else tz
    if not isinstance(key, str):
        raise InvalidArgumentError(f"tz must be an IANA zone such as 'Europe/Berlin', not {shown(tz)}")
    known = _known_zones()
    if key not in known:
        raise InvalidArgumentError(
            f"tz must be an IANA zone such as 'Europe/Berlin', not {shown(tz)}{did_you_mean(key, known)} "
            f"(a zone newer than this machine's zone data needs a newer tzdata)"
        )
    return ZoneInfo(key)


@lru_cache(maxsize=1)
def _known_zones() -> frozenset[str]:
    """The zones that mean the same on every machine.

    Asking ``ZoneInfo`` is not enough: it takes any file name below its folders, in any case where the file system does.
    """
    return frozenset(available_timezones()) - {"localtime", "Factory"}


@lru_cache(maxsize=1024)
def cron(pattern: str, tz: str) -> "Cron":
    """The instants of a pattern in a zone, kept for the next call.

    Raises:
        InvalidArgumentError: The pattern or the zone is bad.
    """
    return Cron(pattern, zone_of(tz))


class Cron:
    """The instants of a pattern in a zone, in whole seconds since the epoch.

    A pattern whose hour field does not begin with ``*`` names *fixed* times of day: each of them happens once a day. In
    an hour that the clock repeats, the first pass counts; a time in a gap happens at the first instant after it, and
    several of them there happen once. Any other pattern means every real instant at which the wall clock shows a match:
    in both passes of a repeated hour, and nothing in a gap.

    Croniter is asked for matches on the wall clock alone, as if all days had 24 hours; what the clock does is decided
    here. A reading of the wall clock is an int as well, counted as if the zone were UTC.
    """

    __slots__ = ("_fixed", "_matches", "_zone")

    def __init__(self, pattern: str, zone: ZoneInfo) -> None:
        text = normalized(pattern)
        fields = _NAMED.get(text, text).split(" ")
        with_seconds = len(fields) == _WITH_SECONDS
        self._zone = zone
        self._fixed = not fields[2 if with_seconds else 1].startswith("*")
        try:
            self._matches = croniter(" ".join(fields), 0.0, second_at_beginning=with_seconds)
        except ValueError as error:
            raise InvalidArgumentError(f"pattern {shown(pattern)} {_fault(fields) or f'is bad: {error}'}") from error

    def next_after(self, second: int) -> int | None:
        """The first instant strictly after ``second``, or None if there is none: the pattern never matches again."""
        # a schedule of the engine never fires before 1970
        second = max(second, -1)
        if second >= _LAST:
            return None
        return self._fixed_after(second) if self._fixed else self._real_after(second)

    def _fixed_after(self, second: int) -> int | None:
        wall = second + self._offset_at(second)
        while (match := self._match_after(wall)) is not None:
            first, last = self._instants(match)
            at = first if first <= last else self._change(last, first)
            if at > second:
                return at
            # `second` is in the second pass, of which nothing counts: go on where it ends
            wall = self._change(first, last) + (match - first) - 1
        return None

    def _real_after(self, second: int) -> int | None:
        wall = second + self._offset_at(second)
        at = self._first_real(wall, second)
        first, last = self._instants(wall)
        if second == first < last:
            # in the first pass: what the wall clock has shown already comes again after it is set back
            set_back = self._change(first, last)
            if at is None or at >= set_back:
                return self._first_real(set_back + (wall - last) - 1, set_back - 1)
        return at

    def _first_real(self, wall: int, second: int) -> int | None:
        """The first instant after ``second`` that shows a match later than ``wall``."""
        horizon = wall + _HORIZON
        while wall < horizon and (match := self._match_after(wall)) is not None:
            first, last = self._instants(match)
            if first > last:
                # in a gap: go on where it ends
                wall = self._change(last, first) + (match - last) - 1
            else:
                return first if first > second else last
        return None

    def _match_after(self, wall: int) -> int | None:
        """The pattern's next match on the wall clock strictly after ``wall``."""
        # a copy, since croniter keeps its position in itself and this object is shared between threads
        try:
            return int(copy.copy(self._matches).get_next(float, start_time=float(wall)))
        except CroniterBadDateError:
            return None

    def _instants(self, wall: int) -> tuple[int, int]:
        """What a reading means by the offset before, and by that after, a change of the clock close to it.

        Twice the same: there is no change. Ascending: the reading is shown twice. Descending: it is in a gap, and the
        change lies between the two.
        """
        naive = (_EPOCH + timedelta(seconds=wall)).replace(tzinfo=self._zone)
        return wall - _seconds(naive.utcoffset()), wall - _seconds(naive.replace(fold=1).utcoffset())

    def _offset_at(self, second: int) -> int:
        return _seconds((_EPOCH + timedelta(seconds=second)).astimezone(self._zone).utcoffset())

    def _change(self, low: int, high: int) -> int:
        """The instant after ``low`` and not after ``high`` at which the offset changes.

        There is one only: changes are days apart in every zone since 1970, and the two are within a day.
        """
        offset = self._offset_at(high)
        instants = range(low + 1, high + 1)
        return instants[bisect_left(instants, 1, key=lambda second: int(self._offset_at(second) == offset))]


def _seconds(offset: timedelta | None) -> int:
    return int((offset or timedelta(0)).total_seconds())
