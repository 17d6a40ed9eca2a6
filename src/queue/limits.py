"""Caps and rate limiters, as they are stored for every process of a namespace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from ..errors import InvalidArgumentError
from .options import Duration
from .validation import check_choice, check_id, check_int, duration_ms

MOST_STARTS: Final = 100_000
# each is looked at by every claim
MOST_LIMITERS: Final = 100


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A budget of starts: never more than ``limit`` attempts begin in any ``window``.

    A start is the first claim of an attempt; a job that goes on after a wait or a crash starts nothing.

    Attributes:
        limit: How many starts, 1 to 100,000.
        window: ``timedelta`` or seconds.
        per: ``"all"`` for one budget, ``"group"`` for one of each group.

    Example:
        >>> RateLimit(100, timedelta(minutes=1))
        RateLimit(limit=100, window=datetime.timedelta(seconds=60), per='all')
    """

    limit: int
    window: Duration
    per: Literal["all", "group"] = "all"

    def packed(self) -> tuple[int, int, int]:
        """As the namespace holds it: limit, window in milliseconds, 1 for a budget of each group.

        Raises:
            InvalidArgumentError: A part of it cannot be used.
        """
        by_group = check_choice(self.per, "rate limit per", ("all", "group")) == "group"
        return (
            check_int(self.limit, "rate limit", 1, MOST_STARTS),
            duration_ms(self.window, "rate limit window", minimum=1),
            int(by_group),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What holds the jobs of a namespace back, as it stands in Redis for every process.

    Attributes:
        concurrency: How many jobs may run at once. None: no cap; 0: what is stored cannot be read, and nothing starts.
        paused: Whether nothing is started until ``resume``.
        overridden: The names of the caps that ``set_limits`` has set, above what workers declare.
    """

    concurrency: int | None
    paused: bool
    overridden: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits(Limits):
    """What holds the jobs of a queue back besides its namespace: as ``Limits``.

    Attributes:
        group_concurrency: How many jobs of one group may run at once; as ``concurrency``.
    """

    group_concurrency: int | None


def read_limits(stored: Mapping[str, str]) -> Limits:
    """The limits of a namespace, from their hash."""
    return Limits(
        concurrency=_cap_in(stored, "concurrency", None),
        paused="paused" in stored,
        overridden=frozenset({"concurrency"} if "override:concurrency" in stored else ()),
    )


def read_queue_limits(stored: Mapping[str, str]) -> QueueLimits:
    """The limits of a queue, from their hash."""
    known = {"concurrency": "concurrency", "group": "group_concurrency"}
    return QueueLimits(
        concurrency=_cap_in(stored, "concurrency", None),
        group_concurrency=_cap_in(stored, "group", 1),
        paused="paused" in stored,
        overridden=frozenset(name for field, name in known.items() if f"override:{field}" in stored),
    )


def _cap_in(stored: Mapping[str, str], name: str, default: int | None) -> int | None:
    """A cap, as the scripts read it."""
    text = stored.get(f"override:{name}", stored.get(f"declared:{name}"))
    if text is None:
        return default
    if text == "none":
        return None
    return int(text) if text.isascii() and text.isdecimal() else 0


def pack_limiters(limiters: Mapping[str, RateLimit]) -> str:
    """The namespace's limiters as JSON.

    Raises:
        InvalidArgumentError: A name or a limit cannot be used.
    """
    packed: dict[str, tuple[int, int, int]] = {}
    for name, limit in limiters.items():
        if not isinstance(limit, RateLimit):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a checker
            raise InvalidArgumentError(f"limiter {name!r} must be a RateLimit(limit, window), not {limit!r}")
        packed[check_id(name, "limiter name")] = limit.packed()
    return msgspec.json.encode(packed).decode()


def pack_limiter_names(names: Sequence[str] | None, limiters: Mapping[str, RateLimit]) -> str:
    """A workflow's own list of limiters as JSON; of one that has none, that it has none.

    Raises:
        InvalidArgumentError: The namespace has no limiter of a name, or too many would hold for the workflow.
    """
    if len(limiters if names is None else names) > MOST_LIMITERS:
        raise InvalidArgumentError(
            f"at most {MOST_LIMITERS} rate limiters can hold for one workflow: name those that do, with limiters=[...]"
        )
    if names is None:
        return "unset"
    if isinstance(names, str):
        raise InvalidArgumentError(f"limiters must be a list of names, not the text {names!r}")
    for name in names:
        if name not in limiters:
            known = ", ".join(map(repr, limiters)) or "none"
            raise InvalidArgumentError(
                f"the namespace has no limiter {name!r} (it has {known}): declare it there first"
            )
    return msgspec.json.encode(list(names)).decode()


def pack_cap(cap: int | None) -> int | str:
    """A cap as it is stored; None is no cap."""
    return "none" if cap is None else cap
