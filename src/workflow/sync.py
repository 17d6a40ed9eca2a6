from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, TypeVar, Unpack, overload

from ..errors import ChildCancelledError, ChildFailedError, StepError
from .calls import here
from .children import Child, ChildOptions
from .engine import DO_DONE, Engine
from .journal import Kind
from .step import OnTimeout, Steps
from .values import check_function, is_async

if TYPE_CHECKING:
    from .workflow import Workflow

P = ParamSpec("P")
T = TypeVar("T")
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
OutputT_co = TypeVar("OutputT_co", covariant=True)


class SyncSteps:
    """The durable steps of a plain ``def`` workflow: those of ``Steps``, blocking, one after another.

    A step's function is a plain one and runs in the workflow's own thread.
    """

    __slots__ = ("_engine", "_steps")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._steps = Steps(engine)

    def do(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plain function as a step and keep what it returns. See ``Steps.do``.

        Raises:
            StepError: The function is an ``async def``, or the name is unfit, used already, or was recorded as another
                kind of step.
            StepFailedError: The step failed for good in an earlier attempt.
            SerializationError: The result cannot be stored.

        Example:
            >>> receipt = ctx.step.do("charge", charge, order.card, amount=order.total)
        """
        engine = self._engine
        calls = engine.calls
        engine.check_thread()
        if is_async(fn):
            raise StepError(
                f"step {name!r} of a plain workflow has an async function: write the workflow with `async def`"
            )
        around = here.get()
        call = calls.name(Kind.DO, name, around)
        kept = False
        try:
            if calls.recorded and (text := calls.recorded.get(call.path)) is not None:
                value: T = engine.replay(call, text, fn)
                kept = True
                return value
            engine.must_run(call)
            check_function(fn, call.path)
            if len(engine.undos) > engine.undos_known:
                engine.from_thread(engine.keep_undos())
            here.set(call)
            with engine.observe(call.kind, name, call.path):
                try:
                    value = engine.function_of(call.path, fn)(*args, **kwargs)
                except BaseException as error:
                    if failure := engine.failure_to_keep(call, error):
                        engine.from_thread(engine.record(call.path, failure))
                        engine.keep(call, failure)
                    raise
                text = DO_DONE + engine.values.dump(value, "its result", call.path)
                engine.from_thread(engine.record(call.path, text))
            if call.outer is not None:
                engine.keep(call, text)
            kept = True
            return value
        finally:
            here.set(around)
            if not kept:
                call.free_name()

    def wait(self, name: str, duration: timedelta | float) -> None:
        """Wait for a while. See ``Steps.wait``.

        Example:
            >>> ctx.step.wait("give it a day", timedelta(days=1))
        """
        self._engine.from_thread(self._steps.wait(name, duration))

    def wait_until(self, name: str, instant: datetime) -> None:
        """Wait until an instant. See ``Steps.wait_until``.

        Example:
            >>> ctx.step.wait_until("doors open", datetime(2030, 1, 1, 18, tzinfo=UTC))
        """
        self._engine.from_thread(self._steps.wait_until(name, instant))

    @overload
    def wait_for_event(
        self, name: str, *, timeout: None = None, type: type[T], on_timeout: OnTimeout = "none"
    ) -> T: ...
    @overload
    def wait_for_event(
        self, name: str, *, timeout: timedelta | float, type: type[T], on_timeout: Literal["raise"]
    ) -> T: ...
    @overload
    def wait_for_event(
        self, name: str, *, timeout: timedelta | float | None, type: type[T], on_timeout: OnTimeout = "none"
    ) -> T | None: ...
    @overload
    def wait_for_event(
        self, name: str, *, timeout: timedelta | float | None = None, type: Any = ..., on_timeout: OnTimeout = "none"
    ) -> Any: ...
    def wait_for_event(
        self,
        name: str,
        *,
        timeout: timedelta | float | None = None,
        type: Any = Any,
        on_timeout: OnTimeout = "none",
    ) -> Any:
        """Wait for an event that somebody sends to the job. See ``Steps.wait_for_event``.

        Example:
            >>> approval = ctx.step.wait_for_event("approved", timeout=timedelta(days=3), type=Approval)
        """
        return self._engine.from_thread(
            self._steps.wait_for_event(name, timeout=timeout, type=type, on_timeout=on_timeout)
        )

    def run(
        self, name: str, workflow: Workflow[InputT, OutputT], input: InputT, /, **options: Unpack[ChildOptions]
    ) -> OutputT:
        """Run another workflow as a child, and give its output. See ``Steps.run``.

        Example:
            >>> parcel = ctx.step.run("ship", shipping, ctx.input.order)
        """
        return self._engine.from_thread(self._steps.run(name, workflow, input, **options))

    def start(
        self, name: str, workflow: Workflow[InputT, OutputT], input: InputT, /, **options: Unpack[ChildOptions]
    ) -> SyncChild[OutputT]:
        """Start another workflow as a child. See ``Steps.start``.

        Example:
            >>> shipment = ctx.step.start("ship", shipping, ctx.input.order)
            >>> parcel = shipment.wait()
        """
        return SyncChild(self._engine, self._engine.from_thread(self._steps.start(name, workflow, input, **options)))

    @overload
    def map(
        self,
        name: str,
        workflow: Workflow[InputT, OutputT],
        inputs: Sequence[InputT],
        /,
        *,
        max_concurrency: int | None = None,
        on_failure: Literal["raise"] = "raise",
        min_successful: None = None,
        **options: Unpack[ChildOptions],
    ) -> list[OutputT]: ...
    @overload
    def map(
        self,
        name: str,
        workflow: Workflow[InputT, OutputT],
        inputs: Sequence[InputT],
        /,
        *,
        max_concurrency: int | None = None,
        on_failure: Literal["collect"],
        min_successful: int | None = None,
        **options: Unpack[ChildOptions],
    ) -> list[OutputT | ChildFailedError | ChildCancelledError]: ...
    def map(self, name: str, workflow: Workflow[Any, Any], inputs: Sequence[Any], /, **options: Any) -> Any:
        """Run another workflow as a child for each input. See ``Steps.map``.

        Example:
            >>> thumbs = ctx.step.map("resize", resize, ctx.input.images, max_concurrency=10)
        """
        return self._engine.from_thread(self._steps.map(name, workflow, inputs, **options))

    def scope(self, name: str) -> AbstractContextManager[None]:
        """Have the names of steps count within a name of their own. See ``Steps.scope``.

        Example:
            >>> for item in order.items:
            ...     with ctx.step.scope(item.id):
            ...         ctx.step.do("reserve", reserve, item)
        """
        return self._steps.scope(name)


class SyncChild(Generic[OutputT_co]):
    """The handle of a child that a plain workflow has started.

    Attributes:
        id: The child's job id.
    """

    def __init__(self, engine: Engine, child: Child[OutputT_co]) -> None:
        self._engine = engine
        self._child = child
        self.id: Final = child.id

    def wait(self) -> OutputT_co:
        """Wait for the child's end. See ``Child.wait``.

        Raises:
            ChildFailedError: It failed for good.
            ChildCancelledError: It was cancelled or removed.
        """
        return self._engine.from_thread(self._child.wait())
