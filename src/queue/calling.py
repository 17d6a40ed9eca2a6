"""Sending scripts, and the rule for lost answers: what may be sent again, when, and for how long."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from ..errors import ClosedError, LannerError, RedisUnavailableError
from .link import Link, LinkClosedError, NotSentError, UnansweredError
from .scripts.loader import Script, load
from .wire import Argument, ReplyError

FIELDS_AT_ONCE: Final = 200
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0
# what an error says of a call that may be made again
NOTHING_DONE: Final = "Nothing was done."
MAYBE_DONE: Final = "It may have been done all the same."
T = TypeVar("T")


def pairs_of(flat: Sequence[bytes]) -> dict[str, str]:
    """A flat list of names and values, as the server gives a hash, by name; what is no text is spelled out."""
    return {_text(flat[i]): _text(flat[i + 1]) for i in range(0, len(flat), 2)}


def _text(stored: bytes) -> str:
    return stored.decode(errors="backslashreplace")


class ScriptError(LannerError):
    """The server refused a script, or the script failed. The text says where in our Lua."""


class Caller:
    """Sends one namespace's scripts over a link.

    Attributes:
        base: Where the namespace's keys begin; the first key of every script.
        link: The connection in use.
    """

    def __init__(self, link: Link, base: str) -> None:
        self.link = link
        self.base = base

    async def __call__(self, name: str, *arguments: Argument) -> Any:
        """Run a script once.

        Raises:
            NotSentError: It was not executed.
            UnansweredError: It may have been executed.
            ScriptError: The server refused it, or it failed, or what it is given cannot be written.
        """
        script = load(name)
        try:
            return await self.link.call("EVALSHA", script.sha, 1, self.base, *arguments)
        except ReplyError as error:
            if error.code == "NOSCRIPT":
                return await self._evaluate(script, arguments)
            raise ScriptError(script.locate(str(error))) from error
        except UnicodeEncodeError as error:
            raise ScriptError(f"{name}: a text for it has what UTF-8 cannot write: {error}") from error

    async def _evaluate(self, script: Script, arguments: tuple[Argument, ...]) -> Any:
        try:
            return await self.link.call("EVAL", script.text, 1, self.base, *arguments)
        except ReplyError as error:
            raise ScriptError(script.locate(str(error))) from error

    async def read_hash(self, key: str) -> dict[str, str]:
        """All fields of a hash, a few hundred a call: what is large holds the server up for nobody.

        Raises:
            NotSentError: Redis is away.
            UnansweredError: It did not answer.
        """
        fields: dict[str, str] = {}
        cursor = b"0"
        while True:
            cursor, flat = await self.link.call("HSCAN", key, cursor, "COUNT", FIELDS_AT_ONCE)
            fields |= pairs_of(flat)
            if cursor == b"0":
                return fields


class Pauses:
    """Growing pauses with jitter, so that a fleet does not come back in step."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE

    def next(self) -> float:
        """Seconds to pause now."""
        pause = self._next * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
        self._next = min(self._next * 2, LONGEST_PAUSE)
        return pause


async def persist(
    call: Callable[[], Awaitable[T]],
    *,
    link: Link,
    timeout: float,  # noqa: ASYNC109 - the total of many attempts
    what: Callable[[], str],
    before: str = "",
) -> T:
    """Make a call that may be executed more than once, until it is answered, for at most ``timeout`` seconds.

    All that it sends goes over ``link``. ``what`` describes it for the error, and ``before`` what calls before it have
    done of the same.

    Raises:
        RedisUnavailableError: Redis did not answer in time.
        ClosedError: The namespace was closed meanwhile.
    """
    began, waits = time.monotonic(), Pauses()
    sent = False
    error: LannerError = NotSentError(f"Redis cannot be reached: no connection within {timeout:.2g} s")
    while True:
        left = began + timeout - time.monotonic()
        absence = link.absence
        try:
            async with asyncio.timeout(max(left, 0.001)):
                return await call()
        except LinkClosedError:
            told = _done(before, sent=sent)
            raise ClosedError(f"{what()}: the namespace has been closed.{told}") from None
        except NotSentError as refused:
            error = refused
        except UnansweredError as unanswered:
            error, sent = unanswered, True
        except TimeoutError:
            # without a connection nothing was sent, and what is known of that says more
            if absence is None or link.absence != absence:
                error, sent = UnansweredError(f"no answer within {timeout:.2g} s"), True
        pause = waits.next()
        if began + timeout - time.monotonic() <= pause:
            told = _done(before, sent=sent) or f" {NOTHING_DONE}"
            raise RedisUnavailableError(f"{what()}: {str(error).rstrip('.')}.{told}") from error
        await asyncio.sleep(pause)


def _done(before: str, *, sent: bool) -> str:
    return (f" {MAYBE_DONE}" if sent else "") + (before and f" {before}")
