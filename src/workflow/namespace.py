from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar, Unpack, overload

from ..errors import InvalidArgumentError
from ..queue.job import Job as QueueJob
from ..queue.limits import Limits, RateLimit
from ..queue.namespace import DEFAULT_PREFIX, Namespace
from ..queue.options import KNOWN, Duration, JobOptions
from ..queue.presence import WorkerInfo
from ..queue.validation import refuse_unknown_options
from . import serializer
from .codec import Codec, CodedSerializer, Notes, check_codec
from .context import Context, SyncContext
from .flow import Flow, flatten
from .job import Job
from .pending import Pending
from .telemetry import Telemetry
from .values import Serializer
from .worker import Worker, WorkerSettings
from .workflow import GroupOf, Workflow

if TYPE_CHECKING:
    import redis.asyncio
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from .metrics import Metrics

OF_A_NAMESPACE: Final = (
    "redis",
    "prefix",
    "concurrency",
    "limiters",
    "producer_timeout",
    "codec",
    "tracer_provider",
    "meter_provider",
)
OF_A_WORKFLOW: Final = (
    "schema",
    "get_group_id",
    "concurrency",
    "group_concurrency",
    "limiters",
    "events",
    "progress",
    "non_retryable",
)

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
ProgressT = TypeVar("ProgressT")


class WorkflowNamespace:
    """A set of workflows that share one Redis and one cap.

    Args:
        id: 1 to 128 of ``A-Z a-z 0-9 _ . -``.
        redis: A URL (``redis://``, ``rediss://``, ``unix://``, ``redis+sentinel://HOST:PORT,.../MASTER``,
            ``redis+cluster://HOST:PORT,...``), ``"embedded"``, ``"embedded:PATH"``, or a client of ``redis.asyncio``
            whose settings are used (it is never closed). Default: ``LANNER_REDIS_URL``, else localhost.
        prefix: The beginning of every key.
        concurrency: How many jobs of all its workflows may run at once, over all workers. None: no cap.
        limiters: Rate limiters by name, which its workflows share; workers declare them.
        producer_timeout: How long a producer's call may take, Redis being away, before it fails: ``timedelta`` or
            seconds.
        codec: Encrypts or compresses everything that is stored of values and failures; see ``Codec``.
        tracer_provider: OpenTelemetry's provider for spans. Default: the one that the process has set, if any.
        meter_provider: The same for metrics.
        **defaults: Options of every job, below those of its workflow and its call; see ``JobOptions``.

    Example:
        >>> ns = WorkflowNamespace("shop", redis="embedded", concurrency=200)
    """

    def __init__(
        self,
        id: str,
        *,
        redis: str | redis.asyncio.Redis | redis.asyncio.RedisCluster | None = None,
        prefix: str = DEFAULT_PREFIX,
        concurrency: int | None = None,
        limiters: Mapping[str, RateLimit] | None = None,
        producer_timeout: Duration = 5.0,
        codec: Codec | None = None,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        **defaults: Unpack[JobOptions],
    ) -> None:
        refuse_unknown_options(defaults, KNOWN, OF_A_NAMESPACE)
        self.queues: Final = Namespace(
            id,
            redis=redis,
            prefix=prefix,
            concurrency=concurrency,
            defaults=defaults,
            limiters=limiters,
            producer_timeout=producer_timeout,
        )
        if codec is not None:
            check_codec(codec)
        self.id: Final = id
        self.serializer: Final[Serializer] = serializer if codec is None else CodedSerializer(serializer, codec)
        self.notes: Final = Notes(codec)
        self.telemetry: Final = Telemetry(id, tracer_provider, meter_provider)
        self._meter_provider = meter_provider
        self._workflows: dict[str, Workflow[Any, Any]] = {}

    def __repr__(self) -> str:
        return f"<WorkflowNamespace {self.id!r}>"

    @property
    def workflows(self) -> Sequence[Workflow[Any, Any]]:
        """The workflows created so far."""
        return tuple(self._workflows.values())

    @overload
    def create_workflow(
        self,
        id: str,
        *,
        run: Callable[[Context[InputT, ProgressT]], Awaitable[OutputT]],
        schema: type[InputT] | None = None,
        get_group_id: GroupOf[InputT] | None = None,
        concurrency: int | None = None,
        group_concurrency: int | None = 1,
        limiters: Sequence[str] | None = None,
        events: int = 0,
        progress: type[ProgressT] | None = None,
        non_retryable: Sequence[type[BaseException]] = (),
        **options: Unpack[JobOptions],
    ) -> Workflow[InputT, OutputT, ProgressT]: ...
    @overload
    def create_workflow(
        self,
        id: str,
        *,
        run: Callable[[SyncContext[InputT, ProgressT]], OutputT],
        schema: type[InputT] | None = None,
        get_group_id: GroupOf[InputT] | None = None,
        concurrency: int | None = None,
        group_concurrency: int | None = 1,
        limiters: Sequence[str] | None = None,
        events: int = 0,
        progress: type[ProgressT] | None = None,
        non_retryable: Sequence[type[BaseException]] = (),
        **options: Unpack[JobOptions],
    ) -> Workflow[InputT, OutputT, ProgressT]: ...
    def create_workflow(
        self,
        id: str,
        *,
        run: Callable[[Any], Any],
        schema: Any = None,
        get_group_id: GroupOf[InputT] | None = None,
        concurrency: int | None = None,
        group_concurrency: int | None = 1,
        limiters: Sequence[str] | None = None,
        events: int = 0,
        progress: type[ProgressT] | None = None,
        non_retryable: Sequence[type[BaseException]] = (),
        **options: Unpack[JobOptions],
    ) -> Workflow[InputT, Any, ProgressT]:
        """Create a workflow.

        Args:
            id: Its id, one of its own in the namespace: 1 to 128 of ``A-Z a-z 0-9 _ . -``.
            run: The function. An ``async def`` gets a ``Context``, a plain ``def`` a ``SyncContext`` in a thread.
            schema: What the input must be: a type that msgspec converts to, or a pydantic model. Default: what the
                annotation of the function's parameter says.
            get_group_id: The group of an input, or None; may be async.
            concurrency: How many of its jobs may run at once, over all workers. None: no cap.
            group_concurrency: How many jobs of one group may run at once. None: no cap.
            limiters: The names of the namespace's rate limiters that hold for it. None: all of them.
            events: How many events (added, started, ended) its stream keeps for dashboards; 0: it has none.
            progress: What ``ctx.progress`` takes, and those who watch get: a type as for ``schema``. Default: what
                the annotation says, in ``Context[Input, Progress]``; anything, if it does not.
            non_retryable: Error types that fail a job at once, whatever attempts are left.
            **options: Options of its jobs; see ``JobOptions``.

        Raises:
            InvalidArgumentError: An argument cannot be used, or the namespace has a workflow of the id.

        Example:
            >>> signup = ns.create_workflow("signup", run=onboard, max_attempts=5)
        """
        refuse_unknown_options(options, KNOWN, OF_A_WORKFLOW)
        if id in self._workflows:
            raise InvalidArgumentError(f"namespace {self.id!r} has a workflow {id!r} already: give this one another id")
        workflow: Workflow[InputT, Any, ProgressT] = Workflow(
            self,
            id,
            run,
            schema=schema,
            get_group_id=get_group_id,
            concurrency=concurrency,
            group_concurrency=group_concurrency,
            limiters=limiters,
            events=events,
            progress=progress,
            non_retryable=non_retryable,
            options=options,
        )
        self._workflows[id] = workflow
        return workflow

    def workflow(
        self,
        id: str,
        *,
        schema: Any = None,
        get_group_id: GroupOf[Any] | None = None,
        concurrency: int | None = None,
        group_concurrency: int | None = 1,
        limiters: Sequence[str] | None = None,
        events: int = 0,
        progress: Any = None,
        non_retryable: Sequence[type[BaseException]] = (),
        **options: Unpack[JobOptions],
    ) -> WorkflowDecorator:
        """The decorator form of ``create_workflow``; the function becomes the workflow.

        Example:
            >>> @ns.workflow("signup", max_attempts=5)
            ... async def signup(ctx: Context[Signup]) -> None: ...
        """
        if callable(id):
            raise InvalidArgumentError('the decorator takes the workflow\'s id: write @ns.workflow("signup")')

        def decorate(function: Any) -> Any:
            return self.create_workflow(
                id,
                run=function,
                schema=schema,
                get_group_id=get_group_id,
                concurrency=concurrency,
                group_concurrency=group_concurrency,
                limiters=limiters,
                events=events,
                progress=progress,
                non_retryable=non_retryable,
                **options,
            )

        return decorate

    async def run_flow(self, root: Flow[Any, OutputT]) -> Job[OutputT]:
        """Enqueue a tree of jobs in one call: leaves run first, a parent when all its children have settled.

        Args:
            root: The job that everything is for; see ``Flow``.

        Returns:
            The root's job.

        Raises:
            InvalidArgumentError: A node cannot be used: more than 1,000 of them, an empty list of children, an id or a
                delay on a node, a workflow of another namespace; nothing was sent.
            SerializationError: An input does not fit its workflow's schema; nothing was sent.
            RedisUnavailableError: Redis did not answer in time.

        Example:
            >>> job = await ns.run_flow(Flow(publish, page, children=[Flow(render, page), Flow(check, page)]))
        """
        # what is no flow is refused with the others, within
        workflow = getattr(root, "workflow", None)
        with self.telemetry.sending(str(getattr(workflow, "id", "")), "run_flow") as sending:
            nodes, run = await flatten(root, self)
            await (await self.queues.runtime()).add_flow(nodes)
            sending.added(nodes[0].id)
            sending.added_many(len(nodes))
        return Job(root.workflow, QueueJob(root.workflow.queue, nodes[0].id, run))

    def pending(self) -> Pending:
        """Collect runs during a transaction, and send them when it has committed. See ``Pending``.

        Example:
            >>> async with ns.pending() as pending, session.begin():
            ...     pending.run(ship, Shipment(order.id))
        """
        return Pending(self)

    def worker(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> Worker:
        """A worker of all workflows created so far, with one pool of slots, for ``async with``.

        Args:
            concurrency: How many jobs at once.
            **settings: See ``WorkerSettings``.
        """
        return Worker(self.queues, self.workflows, concurrency, settings)

    async def work(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> None:
        """Work on all workflows of the namespace until stopped or signalled: the whole of a worker process."""
        await self.worker(concurrency=concurrency, **settings).run()

    def metrics(self) -> Metrics:
        """Gauges of its jobs by state, and of how long the oldest has waited: read whenever metrics are collected.

        To be started in one process of the namespace: ``with ns.metrics(): ...``, or ``start`` and ``stop``.

        Raises:
            InvalidArgumentError: OpenTelemetry's API is not installed.

        Example:
            >>> with ns.metrics():
            ...     await ns.work()
        """
        try:
            from .metrics import Metrics  # noqa: PLC0415 - it imports the API
        except ImportError as error:
            raise InvalidArgumentError(f"metrics need OpenTelemetry: pip install 'lanner[otel]' ({error})") from error
        return Metrics(self, self._meter_provider)

    async def set_limits(self, *, concurrency: int | None) -> None:
        """Set how many jobs of the whole namespace may run at once, for every process, from now on. None: no cap."""
        await self.queues.set_limits(concurrency=concurrency)

    async def limits(self) -> Limits:
        """The namespace's cap, and whether it is paused, as they stand for every process."""
        return await self.queues.limits()

    async def workers(self) -> list[WorkerInfo]:
        """The workers that live, then the last 50 that have gone (``departed``: stopped or lost)."""
        return await self.queues.workers()

    async def pause(self) -> None:
        """Start nothing of the namespace from now on; what runs goes on."""
        await self.queues.pause()

    async def resume(self) -> None:
        """Start jobs again after ``pause``."""
        await self.queues.resume()

    async def aclose(self) -> None:
        """Stop the workers that run here, fail pending waits, close the connections."""
        await self.queues.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class WorkflowDecorator(Protocol):
    """Turns a function into a workflow of its types."""

    @overload
    def __call__(
        self, function: Callable[[Context[InputT, ProgressT]], Awaitable[OutputT]], /
    ) -> Workflow[InputT, OutputT, ProgressT]: ...
    @overload
    def __call__(
        self, function: Callable[[SyncContext[InputT, ProgressT]], OutputT], /
    ) -> Workflow[InputT, OutputT, ProgressT]: ...
