"""Durable workflows over queues."""

from .context import Context, SyncContext
from .job import Job
from .namespace import WorkflowNamespace
from .watching import (
    JobCancelled,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobProgress,
    JobRetrying,
    JobStarted,
    JobSuspended,
)
from .worker import Worker
from .workflow import Workflow

__all__ = [
    "Context",
    "Job",
    "JobCancelled",
    "JobCompleted",
    "JobEvent",
    "JobFailed",
    "JobProgress",
    "JobRetrying",
    "JobStarted",
    "JobSuspended",
    "SyncContext",
    "Worker",
    "Workflow",
    "WorkflowNamespace",
]
