"""Workflows that a run starts as children: a child counts once, whatever crashes, and its end is a checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, Unpack, overload

import msgspec

from ..errors import ChildCancelledError, ChildFailedError, InvalidArgumentError, MapFailedError, StepError
from ..queue.options import JobOptions
from ..queue.spec import Spec
from ..queue.validation import check_cap, check_choice, check_int, shown
from .calls import Call, Scope, here
from .journal import CANCELLED, CHILD_DONE, CHILD_STARTED, DONE, PENDING, Kind, read_checkpoint
from .options import MEANINGLESS

if TYPE_CHECKING:
    from ..queue.scripts.descending import NewChild, Policy
    from .engine import Engine
    from .step import Step
    from .workflow import Workflow

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
OutputT_co = TypeVar("OutputT_co", covariant=True)
MOST_CHILDREN: Final = 100_000
PREPARED_AT_ONCE: Final = 100
FLOW_PATH: Final = "//"
CHILD_OF_FLOW: Final = "of "


class ChildOptions(JobOptions, total=False):
    """What a child may be given: a ``JobOptions``, and its ``group``."""

    group: str | None


class Child(Generic[OutputT_co]):
    """The handle of a child that was started: wait for it later in the run, or never.

    Attributes:
        id: The child's job id.
    """

    def __init__(self, engine: Engine, call: Call, workflow: Workflow[Any, OutputT_co], id: str) -> None:
        self._engine = engine
        self._path = call.path
        self._workflow = workflow
        self.id: Final = id

    def __repr__(self) -> str:
        return f"<Child {self.id!r} of {self._workflow.id!r}>"

    def wait(self) -> Step[OutputT_co]:
        """Wait for the child's end, as often as you like; the run holds nothing meanwhile.

        Raises:
            ChildFailedError: It failed for good.
            ChildCancelledError: It was cancelled or removed.
        """
        return self._wait(here.get())

    async def _wait(self, scope: Scope | Call | None) -> OutputT_co:
        calls = self._engine.calls
        if calls.refusing:
            await calls.refuse(scope)
        call = calls.enter_again(Kind.CHILD, self._path, scope)
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
        return self._run(self._engine.calls.called(name), name, workflow, input, options)

    async def _run(
        self,
        scope: Scope | Call | None,
        name: str,
        workflow: Workflow[InputT, OutputT],
        input: InputT,
        options: ChildOptions,
    ) -> OutputT:
        engine = self._engine
        _check(engine, name, workflow, options)
        call = await self._enter(scope, name)
        kept = False
        try:
            child_id = engine.journal.child_id(call.path)
            if call.path in engine.calls.recorded:
                engine.replayed()
            else:
                engine.must_run(call)
                with engine.observe(call.kind, name, call.path):
                    child = await workflow.new_child(call.path, child_id, input, options)
                    _check_group(engine, name, workflow, child)
                    await engine.start_children(call, [child], policy="fail")
                    await engine.await_children(call, call.path, [call.path])
            kept = True
            return _output(engine, workflow, child_id, call.path)
        finally:
            self._leave(call, kept=kept)

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
        return self._start(self._engine.calls.called(name), name, workflow, input, options)

    async def _start(
        self,
        scope: Scope | Call | None,
        name: str,
        workflow: Workflow[InputT, OutputT],
        input: InputT,
        options: ChildOptions,
    ) -> Child[OutputT]:
        engine = self._engine
        _check(engine, name, workflow, options)
        call = await self._enter(scope, name)
        kept = False
        try:
            child_id = engine.journal.child_id(call.path)
            if call.path in engine.calls.recorded:
                engine.replayed()
            else:
                engine.must_run(call)
                with engine.observe(call.kind, name, call.path):
                    child = await workflow.new_child(call.path, child_id, input, options)
                    await engine.start_children(call, [child], policy="fail")
            kept = True
            return Child(engine, call, workflow, child_id)
        finally:
            self._leave(call, kept=kept)

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
        _check_inputs(inputs)
        check_int(len(inputs), "the number of inputs", 0, MOST_CHILDREN)
        if min_successful is not None:
            if on_failure == "raise":
                raise InvalidArgumentError('min_successful goes with on_failure="collect": otherwise all must succeed')
            check_int(min_successful, "min_successful", 0, len(inputs))
        policy: Policy = "fail" if on_failure == "raise" else "continue"
        return self._map(self._engine.calls.called(name), name, workflow, inputs, options, policy, most, min_successful)

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
        _check(engine, name, workflow, options)
        call = await self._enter(scope, name)
        kept = False
        try:
            paths = [f"{call.path}/{index}" for index in range(len(inputs))]
            started = engine.calls.recorded.get(call.path)
            if started is None:
                engine.must_run(call)
                with engine.observe(call.kind, name, call.path):
                    children: list[NewChild] = []
                    for path, value in zip(paths, inputs, strict=True):
                        child = await workflow.new_child(path, engine.journal.child_id(path), value, options)
                        _check_group(engine, name, workflow, child)
                        children.append(child)
                        if len(children) % PREPARED_AT_ONCE == 0:
                            await asyncio.sleep(0)  # others of the loop get their turn
                    await engine.start_children(call, children, policy=policy, most=most)
                    started = f"{CHILD_STARTED}{len(inputs)}"
                    await engine.record(call.path, started)
                engine.keep(call, started)
            elif started != f"{CHILD_STARTED}{len(inputs)}":
                state, count = read_checkpoint(started, Kind.CHILD, call.path)
                earlier = f"maps {len(inputs)} inputs, and in an earlier attempt {count}"
                if state != PENDING:
                    earlier = "is a map, and in an earlier attempt it started a single child"
                raise StepError(f"step {call.path!r} {earlier}: it must be the same each time, or get another name")
            await engine.await_children(call, call.path, paths, until_failure=policy == "fail")
            kept = True
            return _outputs(engine, workflow, paths, call.path, raising=policy == "fail", least=least)
        finally:
            self._leave(call, kept=kept)

    async def _enter(self, scope: Scope | Call | None, name: str) -> Call:
        calls = self._engine.calls
        if calls.refusing:
            await calls.refuse(scope)
        return calls.enter(Kind.CHILD, name, scope)

    def _leave(self, call: Call, *, kept: bool) -> None:
        if not kept:
            call.free_name()
        self._engine.calls.leave(call)


def _check(engine: Engine, name: str, workflow: object, options: Mapping[str, Any]) -> None:
    from .workflow import Workflow  # noqa: PLC0415 - which imports this module

    if not isinstance(workflow, Workflow):
        raise InvalidArgumentError(
            f"step {name!r}: a workflow is run as a child, not {shown(workflow)}; `ctx.step.do` runs a function"
        )
    if engine.program.namespace is not None and not workflow.belongs_to(engine.program.namespace):
        raise InvalidArgumentError(
            f"step {name!r}: workflow {workflow.id!r} is of another namespace and can be no child here; call its `run` "
            f"in a step instead"
        )
    for option in MEANINGLESS:
        if option in options:
            raise InvalidArgumentError(f"step {name!r}: {option}= has no meaning for a child; leave it out")


def _check_group(engine: Engine, name: str, workflow: Workflow[Any, Any], child: NewChild) -> None:
    """A run that keeps its group while it waits cannot wait for what waits for the group."""
    group = engine.spec.group if engine.spec.strict else ""
    if not group or workflow.id != engine.program.workflow or workflow.queue.declared.get("group") != 1:
        return
    if msgspec.json.decode(child.spec, type=Spec).group == group:
        raise InvalidArgumentError(
            f"step {name!r}: the run holds group {group!r} while it waits (group_order='strict'), and the child would "
            f"wait for the same group: give it another group="
        )


def _check_inputs(inputs: object) -> None:
    if not isinstance(inputs, Sequence) or isinstance(inputs, (str, bytes)):
        raise InvalidArgumentError(f"the inputs of map must be a list or another sequence, not {shown(inputs)}")


def _output(engine: Engine, workflow: Workflow[Any, OutputT], child_id: str, path: str) -> OutputT:
    """What a child gave, or how it failed."""
    state, rest = read_checkpoint(engine.calls.recorded[path], Kind.CHILD, path)
    if state == DONE:
        return workflow.payloads.read_output(rest)
    if state == PENDING:
        raise StepError(f"step {path!r} starts a single child, and was a map in an earlier attempt: give it a new name")
    raise _error(engine, state, rest, workflow.id, child_id, step=path)


def _error(
    engine: Engine, state: str, text: str, workflow: str, child_id: str, *, step: str = ""
) -> ChildFailedError | ChildCancelledError:
    """How a child has ended that has not completed."""
    if state == CANCELLED:
        reason = engine.values.notes.read(text)
        return ChildCancelledError(workflow=workflow, job_id=child_id, reason=reason, step=step)
    failure = engine.values.load_failure(text)
    return ChildFailedError(
        workflow=workflow,
        job_id=child_id,
        type=failure.type,
        message=failure.message,
        traceback=failure.traceback,
        step=step,
    )


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
    while (text := recorded.get(path := f"{FLOW_PATH}{len(results)}")) is not None:
        state, rest = read_checkpoint(text, Kind.CHILD, path)
        if state == DONE:
            results.append(engine.values.load(rest, Any, "a child's result", path))
        else:
            known = recorded.get(f"{path}/child", f"{CHILD_OF_FLOW}{workflow}:{path}").removeprefix(CHILD_OF_FLOW)
            child, _, child_id = known.partition(":")
            results.append(_error(engine, state, rest, child, child_id))
    return results
