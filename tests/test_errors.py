"""Errors that are copied, or go from one process to another."""

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lanner import (
    ChildCancelledError,
    ChildFailedError,
    EventTimeoutError,
    JobCancelledError,
    JobError,
    JobFailedError,
    LannerError,
    MapFailedError,
    NonRetryableError,
    RateLimited,
    RedisUnavailableError,
    RetryAfter,
    StepFailedError,
    UnsentJobsError,
    errors,
)

JOB: dict[str, Any] = {"workflow": "w", "job_id": "j"}
FAILURE: dict[str, Any] = {"type": "Oops", "message": "bad", "traceback": "where"}


class DeclinedError(NonRetryableError):
    """As a user writes one: its constructor makes the text."""

    def __init__(self, card: str, code: int) -> None:
        super().__init__(f"card {card} was declined", code)
        self.card = card


MADE: dict[type[LannerError], Callable[[], LannerError]] = {
    ChildCancelledError: lambda: ChildCancelledError(**JOB, reason="why", step="s"),
    ChildFailedError: lambda: ChildFailedError(**JOB, **FAILURE, step="s"),
    DeclinedError: lambda: DeclinedError("1234", 7),
    EventTimeoutError: lambda: EventTimeoutError(step="s", event="e"),
    JobCancelledError: lambda: JobCancelledError(**JOB, reason="why"),
    JobFailedError: lambda: JobFailedError(**JOB, **FAILURE),
    MapFailedError: lambda: MapFailedError(step="s", successes=1, wanted=2, failures=[]),
    RateLimited: lambda: RateLimited(timedelta(seconds=5), limiter="api"),
    RedisUnavailableError: lambda: RedisUnavailableError("no answer"),
    RetryAfter: lambda: RetryAfter(5),
    StepFailedError: lambda: StepFailedError(step="s", **FAILURE),
    UnsentJobsError: lambda: UnsentJobsError(sent=[], refused={("w", "a"): ValueError("no")}, unsent=[("w", "b")]),
}


def make(kind: type[LannerError]) -> LannerError:
    if kind in MADE:
        return MADE[kind]()
    return kind("text", **JOB) if issubclass(kind, JobError) else kind("text")


def public() -> list[type[LannerError]]:
    found = (getattr(errors, name) for name in errors.__all__)
    return [DeclinedError, *(each for each in found if issubclass(each, LannerError))]


def pickled(error: LannerError) -> LannerError:
    again: LannerError = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    return again


def copied(error: LannerError) -> LannerError:
    return copy.copy(error)


@pytest.mark.parametrize("kind", public())
@pytest.mark.parametrize("again", [copied, pickled])
def test_an_error_comes_back_as_it_was(kind: type[LannerError], again: Callable[[LannerError], LannerError]) -> None:
    error = make(kind)
    other = again(error)
    assert type(other) is kind
    assert (str(other), repr(other.args)) == (str(error), repr(error.args))
    assert repr(vars(other)) == repr(vars(error))
