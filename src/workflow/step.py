import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar, overload

from ..errors import EventTimeoutError, SerializationError
from ..queue.validation import check_choice, duration_ms, instant_ms
from .calls import Call, Scope, here
from .children import ChildSteps
from .engine import DO_DONE
from .journal import EVENT_EXPIRED, EVENT_TAKEN, EVENT_UNFIT, EXPIRED, PENDING, UNFIT, Kind, read_checkpoint
from .values import check_function, is_async

P = ParamSpec("P")
T = TypeVar("T")

OnTimeout = Literal["none", "raise"]
Step = Coroutine[Any, Any, T]
Place = Scope | Call | None

logger = logging.getLogger(__name__)


class Steps(ChildSteps):
    """The durable steps of a run: ``ctx.step``.

    A step's result is kept under its name, together with the names of the steps and scopes that it stands in; when the
    job is attempted again or goes on after a wait, steps that have finished give what they gave and do not run again.

    Each call gives a coroutine that belongs to the scope in which it was made, wherever it is awaited.
    """

    __slots__ = ()

    @overload
    def do(self, name: str, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Step[T]: ...
    @overload
    def do(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Step[T]: ...
    def do(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Step[Any]:
        """Run a function as a step and keep what it returns.

        A plain function runs in a thread. A step that raises is not kept: it fails the attempt, or, if the error is
        caught, runs again in a later one; but ``NonRetryableError`` is kept and raised again, as ``StepFailedError``.

        Args:
            name: The step's name, of its own in its scope; 1 to 256 characters.
            fn: The step's function.
            *args: Its arguments.
            **kwargs: Its keyword arguments.

        Returns:
            What ``fn`` returned, now or in an earlier attempt.

        Raises:
            StepError: The name is unfit, used already, or was recorded as another kind of step.
            StepFailedError: The step failed for good in an earlier attempt.
            SerializationError: The result cannot be stored.

        Example:
            >>> receipt = await ctx.step.do("charge", charge, order.card, amount=order.total)
        """
        return self._do(self._engine.calls.called(name), name, fn, args, kwargs)

    def wait(self, name: str, duration: timedelta | float) -> Step[None]:
        """Wait for a while. A wait of more than a second holds nothing: the job sleeps in Redis.

        The instant is fixed when the step is first reached, and kept through attempts and restarts.

        Args:
            name: The step's name, of its own in its scope.
            duration: ``timedelta`` or seconds.

        Raises:
            InvalidArgumentError: The duration is none.
            StepError: The name is unfit, used already, or was recorded as another kind of step.

        Example:
            >>> await ctx.step.wait("give it a day", timedelta(days=1))
        """
        return self._wait(self._engine.calls.called(name), name, duration_ms(duration, "duration"), None)

    def wait_until(self, name: str, instant: datetime) -> Step[None]:
        """Wait until an instant, as ``wait`` does. One that has passed is no wait.

        Args:
            name: The step's name, of its own in its scope.
            instant: An aware ``datetime``; the first that is given counts in later attempts too.

        Raises:
            InvalidArgumentError: The instant is none, or has no time zone.
            StepError: The name is unfit, used already, or was recorded as another kind of step.

        Example:
            >>> await ctx.step.wait_until("doors open", datetime(2030, 1, 1, 18, tzinfo=UTC))
        """
        return self._wait(self._engine.calls.called(name), name, 0, instant_ms(instant, "instant"))

    @overload
    def wait_for_event(
        self, name: str, *, timeout: None = None, type: type[T], on_timeout: OnTimeout = "none"
    ) -> Step[T]: ...
    @overload
    def wait_for_event(
        self, name: str, *, timeout: timedelta | float, type: type[T], on_timeout: Literal["raise"]
    ) -> Step[T]: ...
    @overload
    def wait_for_event(
        self, name: str, *, timeout: timedelta | float | None, type: type[T], on_timeout: OnTimeout = "none"
    ) -> Step[T | None]: ...
    @overload
    def wait_for_event(
        self, name: str, *, timeout: timedelta | float | None = None, type: Any = ..., on_timeout: OnTimeout = "none"
    ) -> Step[Any]: ...
    def wait_for_event(
        self,
        name: str,
        *,
        timeout: timedelta | float | None = None,
        type: Any = Any,
        on_timeout: OnTimeout = "none",
    ) -> Step[Any]:
        """Wait for an event that somebody sends to the job: ``job.send_event(name, value)``.

        The wait holds nothing. Events are kept until they are waited for, and those of one name come in the order in
        which they were sent.

        Args:
            name: The event's name, and the step's, of its own in its scope.
            timeout: How long to wait, ``timedelta`` or seconds; None for as long as it takes.
            type: What the event's value is read as.
            on_timeout: ``"none"`` to get None when no event came in time, ``"raise"`` for an ``EventTimeoutError``.

        Returns:
            The event's value, or None when none came in time.

        Raises:
            EventTimeoutError: No event came in time, and ``on_timeout="raise"``.
            InvalidArgumentError: The timeout is no duration.
            SerializationError: The event's value is not of this type. The next attempt waits for another event.
            StepError: The name is unfit, used already, or was recorded as another kind of step.

        Example:
            >>> approval = await ctx.step.wait_for_event("approved", timeout=timedelta(days=3), type=Approval)
        """
        timeout_ms = None if timeout is None else duration_ms(timeout, "timeout")
        check_choice(on_timeout, "on_timeout", ("none", "raise"))
        return self._wait_for_event(self._engine.calls.called(name), name, timeout_ms, type, on_timeout)

    @contextmanager
    def scope(self, name: str) -> Generator[None]:
        """Have the names of steps count within a name of their own, in a loop above all. It keeps no checkpoint.

        Args:
            name: The scope's name, 1 to 256 characters.

        Raises:
            StepError: The name is unfit, or a step's.

        Example:
            >>> for item in order.items:
            ...     with ctx.step.scope(item.id):
            ...         await ctx.step.do("reserve", reserve, item)
        """
        around = here.get()
        here.set(self._engine.calls.scope(name))
        try:
            yield
        finally:
            here.set(around)

    async def _do(
        self, scope: Place, name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        engine = self._engine
        calls = engine.calls
        if calls.refusing:
            await calls.refuse(scope)
        around = here.get()
        call = calls.enter(Kind.DO, name, scope)
        kept = False
        try:
            if calls.recorded and (text := calls.recorded.get(call.path)) is not None:
                value = engine.replay(call, text, fn)
                kept = True
                return value
            engine.must_run(call)
            await engine.keep_undos()
            here.set(call)
            with engine.observe(call.kind, name, call.path):
                try:
                    function = engine.function_of(call.path, fn)
                    if is_async(function):
                        value = await function(*args, **kwargs)
                    else:
                        value = await self._in_thread(call, function, args, kwargs)
                except BaseException as error:
                    if failure := engine.failure_to_keep(call, error):
                        await engine.record(call.path, failure)
                        engine.keep(call, failure)
                    raise
                text = DO_DONE + engine.values.dump(value, "its result", call.path)
                await engine.record(call.path, text)
            if call.outer is not None:
                engine.keep(call, text)
            kept = True
            return value
        finally:
            here.set(around)
            if not kept:
                call.free_name()
            calls.leave(call)

    async def _in_thread(
        self, call: Call, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        check_function(fn, call.path)
        value = await self._engine.in_thread(partial(contextvars.copy_context().run, fn, *args, **kwargs))
        return await value if inspect.isawaitable(value) else value

    async def _wait(self, scope: Place, name: str, duration: int, instant: int | None) -> None:
        engine = self._engine
        calls = engine.calls
        if calls.refusing:
            await calls.refuse(scope)
        call = calls.enter(Kind.WAIT, name, scope)
        kept = False
        try:
            if (text := calls.recorded.get(call.path)) is not None:
                until = call.until_ms = int(read_checkpoint(text, Kind.WAIT, call.path)[1])
            else:
                until = engine.journal.now_ms() + duration if instant is None else instant
            if text is not None and until <= engine.journal.now_ms():
                engine.replayed()
            else:
                engine.must_run(call)
                with engine.observe(call.kind, name, call.path):
                    if text is None:
                        await engine.begin_wait(call, until)
                    while (left := until - engine.journal.now_ms()) > 0:
                        engine.must_run(call)
                        await calls.park(call, left / 1000)
            kept = True
        finally:
            if not kept:
                call.free_name()
            calls.leave(call)

    async def _wait_for_event(
        self, scope: Place, name: str, timeout_ms: int | None, hint: Any, on_timeout: OnTimeout
    ) -> Any:
        engine = self._engine
        calls = engine.calls
        if calls.refusing:
            await calls.refuse(scope)
        call = calls.enter(Kind.EVENT, name, scope)
        kept = False
        try:
            payload, is_new = await self._event(call, name, timeout_ms, hint)
            kept = True
            if payload is not None:
                return await self._value_of(call, name, payload, hint, is_new=is_new)
        finally:
            if not kept:
                call.free_name()
            calls.leave(call)
        if on_timeout == "raise":
            raise EventTimeoutError(step=call.path, event=name)
        return None

    async def _event(self, call: Call, name: str, timeout_ms: int | None, hint: Any) -> tuple[str | None, bool]:
        """The text of the event, or None for good; and whether it was taken in this attempt."""
        engine = self._engine
        until = None if timeout_ms is None else engine.journal.now_ms() + timeout_ms
        if (text := engine.calls.recorded.get(call.path)) is not None:
            state, rest = read_checkpoint(text, Kind.EVENT, call.path)
            if state == PENDING:
                until = call.until_ms = int(rest)
            elif state != UNFIT or engine.ending is not None or self._fits(call, name, rest, hint):
                engine.replayed()
                return (None if state == EXPIRED else rest), False
        engine.must_run(call)
        call.event = name
        with engine.observe(call.kind, name, call.path):
            return await self._arrival(call, name, until), True

    async def _value_of(self, call: Call, name: str, payload: str, hint: Any, *, is_new: bool) -> Any:
        """What an event carries. One that cannot be read gives its place to another in the attempts that follow.

        But not one that was read once: then it is the workflow that has changed, and not the sender who was wrong.
        """
        engine = self._engine
        try:
            return engine.values.load(payload, hint, f"event {name!r}", call.path)
        except SerializationError:
            if is_new:
                await engine.record(call.path, EVENT_UNFIT + payload)
                engine.keep(call, EVENT_UNFIT + payload)
            raise

    def _fits(self, call: Call, name: str, payload: str, hint: Any) -> bool:
        """Whether an event that could not be read can be by now."""
        try:
            self._engine.values.load(payload, hint, f"event {name!r}", call.path)
        except SerializationError as error:
            logger.warning("%s; it waits for another one", error)
            return False
        return True

    async def _arrival(self, call: Call, name: str, until: int | None) -> str | None:
        engine = self._engine
        while True:
            call.told = False
            over = until is not None and until <= engine.journal.now_ms()
            payload = await engine.take_event(name, call.path, EVENT_EXPIRED if over else "")
            if over or payload is not None:
                engine.keep(call, EVENT_EXPIRED if payload is None else EVENT_TAKEN + payload)
                return payload
            if until is not None and call.until_ms is None:
                await engine.begin_wait(call, until)
            if not call.told:
                left = None if until is None else max(until - engine.journal.now_ms(), 0) / 1000
                await engine.calls.park(call, left)
