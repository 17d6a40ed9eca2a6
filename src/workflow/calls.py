"""The engine calls that a run has open: which names they took, who is busy, and when only waiting is left."""

import asyncio
import contextvars
from collections.abc import Collection
from typing import Any, Final, Protocol

import msgspec

from ..errors import StepError
from .journal import Kind
from .paths import escaped

QUIET: Final = 0.05
TURNS: Final = 5
PATIENCE: Final = 100


class RunEnded(asyncio.CancelledError):
    """What engine calls raise in a run that has ended.

    No ``except Exception`` stops it on its way out; and as it is a cancellation, tasks and task groups of asyncio and
    anyio end by it without a word.
    """


class Owner(Protocol):
    """The run that calls belong to."""

    def settle(self) -> None:
        """The last open call of a run that has returned has returned, or no thread is left."""
        ...

    def sleep(self) -> None:
        """Waits are all that is left, and have been for a while."""
        ...

    def lost(self) -> None:
        """A write was refused because the claim is lost."""
        ...


class Scope:
    """Where names count: in a run, in one execution of an outer step, or in a ``scope`` within either."""

    __slots__ = ("calls", "names", "outer", "prefix")

    def __init__(self, calls: "Calls | None", outer: "Call | None", prefix: str, names: dict[str, Kind]) -> None:
        self.calls = calls
        self.outer = outer
        self.prefix = prefix
        self.names = names


class Call:
    """An engine call: a step that runs or waits.

    Attributes:
        calls: The calls of its run.
        outer: The step that it was made in; None at the top.
        path: Its step path.
        task: The task that it was made in; None while it is not counted.
        open: Whether it is counted and has not returned.
        inner: How many open calls were made in it.
        waiter: What it is parked on; None while it is not.
        until_ms: The instant that its wait is over; None for no end.
        event: The name of the event that it waits for.
        told: Whether news of that event came since it was last looked for.
    """

    __slots__ = ("_names", "_taken", "calls", "event", "inner", "kind", "open", "outer", "path", "task", "told",
                 "until_ms", "waiter")  # fmt: skip

    def __init__(self, calls: "Calls", outer: "Call | None", kind: Kind, path: str, taken: dict[str, Kind]) -> None:
        self.calls = calls
        self.outer = outer
        self.kind = kind
        self.path = path
        self.task: asyncio.Task[object] | None = None
        self.open = False
        self.inner = 0
        self.waiter: asyncio.Future[None] | None = None
        self.until_ms: int | None = None
        self.event: str | None = None
        self.told = False
        self._taken = taken
        self._names: dict[str, Kind] | None = None

    @property
    def prefix(self) -> str:
        """What the paths of calls made in it begin with."""
        return self.path + "/"

    @property
    def names(self) -> dict[str, Kind]:
        """The paths that were taken in this execution of it."""
        if self._names is None:
            self._names = {}
        return self._names

    def free_name(self) -> None:
        """Let the name be used again: the call had no result."""
        self._taken.pop(self.path, None)


here: contextvars.ContextVar[Scope | Call | None] = contextvars.ContextVar("lanner_step", default=None)


class Calls(msgspec.Struct, eq=False):
    """The open calls of one run.

    Attributes:
        owner: The run; None: it is over, and nobody listens any more.
        recorded: Checkpoints by step path: those of earlier attempts, and those of this one that may be needed.
        loop: The event loop that the run is in.
        quiet: For how long, in seconds, waits must have been all that is left before the run sleeps for them.
        open: The calls that have not returned.
        threads: How many threads run for the run, other than that of a plain workflow.
        ended: Why no call begins any more, for the text of the signal; empty while they do.
        returned: Whether the run has returned: calls begin only in steps that it left open.
    """

    owner: Owner | None
    recorded: dict[str, str]
    loop: asyncio.AbstractEventLoop
    quiet: float = QUIET
    # dicts, which are nothing to the garbage collector while they are empty, as sets are not
    open: dict[Call, None] = {}
    threads: int = 0
    ended: str = ""
    returned: bool = False
    _refused: int = 0
    _root: Scope | None = None
    _busy: int = 0
    _parked: dict[Call, None] = {}
    _called: dict[str, int] = {}
    _activity: int = 0
    _last: float = 0.0
    _watch: asyncio.Handle | None = None

    @property
    def parked(self) -> Collection[Call]:
        """The calls that wait for an instant or an event."""
        return self._parked.keys()

    @property
    def refusing(self) -> bool:
        """Whether a call must ask ``refuse`` before it begins."""
        return self.returned or self.ended != ""

    def called(self, name: Any) -> Scope | Call | None:
        """A step of this name was called, and is still to be awaited. Where the caller stands."""
        # what is no name is refused when it is awaited
        if isinstance(name, str):
            self._called[name] = self._called.get(name, 0) + 1
        return here.get()

    @property
    def forgotten(self) -> Collection[str]:
        """The names of steps that were called and not awaited."""
        return self._called.keys()

    def name(self, kind: Kind, name: str, scope: Scope | Call | None) -> Call:
        """Take a name in a scope. The call is not counted: that is for plain workflows.

        Raises:
            StepError: The name is unfit, or taken.
        """
        scope = self._within(scope)
        path = scope.prefix + escaped(name)
        if (called := self._called.pop(name, 0)) > 1:
            self._called[name] = called - 1
        taken = scope.names
        if path in taken:
            raise StepError(_taken_text(path, taken[path]))
        taken[path] = kind
        return Call(self, scope if isinstance(scope, Call) else scope.outer, kind, path, taken)

    def _within(self, scope: Scope | Call | None) -> Scope | Call:
        """A scope of this run: that of somebody else's, or none, is its outermost."""
        if scope is not None and scope.calls is self:
            return scope
        if self._root is None:
            self._root = Scope(None, None, "", {})
        return self._root

    def scope(self, name: str) -> Scope:
        """A scope where the caller stands, new or entered again.

        Raises:
            StepError: The name is unfit, or a step's.
        """
        scope = self._within(here.get())
        path = scope.prefix + escaped(name)
        kind = scope.names.setdefault(path, Kind.SCOPE)
        if kind is not Kind.SCOPE or path in self.recorded:
            raise StepError(f"scope {path!r} has the name of a step: give one of them another")
        return Scope(self, scope if isinstance(scope, Call) else scope.outer, path + "/", scope.names)

    def enter(self, kind: Kind, name: str, scope: Scope | Call | None) -> Call:
        """Take a name in a scope and count the call, until ``leave``.

        Raises:
            StepError: The name is unfit, or taken.
        """
        return self._enter(self.name(kind, name, scope))

    def enter_again(self, kind: Kind, path: str, scope: Scope | Call | None) -> Call:
        """Count a call that waits for a step which has its name already, until ``leave``."""
        scope = self._within(scope)
        return self._enter(Call(self, scope if isinstance(scope, Call) else scope.outer, kind, path, {}))

    def _enter(self, call: Call) -> Call:
        outer = call.outer
        if outer is not None and outer.open:
            if outer.inner == 0:
                self._busy -= 1
            outer.inner += 1
        call.task = asyncio.current_task()
        call.open = True
        self.open[call] = None
        self._busy += 1
        self._moved()
        return call

    async def refuse(self, scope: Scope | Call | None) -> None:
        """Raise the signal if calls in a scope do not begin any more.

        It lets the loop turn first: code that swallows the signal and tries again shall not hold up everybody.

        Raises:
            RunEnded: The run has ended, or it has returned and the scope is in none of the steps that it left open.
        """
        if not self.ended:
            step = scope.outer if isinstance(scope, Scope) else scope
            if not self.returned or (step is not None and step.open):
                return
        self._refused += 1
        await asyncio.sleep(0 if self._refused < PATIENCE else QUIET)
        raise RunEnded(self.ended or "the run has returned")

    def leave(self, call: Call) -> None:
        """The call returns or raises."""
        call.open = False
        self.open.pop(call, None)
        if call.inner == 0:
            self._busy -= 1
        outer = call.outer
        if outer is not None and outer.open:
            outer.inner -= 1
            if outer.inner == 0:
                self._busy += 1
        self._moved()
        if self._parked:
            self.watch()
        elif self.returned and not self.open and self.owner is not None:
            self.owner.settle()

    async def park(self, call: Call, delay: float | None) -> None:
        """Wait for some seconds (None: for ever) or until the call is told; other steps of the run may go on."""
        call.waiter = waiter = self.loop.create_future()
        timer = None if delay is None else self.loop.call_later(delay, _wake, waiter)
        self._parked[call] = None
        self._busy -= 1
        self.watch()
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            call.waiter = None
            self._parked.pop(call, None)
            self._busy += 1

    def tell(self, event: str) -> None:
        """Tell the calls that wait for an event that one may have arrived."""
        for call in self.open:
            if call.event == event:
                call.told = True
                if call.waiter is not None:
                    _wake(call.waiter)

    def watch(self) -> None:
        """If waits are all that is left, see whether it stays so."""
        if self._parked and not self._busy and not self.threads and self._watch is None:
            self._last = self.loop.time()
            self._watch = self.loop.call_later(self.quiet, self._look, self._activity, TURNS)

    def thread_ended(self) -> None:
        """A step's thread has ended, whoever waited for it."""
        self.threads -= 1
        self.watch()
        if not self.threads and self.owner is not None:
            self.owner.settle()

    def end(self, why: str) -> None:
        """No call begins any more."""
        self.ended = why
        if self._watch is not None:
            self._watch.cancel()

    def lost(self) -> None:
        """A write was refused because the claim is lost."""
        if self.owner is not None:
            self.owner.lost()

    def close(self) -> None:
        """The run is over, and nobody listens any more."""
        self.ended = self.ended or "the run has returned"
        if self._watch is not None:
            self._watch.cancel()
        self.owner = None

    def _moved(self) -> None:
        self._activity += 1
        if self._watch is not None:
            self._last = self.loop.time()

    def _look(self, seen: int, turns: int) -> None:
        if not self._parked or self._busy or self.threads:
            self._watch = None
        elif self._activity != seen:
            left = self._last + self.quiet - self.loop.time()
            self._watch = self.loop.call_later(max(left, 0), self._look, self._activity, TURNS)
        elif turns:
            # the loop may have been held up: what became ready meanwhile gets its turn first
            self._watch = self.loop.call_soon(self._look, seen, turns - 1)
        else:
            self._watch = None
            if self.owner is not None:
                self.owner.sleep()


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _taken_text(path: str, kind: Kind) -> str:
    if kind is Kind.SCOPE:
        return f"step {path!r} has the name of a scope: give one of them another"
    return (
        f"step {path!r} was already used in its scope: a checkpoint is found by its name, so give each step a name of "
        f"its own, or use `with ctx.step.scope(...)` in a loop"
    )
