"""A channel of Redis' publish and subscribe, opened again for as long as somebody listens."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from ..errors import ClosedError
from .calling import Pauses

logger: Final = logging.getLogger(__name__)
# how long nothing may be heard before the connection is asked whether it lives, and how long that may take
QUIET: Final = 30.0
ANSWERS_WITHIN: Final = 10.0


class Subscription:
    """Listens to one channel on a connection of its own."""

    def __init__(
        self,
        connect: Callable[[], AbstractConnection],
        channel: str,
        heard: Callable[[bytes], None],
        reopened: Callable[[], None],
    ) -> None:
        """Call ``heard`` for each message, and ``reopened`` after a gap in which messages may have been lost."""
        self._connect = connect
        self._channel = channel
        self._heard = heard
        self._reopened = reopened
        self._open = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Wait until the channel is open.

        Raises:
            ClosedError: It was closed meanwhile.
        """
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._listen(), name="lanner subscription")
        await self._open.wait()
        if self._closed:
            raise ClosedError("the namespace has been closed")

    async def aclose(self) -> None:
        """Stop listening; who waits for the channel waits no longer."""
        self._closed = True
        self._open.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _listen(self) -> None:
        pauses, gap = Pauses(), False
        while True:
            connection = self._connect()
            try:
                await connection.connect()  # type: ignore[no-untyped-call] # redis-py leaves it untyped
                await connection.send_command("SUBSCRIBE", self._channel)
                while True:
                    kind, message = await self._read(connection)
                    if kind == b"message":
                        self._heard(message)
                    elif kind == b"subscribe":
                        self._open.set()
                        pauses = Pauses()
                        if gap:
                            self._reopened()
            except (RedisError, OSError) as error:
                logger.debug("the subscription broke: %s", error)
                self._open.clear()
                gap = True
                await asyncio.sleep(pauses.next())
            finally:
                await connection.disconnect(nowait=True)

    async def _read(self, connection: AbstractConnection) -> tuple[bytes, bytes]:
        """What is said next: a kind, and a message. A connection that has died unnoticed says nothing for ever."""
        said = await self._said_within(connection, QUIET)
        if said is None:
            await connection.send_command("PING")
            said = await self._said_within(connection, ANSWERS_WITHIN)
        if said is None:
            raise RedisConnectionError(f"no sign of life within {ANSWERS_WITHIN:g} s")
        return said[0], said[-1]

    async def _said_within(self, connection: AbstractConnection, seconds: float) -> list[bytes] | None:
        return cast("list[bytes] | None", await connection.read_response(disable_decoding=True, timeout=seconds))
