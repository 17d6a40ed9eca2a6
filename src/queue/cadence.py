"""When a schedule fires: pure computing, from Redis' now and the instant that is armed."""

import hashlib
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from ..errors import InvalidArgumentError
from .cron import cron, normalized, zone_of
from .validation import check_choice, check_int, duration_ms, instant_ms, shown

CatchUp = Literal["one", "skip", "all"]

DEFAULT_CATCH_UP_LIMIT: Final = 100
MAX_CATCH_UP_LIMIT: Final = 200
# what a restart or a failover costs is no missed fire
SKIP_TOLERANCE_MS: Final = 30_000

_CATCH_UPS: Final[tuple[CatchUp, ...]] = ("one", "skip", "all")


class Cadence(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The timing of a schedule, kept in Redis as JSON. Made and checked by ``cadence``.

    An *instant* is where the cadence stands, in milliseconds since the epoch; it *fires* then, or by its jitter later.
    Exactly one of ``pattern`` and ``every_ms`` is set; ``every_ms`` is 0 otherwise. Both bounds are included.
    """

    pattern: str = ""
    every_ms: int = 0
    tz: str = "UTC"
    start_ms: int | None = None
    end_ms: int | None = None
    jitter_ms: int = 0
    catch_up: CatchUp = "one"
    catch_up_limit: int = DEFAULT_CATCH_UP_LIMIT

    def dumps(self) -> str:
        """As JSON text."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def loads(cls, text: str | bytes) -> "Cadence":
        """From JSON text."""
        return msgspec.json.decode(text, type=cls)

    def next_after(self, ms: int) -> int | None:
        """The first instant strictly after ``ms``, or None when none is left.

        Raises:
            InvalidArgumentError: This machine does not know the zone that another one has stored.
        """
        after = self._following(ms)
        return None if after is None or (self.end_ms is not None and after > self.end_ms) else after

    def fire_ms(self, instant_ms: int, schedule_id: str) -> int:
        """When an instant fires: less than the jitter later, and always before the following instant.

        The spread comes from the schedule's id and the instant alone, so every worker gets the same.
        """
        following = self._following(instant_ms) if self.jitter_ms else None
        width = self.jitter_ms if following is None else min(self.jitter_ms, following - instant_ms)
        if not width:
            return instant_ms
        digest = hashlib.blake2b(f"{instant_ms} {schedule_id}".encode(), digest_size=8).digest()
        return instant_ms + int.from_bytes(digest, "big") % width

    def due(self, armed_ms: int, now_ms: int, schedule_id: str) -> tuple[list[int], int | None]:
        """What a schedule has to run now, and where it stands next.

        Args:
            armed_ms: The instant it is armed for; the first that can have been missed.
            now_ms: Redis' now.
            schedule_id: The schedule's id, for the jitter.

        Returns:
            The instants to run now, in order: none while the armed one does not fire yet; the last one (``one``); the
            last one unless it is late (``skip``); the last ``catch_up_limit`` of them (``all``). Then the instant to
            arm: the first that fires after now, or None when none is left.
        """
        last = self._last_fired(armed_ms, now_ms, schedule_id)
        if last is None:
            return [], armed_ms
        if self.catch_up == "all":
            fires = self._last_instants(armed_ms, last)
        elif self.catch_up == "skip" and now_ms - self.fire_ms(last, schedule_id) > SKIP_TOLERANCE_MS:
            fires = []
        else:
            fires = [last]
        return fires, self.next_after(last)

    def _following(self, ms: int) -> int | None:
        """The first instant strictly after ``ms``, whatever the end."""
        if self.every_ms:
            base = self.start_ms or 0
            steps = (ms - base) // self.every_ms + 1
            return base + (steps if self.start_ms is None else max(steps, 0)) * self.every_ms
        after = ms if self.start_ms is None else max(ms, self.start_ms - 1)
        second = cron(self.pattern, self.tz).next_after(after // 1000)
        return None if second is None else second * 1000

    def _last_fired(self, armed_ms: int, now_ms: int, schedule_id: str) -> int | None:
        """The last instant, from the armed one, that has fired by now."""
        last = self._last_instant(armed_ms, now_ms)
        # only the last can be under way to its fire: each fires before the following instant
        if last is not None and self.fire_ms(last, schedule_id) > now_ms:
            last = self._last_instant(armed_ms, last - 1)
        return last

    def _last_instants(self, first_ms: int, last_ms: int) -> list[int]:
        """The last ``catch_up_limit`` instants of those from ``first_ms`` to ``last_ms``, in order."""
        instants = [last_ms]
        while len(instants) < self.catch_up_limit:
            guess = instants[-2] - instants[-1] if len(instants) > 1 else 1000
            earlier = self._last_instant(first_ms, instants[-1] - 1, guess)
            if earlier is None:
                break
            instants.append(earlier)
        return instants[::-1]

    def _last_instant(self, first_ms: int, ms: int, guess: int = 1000) -> int | None:
        """The last instant not after ``ms``, of ``first_ms`` and those after it.

        A pattern is asked forwards only: in strides that double until one holds an instant, then by halves, so that a
        year of missed seconds costs some dozen questions. ``guess`` is the first stride.
        """
        if ms < first_ms:
            return None

        def within(after: int) -> int | None:
            instant = self.next_after(after)
            return None if instant is None or instant > ms else instant

        low, high = ms, ms
        while low > first_ms:
            high, low = low, max(first_ms, ms - guess)
            if (instant := within(low)) is not None:
                return _last(within, instant, high)
            guess *= 2
        return first_ms


def _last(within: Callable[[int], int | None], instant: int, high: int) -> int:
    """The last instant, knowing one, and that none comes after ``high``."""
    # asking for the next one first ends at once where the stride was a good guess
    while (later := within(instant)) is not None:
        middle = (later + high) // 2
        beyond = within(middle)
        if beyond is None:
            instant, high = later, middle
        else:
            instant = beyond
    return instant


def cadence(
    pattern: str | None = None,
    *,
    every: timedelta | float | None = None,
    tz: str | ZoneInfo = "UTC",
    start: datetime | None = None,
    end: datetime | None = None,
    jitter: timedelta | float | None = None,
    catch_up: CatchUp = "one",
    catch_up_limit: int | None = None,
) -> Cadence:
    """Check the timing of a schedule and make it a value.

    Args:
        pattern: A cron pattern of five fields (minute, hour, day, month, weekday), of six with seconds first, or
            ``@hourly``, ``@daily``, ``@weekly``, ``@monthly``, ``@yearly``. Where day and weekday are both given, a day
            that is either matches. Times of day of a pattern whose hour field does not begin with ``*`` happen once a
            day: in a repeated hour the first time, in a gap at the first instant after it. Any other pattern fires at
            every real instant that matches.
        every: Instead of a pattern: the interval, as ``timedelta`` or seconds. It stands on the grid that begins at
            ``start``, or at the epoch in UTC: every hour is on the hour, whenever the schedule was set (and every week
            on Thursday, for days of the week take a pattern).
        tz: The zone of the pattern, by its IANA name.
        start: The first instant that is allowed, an aware ``datetime``.
        end: The last instant that is allowed, an aware ``datetime``.
        jitter: Each instant fires up to this much later (``timedelta`` or seconds), always before the following one.
        catch_up: What to do about fires that were missed: ``one`` for all of them, ``skip`` them, or ``all``.
        catch_up_limit: With ``all``: at most this many, the last ones; 100, at most 200.

    Raises:
        InvalidArgumentError: An argument is unfit, or the schedule would never fire. The text says which and why.

    Example:
        >>> cadence("0 3 * * *", tz="Europe/Berlin").pattern
        '0 3 * * *'
    """
    if (pattern is None) == (every is None):
        given = "neither" if pattern is None else "both"
        raise InvalidArgumentError(f"give a pattern or every=, exactly one of them, not {given}")
    if catch_up_limit is not None and catch_up != "all":
        raise InvalidArgumentError('catch_up_limit belongs to catch_up="all": give both, or leave it out')
    made = Cadence(
        pattern="" if pattern is None else normalized(pattern),
        every_ms=0 if every is None else duration_ms(every, "every", minimum=1),
        tz=zone_of(tz).key,
        start_ms=None if start is None else instant_ms(start, "start"),
        end_ms=None if end is None else instant_ms(end, "end"),
        jitter_ms=0 if jitter is None else duration_ms(jitter, "jitter"),
        catch_up=check_choice(catch_up, "catch_up", _CATCH_UPS),
        catch_up_limit=DEFAULT_CATCH_UP_LIMIT
        if catch_up_limit is None
        else check_int(catch_up_limit, "catch_up_limit", 1, MAX_CATCH_UP_LIMIT),
    )
    if made.every_ms and made.tz != "UTC":
        raise InvalidArgumentError(
            f"tz belongs to a pattern, and every= counts real time: leave tz={shown(tz)} out, or give start= in it"
        )
    _check_fires(made)
    return made


def _check_fires(made: Cadence) -> None:
    start, end = made.start_ms, made.end_ms
    if start is not None and end is not None and end < start:
        raise InvalidArgumentError("end must not be before start")
    ever = msgspec.structs.replace(made, end_ms=None).next_after(
        int(time.time() * 1000) if start is None else start - 1
    )
    if ever is None:
        raise InvalidArgumentError(f"pattern {shown(made.pattern)} never fires in {made.tz}: no date and time match it")
    if start is not None and end is not None and ever > end:
        raise InvalidArgumentError("end must leave at least one instant: the first one from start on is after it")
