"""A connection to Redis that has been opened, read and written without a task for either."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError
from redis.exceptions import ResponseError as ServerError

_NOTHING: Final = object()

Argument = str | bytes | int | float


# its stub speaks of a tuple of one
_packed: Final = cast("Callable[[tuple[Argument, ...]], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]


def pack(*command: Argument) -> bytes:
    """A command as it is sent.

    Raises:
        UnicodeEncodeError: A text of it cannot be written.
    """
    return _packed(command)


class BrokenError(Exception):
    """The connection broke, or could not be opened; the text says why."""


class ReplyError(ServerError):
    """The server answered with an error.

    Attributes:
        code: The word that its text begins with.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)  # pyright: ignore[reportUnknownMemberType] - redis-py leaves it half typed
        self.code: Final = text.partition(" ")[0]


class Wire(asyncio.Protocol):
    """Takes over a connection that redis-py has opened: address, TLS, user and database are its matter.

    What is sent within a turn of the loop goes out in one write, if it is not to go at once. ``received`` may raise
    ``BrokenError``.
    """

    def __init__(
        self,
        connection: AbstractConnection,
        received: Callable[[Any], None],
        broken: Callable[[BrokenError], None],
    ) -> None:
        """Call ``received`` for each answer, in order, and ``broken`` once, when no more will come."""
        self._received = received
        self._broken: Callable[[BrokenError], None] | None = broken
        self._reader = hiredis.Reader(protocolError=BrokenError, replyError=ReplyError, notEnoughData=_NOTHING)
        self._loop = asyncio.get_running_loop()
        self._outgoing: list[bytes] = []
        self._heard = self._loop.time()
        # nothing public gives the transport; a stream closes it when it is collected, and is kept for that
        stream = connection._writer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - see above
        assert stream is not None, "the connection has not been opened"  # noqa: S101 - a mistake of ours
        connection._reader = connection._writer = None  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - see above
        self._stream = stream
        self._transport = stream.transport
        self._transport.set_protocol(self)

    @classmethod
    async def open(
        cls,
        connect: Callable[[], Awaitable[AbstractConnection]],
        received: Callable[[Any], None],
        broken: Callable[[BrokenError], None],
        *,
        within: float,
    ) -> Wire:
        """Take over a connection that ``connect`` opens.

        Raises:
            BrokenError: It cannot be opened, or not ``within`` so many seconds.
        """
        try:
            async with asyncio.timeout(within):
                connection = await connect()
        except Exception as error:
            # a user's own code takes part in it, as where passwords come from: it may raise anything
            known = isinstance(error, RedisError | OSError) and str(error)
            raise BrokenError(str(error) if known else f"{type(error).__name__}: {error}".removesuffix(": ")) from error
        return cls(connection, received, broken)

    def send(self, packed: bytes, *, at_once: bool = False) -> None:
        """Send a packed command, at once or with whatever else is sent in this turn of the loop."""
        if at_once and not self._outgoing:
            self._transport.write(packed)
            return
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(packed)

    def send_late(self, packed: bytes) -> None:
        """Send a packed command with whatever else is sent in this turn of the loop and in the next."""
        if not self._outgoing:
            self._loop.call_soon(self._loop.call_soon, self._flush)
        self._outgoing.append(packed)

    def _flush(self) -> None:
        packed, self._outgoing = self._outgoing, []
        if self._broken is not None:
            self._transport.write(packed[0] if len(packed) == 1 else b"".join(packed))

    def silent_for(self) -> float:
        """Seconds since the server last said something."""
        return self._loop.time() - self._heard

    def data_received(self, data: bytes) -> None:
        """Hand over the answers that have come whole."""
        self._heard = self._loop.time()
        try:
            self._reader.feed(data)
            while self._broken is not None and (answer := self._reader.gets()) is not _NOTHING:
                self._received(answer)
        except BrokenError as error:
            self.abort(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        """The server, or the network, has closed the connection."""
        self._end(BrokenError(str(exc) if exc is not None else "the server closed the connection"))

    def abort(self, why: str) -> None:
        """Close the connection at once."""
        self._end(BrokenError(why))

    def _end(self, error: BrokenError) -> None:
        broken, self._broken = self._broken, None
        if broken is not None:
            self._transport.abort()
            broken(error)
