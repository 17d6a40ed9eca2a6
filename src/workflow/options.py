"""What the calls of a workflow take by keyword."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from ..queue.options import BaseOptions, Duration, JobOptions
from ..queue.queue import Added, Dedup
from ..queue.validation import check_choice

# of a child, and of a job of a flow: their ids and their times are those of the tree
MEANINGLESS: Final = ("id", "unique", "if_exists", "throttle", "debounce", "run_in", "run_at")


class ScheduleOptions(JobOptions, total=False):
    """What the jobs of a schedule may be given: a ``JobOptions``, and their ``group`` (default: the schedule's own)."""

    group: str | None


class _Identity(TypedDict, total=False):
    """Which job it is, and what stands in its place.

    Attributes:
        id: Its id, 1 to 256 characters; made up if omitted. The id of a live job, or of a failed one that is kept,
            collides; that of a completed or cancelled job can be used again.
        group: Its group, above what the workflow's ``get_group_id`` says.
        unique: ``"retained"``: the id of a completed or cancelled job collides until its record is gone.
        if_exists: ``"return"`` gives the job that has the id, instead of raising.
        throttle: The first job of a window stands for all with its key that come within it; freed by the window's end.
        debounce: Jobs with its key come together in one, which runs when none has come for the window, with the input
            of the last; freed when it becomes runnable.
    """

    id: str
    group: str | None
    unique: Literal["live", "retained"]
    if_exists: Literal["raise", "return"]
    throttle: Dedup | None
    debounce: Dedup | None


class RunOptions(JobOptions, _Identity, total=False):
    """What one job may be given: a ``JobOptions``, and which job it is (``id``, ``group``, ``unique``, ...)."""


class ExecuteOptions(BaseOptions, _Identity, total=False):
    """A ``RunOptions`` without ``timeout``: in ``execute`` this is how long to wait."""


class LimitSettings(TypedDict, total=False):
    """Caps that ``set_limits`` sets; what is omitted stays, None lifts one."""

    concurrency: int | None
    group_concurrency: int | None


def split_options(
    options: Mapping[str, Any],
    group: str | None,
    run_in: Duration | None,
    run_at: datetime | None,
    *,
    trace: str,
) -> tuple[Added, dict[str, Any]]:
    """Which job it is, and the options that are left. It carries ``trace``, the caller's trace context."""
    if not options:
        return Added(group=group, run_in=run_in, run_at=run_at, trace=trace), {}
    rest: dict[str, Any] = dict(options)
    rest.pop("group", None)
    where = Added(
        id=rest.pop("id", None),
        group=group,
        run_in=run_in,
        run_at=run_at,
        unique=rest.pop("unique", "live"),
        throttle=rest.pop("throttle", None),
        debounce=rest.pop("debounce", None),
        trace=trace,
    )
    return where, rest


def pop_if_exists(options: dict[str, Any]) -> Literal["raise", "return"]:
    """Take ``if_exists`` out of the options.

    Raises:
        InvalidArgumentError: It is neither.
    """
    choices: tuple[Literal["raise", "return"], ...] = ("raise", "return")
    return check_choice(options.pop("if_exists", "raise"), "if_exists", choices)
