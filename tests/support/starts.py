"""When jobs began, by Redis' clock as their records have it: what a rate limiter is judged by."""

from collections.abc import Iterable
from datetime import datetime

from lanner.queue import Job


async def starts_of(jobs: Iterable[Job]) -> list[float]:
    """When the last attempt of each job began, in seconds, in the order of the jobs."""
    return [began.timestamp() for job in jobs if (began := (await job.record()).started) is not None]


def most_within(starts: Iterable[float], window: float) -> int:
    """How many of the starts are in the window that has most of them; it includes its beginning and not its end."""
    ordered = sorted(round(start * 1000) for start in starts)
    return max(sum(1 for other in ordered if start <= other < start + round(window * 1000)) for start in ordered)


def instant(seconds: float) -> datetime:
    """An instant from seconds since the epoch."""
    return datetime.fromtimestamp(seconds).astimezone()
