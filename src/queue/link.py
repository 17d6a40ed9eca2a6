"""One connection to Redis. Calls made while others are on the wire are sent behind them."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection

from ..errors import LannerError
from .wire import Argument, BrokenError, ReplyError, Wire, pack

# what a server answers that has not executed a command; who answers with the latter half is not the one to ask
_REFUSED: Final = frozenset({"ASK", "BUSY", "MISCONF", "NOREPLICAS", "OOM", "TRYAGAIN"})
_ELSEWHERE: Final = frozenset({"CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "NOAUTH", "READONLY"})
# what is said instead of NOAUTH to a call of many arguments
_STRANGER: Final = "ERR Protocol error: unauthenticated"


class NotSentError(LannerError):
    """The server did not execute the call: it could not be reached, or refused. Sending it again is safe."""


class UnansweredError(LannerError):
    """The call was sent and no answer came: it may have been executed."""


class LinkClosedError(NotSentError):
    """We have closed the connection ourselves: nothing will be sent any more."""


class Link:
    """One connection, opened when first used and again after it broke.

    redis-py's own re-sending is off; a call ends with an answer, a server's error (``ReplyError``), ``NotSentError`` or
    ``UnansweredError``.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[AbstractConnection]], *, timeout: float, patient: bool = False
    ) -> None:
        """Use connections that ``connect`` opens; silence may last ``timeout`` seconds.

        What a ``patient`` link sends goes after what others send in the same turn of the loop, together with what is
        sent in the next one: nobody waits for its answers.
        """
        self._connect = connect
        self._timeout = timeout
        self._patient = patient
        self._wire: Wire | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unsent: list[tuple[bytes, asyncio.Future[Any]]] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._since = 0.0
        self._connections = 0
        self._watch: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def absence(self) -> int | None:
        """Which absence of a connection there is, if there is one: while it is the same, nothing is sent."""
        return self._connections if self._wire is None else None

    def call(self, *command: Argument) -> asyncio.Future[Any]:
        """Send a command; the future has its answer.

        Raises:
            LinkClosedError: The connection was closed by us.
            UnicodeEncodeError: A text of it cannot be written; other commands are not held up by that.
        """
        if self._closed:
            raise LinkClosedError("the connection has been closed")
        packed = pack(*command)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._wire is not None:
            self._send(self._wire, packed, future)
        else:
            self._unsent.append((packed, future))
            if self._opening is None:
                # not by the loop's factory: it must not end before it is known
                self._opening = asyncio.Task(self._open(), loop=loop, name="lanner link")
                self._opening.add_done_callback(self._opened)
        return future

    async def aclose(self) -> None:
        """Close the connection; calls that wait for their answer end with an error."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        _fail([future for _, future in self._unsent], LinkClosedError("the connection has been closed"))
        self._unsent = []
        if self._wire is not None:
            self._wire.abort("we have closed it")
            # a transport closes its socket in the next turn of the loop
            await asyncio.sleep(0)

    async def _open(self) -> None:
        try:
            wire = await Wire.open(self._connect, self._answered, self._broke, within=self._timeout)
        except BrokenError as error:
            unsent, self._unsent = self._unsent, []
            _fail([future for _, future in unsent], NotSentError(f"Redis cannot be reached: {error}"))
            return
        finally:
            self._opening = None
        self._wire = wire
        self._connections += 1
        unsent, self._unsent = self._unsent, []
        for packed, future in unsent:
            if not future.done():
                self._send(wire, packed, future)

    def _opened(self, opening: asyncio.Task[None]) -> None:
        """Somebody who cancels all tasks may have cancelled it, be it before its first step."""
        if self._opening is opening:
            self._opening = None
        if opening.cancelled() and self._opening is None and self._wire is None:
            unsent, self._unsent = self._unsent, []
            _fail([future for _, future in unsent], NotSentError("the opening of the connection was cancelled"))

    def _send(self, wire: Wire, packed: bytes, future: asyncio.Future[Any]) -> None:
        # a call that has the wire to itself goes at once
        alone = not self._waiting
        if alone:
            self._since = time.monotonic()
            if self._watch is None:
                self._watch = future.get_loop().call_later(self._timeout, self._look)
        self._waiting.append(future)
        if self._patient:
            wire.send_late(packed)
        else:
            wire.send(packed, at_once=alone)

    def _answered(self, answer: Any) -> None:
        future = self._waiting.popleft()
        if future.done():
            return
        if not isinstance(answer, ReplyError):
            future.set_result(answer)
        elif answer.code in _ELSEWHERE or str(answer).startswith(_STRANGER):
            future.set_exception(NotSentError(str(answer)))
            if self._wire is not None:
                self._wire.abort(str(answer))
        else:
            future.set_exception(NotSentError(str(answer)) if answer.code in _REFUSED else answer)

    def _broke(self, error: BrokenError) -> None:
        waiting, self._waiting, self._wire = self._waiting, deque(), None
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        _fail(waiting, UnansweredError(f"the connection broke before the answer came: {error}"))

    def _look(self) -> None:
        """Nothing may be waited for for longer than the timeout without a word from the server."""
        self._watch = None
        wire = self._wire
        if wire is None or not self._waiting:
            return
        left = self._timeout - min(wire.silent_for(), time.monotonic() - self._since)
        if left <= 0:
            wire.abort(f"no answer within {self._timeout:g} s")
        else:
            self._watch = asyncio.get_running_loop().call_later(left, self._look)


def _fail(futures: Iterable[asyncio.Future[Any]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
