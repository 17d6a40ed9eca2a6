"""A job's options: what may be given, checked before anything is sent, and packed into its spec."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Final, Literal, TypedDict

from ..errors import InvalidArgumentError
from .spec import DEFAULT_BACKOFF, DEFAULT_KEEP_FAILED
from .validation import (
    check_choice,
    check_int,
    check_number,
    check_priority,
    duration_ms,
    refuse_unknown_options,
)

Duration = timedelta | float


class Unset(Enum):
    """The type of ``UNSET``, which stands for an argument that was not given where None means something."""

    UNSET = auto()


UNSET: Final = Unset.UNSET
MOST_ATTEMPTS: Final = 2**31
MOST_FACTOR: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a job waits before its next attempt.

    ``first``, then ``factor`` times as long each time, at most ``longest``; the actual delay is drawn between zero and
    that (full jitter).

    Example:
        >>> Backoff(first=1, factor=3, longest=timedelta(minutes=5))
        Backoff(first=1, factor=3, longest=datetime.timedelta(seconds=300))
    """

    first: Duration = DEFAULT_BACKOFF[0] / 1000
    factor: float = DEFAULT_BACKOFF[1]
    longest: Duration = DEFAULT_BACKOFF[2] / 1000

    def packed(self) -> tuple[int, float, int]:
        """As a job's spec holds it: milliseconds, factor, milliseconds.

        Raises:
            InvalidArgumentError: A duration is none, or the factor is below 1.
        """
        factor = check_number(self.factor, "backoff factor", 1, MOST_FACTOR)
        return duration_ms(self.first, "backoff first"), factor, duration_ms(self.longest, "backoff longest")


@dataclass(frozen=True, slots=True)
class KeepFailed:
    """How many failed jobs are kept, with their steps (None: all), and for how long (None: for ever).

    Example:
        >>> KeepFailed(count=1_000, age=timedelta(days=30))
        KeepFailed(count=1000, age=datetime.timedelta(days=30))
    """

    count: int | None = DEFAULT_KEEP_FAILED
    age: Duration | None = None

    def packed(self) -> tuple[int, int]:
        """As a job's spec holds it: count (-1: all), age in milliseconds (0: for ever)."""
        count = -1 if self.count is None else check_int(self.count, "keep_failed count", 0, MOST_ATTEMPTS)
        return count, 0 if self.age is None else duration_ms(self.age, "keep_failed age", minimum=1)


class BaseOptions(TypedDict, total=False):
    """What a job may be given, but for the time an attempt may take.

    Attributes:
        priority: 0 to 2,097,151, the higher the sooner. Default 0.
        max_attempts: How often the job may run. Default 1.
        backoff: The pause before the next attempt. Default 0.5 s, doubled, at most 30 s.
        expires: The job fails unless it was started within this time after it was due. Default: never.
        result_ttl: How long a completed or cancelled job's record is kept; 0 drops it, None keeps it. Default 300 s.
        keep_failed: How many failed jobs are kept (None: all), or a ``KeepFailed``. Default 100.
        max_stalled: How often in a row its worker may be lost without progress between. Default 3.
        group_order: ``"strict"`` holds the job's group through its waits and backoff. Default ``"loose"``.
    """

    priority: int
    max_attempts: int
    backoff: Backoff
    expires: Duration | None
    result_ttl: Duration | None
    keep_failed: int | KeepFailed | None
    max_stalled: int
    group_order: Literal["loose", "strict"]


class JobOptions(BaseOptions, total=False):
    """What a job may be given; a call's options stand above its workflow's, and these above the namespace's.

    Besides those of ``BaseOptions``:

    Attributes:
        timeout: How long an attempt may take: ``timedelta`` or seconds. Default: as long as it wants.
    """

    timeout: Duration | None


KNOWN: Final = JobOptions.__optional_keys__


def pack_options(options: Mapping[str, Any], beside: Collection[str] = ()) -> dict[str, Any]:
    """Check options and turn them into a spec's fields. ``beside`` is what else the call takes by name.

    Raises:
        InvalidArgumentError: One is unknown or cannot be used; the text names it.
    """
    refuse_unknown_options(options, KNOWN, beside)
    fields: dict[str, Any] = {}
    for name, value in options.items():
        match name:
            case "priority":
                fields[name] = check_priority(value)
            case "max_attempts":
                fields[name] = check_int(value, name, 1, MOST_ATTEMPTS)
            case "max_stalled":
                fields[name] = check_int(value, name, 0, MOST_ATTEMPTS)
            case "backoff":
                if not isinstance(value, Backoff):
                    raise InvalidArgumentError(f"backoff must be a Backoff(first, factor, longest), not {value!r}")
                fields[name] = value.packed()
            case "timeout" | "expires":
                fields[name] = 0 if value is None else duration_ms(value, name, minimum=1)
            case "result_ttl":
                fields[name] = -1 if value is None else duration_ms(value, name)
            case "keep_failed":
                kept = value if isinstance(value, KeepFailed) else KeepFailed(value)
                fields[name] = kept.packed()
            case _:
                fields["strict"] = check_choice(value, name, ("loose", "strict")) == "strict"
    return fields
