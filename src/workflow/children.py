"""Workflows that a run starts as children: a child counts once, whatever crashes, and its end is a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, Unpack, overload

from ..errors import ChildCancelledError, ChildFailedError, MapFailedError, StepError
from ..queue.options import BaseOptions
from ..queue.validation import check_cap, check_choice, check_int
from .calls import Call, Scope, here
from .journal import CANCELLED, CHILD_DONE, CHILD_STARTED, FAILED, Kind, read_checkpoint
from .paths import escaped

if TYPE_CHECKING:
    from ..queue.scripts.descending import Policy
    from .engine import Engine
    from .step import Step
    from .workflow import Workflow

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
OutputT_co = TypeVar("OutputT_co", covariant=True)
MOST_CHILDREN: Final = 100_000
FLOW_PATH: Final = "//"


class ChildOptions(BaseOptions, total=False):
    """What a child may be given: a ``BaseOptions``, the ``timeout`` of an attempt, and its ``group``."""

    timeout: Any
    group: str | None


class Child(Generic[OutputT_co]):
    """The handle of a child that was started: wait for it later in the run, or never.

    Attributes:
        id: The child's job id.
    """

    def __init__(self, engine: Engine, call: Call, workflow: Workflow[Any, OutputT_co], id: str) -> None:
        self._engine = engine
        self._path = call.path
        self._name = call.path.rpartition("/")[2]
        self._workflow = workflow
        self.id: Final = id

    def wait(self) -> Step[OutputT_co]:
        """Wait for the child's end; the run holds nothing meanwhile. To be awaited once.

        Raises:
            ChildFailedError: It failed for good.
            ChildCancelledError: It was cancelled or removed.
        """
        return self._wait(here.get())

    async def _wait(self, scope: Scope | Call | None) -> OutputT_co:
        calls = self._engine.calls
        if calls.refusing:
            await calls.refuse(scope)
        call = calls.enter(Kind.CHILD, f"{self._name} (wait)", scope)
        try:
            await self._engine.await_children(call, self._path, [self._path])
        finally:
            calls.leave(call)
        return _output(self._engine, self._workflow, self.id, self._path)


class ChildSteps:
    """The part of ``ctx.step`` that starts other workflows of the namespace."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def run(
        self, name: str, workflow: Workflow[InputT, OutputT], input: InputT, /, **options: Unpack[ChildOptions]
    ) -> Step[OutputT]:
        """Run another workflow as a child, and give its output. The run holds nothing while it waits.

        The child is started once. Its failure does not run it again in later attempts; a retry of the job by hand does.

        Args:
            name: The step's name, of its own in its scope.
            workflow: A workflow of the same namespace.
            input: Its input.
            **options: Of the child's job; see ``JobOptions``.

        Raises:
            ChildFailedError: The child failed for good.
            ChildCancelledError: It was cancelled or removed.
            SerializationError: The input does not fit the child's schema.
            StepError: The name is unfit, used already, or was recorded as another kind of step.

        Example:
            >>> parcel = await ctx.step.run("ship", shipping, ctx.input.order)
        """
        return self._run(here.get(), name, workflow, input, options)

    async def _run(
        self,
        scope: Scope | Call | None,
        name: str,
        workflow: Workflow[InputT, OutputT],
        input: InputT,
        options: ChildOptions,
    ) -> OutputT:
        engine = self._engine
        call = await self._enter(scope, name)
        try:
            child_id = engine.journal.child_id(call.path)
            if call.path not in engine.calls.recorded:
                engine.must_run(call)
                child = await workflow.new_child(call.path, child_id, input, options)
                await engine.start_children(call, [child], policy="fail")
                await engine.await_children(call, call.path, [call.path])
            return _output(engine, workflow, child_id, call.path)
        finally:
            engine.calls.leave(call)

    def start(
        self, name: str, workflow: Workflow[InputT, OutputT], input: InputT, /, **options: Unpack[ChildOptions]
    ) -> Step[Child[OutputT]]:
        """Start another workflow as a child; wait for it later, or never. See ``run``.

        A child is cancelled with its parent; what shall not be is run with ``workflow.run`` in a step.

        Example:
            >>> shipment = await ctx.step.start("ship", shipping, ctx.input.order)
            >>> await ctx.step.do("thank", thank, ctx.input.email)
            >>> parcel = await shipment.wait()
        """
        return self._start(here.get(), name, workflow, input, options)

    async def _start(
        self,
        scope: Scope | Call | None,
        name: str,
        workflow: Workflow[InputT, OutputT],
        input: InputT,
        options: ChildOptions,
    ) -> Child[OutputT]:
        engine = self._engine
        call = await self._enter(scope, name)
        try:
            child_id = engine.journal.child_id(call.path)
            if call.path not in engine.calls.recorded:
                engine.must_run(call)
                child = await workflow.new_child(call.path, child_id, input, options)
                await engine.start_children(call, [child], policy="fail")
            return Child(engine, call, workflow, child_id)
        finally:
            engine.calls.leave(call)

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
    ) -> Step[list[OutputT]]: ...
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
    ) -> Step[list[OutputT | ChildFailedError | ChildCancelledError]]: ...
    def map(
        self,
        name: str,
        workflow: Workflow[InputT, Any],
        inputs: Sequence[InputT],
        /,
        *,
        max_concurrency: int | None = None,
        on_failure: Literal["raise", "collect"] = "raise",
        min_successful: int | None = None,
        **options: Unpack[ChildOptions],
    ) -> Step[Any]:
        """Run another workflow as a child for each input, and give their outputs in the order of the inputs.

        Args:
            name: The step's name, of its own in its scope.
            workflow: A workflow of the same namespace.
            inputs: The inputs, up to 100,000; the same in every attempt.
            max_concurrency: How many of the children may run at once. None: all.
            on_failure: ``"raise"`` the first failure, as soon as there is one (the other children run on), or
                ``"collect"`` failures in the place of outputs.
            min_successful: With ``"collect"``: fewer successes than this are a failure of the step.
            **options: Of the children's jobs; see ``JobOptions``.

        Raises:
            ChildFailedError: A child failed for good, and ``on_failure="raise"``.
            ChildCancelledError: A child was cancelled or removed, and ``on_failure="raise"``.
            MapFailedError: Fewer than ``min_successful`` children succeeded.
            StepError: The name is unfit, used already, or was recorded as another kind of step; or there were another
                number of inputs in an earlier attempt.

        Example:
            >>> thumbs = await ctx.step.map("resize", resize, ctx.input.images, max_concurrency=10)
        """
        most = check_cap(max_concurrency, "max_concurrency") or 0
        check_choice(on_failure, "on_failure", ("raise", "collect"))
        check_int(len(inputs), "the number of inputs", 0, MOST_CHILDREN)
        if min_successful is not None:
            check_int(min_successful, "min_successful", 0, len(inputs))
        policy: Policy = "fail" if on_failure == "raise" else "continue"
        return self._map(here.get(), name, workflow, inputs, options, policy, most, min_successful)

    async def _map(  # noqa: PLR0917 - what ``map`` was given, taken apart
        self,
        scope: Scope | Call | None,
        name: str,
        workflow: Workflow[InputT, Any],
        inputs: Sequence[InputT],
        options: ChildOptions,
        policy: Policy,
        most: int,
        least: int | None,
    ) -> Any:
        engine = self._engine
        call = await self._enter(scope, name)
        try:
            paths = [f"{call.path}/{escaped(str(index))}" for index in range(len(inputs))]
            started = engine.calls.recorded.get(call.path)
            if started is None:
                engine.must_run(call)
                children = [
                    await workflow.new_child(path, engine.journal.child_id(path), value, options)
                    for path, value in zip(paths, inputs, strict=True)
                ]
                await engine.start_children(call, children, policy=policy, most=most)
                started = f"{CHILD_STARTED}{len(inputs)}"
                await engine.record(call.path, started)
                engine.keep(call, started)
            elif started != f"{CHILD_STARTED}{len(inputs)}":
                read_checkpoint(started, Kind.CHILD, call.path)
                raise StepError(
                    f"step {call.path!r} maps {len(inputs)} inputs, and in an earlier attempt "
                    f"{started.removeprefix(CHILD_STARTED)}: the inputs of a map must be the same each time"
                )
            await engine.await_children(call, call.path, paths, until_failure=policy == "fail")
            return _outputs(engine, workflow, paths, call.path, raising=policy == "fail", least=least)
        finally:
            engine.calls.leave(call)

    async def _enter(self, scope: Scope | Call | None, name: str) -> Call:
        calls = self._engine.calls
        if calls.refusing:
            await calls.refuse(scope)
        return calls.enter(Kind.CHILD, name, scope)


def _output(engine: Engine, workflow: Workflow[Any, OutputT], child_id: str, path: str) -> OutputT:
    """What a child gave, or how it failed."""
    state, rest = read_checkpoint(engine.calls.recorded[path], Kind.CHILD, path)
    if state == FAILED:
        raise _failed(engine, workflow.id, child_id, rest)
    if state == CANCELLED:
        raise ChildCancelledError(workflow=workflow.id, job_id=child_id, reason=engine.values.notes.read(rest))
    return workflow.read_output(rest)


def _outputs(
    engine: Engine, workflow: Workflow[Any, Any], paths: Sequence[str], path: str, *, raising: bool, least: int | None
) -> list[Any]:
    recorded = engine.calls.recorded
    broken = [each for each in paths if not recorded.get(each, CHILD_DONE).startswith(CHILD_DONE)]
    if raising and broken:
        _output(engine, workflow, engine.journal.child_id(broken[0]), broken[0])
    outputs: list[Any] = []
    failures: list[ChildFailedError | ChildCancelledError] = []
    for each in paths:
        try:
            outputs.append(_output(engine, workflow, engine.journal.child_id(each), each))
        except (ChildFailedError, ChildCancelledError) as error:
            outputs.append(error)
            failures.append(error)
    if least is not None and len(outputs) - len(failures) < least:
        raise MapFailedError(step=path, successes=len(outputs) - len(failures), wanted=least, failures=failures)
    return outputs


def flow_results(engine: Engine, workflow: str) -> list[Any]:
    """What the children of a flow's job gave, in their order; errors of those that failed or were cancelled."""
    recorded = engine.calls.recorded
    results: list[Any] = []
    while (text := recorded.get(f"{FLOW_PATH}{len(results)}")) is not None:
        path = f"{FLOW_PATH}{len(results)}"
        state, rest = read_checkpoint(text, Kind.CHILD, path)
        if state == FAILED:
            results.append(_failed(engine, workflow, path, rest))
        elif state == CANCELLED:
            reason = engine.values.notes.read(rest)
            results.append(ChildCancelledError(workflow=workflow, job_id=path, reason=reason))
        else:
            results.append(engine.values.load(rest, Any, "a child's result", path))
    return results


def _failed(engine: Engine, workflow: str, job_id: str, text: str) -> ChildFailedError:
    failure = engine.values.load_failure(text)
    return ChildFailedError(
        workflow=workflow,
        job_id=job_id,
        type=failure.type,
        message=failure.message,
        traceback=failure.traceback,
    )
