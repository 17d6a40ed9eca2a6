"""Queues of texts: namespaces, queues, workers. Knows nothing of workflows and can be used alone."""

from .claim import Claim, EndReason
from .job import Job, Record
from .namespace import Namespace
from .options import Backoff, Duration, JobOptions, KeepFailed
from .outcome import Cancelled, Completed, Failed, Failure, Outcome, Released, Retry, Suspended
from .queue import Queue
from .worker import Handler, Worker

__all__ = [
    "Backoff",
    "Cancelled",
    "Claim",
    "Completed",
    "Duration",
    "EndReason",
    "Failed",
    "Failure",
    "Handler",
    "Job",
    "JobOptions",
    "KeepFailed",
    "Namespace",
    "Outcome",
    "Queue",
    "Record",
    "Released",
    "Retry",
    "Suspended",
    "Worker",
]
