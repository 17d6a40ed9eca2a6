from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanner.errors import InvalidArgumentError
from lanner.queue.cadence import Cadence, CatchUp, cadence

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def at(text: str) -> int:
    """A UTC time, in milliseconds since the epoch."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOON = at("2026-07-01 12:00")


def text_of(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("0 3 * * *", "2026-07-02 03:00:00"),
        ("  0   3 * *\t* ", "2026-07-02 03:00:00"),
        ("*/15 * * * *", "2026-07-01 12:15:00"),
        ("@hourly", "2026-07-01 13:00:00"),
        ("@daily", "2026-07-02 00:00:00"),
        ("@midnight", "2026-07-02 00:00:00"),
        ("@weekly", "2026-07-05 00:00:00"),
        ("@monthly", "2026-08-01 00:00:00"),
        ("@yearly", "2027-01-01 00:00:00"),
        ("@Annually", "2027-01-01 00:00:00"),
        ("30 0 12 * * *", "2026-07-01 12:00:30"),  # seconds first
        ("*/20 * * * * *", "2026-07-01 12:00:20"),
        ("0 0 12 30 * *", "2026-07-30 12:00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00:00"),
        ("0 0 31 * *", "2026-07-31 00:00:00"),
        ("0 0 L * *", "2026-07-31 00:00:00"),
        ("0 0 * * mon", "2026-07-06 00:00:00"),
        ("0 0 * * 7", "2026-07-05 00:00:00"),
        ("0 0 * * 0-7", "2026-07-02 00:00:00"),
        ("0 0 * * mon#2", "2026-07-13 00:00:00"),
        ("0 0 13 * fri", "2026-07-03 00:00:00"),  # either of them
        ("0 0 31 2 sun", "2027-02-07 00:00:00"),  # there is no such day, but there are such weekdays
        ("0 0 15W * *", "2026-07-15 00:00:00"),
        ("0 0 ? * L5", "2026-07-31 00:00:00"),
        ("0 22-2 * * *", "2026-07-01 22:00:00"),
        ("0 0 1 jan,mar *", "2027-01-01 00:00:00"),
        ("0 12 * * thu", "2026-07-02 12:00:00"),
    ],
)
def test_a_pattern_fires_when_cron_would(pattern: str, expected: str) -> None:
    assert text_of(cadence(pattern).next_after(NOON)) == expected


def test_the_next_instant_is_strictly_later_to_the_millisecond() -> None:
    timing = cadence("0 12 * * *")
    assert timing.next_after(NOON - 1) == NOON
    assert timing.next_after(NOON) == NOON + DAY
    assert timing.next_after(NOON + 1) == NOON + DAY
    assert timing.next_after(NOON + 999) == NOON + DAY


def test_a_pattern_is_read_on_the_wall_clock_of_its_zone() -> None:
    for tz in ("Asia/Kolkata", ZoneInfo("Asia/Kolkata")):
        assert text_of(cadence("0 3 * * *", tz=tz).next_after(NOON)) == "2026-07-01 21:30:00"


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (timedelta(hours=1), "2026-07-01 13:00:00"),
        (3600, "2026-07-01 13:00:00"),
        (900, "2026-07-01 12:45:00"),
        (timedelta(days=1), "2026-07-02 00:00:00"),
        (7, "2026-07-01 12:35:03"),
        (2.5, "2026-07-01 12:34:57"),
    ],
)
def test_an_interval_stands_on_the_grid_of_the_clock(every: timedelta | float, expected: str) -> None:
    assert text_of(cadence(every=every).next_after(at("2026-07-01 12:34:56"))) == expected


def test_an_interval_with_a_start_counts_from_it() -> None:
    timing = cadence(every=timedelta(hours=1), start=datetime(2026, 7, 1, 12, 20, tzinfo=UTC))
    assert text_of(timing.next_after(0)) == "2026-07-01 12:20:00"
    assert text_of(timing.next_after(at("2026-07-01 12:20"))) == "2026-07-01 13:20:00"
    assert text_of(timing.next_after(at("2026-07-05 00:00"))) == "2026-07-05 00:20:00"


@given(st.integers(1, 10**12), st.integers(-(10**13), 10**13), st.none() | st.integers(0, 10**13))
def test_an_interval_neither_drifts_nor_skips(every_ms: int, ms: int, start_ms: int | None) -> None:
    timing = Cadence(every_ms=every_ms, start_ms=start_ms)
    following = timing.next_after(ms)
    assert following is not None
    assert following > ms
    assert (following - (start_ms or 0)) % every_ms == 0
    assert following - ms <= every_ms or following == start_ms


def test_a_start_is_the_first_instant_and_an_end_the_last() -> None:
    timing = cadence("0 12 * * *", start=datetime(2026, 7, 1, 12, tzinfo=UTC), end=datetime(2026, 7, 2, 12, tzinfo=UTC))
    assert timing.next_after(0) == NOON
    assert timing.next_after(NOON) == NOON + DAY
    assert timing.next_after(NOON + DAY) is None
    late = cadence("0 12 * * *", start=datetime(2026, 7, 1, 12, 0, 0, 1_000, tzinfo=UTC))
    assert late.next_after(0) == NOON + DAY


@pytest.mark.parametrize("timing", [cadence("* * * * *"), cadence(every=60)])
@pytest.mark.parametrize("ms", [-(10**15), -1, 0, 10**11, at("2099-12-31 23:59:59")])
def test_any_instant_may_be_asked_about(timing: Cadence, ms: int) -> None:
    following = timing.next_after(ms)
    assert following is not None
    assert following > ms


def test_a_pattern_has_no_instants_in_years_that_no_datetime_reaches() -> None:
    assert cadence("* * * * *").next_after(at("9999-12-31 23:59")) is None
    assert cadence("* * * * *").next_after(10**18) is None


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("60 * * * *", "has a bad minute field, '60': it takes 0-59"),
        ("99 * * * * *", "has a bad second field, '99'"),
        ("0 24 * * *", "has a bad hour field, '24': it takes 0-23"),
        ("0 0 0 * *", "has a bad day field, '0': it takes 1-31"),
        ("0 0 * 13 *", "has a bad month field, '13'"),
        ("0 0 * * 8", "has a bad weekday field, '8'"),
        ("0 0 * * 1#6", "has a bad weekday field, '1#6'"),
        ("*/0 * * * *", r"has a bad minute field, '\*/0'"),
        ("-5 * * * *", "has a bad minute field"),
        ("a b c d e", "has a bad minute field, 'a'"),
        ("\u0665 * * * *", "has a bad minute field"),
        ("5-5 3 * * *", "has a range with equal ends, '5-5': write '5'"),
        ("0 0 * * sun-SUN", "has a range with equal ends"),
        ("0 0 13 * fri#2", "has a day with W or a weekday with # or L, .*two schedules"),
        ("0 0 */2 * L5", "has a day with W or a weekday with # or L"),
        ("0 0 0 15w * fri", "has a day with W or a weekday with # or L"),
        ("", "has 0 fields: give five fields"),
        ("0 3 * *", "has 4 fields: give five fields"),
        (
            "0 0 3 * * * 2026",
            r"has 7 fields: give five fields \(minute hour day month weekday\), six with seconds first",
        ),
        ("@dayly", "is unknown: .*did you mean '@daily'"),
        ("@reboot", "is unknown: give five fields"),
        ("@every 5m", "is unknown: for an interval use every="),
        ("H * * * *", r"has a hashed or random field \(H, R\)"),
        ("0 r(1-5) * * *", "has a hashed or random field"),
        ("R/10 * * * * *", "has a hashed or random field"),
        ("0 0 30 2 *", "never fires in UTC"),
        ("0 0 31 4,6,9,11 *", "never fires in UTC"),
    ],
)
def test_a_bad_pattern_is_refused_with_what_is_wrong(pattern: str, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^pattern .*{why}"):
        cadence(pattern)


def test_a_pattern_that_only_ever_names_a_gap_never_fires() -> None:
    # Havana sets its clocks from 00:00 to 01:00 on the second Sunday of March
    assert cadence("0 */24 * 3 sun#2").next_after(NOON) is not None
    with pytest.raises(InvalidArgumentError, match="never fires in America/Havana"):
        cadence("0 */24 * 3 sun#2", tz="America/Havana")
    assert cadence("0 0 * 3 sun#2", tz="America/Havana").next_after(NOON) == at("2027-03-14 05:00")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "^give a pattern or every=, exactly one of them, not neither"),
        ({"pattern": "* * * * *", "every": 5}, "^give a pattern or every=, exactly one of them, not both"),
        ({"pattern": 5}, "^pattern must be text"),
        ({"pattern": "x" * 1001}, "^pattern must have at most 1000 characters, not 1001"),
        ({"every": 0}, "^every must be longer than 0, not 0"),
        ({"every": -1}, "^every must be longer than 0, not -1"),
        ({"every": timedelta(0)}, "^every must be longer than 0"),
        ({"every": True}, "^every must be a timedelta or seconds"),
        ({"every": float("nan")}, "^every must be finite"),
        ({"every": float("inf")}, "^every must be finite"),
        ({"every": "5m"}, "^every must be a timedelta or seconds"),
        ({"every": timedelta.max}, "^every must be at most"),
        ({"every": 60, "tz": "Europe/Berlin"}, "^tz belongs to a pattern, .*leave tz='Europe/Berlin' out"),
        (
            {"pattern": "@daily", "tz": "Europe/Berln"},
            "^tz must be .*, not 'Europe/Berln'; did you mean 'Europe/Berlin'",
        ),
        ({"pattern": "@daily", "tz": "europe/berlin"}, "^tz must be .*did you mean 'Europe/Berlin'"),
        ({"pattern": "@daily", "tz": "Mars/Olympus_Mons"}, "^tz must be an IANA zone .*tzdata"),
        ({"pattern": "@daily", "tz": "localtime"}, "^tz must be"),
        ({"pattern": "@daily", "tz": "right/UTC"}, "^tz must be"),
        ({"pattern": "@daily", "tz": "America"}, "^tz must be"),
        ({"pattern": "@daily", "tz": "../UTC"}, "^tz must be"),
        ({"pattern": "@daily", "tz": "/etc/passwd"}, "^tz must be"),
        ({"pattern": "@daily", "tz": "\0"}, "^tz must be"),
        ({"pattern": "@daily", "tz": "\ud800"}, "^tz must be"),
        ({"pattern": "@daily", "tz": "z" * 10_000}, "^tz must be"),
        ({"pattern": "@daily", "tz": ""}, "^tz must be"),
        ({"pattern": "@daily", "tz": None}, "^tz must be"),
        ({"pattern": "@daily", "tz": UTC}, "^tz must be"),
        ({"pattern": "@daily", "tz": timezone(timedelta(hours=2))}, "^tz must be"),
        (
            {"pattern": "@daily", "start": datetime(2026, 7, 1)},  # noqa: DTZ001 - a naive one is to be refused
            "^start must be an aware datetime",
        ),
        ({"pattern": "@daily", "end": date(2026, 7, 1)}, "^end must be an aware datetime"),
        ({"pattern": "@daily", "end": 1_782_864_000}, "^end must be an aware datetime"),
        (
            {"every": 1, "start": datetime(2026, 7, 2, tzinfo=UTC), "end": datetime(2026, 7, 1, tzinfo=UTC)},
            "^end must not be before start",
        ),
        (
            {
                "pattern": "0 3 * * *",
                "start": datetime(2026, 7, 1, 4, tzinfo=UTC),
                "end": datetime(2026, 7, 2, 2, tzinfo=UTC),
            },
            "^end must leave at least one instant",
        ),
        ({"every": 1, "jitter": -1}, "^jitter must be 0 or longer"),
        ({"every": 1, "jitter": "x"}, "^jitter must be a timedelta"),
        ({"every": 1, "catch_up": "al"}, "^catch_up must be one of 'one', 'skip', 'all', not 'al'; did you mean 'all'"),
        ({"every": 1, "catch_up": None}, "^catch_up must be one of"),
        ({"every": 1, "catch_up_limit": 5}, '^catch_up_limit belongs to catch_up="all"'),
        ({"every": 1, "catch_up": "all", "catch_up_limit": 0}, "^catch_up_limit must be an int from 1 to 200, not 0"),
        ({"every": 1, "catch_up": "all", "catch_up_limit": 201}, "^catch_up_limit must be an int from 1 to 200"),
        ({"every": 1, "catch_up": "all", "catch_up_limit": True}, "^catch_up_limit must be an int from 1 to 200"),
    ],
)
def test_an_unfit_argument_is_refused_by_name(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why) as caught:
        cadence(**arguments)
    assert len(str(caught.value)) < 500


NO_SPACE = st.text(min_size=1, max_size=6).filter(lambda text: len(text.split()) == 1)
CRONLIKE = st.text("0123456789*/,-#?LWHRsunmoj", min_size=1, max_size=6)
NUMBERS = st.integers(0, 62).map(str)


@settings(deadline=None, max_examples=400)
@given(
    st.lists(st.one_of(st.just("*"), NUMBERS, CRONLIKE, NO_SPACE), min_size=5, max_size=6).map(" ".join) | st.text(),
    st.integers(0, 4_000_000_000_000),
)
def test_any_text_at_all_is_a_pattern_that_moves_on_or_refused(text: str, ms: int) -> None:
    try:
        timing = cadence(text)
    except InvalidArgumentError:
        return
    for _ in range(3):
        following = timing.next_after(ms)
        assert following is not None
        assert following > ms
        ms = following


FULL = cadence(
    "0 3 * * *",
    tz="Europe/Berlin",
    start=datetime(2026, 1, 1, tzinfo=UTC),
    end=datetime(2027, 1, 1, tzinfo=UTC),
    jitter=60,
    catch_up="all",
    catch_up_limit=7,
)


def test_a_cadence_is_kept_as_short_json() -> None:
    assert cadence("@daily").dumps() == '{"pattern":"@daily"}'
    assert cadence(every=1.5).dumps() == '{"every_ms":1500}'
    assert msgspec.json.decode(FULL.dumps()) == {
        "pattern": "0 3 * * *",
        "tz": "Europe/Berlin",
        "start_ms": 1_767_225_600_000,
        "end_ms": 1_798_761_600_000,
        "jitter_ms": 60_000,
        "catch_up": "all",
        "catch_up_limit": 7,
    }


@pytest.mark.parametrize(
    "timing", [cadence("@daily"), cadence(every=1.5), cadence("* * * * * *", catch_up="skip"), FULL]
)
def test_a_cadence_reads_back_as_it_was(timing: Cadence) -> None:
    assert Cadence.loads(timing.dumps()) == timing
    assert Cadence.loads(timing.dumps().encode()) == timing


def test_the_same_timing_is_equal_however_it_is_written() -> None:
    assert cadence(" 0  3 * * * ") == cadence("0 3 * * *", tz="UTC", jitter=0)
    assert cadence("@DAILY") == cadence("@daily")
    assert cadence(every=60) == cadence(every=timedelta(minutes=1))
    assert cadence("0 3 * * *", tz="Europe/Berlin") != cadence("0 3 * * *")


def test_a_stored_zone_that_this_machine_does_not_know_is_named() -> None:
    stored = Cadence.loads('{"pattern":"@daily","tz":"Europe/Atlantis"}')
    with pytest.raises(InvalidArgumentError, match=r"Europe/Atlantis.*tzdata"):
        stored.next_after(NOON)


def test_a_fire_on_time_runs_once_and_arms_the_next() -> None:
    policies: list[CatchUp] = ["one", "skip", "all"]
    for policy in policies:
        timing = cadence("0 12 * * *", catch_up=policy)
        assert timing.due(NOON, NOON - 1, "s") == ([], NOON)
        assert timing.due(NOON, NOON, "s") == ([NOON], NOON + DAY)
        assert timing.due(NOON, NOON + 5_000, "s") == ([NOON], NOON + DAY)


def test_sixty_missed_fires_become_one_and_then_the_cadence() -> None:
    now = NOON + 59 * MINUTE + 30 * SECOND
    for timing in (cadence("* * * * *"), cadence(every=60)):
        fires, armed = timing.due(NOON, now, "s")
        assert fires == [NOON + 59 * MINUTE]
        assert armed == NOON + HOUR
        assert timing.due(NOON + HOUR, now, "s") == ([], NOON + HOUR)


def test_missed_fires_can_be_skipped() -> None:
    timing = cadence("0 * * * *", catch_up="skip")
    assert timing.due(NOON, NOON + 30 * SECOND, "s") == ([NOON], NOON + HOUR)
    assert timing.due(NOON, NOON + 31 * SECOND, "s") == ([], NOON + HOUR)
    assert timing.due(NOON, NOON + 5 * HOUR + 30 * MINUTE, "s") == ([], NOON + 6 * HOUR)
    assert timing.due(NOON, NOON + 5 * HOUR + SECOND, "s") == ([NOON + 5 * HOUR], NOON + 6 * HOUR)


def test_a_fire_that_its_jitter_delays_is_not_late() -> None:
    timing = cadence("0 * * * *", jitter=600, catch_up="skip")
    fire = timing.fire_ms(NOON, "nightly")
    assert fire > NOON + 30 * SECOND
    assert timing.due(NOON, fire - 1, "nightly") == ([], NOON)
    assert timing.due(NOON, fire, "nightly") == ([NOON], NOON + HOUR)
    assert timing.due(NOON, fire + 31 * SECOND, "nightly") == ([], NOON + HOUR)


def test_missed_fires_can_all_be_made_up_for_within_a_bound() -> None:
    timing = cadence("0 * * * *", catch_up="all", catch_up_limit=3)
    assert timing.due(NOON, NOON + HOUR, "s") == ([NOON, NOON + HOUR], NOON + 2 * HOUR)
    assert timing.due(NOON, NOON + 9 * HOUR + 1, "s") == (
        [NOON + 7 * HOUR, NOON + 8 * HOUR, NOON + 9 * HOUR],
        NOON + 10 * HOUR,
    )


def test_a_schedule_that_has_ended_arms_nothing() -> None:
    timing = cadence("0 12 * * *", end=datetime(2026, 7, 2, 12, tzinfo=UTC), catch_up="all")
    assert timing.due(NOON, NOON, "s") == ([NOON], NOON + DAY)
    assert timing.due(NOON, NOON + 10 * DAY, "s") == ([NOON, NOON + DAY], None)


def test_an_armed_instant_off_the_cadence_runs_and_the_cadence_goes_on() -> None:
    timing = cadence("0 * * * *", catch_up="all")
    assert timing.due(NOON + 1, NOON + 1, "s") == ([NOON + 1], NOON + HOUR)
    assert timing.due(NOON + 1, NOON + HOUR, "s") == ([NOON + 1, NOON + HOUR], NOON + 2 * HOUR)


def test_jitter_spreads_schedules_and_instants_the_same_way_everywhere() -> None:
    timing = cadence("0 * * * *", jitter=600)
    by_schedule = {timing.fire_ms(NOON, f"schedule {n}") - NOON for n in range(200)}
    by_instant = {timing.fire_ms(NOON + n * HOUR, "s") - NOON - n * HOUR for n in range(200)}
    for offsets in (by_schedule, by_instant):
        assert len(offsets) > 190
        assert min(offsets) >= 0
        assert min(offsets) < 60_000
        assert 540_000 < max(offsets) < 600_000
    # pinned: workers of different versions have to agree
    assert timing.fire_ms(NOON, "nightly") == Cadence.loads(timing.dumps()).fire_ms(NOON, "nightly") == NOON + 224_117


def test_jitter_never_reaches_the_following_instant() -> None:
    for timing in (cadence("* * * * * *", jitter=3600), cadence(every=1, jitter=3600)):
        fires = [timing.fire_ms(NOON + n * SECOND, "s") for n in range(100)]
        assert all(0 <= fire - NOON - n * SECOND < SECOND for n, fire in enumerate(fires))
        assert all(before < after for before, after in pairwise(fires))


def test_without_jitter_a_fire_is_at_its_instant() -> None:
    assert cadence("0 * * * *").fire_ms(NOON, "s") == NOON


PATTERNS = st.sampled_from(
    ["* * * * * *", "*/7 * * * * *", "5-20 * * * * *", "* * * * *", "*/7 1-2 * * *", "30 2 * * *"]
)
TIMINGS = st.builds(
    Cadence,
    pattern=PATTERNS,
    tz=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    jitter_ms=st.sampled_from([0, 1, 700, 30_000, 90_000]),
    catch_up=st.sampled_from(["one", "skip", "all"]),
    catch_up_limit=st.integers(1, 10),
    end_ms=st.none() | st.integers(0, 10 * MINUTE).map(lambda ms: at("2026-10-25 01:00") + ms),
) | st.builds(
    Cadence,
    every_ms=st.integers(500, 10 * MINUTE),
    start_ms=st.none() | st.integers(0, 10**12),
    jitter_ms=st.integers(0, MINUTE),
    catch_up=st.sampled_from(["one", "skip", "all"]),
    catch_up_limit=st.integers(1, 10),
)


@settings(deadline=None, max_examples=150)
@given(TIMINGS, st.integers(-HOUR, HOUR), st.integers(-2_000, 5 * MINUTE), st.integers(0, 3))
def test_what_is_due_is_what_a_walk_over_all_instants_says(timing: Cadence, shift: int, late: int, offset: int) -> None:
    # around the hour that Berlin repeats
    armed = timing.next_after(at("2026-10-25 00:30") + shift)
    if armed is None:
        return
    armed += offset  # an instant of an earlier timing may be off the cadence
    now = armed + late
    instants = [armed]
    while (following := timing.next_after(instants[-1])) is not None and following <= now + 2 * DAY:
        instants.append(following)
        if following > now + 2 * MINUTE:
            break
    fired = [instant for instant in instants if timing.fire_ms(instant, "s") <= now]
    expected = fired[-1:] if timing.catch_up == "one" else fired[-timing.catch_up_limit :]
    if timing.catch_up == "skip":
        expected = [instant for instant in fired[-1:] if now - timing.fire_ms(instant, "s") <= 30_000]
    waiting = [instant for instant in instants if instant not in fired]

    assert timing.due(armed, now, "s") == (expected, waiting[0] if waiting else None)


@settings(deadline=None, max_examples=60)
@given(TIMINGS, st.lists(st.integers(1, 3 * MINUTE), min_size=1, max_size=25))
def test_over_any_course_of_time_no_instant_runs_twice_early_or_never(timing: Cadence, pauses: list[int]) -> None:
    timing = msgspec.structs.replace(timing, end_ms=None, catch_up="all", catch_up_limit=200)
    now = begin = at("2026-10-25 00:00")
    armed = timing.next_after(begin)
    ran: list[int] = []
    for pause in pauses:
        now += min(pause, 150 * SECOND, 190 * (timing.every_ms or SECOND))
        assert armed is not None
        fires, armed = timing.due(armed, now, "s")
        assert all(timing.fire_ms(fire, "s") <= now for fire in fires)
        ran += fires
    expected: list[int] = []
    instant = timing.next_after(begin)
    while instant is not None and timing.fire_ms(instant, "s") <= now:
        expected.append(instant)
        instant = timing.next_after(instant)

    assert ran == expected


def test_a_year_of_missed_seconds_is_found_without_walking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    following = Cadence.next_after

    def counted(self: Cadence, ms: int) -> int | None:
        nonlocal asked
        asked += 1
        return following(self, ms)

    monkeypatch.setattr(Cadence, "next_after", counted)
    timing = cadence("* * 3 * * *")
    fires, armed = timing.due(NOON - 365 * DAY, NOON, "s")
    assert [text_of(ms) for ms in (*fires, armed)] == ["2026-07-01 03:59:59", "2026-07-02 03:00:00"]
    assert asked < 150
