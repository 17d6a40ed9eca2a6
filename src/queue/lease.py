"""Leases are renewed from a thread of its own, so that code which blocks the event loop does not lose its jobs."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from .calling import Caller, ScriptError
from .claim import Claim, EndReason
from .connection import Connector
from .link import NotSentError, UnansweredError
from .scripts.claiming import renew_claims

logger: Final = logging.getLogger(__name__)
RENEWED_AT_ONCE: Final = 500
TICK: Final = 0.5
SHORTEST_TICK: Final = 0.05


class LeaseKeeper:
    """Keeps a worker's claims while they are in its hands.

    A claim holds as long as its token is the job's; the deadline in Redis only permits the sweep to take it. A worker
    that could not renew for a whole lease must assume that it was taken, and ends its runs.
    """

    def __init__(
        self,
        connector: Connector,
        base: str,
        *,
        name: str,
        lease: float,
        max_blocked: float,
        warn_blocked: float | None,
        on_blocked: Callable[[float, list[Claim]], None] | None = None,
        broken: Callable[[BaseException], None],
    ) -> None:
        """Renew within ``lease`` seconds.

        Stop after the loop was blocked for ``max_blocked`` seconds; warn after ``warn_blocked`` (None: never), once an
        episode, and call ``on_blocked`` with the seconds and the claims, in the thread. ``broken`` is called in the
        loop if the thread breaks: nobody renews any more.
        """
        self._connector = connector
        self._base = base
        self._name = name
        self._lease = lease
        self._interval = min(lease / 3, 10.0)
        warns = TICK if warn_blocked is None else max(warn_blocked / 2, SHORTEST_TICK)
        self._tick = min(TICK, self._interval / 2, warns)
        self._max_blocked = max_blocked
        self._warn_blocked = warn_blocked
        self._on_blocked = on_blocked
        self._broken = broken
        self._claims: dict[int, Claim] = {}
        self._loop = asyncio.get_running_loop()
        # since when a sign of life has been waited for; None: it has come
        self._asked: float | None = None
        self._warned = False
        self._renewed = time.monotonic()
        self._stop = threading.Event()
        self._inner: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name=f"lanner lease {name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def hold(self, claim: Claim) -> None:
        """Renew a claim from now on."""
        self._claims[id(claim)] = claim

    def let_go(self, claim: Claim) -> None:
        """Renew a claim no longer."""
        self._claims.pop(id(claim), None)

    def stop(self) -> None:
        """End the thread, without waiting for it."""
        self._stop.set()
        inner, wake = self._inner, self._wake
        if inner is not None and wake is not None:
            try:
                inner.call_soon_threadsafe(wake.set)
            except RuntimeError:
                logger.debug("the lease thread has ended by itself")

    def join(self) -> None:
        """Wait for the thread's end."""
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._keep())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the worker must not go on without leases
            self._tell(self._broken, error)

    async def _keep(self) -> None:
        self._inner, self._wake = asyncio.get_running_loop(), asyncio.Event()
        link = self._connector.link(timeout=max(self._interval, 1.0))
        call = Caller(link, self._base)
        due = time.monotonic() + self._interval
        try:
            while not self._stop.is_set():
                self._watch_loop()
                now = time.monotonic()
                if now >= due:
                    due = now + (self._interval if await self._renew(call) else min(self._interval, 1.0))
                try:
                    async with asyncio.timeout(self._tick):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            await link.aclose()

    def _watch_loop(self) -> None:
        """Ask the worker's loop for a sign of life, and say so when it has given none for long."""
        blocked = self._blocked_for()
        if self._warn_blocked is not None and blocked > self._warn_blocked:
            if not self._warned:
                self._warned = True
                claims = list(self._claims.values())
                jobs = ", ".join(f"{claim.workflow}:{claim.id}" for claim in claims[:10])
                logger.warning(
                    "%s: the event loop has been blocked for %.1f s (put blocking code into a plain `def` step, which "
                    "runs in a thread); jobs in flight: %s",
                    self._name,
                    blocked,
                    jobs or "none",
                )
                if self._on_blocked is not None:
                    try:
                        self._on_blocked(blocked, claims)
                    except Exception:
                        logger.exception("the callback for a blocked loop failed")
        else:
            self._warned = False
        if self._asked is None:
            self._asked = time.monotonic()
            self._tell(self._answer)

    def _answer(self) -> None:
        self._asked = None

    def _blocked_for(self) -> float:
        asked = self._asked
        return 0.0 if asked is None else time.monotonic() - asked

    async def _renew(self, call: Caller) -> bool:
        """Renew all claims; False: Redis is not to be had, so try again soon."""
        if self._blocked_for() > self._max_blocked:
            return True  # whoever hangs for so long loses its jobs to others
        claims = list(self._claims.values())
        try:
            for start in range(0, len(claims), RENEWED_AT_ONCE):
                chunk = claims[start : start + RENEWED_AT_ONCE]
                statuses = await renew_claims(call, lease=int(self._lease * 1000), claims=chunk)
                for claim, status in zip(chunk, statuses, strict=True):
                    # compared again in the loop: the claim may have ended while the call was on its way
                    if status != 49:  # noqa: PLR2004 - "1": renewed
                        self._tell(self._end, claim, EndReason.LOST if status == 48 else EndReason.CANCELLED)  # noqa: PLR2004 - "0"
        except (NotSentError, UnansweredError, ScriptError) as error:
            logger.debug("%s: leases were not renewed: %s", self._name, error)
            if time.monotonic() - self._renewed > self._lease:
                for claim in claims:
                    self._tell(self._end, claim, EndReason.LOST)
            return False
        self._renewed = time.monotonic()
        return True

    def _end(self, claim: Claim, reason: EndReason) -> None:
        if id(claim) in self._claims:
            claim.end(reason)

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            self._stop.set()  # the worker's loop is closed: there is nothing left to keep
