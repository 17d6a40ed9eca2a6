"""Queues of texts: namespaces, queues, workers. Knows nothing of workflows and can be used alone."""

from .cadence import Cadence, cadence
from .claim import Claim, EndReason
from .job import Job, Record
from .limits import Limits, QueueLimits, RateLimit
from .listing import Counts
from .namespace import Namespace
from .options import Backoff, Duration, JobOptions, KeepFailed
from .outcome import Cancelled, Completed, Continued, Failed, Failure, Limited, Outcome, Released, Retry, Suspended
from .presence import WorkerInfo
from .queue import Dedup, Queue
from .schedules import Schedule
from .stream import QueueEvent
from .watch import Happening
from .worker import Handler, Worker

__all__ = [
    "Backoff",
    "Cadence",
    "Cancelled",
    "Claim",
    "Completed",
    "Continued",
    "Counts",
    "Dedup",
    "Duration",
    "EndReason",
    "Failed",
    "Failure",
    "Handler",
    "Happening",
    "Job",
    "JobOptions",
    "KeepFailed",
    "Limited",
    "Limits",
    "Namespace",
    "Outcome",
    "Queue",
    "QueueEvent",
    "QueueLimits",
    "RateLimit",
    "Record",
    "Released",
    "Retry",
    "Schedule",
    "Suspended",
    "Worker",
    "WorkerInfo",
    "cadence",
]
