import asyncio
import math
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.errors import NonRetryableError, RateLimited, RetryAfter, StepFailedError
from lanner.queue.backoff import backoff_delay_ms
from lanner.queue.deciding import decide
from lanner.queue.outcome import Failed, Failure, Outcome, Retry
from lanner.queue.spec import DEFAULT_BACKOFF, Spec


class Most:
    """As random as a die that always shows its highest face."""

    def random(self) -> float:
        return 1.0


SPEC = Spec(run="life", max_attempts=5)


def delay_of(outcome: Outcome) -> int:
    assert isinstance(outcome, Retry)
    return outcome.delay_ms


def failure_of(outcome: Outcome) -> Failure:
    assert isinstance(outcome, Retry | Failed)
    return outcome.failure


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 500), (2, 1_000), (3, 2_000), (6, 16_000), (7, 30_000), (8, 30_000), (5_000, 30_000)]
)
def test_the_backoff_doubles_up_to_its_longest(failures: int, longest: int) -> None:
    assert backoff_delay_ms(failures, DEFAULT_BACKOFF, Most()) == longest


def test_the_jitter_is_full() -> None:
    rng = random.Random(7)
    delays = [backoff_delay_ms(3, DEFAULT_BACKOFF, rng) for _ in range(2_000)]
    assert 0 <= min(delays) < 50
    assert 1_950 < max(delays) <= 2_000
    assert 900 < sum(delays) / len(delays) < 1_100


@given(
    failures=st.integers(1, 10**6),
    first=st.integers(0, 2**53),
    factor=st.floats(1, 1e308),
    longest=st.integers(0, 2**53),
)
def test_no_backoff_overflows(failures: int, first: int, factor: float, longest: int) -> None:
    delay = backoff_delay_ms(failures, (first, factor, longest), Most())
    assert 0 <= delay <= longest


def test_no_delay_stays_none() -> None:
    assert backoff_delay_ms(5_000, (0, 2.0, 30_000), Most()) == 0


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        TimeoutError(),
        asyncio.CancelledError(),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        ExceptionGroup("several", [ValueError("x"), OSError()]),
    ],
)
def test_anything_is_retried_until_no_attempt_is_left(error: BaseException) -> None:
    for failures in range(4):
        outcome = decide(error, SPEC, failures, rng=Most())
        assert delay_of(outcome) == 500 * 2**failures
        assert failure_of(outcome).type == type(error).__name__
    assert isinstance(decide(error, SPEC, 4), Failed)
    assert isinstance(decide(error, SPEC, 7), Failed)


def test_one_attempt_is_the_default() -> None:
    assert isinstance(decide(ValueError(), Spec(run="life"), 0), Failed)


@pytest.mark.parametrize(
    "error",
    [
        NonRetryableError("x"),
        StepFailedError(step="charge", type="X", message="y"),
        KeyError("x"),
        ExceptionGroup("several", [ValueError("x"), ExceptionGroup("more", [NonRetryableError()])]),
        ExceptionGroup("slow down, and for good", [RateLimited(0.3), NonRetryableError()]),
    ],
)
def test_an_error_for_good_fails_at_once(error: BaseException) -> None:
    outcome = decide(error, SPEC, 0, non_retryable=(KeyError,))
    assert isinstance(outcome, Failed)
    assert failure_of(outcome).type == type(error).__name__


def test_any_error_can_be_kept_as_text() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    failed = failure_of(decide(SilentError(), Spec(run="life"), 0))
    assert (failed.type.rpartition(".")[2], failed.message) == ("SilentError", "(its text cannot be had: RuntimeError)")
    odd = failure_of(decide(OSError("no file \udcff" + "x" * 10_000), Spec(run="life"), 0))
    assert odd.message.startswith("no file \\udcffxxx")
    assert len(odd.message) < 5_000
    assert Failure.loads(odd.dumps()) == odd


def test_only_the_error_that_was_raised_counts_and_not_its_cause() -> None:
    error = ValueError("y")
    error.__cause__ = NonRetryableError("x")
    assert isinstance(decide(error, SPEC, 0), Retry)


@pytest.mark.parametrize(
    ("delay", "milliseconds"),
    [(0, 0), (1.5, 1_500), (timedelta(hours=2), 7_200_000)],
)
def test_retry_after_chooses_the_delay(delay: float | timedelta, milliseconds: int) -> None:
    assert delay_of(decide(RetryAfter(delay), SPEC, 0)) == milliseconds
    assert isinstance(decide(RetryAfter(delay), SPEC, 4), Failed), "it is a failed attempt all the same"


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, timedelta(seconds=-1), 10**400, "5", None, True])
def test_a_delay_that_is_none_leaves_it_to_the_backoff(delay: Any) -> None:
    assert delay_of(decide(RetryAfter(delay), SPEC, 0, rng=Most())) == 500


def test_of_several_delays_the_longest_counts() -> None:
    both = ExceptionGroup("both", [RetryAfter(2), ValueError(), RetryAfter(timedelta(minutes=1))])
    assert delay_of(decide(both, SPEC, 0)) == 60_000
