"""One connection to Redis. Calls made while others are on the wire share the next round trip."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from ..errors import LannerError

Argument = str | bytes | int | float

_REFUSED: Final = (ClusterDownError, OutOfMemoryError, ReadOnlyError, TryAgainError)
MOST_BYTES_A_TRIP: Final = 1 << 20


class NotSentError(LannerError):
    """The server did not execute the call: it could not be reached, or refused. Sending it again is safe."""


class UnansweredError(LannerError):
    """The call was sent and no answer came: it may have been executed."""


class LinkClosedError(NotSentError):
    """We have closed the connection ourselves: nothing will be sent any more."""


class Link:
    """One connection, opened when first used and again after it broke.

    redis-py's own re-sending is off; a call ends with an answer, a server's error (``ResponseError``),
    ``NotSentError`` or ``UnansweredError``.
    """

    def __init__(self, connect: Callable[[], AbstractConnection], *, timeout: float) -> None:
        """Use connections that ``connect`` makes; an answer may take ``timeout`` seconds."""
        self._connect = connect
        self._connection: AbstractConnection | None = None
        self._timeout = timeout
        self._pending: list[tuple[tuple[Argument, ...], asyncio.Future[Any]]] = []
        self._pump: asyncio.Task[None] | None = None
        self._closed = False

    async def call(self, *command: Argument) -> Any:
        """Send a command and give its answer.

        Raises:
            UnicodeEncodeError: A text of it cannot be written; other commands are not held up by that.
        """
        if self._closed:
            raise LinkClosedError("the connection has been closed")
        command = tuple(part.encode() if isinstance(part, str) else part for part in command)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending.append((command, future))
        if self._pump is None:
            self._pump = asyncio.create_task(self._run(), name="lanner link")
        return await future

    async def aclose(self) -> None:
        """Close the connection; calls that wait for their answer end with an error."""
        self._closed = True
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        _fail(self._pending, LinkClosedError("the connection has been closed"))
        self._pending = []
        await self._drop()

    async def _run(self) -> None:
        """Send what is pending, a bounded batch a trip, until nothing is."""
        try:
            while self._pending:
                batch = self._take()
                try:
                    await self._trip(batch)
                except BaseException:
                    _fail(batch, UnansweredError("the connection was closed before the answer came"))
                    raise
        finally:
            self._pump = None

    def _take(self) -> list[tuple[tuple[Argument, ...], asyncio.Future[Any]]]:
        size = 0
        for count, (command, _) in enumerate(self._pending, start=1):
            size += sum(len(part) for part in command if isinstance(part, bytes))
            if size >= MOST_BYTES_A_TRIP:
                batch, self._pending = self._pending[:count], self._pending[count:]
                return batch
        batch, self._pending = self._pending, []
        return batch

    async def _trip(self, batch: list[tuple[tuple[Argument, ...], asyncio.Future[Any]]]) -> None:
        batch = [entry for entry in batch if not entry[1].done()]
        connection = self._connection
        try:
            if connection is None or not connection.is_connected:
                async with asyncio.timeout(self._timeout):
                    connection = self._connection = self._connection or self._connect()
                    await connection.connect()  # type: ignore[no-untyped-call] # redis-py leaves it untyped
            packed = connection.pack_commands([command for command, _ in batch])
        except (RedisError, OSError, TimeoutError) as error:
            await self._drop()
            _fail(batch, NotSentError(f"Redis cannot be reached: {str(error) or type(error).__name__}"))
            return
        answered = 0
        try:
            async with asyncio.timeout(self._timeout):
                await connection.send_packed_command(packed, check_health=False)
                for _, future in batch:
                    try:
                        answer = cast("object", await connection.read_response(disable_decoding=True))
                    except ResponseError as error:
                        answer = NotSentError(str(error)) if isinstance(error, _REFUSED) else error
                    answered += 1
                    if not future.done():
                        if isinstance(answer, Exception):
                            future.set_exception(answer)
                        else:
                            future.set_result(answer)
        except BusyLoadingError as error:
            await self._drop()
            _fail(batch[answered : answered + 1], NotSentError(str(error)))
            _fail(batch, UnansweredError(str(error)))
        except (RedisError, OSError, TimeoutError) as error:
            await self._drop()
            reason = str(error) or f"no answer within {self._timeout:g} s"
            _fail(batch, UnansweredError(f"the connection broke before the answer came: {reason}"))

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)


def _fail(batch: list[tuple[tuple[Argument, ...], asyncio.Future[Any]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
