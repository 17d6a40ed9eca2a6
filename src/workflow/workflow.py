from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypedDict, TypeVar, Unpack, get_args, get_type_hints

from ..errors import InvalidArgumentError, SerializationError
from ..queue.options import Duration, JobOptions
from ..queue.queue import Added
from ..queue.validation import check_choice
from . import serializer
from .context import Context, SyncContext
from .job import Job
from .values import Serializer, result_hint
from .worker import Worker, WorkerSettings

if TYPE_CHECKING:
    from .namespace import WorkflowNamespace

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

RunFunction = Callable[[Context[InputT]], Awaitable[OutputT]] | Callable[[SyncContext[InputT]], OutputT]
GroupOf = Callable[[InputT], "str | None | Awaitable[str | None]"]


class RunOptions(JobOptions, total=False):
    """What one job may be given: a ``JobOptions``, and

    Attributes:
        id: Its id, 1 to 256 characters; made up if omitted. The id of a live job, or of a failed one that is kept,
            collides; that of a completed or cancelled job can be used again.
        group: Its group, above what the workflow's ``get_group_id`` says.
        unique: ``"retained"``: the id of a completed or cancelled job collides until its record is gone.
        if_exists: ``"return"`` gives the job that has the id, instead of raising.
    """

    id: str
    group: str | None
    unique: Literal["live", "retained"]
    if_exists: Literal["raise", "return"]


class Workflow(Generic[InputT, OutputT]):
    """A durable function with a queue of its own. Made by ``WorkflowNamespace.create_workflow``.

    Attributes:
        id: Its id in the namespace.
        function: What runs.
        non_retryable: Error types that fail a job at once.
    """

    def __init__(
        self,
        namespace: WorkflowNamespace,
        id: str,  # noqa: A002 - its name everywhere
        function: RunFunction[InputT, OutputT],
        *,
        schema: Any,
        get_group_id: GroupOf[InputT] | None,
        concurrency: int | None,
        group_concurrency: int | None,
        limiters: Sequence[str] | None,
        events: int,
        non_retryable: Sequence[type[BaseException]],
        options: Mapping[str, Any],
    ) -> None:
        if not callable(function):
            raise InvalidArgumentError(f"run= must be a function that takes a context, not {function!r}")
        for kind in non_retryable:
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidArgumentError(f"non_retryable must hold exception classes, not {kind!r}")
        self._namespace = namespace
        self.queue: Final = namespace.queues.queue(
            id,
            concurrency=concurrency,
            group_concurrency=group_concurrency,
            limiters=limiters,
            events=events,
            **options,
        )
        self.id: Final = id
        self.function: Final = function
        self.serializer: Final[Serializer] = serializer
        self.non_retryable: Final = tuple(non_retryable)
        self._group_of = get_group_id
        self._input_type = _input_of(function) if schema is None else schema
        self._output_type = result_hint(function)

    def __repr__(self) -> str:
        return f"<Workflow {self.id!r} of {self._namespace.id!r}>"

    async def run(self, input: InputT, /, **options: Unpack[RunOptions]) -> Job[OutputT]:  # noqa: A002 - what it is
        """Have the workflow run.

        Args:
            input: Its input.
            **options: See ``RunOptions`` and ``JobOptions``.

        Raises:
            InvalidArgumentError: An option cannot be used; nothing was sent.
            SerializationError: The input cannot be stored, or does not fit the workflow's schema; nothing was sent.
            JobAlreadyExistsError: The id is in use.
            RedisUnavailableError: Redis did not answer in time.

        Example:
            >>> job = await signup.run(Signup("ada@example.org"), id="ada", max_attempts=5)
        """
        return await self._add(input, options)

    async def run_in(self, input: InputT, delay: Duration, /, **options: Unpack[RunOptions]) -> Job[OutputT]:  # noqa: A002
        """Have the workflow run after a delay (``timedelta`` or seconds, by Redis' clock). See ``run``."""
        return await self._add(input, options, run_in=delay)

    async def run_at(self, input: InputT, instant: datetime, /, **options: Unpack[RunOptions]) -> Job[OutputT]:  # noqa: A002
        """Have the workflow run at an instant (an aware ``datetime``); one that has passed is simply due. See ``run``."""
        return await self._add(input, options, run_at=instant)

    async def run_many(self, inputs: Sequence[InputT], /, **options: Unpack[RunOptions]) -> list[Job[OutputT]]:
        """Have the workflow run for each input, in calls of 200. ``id`` is no option here. See ``run``."""
        if "id" in options:
            raise InvalidArgumentError("run_many takes no id=: every job needs one of its own; leave it out")
        prepared = []
        for value in inputs:
            where, rest = await self._where(value, options)
            prepared.append(self.queue.prepare(self._text_of(value), where, rest))
        return [Job(self, job) for job in await self.queue.send_many(prepared)]

    async def execute(
        self, input: InputT, /, *, timeout: Duration | None = None, **options: Unpack[RunOptions]  # noqa: A002, ASYNC109
    ) -> OutputT:
        """Run and wait, registered as one: the output.

        Raises:
            JobError: As ``Job.wait``.
            And what ``run`` raises.

        Example:
            >>> engagement = await signup.execute(Signup("ada@example.org"), timeout=30)
        """
        where, rest = await self._where(input, options)
        return self.read_output(await self.queue.execute(self._text_of(input), where, rest, timeout=timeout))

    def get_job(self, job_id: str) -> Job[OutputT]:
        """The handle of a job by its id, from any process."""
        return Job(self, self.queue.job(job_id))

    def worker(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> Worker:
        """A worker of this workflow, for ``async with``: it works in the background for the block.

        Args:
            concurrency: How many jobs at once.
            **settings: See ``WorkerSettings``.

        Example:
            >>> async with signup.worker(concurrency=100):
            ...     await signup.execute(Signup("ada@example.org"))
        """
        return Worker(self._namespace.queues, [self], concurrency, settings)

    async def work(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> None:
        """Work on this workflow until stopped or signalled: the whole of a worker process."""
        await self.worker(concurrency=concurrency, **settings).run()

    async def set_limits(self, **caps: Unpack[LimitSettings]) -> None:
        """Set caps for every process, from now on: ``concurrency`` and ``group_concurrency``; None lifts one."""
        await self.queue.set_limits(**caps)

    async def pause(self) -> None:
        """Start nothing of the workflow from now on; what runs goes on."""
        await self.queue.pause()

    async def resume(self) -> None:
        """Start jobs again after ``pause``."""
        await self.queue.resume()

    async def retry(self, job_id: str) -> bool:
        """Have a job that failed for good go on from its checkpoints. Whether it was failed."""
        return await self.queue.retry(job_id)

    async def remove(self, job_id: str) -> bool:
        """Remove a job and everything of it; a running one is stopped. Whether there was one."""
        return await self.queue.remove(job_id)

    async def promote(self, job_id: str) -> bool:
        """Have a delayed job run now. Whether it was delayed."""
        return await self.queue.promote(job_id)

    def read_input(self, text: str) -> InputT:
        """A job's input from its payload.

        Raises:
            SerializationError: It does not fit the workflow's schema.
        """
        try:
            value: InputT = self.serializer.loads(text, self._input_type)
        except SerializationError as error:
            raise SerializationError(f"workflow {self.id!r}: the input does not fit its schema: {error}") from error
        return value

    def read_output(self, text: str) -> OutputT:
        """A job's output from its result.

        Raises:
            SerializationError: It is not of the type that the function says it returns.
        """
        try:
            value: OutputT = self.serializer.loads(text, self._output_type)
        except SerializationError as error:
            raise SerializationError(f"workflow {self.id!r}: the output is not of its type: {error}") from error
        return value

    async def _add(
        self, value: InputT, options: RunOptions, *, run_in: Duration | None = None, run_at: datetime | None = None
    ) -> Job[OutputT]:
        where, rest = await self._where(value, options, run_in=run_in, run_at=run_at)
        if_exists = check_choice(rest.pop("if_exists", "raise"), "if_exists", ("raise", "return"))
        return Job(self, await self.queue.add_prepared(self._text_of(value), where, rest, if_exists))

    def _text_of(self, value: InputT) -> str:
        """The payload of an input, read again as a worker will."""
        try:
            text = self.serializer.dumps(value)
        except SerializationError as error:
            raise SerializationError(f"workflow {self.id!r}: the input cannot be stored: {error}") from error
        if self._input_type is not Any:
            self.read_input(text)
        return text

    async def _where(
        self, value: InputT, options: RunOptions, *, run_in: Duration | None = None, run_at: datetime | None = None
    ) -> tuple[Added, dict[str, Any]]:
        rest: dict[str, Any] = dict(options)
        group = rest.pop("group", None)
        if group is None and self._group_of is not None:
            found = self._group_of(value)
            group = await found if inspect.isawaitable(found) else found
        where = Added(
            id=rest.pop("id", None), group=group, run_in=run_in, run_at=run_at, unique=rest.pop("unique", "live")
        )
        return where, rest


class LimitSettings(TypedDict, total=False):
    """Caps that ``set_limits`` sets; what is omitted stays, None lifts one."""

    concurrency: int | None
    group_concurrency: int | None


def _input_of(function: Any) -> Any:
    """The input's type as the function's context parameter says it; Any where it does not."""
    try:
        hints = get_type_hints(function)
        parameter = next(iter(inspect.signature(function).parameters), None)
    except Exception:  # noqa: BLE001 - annotations are expressions of the user's, which may raise anything
        return Any
    arguments = get_args(hints.get(parameter)) if parameter is not None else ()
    return Any if not arguments or isinstance(arguments[0], TypeVar) else arguments[0]
