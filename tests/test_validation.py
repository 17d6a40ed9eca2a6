import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.errors import InvalidArgumentError
from lanner.queue.validation import (
    MAX_DURATION,
    check_cap,
    check_choice,
    check_free_id,
    check_id,
    check_int,
    check_priority,
    duration_ms,
    instant_ms,
    refuse_unknown_options,
    shown,
)


class Level(IntEnum):
    NONE = 0
    HIGH = 7


class Word(Enum):
    HIGH = 7


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no repr for you")


NO_NUMBERS: list[object] = [True, False, "5", None, Decimal(5), 5j, Word.HIGH, [5], object(), Rude()]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (0.0, 0),
        (-0.0, 0),
        (1, 1000),
        (1.5, 1500),
        (0.1 + 0.2, 300),
        (Level.HIGH, 7000),
        (timedelta(0), 0),
        (timedelta(days=1), 86_400_000),
        (timedelta(microseconds=1), 1),
        (timedelta(milliseconds=1, microseconds=1), 2),
        (0.0001, 1),
        (MAX_DURATION, 365_000 * 86_400_000),
    ],
)
def test_a_duration_is_a_timedelta_or_seconds_and_never_gets_shorter(value: object, expected: int) -> None:
    assert duration_ms(value, "delay") == expected


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_duration_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^delay must be a timedelta or seconds \(int or float\), not "):
        duration_ms(value, "delay")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_duration_is_finite(value: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^timeout must be finite, not -?(nan|inf); .*None"):
        duration_ms(value, "timeout")


@pytest.mark.parametrize(
    "value", [10**10 * 86_400, 10**400, sys.float_info.max, timedelta.max, MAX_DURATION + timedelta(microseconds=1)]
)
def test_a_duration_beyond_reason_is_refused_and_overflows_nothing(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^delay must be at most 365000 days, not ") as caught:
        duration_ms(value, "delay")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value", [-1, -0.001, -0.0001, timedelta(microseconds=-1), timedelta.min, -(10**400), -sys.float_info.max]
)
def test_a_negative_duration_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^delay must be 0 or longer, not "):
        duration_ms(value, "delay")


def test_a_duration_has_the_minimum_that_its_caller_names() -> None:
    assert duration_ms(0.001, "every", minimum=1) == 1
    with pytest.raises(InvalidArgumentError, match=r"^every must be longer than 0, not 0$"):
        duration_ms(0, "every", minimum=1)
    assert duration_ms(2, "lease", minimum=2000) == 2000
    with pytest.raises(InvalidArgumentError, match=r"^lease must be at least 2 s, not 1\.999$"):
        duration_ms(1.999, "lease", minimum=2000)


@given(st.timedeltas(timedelta(0), MAX_DURATION))
def test_a_duration_is_lengthened_by_less_than_a_millisecond(value: timedelta) -> None:
    assert timedelta(0) <= timedelta(milliseconds=duration_ms(value, "delay")) - value < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 1),
        (datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), -1),
        (datetime(2026, 7, 1, 2, tzinfo=ZoneInfo("Europe/Berlin")), 1_782_864_000_000),
        (datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), 1_792_888_200_000),
        (datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), 1_792_891_800_000),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), -62_135_596_800_000 - 14 * 3_600_000),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))), 253_402_300_800_000 + 12 * 3_600_000),
    ],
)
def test_an_instant_is_an_aware_datetime(value: datetime, expected: int) -> None:
    assert instant_ms(value, "at") == expected


def test_a_naive_datetime_is_refused_with_a_way_out() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"^at must be an aware datetime, and 2026-07-01T02:00:00 has no .*UTC"
    ):
        instant_ms(datetime(2026, 7, 1, 2), "at")  # noqa: DTZ001 - a naive one is what the test is about


@pytest.mark.parametrize("value", [date(2026, 7, 1), "2026-07-01T00:00:00Z", 1_782_864_000, None, timedelta(1), Rude()])
def test_what_is_no_datetime_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^start must be an aware datetime, not "):
        instant_ms(value, "start")


@pytest.mark.parametrize("value", ["a", "sign-up.v2", "A_9", "x" * 128, "..", "-"])
def test_an_id_of_a_namespace_or_workflow_is_of_plain_characters(value: str) -> None:
    assert check_id(value, "workflow id") == value


@pytest.mark.parametrize(
    "value", ["", "x" * 129, "a:b", "a b", "{a}", "a\n", "ä", "a/b", "\u0661", 5, None, b"a", Rude()]
)
def test_any_other_id_of_a_namespace_or_workflow_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^workflow id must be 1 to 128 characters out of letters, "):
        check_id(value, "workflow id")


@pytest.mark.parametrize(
    "value", ["user:42", " ", "a b", "é", "\U0001f600" * 256, "{x}", "x" * 256, "\u200d", "\u2028"]
)
def test_an_id_of_a_job_is_free_text(value: str) -> None:
    assert check_free_id(value, "job id") == value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "must have 1 to 256 characters, not 0"),
        ("x" * 257, "must have 1 to 256 characters, not 257"),
        ("a\nb", r"character 1 of 'a\\nb' is a control character: '\\n'"),
        ("a\0", "character 1 of .* is a control character"),
        ("\x7f", "character 0 of .* is a control character"),
        ("\x85", "character 0 of .* is a control character"),
        ("ab\ud800", "character 2 of .* is a lone surrogate"),
        (42, r"must be text, not 42; use str\(\.\.\.\)$"),
        (True, "must be text, not True$"),
        (None, "must be text, not None$"),
        (b"a", "must be text, not b'a'"),
        (Rude(), "must be text, not <Rude"),
    ],
)
def test_a_job_id_that_cannot_be_a_key_is_refused_with_the_place(value: object, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^job id .*{why}"):
        check_free_id(value, "job id")


@given(st.text())
def test_every_free_id_that_passes_can_be_sent(value: str) -> None:
    try:
        check_free_id(value, "job id")
    except InvalidArgumentError as error:
        str(error).encode()
    else:
        assert value.encode().decode() == value
        assert "\n" not in value


@pytest.mark.parametrize("value", [0, 1, 2**21 - 1, Level.NONE, Level.HIGH])
def test_a_priority_is_an_int_from_0_to_2_097_151(value: int) -> None:
    assert check_priority(value) == int(value)
    assert type(check_priority(value)) is int


@pytest.mark.parametrize("value", [-1, 2**21, 1.0, 0.5, float("nan"), 10**400, *(n for n in NO_NUMBERS if n != "5")])
def test_any_other_priority_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^priority must be an int from 0 to 2097151, not ") as caught:
        check_priority(value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", ["high", "5", ""])
def test_a_named_priority_is_refused_with_what_to_give_instead(value: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=rf"an int from 0 to 2097151, higher first; .*no names, such as '{value}'"
    ):
        check_priority(value)


@pytest.mark.parametrize(
    ("value", "expected"), [(None, None), (1, 1), (10, 10), (Level.HIGH, 7), (2**31 - 1, 2**31 - 1)]
)
def test_a_cap_is_a_positive_int_or_none(value: object, expected: int | None) -> None:
    assert check_cap(value, "concurrency") == expected
    assert type(check_cap(value, "concurrency")) is type(expected)


@pytest.mark.parametrize(
    "value", [0, -1, 1.0, 0.0, float("inf"), 2**31, Level.NONE, *(n for n in NO_NUMBERS if n is not None)]
)
def test_any_other_cap_is_refused(value: object) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"^concurrency must be an int from 1 to 2147483647, or None for no cap"
    ):
        check_cap(value, "concurrency")


def test_a_cap_of_zero_is_refused_with_the_way_to_stop_a_queue() -> None:
    with pytest.raises(InvalidArgumentError, match=r"pause it$"):
        check_cap(0, "concurrency")


def test_an_int_has_bounds() -> None:
    assert [check_int(value, "max_attempts", 1, 7) for value in (1, 3, Level.HIGH)] == [1, 3, 7]
    assert type(check_int(Level.HIGH, "max_attempts", 1, 7)) is int


@pytest.mark.parametrize("value", [0, 8, 3.0, *NO_NUMBERS])
def test_an_int_out_of_its_bounds_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^max_attempts must be an int from 1 to 7, not "):
        check_int(value, "max_attempts", 1, 7)


def test_a_choice_is_one_of_its_words() -> None:
    assert check_choice("skip", "overlap", ("skip", "allow", "cancel")) == "skip"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("alow", r"; did you mean 'allow'\?"),
        ("SKIP", r"; did you mean 'skip'\?"),
        ("zzz", ""),
        (None, ""),
        (Rude(), ""),
    ],
)
def test_any_other_choice_is_refused_with_the_list(value: object, hint: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=rf"^overlap must be one of 'skip', 'allow', 'cancel', not [^;]+{hint}$"
    ):
        check_choice(value, "overlap", ("skip", "allow", "cancel"))


KNOWN = {"max_attempts", "backoff", "result_ttl", "priority", "timeout"}


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("retry", r"there is no option retry=: use max_attempts= and backoff= instead"),
        ("repeat", r"there is no option repeat=: use upsert_schedule\("),
        ("keep_completed", r"there is no option keep_completed=: use result_ttl= instead"),
        ("timezone", r"there is no option timezone=: use tz= of upsert_schedule instead"),
        ("delay", r"there is no option delay=: use run_in\(input, delay\) or run_at\(input, instant\)"),
        ("run_at", r"there is no option run_at=: use run_in\(input, delay\) or run_at\(input, instant\)"),
        ("job_id", r"there is no option job_id=: use id= instead"),
        ("max_attempt", r"there is no option 'max_attempt'; did you mean 'max_attempts'\?"),
        ("Timeout", r"there is no option 'Timeout'; did you mean 'timeout'\?"),
        ("zzz", r"'zzz'; the options are backoff, max_attempts, priority, result_ttl, timeout$"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_what_to_use(option: str, instead: str) -> None:
    with pytest.raises(InvalidArgumentError, match=instead):
        refuse_unknown_options({"priority": 1, option: {"attempts": 3}}, KNOWN)


def test_options_that_exist_pass() -> None:
    refuse_unknown_options({}, KNOWN)
    refuse_unknown_options(dict.fromkeys(KNOWN), KNOWN)


def test_a_named_priority_among_the_options_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="priorities have no names"):
        refuse_unknown_options({"priority": "high"}, KNOWN)


def test_a_value_is_shown_in_an_error_without_flooding_it() -> None:
    assert len(shown("x" * 10_000)) < 100
    assert len(shown(b"x" * 10_000)) < 100
    assert len(shown([list(range(1000))] * 1000)) < 200
    assert "Rude" in shown(Rude())
    assert shown(10**5000) == "<int>"
