"""Durable workflows for Python on Redis.

A namespace holds workflows, each with a queue of its own; workers claim jobs and run plain Python functions whose
steps are checkpointed in Redis, and replayed after a retry, a crash or a long wait.
"""

from .errors import (
    ChildCancelledError,
    ChildFailedError,
    ClosedError,
    ContinueAsNew,
    DataModelError,
    EmbeddedServerError,
    EventTimeoutError,
    InvalidArgumentError,
    JobAlreadyExistsError,
    JobCancelledError,
    JobError,
    JobFailedError,
    JobNotFoundError,
    LannerError,
    MapFailedError,
    NonRetryableError,
    RateLimited,
    RedisUnavailableError,
    ResultExpiredError,
    RetryAfter,
    RunningLoopError,
    ScheduleNotFoundError,
    SerializationError,
    ServerVersionError,
    SimulationError,
    StepError,
    StepFailedError,
    UnsentJobsError,
    WaitTimeoutError,
)
from .queue.limits import Limits, QueueLimits, RateLimit
from .queue.listing import Counts
from .queue.options import Backoff, KeepFailed
from .queue.presence import WorkerInfo
from .queue.queue import Dedup
from .queue.schedules import Schedule
from .queue.stream import QueueEvent
from .workflow.children import Child
from .workflow.codec import Codec
from .workflow.context import Context, SyncContext
from .workflow.flow import Flow
from .workflow.job import Job
from .workflow.namespace import WorkflowNamespace
from .workflow.pending import Pending
from .workflow.tree import Tree
from .workflow.watching import (
    JobCancelled,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobProgress,
    JobRetrying,
    JobStarted,
    JobSuspended,
)
from .workflow.worker import Worker
from .workflow.workflow import Workflow

__all__ = [
    "Backoff",
    "Child",
    "ChildCancelledError",
    "ChildFailedError",
    "ClosedError",
    "Codec",
    "Context",
    "ContinueAsNew",
    "Counts",
    "DataModelError",
    "Dedup",
    "EmbeddedServerError",
    "EventTimeoutError",
    "Flow",
    "InvalidArgumentError",
    "Job",
    "JobAlreadyExistsError",
    "JobCancelled",
    "JobCancelledError",
    "JobCompleted",
    "JobError",
    "JobEvent",
    "JobFailed",
    "JobFailedError",
    "JobNotFoundError",
    "JobProgress",
    "JobRetrying",
    "JobStarted",
    "JobSuspended",
    "KeepFailed",
    "LannerError",
    "Limits",
    "MapFailedError",
    "NonRetryableError",
    "Pending",
    "QueueEvent",
    "QueueLimits",
    "RateLimit",
    "RateLimited",
    "RedisUnavailableError",
    "ResultExpiredError",
    "RetryAfter",
    "RunningLoopError",
    "Schedule",
    "ScheduleNotFoundError",
    "SerializationError",
    "ServerVersionError",
    "SimulationError",
    "StepError",
    "StepFailedError",
    "SyncContext",
    "Tree",
    "UnsentJobsError",
    "WaitTimeoutError",
    "Worker",
    "WorkerInfo",
    "Workflow",
    "WorkflowNamespace",
]
