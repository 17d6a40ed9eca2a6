"""Patterns over the changes of the clock: what is expected by name, and against a walk over every minute or second."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lanner.queue.cadence import cadence

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Europe/Dublin",  # its winter time is the one that saves daylight
    "Australia/Lord_Howe",  # half an hour
    "Antarctica/Troll",  # two hours
    "America/Sao_Paulo",  # at midnight, until 2019
    "Asia/Beirut",  # at midnight
    "America/Havana",  # at midnight and back to it
    "Africa/Casablanca",  # around Ramadan
    "Asia/Kathmandu",  # 15 minutes, once
    "Asia/Pyongyang",
    "America/Caracas",
    "Pacific/Apia",  # a day that never was
    "Pacific/Kwajalein",
    "Asia/Gaza",
]


def shown_fires(pattern: str, tz: str, begin: str, count: int) -> list[str]:
    """The first fires from a wall-clock time on, as local times with their offset."""
    zone = ZoneInfo(tz)
    timing = cadence(pattern, tz=tz)
    ms = round(datetime.fromisoformat(begin).replace(tzinfo=zone).timestamp() * 1000) - 1
    fires: list[str] = []
    for _ in range(count):
        following = timing.next_after(ms)
        assert following is not None
        assert following > ms
        ms = following
        fires.append(datetime.fromtimestamp(ms / 1000, zone).strftime("%m-%d %H:%M %z"))
    return fires


@pytest.mark.parametrize(
    ("tz", "pattern", "begin", "expected"),
    [
        # New York: 2026-03-08 02:00 -> 03:00
        (
            "America/New_York",
            "30 2 * * *",
            "2026-03-07",
            ["03-07 02:30 -0500", "03-08 03:00 -0400", "03-09 02:30 -0400"],
        ),
        ("America/New_York", "0 2 * * *", "2026-03-08", ["03-08 03:00 -0400", "03-09 02:00 -0400"]),
        ("America/New_York", "0 3 * * *", "2026-03-08", ["03-08 03:00 -0400", "03-09 03:00 -0400"]),
        ("America/New_York", "0 2,3 * * *", "2026-03-08", ["03-08 03:00 -0400", "03-09 02:00 -0400"]),
        ("America/New_York", "*/15 2 * * *", "2026-03-08", ["03-08 03:00 -0400", "03-09 02:00 -0400"]),
        ("America/New_York", "30 * * * *", "2026-03-08 01:00", ["03-08 01:30 -0500", "03-08 03:30 -0400"]),
        ("America/New_York", "30 */2 * * *", "2026-03-08", ["03-08 00:30 -0500", "03-08 04:30 -0400"]),
        ("America/New_York", "*/15 * * * *", "2026-03-08 01:45", ["03-08 01:45 -0500", "03-08 03:00 -0400"]),
        # New York: 2026-11-01 02:00 -> 01:00
        ("America/New_York", "30 1 * * *", "2026-11-01", ["11-01 01:30 -0400", "11-02 01:30 -0500"]),
        ("America/New_York", "30 2 * * *", "2026-11-01", ["11-01 02:30 -0500", "11-02 02:30 -0500"]),
        (
            "America/New_York",
            "*/30 1 * * *",
            "2026-11-01",
            ["11-01 01:00 -0400", "11-01 01:30 -0400", "11-02 01:00 -0500"],
        ),
        (
            "America/New_York",
            "0 * * * *",
            "2026-11-01",
            ["11-01 00:00 -0400", "11-01 01:00 -0400", "11-01 01:00 -0500", "11-01 02:00 -0500"],
        ),
        (
            "America/New_York",
            "*/15 * * * *",
            "2026-11-01 01:30",
            ["11-01 01:30 -0400", "11-01 01:45 -0400", "11-01 01:00 -0500", "11-01 01:15 -0500", "11-01 01:30 -0500"],
        ),
        ("America/New_York", "0 0-23 * * *", "2026-11-01 01:00", ["11-01 01:00 -0400", "11-01 02:00 -0500"]),
        # Berlin: 2026-03-29 02:00 -> 03:00, 2026-10-25 03:00 -> 02:00
        ("Europe/Berlin", "30 2 * * *", "2026-03-28", ["03-28 02:30 +0100", "03-29 03:00 +0200", "03-30 02:30 +0200"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", ["10-25 02:30 +0200", "10-26 02:30 +0100"]),
        ("Europe/Berlin", "30 2 29 3 *", "2026-01-01", ["03-29 03:00 +0200", "03-29 02:30 +0200"]),
        ("Europe/Berlin", "30 2 * * sun", "2026-03-28", ["03-29 03:00 +0200", "04-05 02:30 +0200"]),
        ("Europe/Berlin", "30 2 * * mon", "2026-03-28", ["03-30 02:30 +0200"]),
        (
            "Europe/Berlin",
            "59 * * * *",
            "2026-10-25 02:00",
            ["10-25 02:59 +0200", "10-25 02:59 +0100", "10-25 03:59 +0100"],
        ),
        # Lord Howe: 2026-04-05 02:00 -> 01:30, 2026-10-04 02:00 -> 02:30
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05", ["04-05 01:45 +1100", "04-06 01:45 +1030"]),
        ("Australia/Lord_Howe", "15 1 * * *", "2026-04-05", ["04-05 01:15 +1100", "04-06 01:15 +1030"]),
        (
            "Australia/Lord_Howe",
            "*/15 * * * *",
            "2026-04-05 01:30",
            ["04-05 01:30 +1100", "04-05 01:45 +1100", "04-05 01:30 +1030", "04-05 01:45 +1030", "04-05 02:00 +1030"],
        ),
        ("Australia/Lord_Howe", "0 * * * *", "2026-04-05 01:00", ["04-05 01:00 +1100", "04-05 02:00 +1030"]),
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03",
            ["10-03 02:15 +1030", "10-04 02:30 +1100", "10-05 02:15 +1100"],
        ),
        ("Australia/Lord_Howe", "30 2 * * *", "2026-10-04", ["10-04 02:30 +1100", "10-05 02:30 +1100"]),
        ("Australia/Lord_Howe", "0 * * * *", "2026-10-04 01:00", ["10-04 01:00 +1030", "10-04 03:00 +1100"]),
        ("Australia/Lord_Howe", "*/15 * * * *", "2026-10-04 01:45", ["10-04 01:45 +1030", "10-04 02:30 +1100"]),
        # Sao Paulo: 2018-11-04 00:00 -> 01:00, 2019-02-17 00:00 -> 23:00 of the day before
        ("America/Sao_Paulo", "@daily", "2018-11-03", ["11-03 00:00 -0300", "11-04 01:00 -0200", "11-05 00:00 -0200"]),
        ("America/Sao_Paulo", "0 0 * * sun", "2018-11-03", ["11-04 01:00 -0200", "11-11 00:00 -0200"]),
        ("America/Sao_Paulo", "30 0 4 * *", "2018-11-01", ["11-04 01:00 -0200", "12-04 00:30 -0200"]),
        ("America/Sao_Paulo", "30 23 * * *", "2019-02-16", ["02-16 23:30 -0200", "02-17 23:30 -0300"]),
        ("America/Sao_Paulo", "0 0 * * *", "2019-02-16 12:00", ["02-17 00:00 -0300", "02-18 00:00 -0300"]),
        (
            "America/Sao_Paulo",
            "30 * * * sat",
            "2019-02-16 22:00",
            ["02-16 22:30 -0200", "02-16 23:30 -0200", "02-16 23:30 -0300", "02-23 00:30 -0300"],
        ),
        # Beirut: 2022-03-27 00:00 -> 01:00
        ("Asia/Beirut", "0 0 * * *", "2022-03-26", ["03-26 00:00 +0200", "03-27 01:00 +0300", "03-28 00:00 +0300"]),
        ("Asia/Beirut", "0 0 27 * 1", "2022-03-26", ["03-27 01:00 +0300", "03-28 00:00 +0300"]),
        # Apia: all of 2011-12-30 was left out
        ("Pacific/Apia", "0 9 * * *", "2011-12-29", ["12-29 09:00 -1000", "12-31 00:00 +1400", "12-31 09:00 +1400"]),
        ("Pacific/Apia", "0 * * * *", "2011-12-29 23:00", ["12-29 23:00 -1000", "12-31 00:00 +1400"]),
    ],
)
def test_a_time_of_day_fires_once_a_day_and_an_interval_at_every_real_instant(
    tz: str, pattern: str, begin: str, expected: list[str]
) -> None:
    assert shown_fires(pattern, tz, begin, len(expected)) == expected


def test_a_pattern_with_seconds_fires_in_the_second_after_the_gap() -> None:
    zone = ZoneInfo("Europe/Berlin")
    timing = cadence("15 30 2 * * *", tz="Europe/Berlin")
    before = round(datetime(2026, 3, 29, 1, 59, 59, 999_000, tzinfo=zone).timestamp() * 1000)
    assert timing.next_after(before) == before + 1


@pytest.mark.parametrize(
    ("pattern", "moment", "expected"),
    [
        (
            "* * 1 * * *",
            "2026-11-01 06:00",
            "2026-11-02 06:00",
        ),  # the second pass of the hour, whose every second counted
        ("* * */2 * * *", "2026-03-08 06:59:59", "2026-03-08 08:00"),  # an hour of a gap, whose every second matches
    ],
)
def test_a_pattern_of_seconds_is_not_asked_for_every_second_that_does_not_count(
    monkeypatch: pytest.MonkeyPatch, pattern: str, moment: str, expected: str
) -> None:
    asked = 0
    get_next = croniter.get_next

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal asked
        asked += 1
        return get_next(*args, **kwargs)

    timing = cadence(pattern, tz="America/New_York")
    monkeypatch.setattr(croniter, "get_next", counted)
    before, after = (round(datetime.fromisoformat(text + "+00:00").timestamp()) * 1000 for text in (moment, expected))
    assert timing.next_after(before) == after
    assert 1 <= asked <= 3


@dataclass(frozen=True)
class Field:
    """A field as text, and the numbers that it stands for."""

    text: str
    numbers: frozenset[int]


def fields(low: int, high: int, *, near: int | None = None, spans: bool = True) -> st.SearchStrategy[Field]:
    """Fields of every simple form: numbers up to ``near``, steps over all of them. ``spans`` may cover the whole."""
    number = st.integers(low, near or high)
    forms = [
        st.just(Field("*", frozenset(range(low, high + 1)))),
        number.map(lambda n: Field(str(n), frozenset([n]))),
        st.lists(number, min_size=2, max_size=3, unique=True).map(
            lambda ns: Field(",".join(map(str, ns)), frozenset(ns))
        ),
        st.integers(2, (high - low) // 2).map(lambda n: Field(f"*/{n}", frozenset(range(low, high + 1, n)))),
    ]
    if spans:
        span = st.tuples(number, number).map(sorted).filter(lambda pair: pair[0] < pair[1])
        forms.append(span.map(lambda pair: Field(f"{pair[0]}-{pair[1]}", frozenset(range(pair[0], pair[1] + 1)))))
    return st.one_of(forms)


@dataclass(frozen=True)
class Pattern:
    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.minute, self.hour, self.day, self.month, self.weekday))

    @property
    def fixed(self) -> bool:
        return not self.hour.text.startswith("*")

    def matches(self, wall: datetime) -> bool:
        """Whether a reading of the wall clock matches, as cron has it."""
        by_day = wall.day in self.day.numbers
        by_weekday = wall.isoweekday() % 7 in self.weekday.numbers
        either = "*" not in {self.day.text, self.weekday.text}
        return (
            wall.second in self.second.numbers
            and wall.minute in self.minute.numbers
            and wall.hour in self.hour.numbers
            and wall.month in self.month.numbers
            and (by_day or by_weekday if either else by_day and by_weekday)
        )


WHOLE_MINUTE = Field("0", frozenset([0]))
EVERY = Field("*", frozenset(range(100)))
MONTHS = st.one_of(st.just(EVERY), fields(1, 12))
PATTERNS = st.builds(
    Pattern,
    second=st.just(WHOLE_MINUTE),
    minute=fields(0, 59),
    # the hours in which clocks change more often than others
    hour=st.one_of(fields(0, 23, near=3), fields(0, 23)),
    day=st.one_of(st.just(EVERY), fields(1, 31, spans=False)),
    month=MONTHS,
    weekday=st.one_of(st.just(EVERY), fields(0, 6, spans=False)),
)
# every day, so that fires come near the change
PATTERNS_OF_SECONDS = st.builds(
    Pattern,
    second=fields(0, 59),
    minute=fields(0, 59),
    hour=fields(0, 23, near=3),
    day=st.just(EVERY),
    month=st.just(EVERY),
    weekday=st.just(EVERY),
)


@cache
def changes(tz: str) -> list[datetime]:
    """The instants at which a zone's offset changes, to the minute, from 1973 (whole minutes everywhere) to 2040."""
    zone = ZoneInfo(tz)

    def offset(instant: datetime) -> timedelta | None:
        return instant.astimezone(zone).utcoffset()

    days = [datetime(1973, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(67 * 365)]
    found: list[datetime] = []
    for before, after in pairwise(days):
        if offset(before) != offset(after):
            minutes = (before + timedelta(minutes=n) for n in range(24 * 60 + 1))
            found.append(next(minute for minute in minutes if offset(minute) != offset(before)))
    return found


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone, and a change of its clock or any other instant."""
    tz = draw(st.sampled_from(ZONES))
    any_minute = st.datetimes(datetime(1973, 1, 1), datetime(2090, 1, 1)).map(  # noqa: DTZ001 - gets its zone next
        lambda naive: naive.replace(tzinfo=UTC, second=0, microsecond=0)
    )
    if changes(tz):
        return tz, draw(st.one_of(st.sampled_from(changes(tz)), st.sampled_from(changes(tz)), any_minute))
    return tz, draw(any_minute)


def walked(pattern: Pattern, tz: str, begin: datetime, end: datetime, step: timedelta) -> Iterator[int]:
    """The fires from ``begin`` to ``end`` by looking at the wall clock at every step, in milliseconds."""
    zone = ZoneInfo(tz)
    instant = begin
    shown_before = (begin - step).astimezone(zone).replace(tzinfo=None)
    while instant <= end:
        wall = instant.astimezone(zone)
        shown = wall.replace(tzinfo=None)
        if pattern.matches(wall) and not (pattern.fixed and wall.fold):
            yield round(instant.timestamp()) * 1000
        elif pattern.fixed:
            skipped = shown_before + step
            while skipped < shown:
                if pattern.matches(skipped):
                    yield round(instant.timestamp()) * 1000
                    break
                skipped += step
        shown_before = shown
        instant += step


def chained(next_after: Callable[[int], int | None], begin: datetime, end: datetime) -> list[int]:
    """The fires from ``begin`` to ``end`` by asking for one after the other."""
    fires: list[int] = []
    ms = round(begin.timestamp()) * 1000 - 1
    while (following := next_after(ms)) is not None and following <= end.timestamp() * 1000:
        assert following > ms
        fires.append(following)
        ms = following
    return fires


@settings(deadline=None, max_examples=150)
@given(PATTERNS, moments(), st.data())
def test_any_pattern_fires_as_a_walk_over_every_minute_says(
    pattern: Pattern, moment: tuple[str, datetime], data: st.DataObject
) -> None:
    tz, middle = moment
    begin, end = middle - timedelta(hours=30), middle + timedelta(hours=30)
    # the 30th or 31st of a month may never come: that such a pattern is refused is shown elsewhere
    assume(pattern.weekday.text != "*" or not pattern.day.numbers.isdisjoint(range(1, 29)))
    timing = cadence(pattern.text, tz=tz)
    expected = list(walked(pattern, tz, begin, end, timedelta(minutes=1)))

    assert chained(timing.next_after, begin, end) == expected

    probe = data.draw(st.integers(round(begin.timestamp()) * 1000, round(end.timestamp()) * 1000))
    following = timing.next_after(probe)
    later = [fire for fire in expected if fire > probe]
    if later:
        assert following == later[0]
    else:
        assert following is None or following > end.timestamp() * 1000


@settings(deadline=None, max_examples=40)
@given(PATTERNS_OF_SECONDS, moments())
@example(
    Pattern(EVERY, EVERY, Field("1", frozenset([1])), EVERY, EVERY, EVERY),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
)
def test_any_pattern_with_seconds_fires_as_a_walk_over_every_second_says(
    pattern: Pattern, moment: tuple[str, datetime]
) -> None:
    tz, middle = moment
    begin, end = middle - timedelta(minutes=45), middle + timedelta(minutes=75)
    timing = cadence(f"{pattern.second.text} {pattern.text}", tz=tz)
    expected = list(walked(pattern, tz, begin, end, timedelta(seconds=1)))

    assert chained(timing.next_after, begin, end) == expected
