"""A channel of Redis' publish and subscribe, opened again for as long as somebody listens."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection

from ..errors import ClosedError
from .calling import Pauses
from .wire import BrokenError, ReplyError, Wire, pack

logger: Final = logging.getLogger(__name__)
# how long nothing may be heard before the connection is asked whether it lives, and how long that may take
QUIET: Final = 30.0
ANSWERS_WITHIN: Final = 10.0
PING: Final = pack("PING")


class Subscription:
    """Listens to one channel on a connection of its own."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[AbstractConnection]],
        channel: str,
        heard: Callable[[bytes], None],
        reopened: Callable[[], None],
    ) -> None:
        """Call ``heard`` for each message, and ``reopened`` after a gap in which messages may have been lost."""
        self._connect = connect
        self._subscribe: Final = pack("SUBSCRIBE", channel)
        self._heard = heard
        self._reopened = reopened
        self._open = asyncio.Event()
        self._closed = False
        self._gap = False
        self._pauses = Pauses()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the channel is open."""
        return self._open.is_set() and not self._closed

    async def ready(self) -> None:
        """Wait until the channel is open.

        Raises:
            ClosedError: It was closed meanwhile.
        """
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._listen(), name="lanner subscription")
            self._task.add_done_callback(self._ended)
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

    def _ended(self, _: asyncio.Task[None]) -> None:
        """Somebody who cancels all tasks has cancelled it: whoever waits next opens the channel again."""
        if not self._closed:
            self._open.clear()
            self._gap, self._task = True, None

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except BrokenError as error:
                logger.debug("the subscription broke: %s", error)
            self._open.clear()
            self._gap = True
            await asyncio.sleep(self._pauses.next())

    async def _listen_once(self) -> None:
        """Listen on one connection until it breaks."""
        broke: asyncio.Future[BrokenError] = asyncio.get_running_loop().create_future()
        wire = await Wire.open(
            self._connect,
            self._said,
            lambda error: None if broke.done() else broke.set_result(error),
            within=ANSWERS_WITHIN,
        )
        try:
            wire.send(self._subscribe)
            # a connection that has died unnoticed says nothing for ever
            while not broke.done():
                asked = wire.silent_for() >= QUIET
                if asked:
                    wire.send(PING)
                since = time.monotonic()
                await asyncio.wait([broke], timeout=ANSWERS_WITHIN if asked else QUIET - wire.silent_for())
                # the loop may have been blocked, and the answer have come long ago
                if asked and wire.silent_for() >= time.monotonic() - since:
                    wire.abort(f"no sign of life within {ANSWERS_WITHIN:g} s")
            raise broke.result()
        finally:
            wire.abort("we have closed it")
            await asyncio.sleep(0)

    def _said(self, said: Any) -> None:
        if isinstance(said, ReplyError):
            raise BrokenError(str(said))
        if said[0] == b"message":
            self._heard(said[2])
        elif said[0] == b"subscribe":
            self._open.set()
            self._pauses = Pauses()
            if self._gap:
                self._reopened()
