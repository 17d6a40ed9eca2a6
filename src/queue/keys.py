"""The keys of a namespace, as far as Python names them; scripts build theirs with one include."""

from typing import Final

DATA_MODEL: Final = 1


def base(prefix: str, namespace: str) -> str:
    """Where all keys of a namespace begin: one hash tag, so one slot of a cluster."""
    return f"{prefix}:{{{namespace}}}"


def wake(base: str, workflow: str) -> str:
    """The list that holds a workflow's wake-up marker."""
    return f"{base}:{workflow}:wake"


def clock(base: str, workflow: str) -> str:
    """The list that holds the marker that a workflow's schedules and instants are to be looked at."""
    return f"{base}:{workflow}:clock"


def control(base: str, worker: str) -> str:
    """The list of news for one worker about the jobs it runs."""
    return f"{base}:@ctl:{worker}"


def waiting_channel(base: str, process: str) -> str:
    """The channel on which a process hears of the ends it waits for."""
    return f"{base}:@waiting:{process}"


def job(base: str, workflow: str, job_id: str) -> str:
    """A job's record."""
    return f"{base}:{workflow}:j:{job_id}"


def active(base: str, workflow: str) -> str:
    """The claims of a workflow's active jobs, by id."""
    return f"{base}:{workflow}:active"


def delayed(base: str, workflow: str) -> str:
    """The ids of a workflow's delayed jobs, by when they are due."""
    return f"{base}:{workflow}:delayed"


def steps(base: str, workflow: str, job_id: str) -> str:
    """A job's checkpoints."""
    return f"{base}:{workflow}:steps:{job_id}"


def limits(base: str, workflow: str) -> str:
    """The caps, limiters and pause of a workflow, or (empty) of the namespace."""
    return f"{base}:{workflow}:limits" if workflow else f"{base}:limits"


def due(base: str, workflow: str) -> str:
    """The ids of a workflow's schedules, by when they fire; those that do not are at infinity."""
    return f"{base}:{workflow}:due"


def schedule(base: str, workflow: str, schedule_id: str) -> str:
    """A schedule."""
    return f"{base}:{workflow}:schedule:{schedule_id}"


def log(base: str, workflow: str, job_id: str) -> str:
    """A job's log."""
    return f"{base}:{workflow}:log:{job_id}"


def group(base: str, workflow: str, group: str) -> str:
    """The ids of a group's waiting jobs, by their place."""
    return f"{base}:{workflow}:g:{group}"


def stream(base: str, workflow: str) -> str:
    """A workflow's stream of events."""
    return f"{base}:{workflow}:stream"
