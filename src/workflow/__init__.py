"""Durable workflows over queues."""

from .context import Context, SyncContext
from .job import Job
from .namespace import WorkflowNamespace
from .worker import Worker
from .workflow import Workflow

__all__ = ["Context", "Job", "SyncContext", "Worker", "Workflow", "WorkflowNamespace"]
