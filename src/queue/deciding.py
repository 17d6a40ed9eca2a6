"""What a failed attempt means for its job, decided from the error alone."""

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, cast

from ..errors import (
    ChildCancelledError,
    ChildFailedError,
    InvalidArgumentError,
    MapFailedError,
    NonRetryableError,
    RateLimited,
    RetryAfter,
)
from .backoff import Rng, backoff_delay_ms
from .outcome import Failed, Failure, Limited, Retry
from .spec import Spec
from .validation import check_id, duration_ms

# a child that has ended gives the same again in each attempt
FINAL: Final = (NonRetryableError, ChildFailedError, ChildCancelledError, MapFailedError)


def decide(
    error: BaseException,
    spec: Spec,
    failures: int,
    *,
    non_retryable: tuple[type[BaseException], ...] = (),
    rng: Rng = random,
) -> Retry | Failed | Limited:
    """Decide whether a job is attempted again after ``error`` has left its run.

    An error for good: failed. ``RateLimited`` is no failure: back in its place, and its limiter is paused. No attempt
    left: failed. ``RetryAfter``: again after its delay. Anything else, whatever it is: again after a backoff. Of a
    group of errors each counts, in this order.

    Args:
        error: What left the run.
        spec: The job's options.
        failures: Attempts that had failed before this one.
        non_retryable: Types that are for good, as ``NonRetryableError`` is.
        rng: Where the backoff's jitter comes from.
    """
    for_good = is_final(error, non_retryable)
    limited = None if for_good else _limited(error)
    if limited is not None:
        return limited
    failure = Failure.of(error)
    if for_good or failures + 1 >= spec.max_attempts:
        return Failed(failure)
    asked = _asked_delay_ms(error)
    return Retry(backoff_delay_ms(failures + 1, spec.backoff, rng) if asked is None else asked, failure)


def is_final(error: BaseException, non_retryable: tuple[type[BaseException], ...] = ()) -> bool:
    """Whether no further attempt can help: only what was raised counts, not what caused it."""
    return any(isinstance(each, (*FINAL, *non_retryable)) for each in _raised(error))


def _limited(error: BaseException) -> Limited | None:
    """What a run that was told to slow down ends in: the longest pause it was told of."""
    found: list[Limited] = []
    for each in _raised(error):
        if isinstance(each, RateLimited):
            # a mistake in it leaves an error like any other
            with suppress(InvalidArgumentError):
                limiter = "" if each.limiter is None else check_id(each.limiter, "limiter")
                found.append(Limited(duration_ms(each.delay, "delay"), limiter))
    return max(found, key=lambda limited: limited.delay_ms, default=None)


def _asked_delay_ms(error: BaseException) -> int | None:
    """The longest delay that was asked for; None when none was, or none that is a duration."""
    delays: list[int] = []
    for each in _raised(error):
        if isinstance(each, RetryAfter):
            # a mistake in it is no reason to fail otherwise than by the error that carries it
            with suppress(InvalidArgumentError):
                delays.append(duration_ms(each.delay, "delay"))
    return max(delays, default=None)


def _raised(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it groups."""
    yield error
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _raised(each)
