from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, Unpack, overload

from ..errors import SimulationError
from ..workflow.context import Context, SyncContext
from ..workflow.workflow import Workflow
from .crash import CrashPoint
from .job import SimulatedJob
from .simulation import SimulatedOptions, Simulation

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
Replace = Mapping[str, Callable[..., Any]]


@overload
async def simulate(
    workflow: Workflow[InputT, OutputT],
    input: InputT,
    /,
    *,
    replace: Replace = ...,
    events: Mapping[str, Any] = ...,
    crash: CrashPoint | str | None = ...,
    **options: Unpack[SimulatedOptions],
) -> SimulatedJob[OutputT]: ...
@overload
async def simulate(
    workflow: Callable[[Context[InputT]], Awaitable[OutputT]],
    input: InputT,
    /,
    *,
    replace: Replace = ...,
    events: Mapping[str, Any] = ...,
    crash: CrashPoint | str | None = ...,
    **options: Unpack[SimulatedOptions],
) -> SimulatedJob[OutputT]: ...
@overload
async def simulate(
    workflow: Callable[[SyncContext[InputT]], OutputT],
    input: InputT,
    /,
    *,
    replace: Replace = ...,
    events: Mapping[str, Any] = ...,
    crash: CrashPoint | str | None = ...,
    **options: Unpack[SimulatedOptions],
) -> SimulatedJob[OutputT]: ...
async def simulate(
    workflow: Any,
    input: Any,
    /,
    *,
    replace: Replace | None = None,
    events: Mapping[str, Any] | None = None,
    crash: CrashPoint | str | None = None,
    **options: Unpack[SimulatedOptions],
) -> SimulatedJob[Any]:
    """Run a workflow in a simulation of its own, without a server and without waiting, until it has ended.

    Args:
        workflow: A workflow, or a function that could be the ``run`` of one.
        input: Its input.
        replace: Functions that run instead of those of steps, by the steps' names; see ``Simulation.replace``.
        events: Events that have been sent to the job, by name.
        crash: Where its worker is lost, once: a ``CrashPoint``, or the name of the step after which it is.
        **options: Of the job; see ``SimulatedOptions``.

    Returns:
        The job, which has ended: ``job.output`` gives what it returned, or raises how it failed.

    Raises:
        SimulationError: It can never end, or never came to the crash.
        InvalidArgumentError: An option cannot be used.
        SerializationError: The input cannot be stored, or does not fit the workflow's schema.

    Example:
        >>> job = await simulate(signup, Signup("ada@example.org"), replace={"send welcome": lambda email: None})
        >>> assert job.output == Engagement(active=True)
    """
    simulation = Simulation()
    for step, function in (replace or {}).items():
        simulation.replace(step, function)
    if crash is not None:
        simulation.crash(crash)
    job: SimulatedJob[Any] = simulation.run(workflow, input, **options)
    for name, value in (events or {}).items():
        job.send_event(name, value)
    await job.finish()
    if simulation.crashes.planned:
        passed = sorted({step for _, step in simulation.crashes.passed if step})
        raise SimulationError(
            f"job {job.id!r} has ended, and never came to the crash {simulation.crashes.planned[0]}; it has passed the "
            f"checkpoints of {', '.join(map(repr, passed)) or 'no step'}"
        )
    return job
