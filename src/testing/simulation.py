from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar, Unpack, overload

import msgspec

from ..errors import InvalidArgumentError
from ..queue.options import JobOptions
from ..queue.spec import Spec
from ..queue.validation import duration_ms
from ..workflow.context import Context, SyncContext
from ..workflow.flow import flatten
from ..workflow.namespace import WorkflowNamespace
from ..workflow.workflow import Workflow
from .crash import Crashes, CrashPoint
from .driving import Driver
from .entry import Entry
from .job import SimulatedJob
from .replacing import Replacements
from .world import World

if TYPE_CHECKING:
    from ..queue.options import Duration
    from ..workflow.flow import Flow

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")


class SimulatedOptions(JobOptions, total=False):
    """What a simulated job may be given: a ``JobOptions``, its ``id`` and its ``group``."""

    id: str
    group: str | None


class Simulation:
    """Workflows that run in this process, without a server, on a clock of their own.

    The runs are real ones, with real checkpoints: what is simulated is Redis. Time passes only when nothing else is
    left to do, and then at once, so that a wait of a month takes none. Everything is serialized and read again, steps
    are replayed, failed attempts come back after their backoff, and a job can lose its worker at any chosen moment.

    What is not simulated: caps of concurrency, groups and rate limiters (every job that may run does), ``expires``,
    ``timeout`` by the simulation's clock (an attempt's timeout is measured in real time), schedules, and workflows that
    a step starts by itself with ``workflow.run``.

    Args:
        start: What the clock says at first, an aware ``datetime``. Default: the time now.
        seed: Of the jitter of backoffs.

    Example:
        >>> simulation = Simulation()
        >>> simulation.replace("send welcome", lambda email: None)
        >>> job = simulation.run(signup, Signup("ada@example.org"))
        >>> await simulation.advance(timedelta(days=2))
        >>> job.send_event("confirmed", True)
        >>> await job.wait()
    """

    def __init__(self, *, start: datetime | None = None, seed: int = 0) -> None:
        self._replacements = Replacements()
        self.world: Final = World(datetime.now(UTC) if start is None else start, self._replacements.of_child)
        self._driver = Driver(self.world, self._replacements, seed=seed)
        self._own: dict[Callable[..., Any], Workflow[Any, Any]] = {}
        self._namespace = WorkflowNamespace("simulation", redis="redis://none.invalid")

    @property
    def now(self) -> datetime:
        """What the clock says, in UTC."""
        return self.world.at(self.world.now_ms())

    @property
    def jobs(self) -> list[SimulatedJob[Any]]:
        """Its jobs, children included, in the order in which they were added."""
        return [SimulatedJob(self, entry) for entry in self.world.entries.values()]

    @property
    def crashes(self) -> Crashes:
        """The crashes that are to come, and where there could have been one."""
        return self.world.crashes

    def replace(
        self, step: str, function: Callable[..., Any], *, workflow: Workflow[Any, Any] | str | None = None
    ) -> None:
        """Have another function run as a step, whatever it is given; a mock is one.

        A compensation is replaced by its name, too; and for a step that starts children the function gives the output
        for a child's input, and the child's workflow does not run.

        Args:
            step: The step's name, wherever it stands, or its path.
            function: What runs instead: async or plain; in a plain workflow a plain one.
            workflow: Only in the jobs of this workflow.

        Example:
            >>> simulation.replace("charge", AsyncMock(return_value="receipt-1"))
        """
        self._replacements.add(step, function, workflow.id if isinstance(workflow, Workflow) else workflow)

    def crash(self, point: CrashPoint | str) -> None:
        """Have a worker lost at a moment: at a ``CrashPoint``, or after the step of a name."""
        self.world.crashes.plan(point)

    def after(self, delay: Duration, action: Callable[[], object], /) -> None:
        """Have something done when so much of the simulation's time has passed: an event sent, a job cancelled.

        Example:
            >>> simulation.after(timedelta(days=2), lambda: job.send_event("approved"))
        """
        self.world.plan(self.world.now_ms() + duration_ms(delay, "delay"), action)

    @overload
    def run(
        self, workflow: Workflow[InputT, OutputT], input: InputT, /, **options: Unpack[SimulatedOptions]
    ) -> SimulatedJob[OutputT]: ...
    @overload
    def run(
        self,
        workflow: Callable[[Context[InputT]], Awaitable[OutputT]],
        input: InputT,
        /,
        **options: Unpack[SimulatedOptions],
    ) -> SimulatedJob[OutputT]: ...
    @overload
    def run(
        self, workflow: Callable[[SyncContext[InputT]], OutputT], input: InputT, /, **options: Unpack[SimulatedOptions]
    ) -> SimulatedJob[OutputT]: ...
    def run(self, workflow: Any, input: Any, /, **options: Unpack[SimulatedOptions]) -> SimulatedJob[Any]:
        """Add a job. It runs when the simulation does: in ``job.wait``, ``advance`` and ``settle``.

        Args:
            workflow: A workflow of any namespace, or a function that could be the ``run`` of one.
            input: Its input, which is checked as ``Workflow.run`` does.
            **options: Of the job; see ``SimulatedOptions``.

        Raises:
            InvalidArgumentError: An option cannot be used.
            SerializationError: The input cannot be stored, or does not fit the workflow's schema.
        """
        made = self._workflow_of(workflow)
        rest: dict[str, Any] = {**options}
        id = rest.pop("id", None) or self.world.new_id(made.id)
        if id in self.world.entries:
            raise InvalidArgumentError(f"the simulation has a job {id!r} already: give this one another id")
        group = made.group_of(input, rest.pop("group", None))
        if inspect.isawaitable(group):
            raise InvalidArgumentError(
                f"workflow {made.id!r} has an async get_group_id, which cannot be asked here: give the job its group="
            )
        new = made.new_job(input, {**rest, "id": id}, group=group)
        if new.dedup or new.unique == "retained":
            raise InvalidArgumentError("throttle=, debounce= and unique= are not simulated: leave them out")
        spec = msgspec.json.decode(new.spec, type=Spec)
        entry = Entry(self.world, made, made.function, id=id, spec=spec, data=new.data)
        self.world.add(entry)
        return SimulatedJob(self, entry)

    async def run_flow(self, root: Flow[Any, OutputT], /) -> SimulatedJob[OutputT]:
        """Add the jobs of a flow; the job of its root. See ``WorkflowNamespace.run_flow``.

        Raises:
            InvalidArgumentError: A node cannot be used.
            SerializationError: An input does not fit its workflow's schema.
        """
        namespace = root.workflow.namespace
        nodes, _ = await flatten(root, namespace)
        workflows = {workflow.id: workflow for workflow in namespace.workflows}
        return SimulatedJob(self, self.world.family.add_flow(nodes, workflows))

    async def advance(self, duration: Duration) -> None:
        """Let time pass, ``timedelta`` or seconds, with everything that happens in it."""
        await self.drive(None, duration)

    async def settle(self) -> None:
        """Let everything happen that can without time passing."""
        await self.drive(None, 0)

    async def drive(self, entry: Entry | None, limit: Duration | None) -> None:
        """Run jobs until one has ended, or so much time has passed."""
        limit_ms = None if limit is None else duration_ms(limit, "duration")
        await self._driver.drive(entry, None if limit_ms is None else self.world.now_ms() + limit_ms)

    def _workflow_of(self, function: Any) -> Workflow[Any, Any]:
        """The workflow that a function stands for, or a workflow itself."""
        if _is_workflow(function):
            return function
        if function not in self._own:
            name = UNFIT.sub("", getattr(function, "__name__", "")) or "workflow"
            taken = {workflow.id for workflow in self._namespace.workflows}
            id = name if name not in taken else f"{name}-{len(taken)}"
            self._own[function] = self._namespace.create_workflow(id, run=function)
        return self._own[function]


def _is_workflow(value: object) -> TypeGuard[Workflow[Any, Any]]:
    return isinstance(value, Workflow)
