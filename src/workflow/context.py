from typing import Generic, TypeVar

from .step import Steps
from .sync import SyncSteps

InputT_co = TypeVar("InputT_co", covariant=True)


class _Context(Generic[InputT_co]):
    __slots__ = ("attempt", "group", "input", "job_id", "workflow")

    def __init__(self, value: InputT_co, *, workflow: str, job_id: str, group: str, attempt: int) -> None:
        self.input = value
        self.workflow = workflow
        self.job_id = job_id
        self.group = group
        self.attempt = attempt


class Context(_Context[InputT_co]):
    """What an ``async def`` workflow is given.

    Attributes:
        input: The job's input.
        step: The durable steps of the run.
        workflow: The id of the workflow.
        job_id: The id of the job.
        group: The job's group; empty when it has none.
        attempt: Which attempt this is, from 1. Waits and recoveries do not count.

    Example:
        >>> async def onboard(ctx: Context[Signup]) -> None:
        ...     await ctx.step.do("send welcome", send_welcome, ctx.input.email)
    """

    __slots__ = ("step",)

    def __init__(
        self, value: InputT_co, step: Steps, *, workflow: str, job_id: str, group: str = "", attempt: int = 1
    ) -> None:
        super().__init__(value, workflow=workflow, job_id=job_id, group=group, attempt=attempt)
        self.step = step


class SyncContext(_Context[InputT_co]):
    """What a plain ``def`` workflow is given, which runs in a thread of its own.

    Attributes:
        input: The job's input.
        step: The durable steps of the run. Their calls block.
        workflow: The id of the workflow.
        job_id: The id of the job.
        group: The job's group; empty when it has none.
        attempt: Which attempt this is, from 1. Waits and recoveries do not count.

    Example:
        >>> def onboard(ctx: SyncContext[Signup]) -> None:
        ...     ctx.step.do("send welcome", send_welcome, ctx.input.email)
    """

    __slots__ = ("step",)

    def __init__(
        self, value: InputT_co, step: SyncSteps, *, workflow: str, job_id: str, group: str = "", attempt: int = 1
    ) -> None:
        super().__init__(value, workflow=workflow, job_id=job_id, group=group, attempt=attempt)
        self.step = step
