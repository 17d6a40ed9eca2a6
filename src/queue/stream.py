"""The stream of a queue's events, for dashboards: read by page, or followed as it grows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..errors import ClosedError, InvalidArgumentError
from . import keys
from .calling import Pauses, pairs_of
from .link import NotSentError, UnansweredError
from .listener import SLACK
from .validation import check_int, shown

if TYPE_CHECKING:
    from .namespace import Namespace

MOST_A_PAGE: Final = 1000
PATIENCE: Final = 5.0
_POSITION: Final = re.compile(r"\d{1,20}-\d{1,20}")


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """Something that happened to a job of a queue.

    Attributes:
        position: Where it stands in the stream; reading goes on ``after`` it.
        kind: added, started (an attempt), completed, failed, cancelled or removed.
        job_id: The job.
        at: When, by Redis' clock.
    """

    position: str
    kind: str
    job_id: str
    at: datetime


class Stream:
    """The part of a queue that reads its events. It has some only where ``events`` says how many to keep."""

    namespace: Namespace
    id: str

    async def events(self, *, after: str | None = None, limit: int = 100) -> list[QueueEvent]:
        """A page of the events that are kept, oldest first.

        Args:
            after: The position after which to begin. None: at the oldest that is kept.
            limit: How many at most, up to 1,000.

        Raises:
            InvalidArgumentError: An argument cannot be used.
            RedisUnavailableError: Redis did not answer in time.

        Example:
            >>> page = await queue.events()
            >>> following = await queue.events(after=page[-1].position)
        """
        begin = "-" if after is None else f"({_check_position(after)}"
        check_int(limit, "limit", 1, MOST_A_PAGE)
        key = keys.stream(self.namespace.base, self.id)
        entries: list[Any] = await self.namespace.persist(
            lambda runtime: runtime.call.link.call("XRANGE", key, begin, "+", "COUNT", limit),
            f"reading events of {self.id!r}",
        )
        return [_event_of(*entry) for entry in entries]

    async def watch_events(self, *, after: str | None = None) -> AsyncGenerator[QueueEvent]:
        """Events as they happen, on a connection of its own; leaving the loop closes it.

        Redis being away, it goes on after the last event when it is back.

        Args:
            after: The position after which to begin. None: with what happens from now on.

        Raises:
            InvalidArgumentError: The position is none.
            ClosedError: The namespace was closed meanwhile.
            RedisUnavailableError: Redis did not answer in time, at the beginning.

        Example:
            >>> async for event in queue.watch_events():
            ...     print(event.at, event.kind, event.job_id)
        """
        key = keys.stream(self.namespace.base, self.id)
        position = await self._last_position(key) if after is None else _check_position(after)
        await self.namespace.runtime()
        feed = _Feed(self.namespace, key)
        self.namespace.enter(feed)
        try:
            while True:
                for entry in await feed.read(position):
                    event = _event_of(*entry)
                    position = event.position
                    yield event
        finally:
            self.namespace.leave(feed)
            await feed.stop()

    async def _last_position(self, key: str) -> str:
        last: list[Any] = await self.namespace.persist(
            lambda runtime: runtime.call.link.call("XREVRANGE", key, "+", "-", "COUNT", 1),
            f"reading events of {self.id!r}",
        )
        return last[0][0].decode() if last else "0-0"


class _Feed:
    """Reads a stream on a connection of its own until it is stopped, which closing the namespace does."""

    def __init__(self, namespace: Namespace, key: str) -> None:
        self._namespace = namespace
        self._key = key
        self._link = namespace.connector.link(timeout=PATIENCE + SLACK)
        self._stopped = False

    async def read(self, position: str) -> list[Any]:
        """The next entries after a position, however long it takes.

        Raises:
            ClosedError: The feed was stopped.
        """
        pauses = Pauses()
        while True:
            if self._stopped:
                raise ClosedError(f"watching the events: namespace {self._namespace.id!r} has been closed")
            try:
                block = int(PATIENCE * 1000)
                streams: list[Any] | None = await self._link.call(
                    "XREAD", "COUNT", MOST_A_PAGE, "BLOCK", block, "STREAMS", self._key, position
                )
            except (NotSentError, UnansweredError):
                if not self._stopped:
                    await asyncio.sleep(pauses.next())
                continue
            pauses = Pauses()
            if streams:
                entries: list[Any] = streams[0][1]
                return entries

    async def stop(self) -> None:
        """End the reading."""
        self._stopped = True
        await self._link.aclose()


def _check_position(position: object) -> str:
    if not isinstance(position, str) or not _POSITION.fullmatch(position):
        raise InvalidArgumentError(f"after must be the position of an event, as 1700000000000-0, not {shown(position)}")
    return position


def _event_of(position: bytes, fields: list[bytes]) -> QueueEvent:
    told, where = pairs_of(fields), position.decode()
    return QueueEvent(where, told["event"], told["job"], datetime.fromtimestamp(int(where.split("-")[0]) / 1000, UTC))
