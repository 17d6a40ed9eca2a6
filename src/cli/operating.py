"""What those who run workflows ask of them, and do with their jobs, from a shell."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from ..errors import JobNotFoundError
from ..queue.calling import ScriptError
from ..queue.listing import ENDED
from ..queue.wire import ReplyError
from ..workflow.job import Job
from ..workflow.workflow import Workflow
from .arguments import STATES
from .exits import Exit, FailureError, MisuseError
from .faults import in_words
from .target import Target, load_target, queues_of, workflows_of
from .telling import (
    describe_failure,
    describe_job,
    describe_workers,
    instant,
    name_of,
    one_line,
    printable,
    table,
)

# somebody else has written into the record
UNREADABLE: Final = (msgspec.DecodeError, ValueError, LookupError, ScriptError, ReplyError)


def run_operation(given: argparse.Namespace) -> int:
    """Carry out a command that is about jobs. Returns the exit code.

    Raises:
        MisuseError: The arguments cannot be used.
        FailureError: Redis cannot be reached, or there is no such job.
    """
    target = load_target(given.target)
    with in_words():
        return asyncio.run(_closing(target, OPERATIONS[given.command](target, given)))


async def _closing(target: Target, operation: Awaitable[int]) -> int:
    try:
        return await operation
    finally:
        await queues_of(target).aclose()


async def _status(target: Target, _given: argparse.Namespace) -> int:
    queues = queues_of(target)
    paused = " (paused)" if (await queues.limits()).paused else ""
    _print(f"namespace {queues.id} on {queues.connector}{paused}\n")
    rows: list[tuple[str, ...]] = [("workflow", *STATES, "oldest waiting, added")]
    for workflow in workflows_of(target):
        counts, oldest = await workflow.counts(), await workflow.oldest_waiting()
        name = workflow.id + (" (paused)" if (await workflow.limits()).paused else "")
        figures = (str(getattr(counts, state)) for state in STATES)
        rows.append((name, *figures, "-" if oldest is None else f"{oldest:.0f} s ago"))
    _print(table(rows, numbers=True) + "\n")
    workers = [worker for worker in await queues.workers() if worker.departed is None]
    if workers:
        _print(describe_workers(workers))
    served = {workflow for worker in workers for workflow in worker.about.workflows}
    if unserved := [workflow.id for workflow in workflows_of(target) if workflow.id not in served]:
        _print(f"no worker has slots for {', '.join(unserved)}")
    return Exit.STOPPED


async def _jobs(target: Target, given: argparse.Namespace) -> int:
    workflow = _workflow(target, given.workflow)
    skip, limit, before = given.skip, given.limit, 0
    if given.state in ENDED:
        # those that ended last are at the end, and are what is looked for
        ended: int = getattr(await workflow.counts(), given.state)
        skip = before = max(ended - given.skip - limit, 0)
        limit = max(ended - given.skip, 0) - before
    found = await workflow.list_jobs(given.state, skip=skip, limit=limit) if limit else []
    if given.names:
        for job in found:
            _print(name_of(job.workflow, job.id))
    elif found:
        _print(table([await _row(job) for job in found]))
    if before:
        _complain(f"{before} more ended before these: --skip, --limit")
    elif len(found) == given.limit:
        _complain("there may be more: --skip, --limit")
    return Exit.STOPPED


async def _row(job: Job[Any]) -> tuple[str, ...]:
    name = name_of(job.workflow, job.id)
    try:
        record = await job.record()
    except JobNotFoundError:
        return name, "is gone", "", "", ""
    except UNREADABLE as error:
        return name, "cannot be read", "", "", one_line(f"{type(error).__name__}: {error}")
    failure = describe_failure(record.failure) if record.failure else ""
    happened = [("ended", record.finished), ("due", record.due), ("started", record.started), ("added", record.created)]
    what, when = next((what, when) for what, when in happened if when is not None)
    return name, record.state, f"attempt {record.attempt}", f"{what} {instant(when)}", failure


async def _show(target: Target, given: argparse.Namespace) -> int:
    job = _job(target, given.job)
    try:
        record, log, tree = await job.record(), await job.log(), await job.tree()
        described = describe_job(name_of(job.workflow, job.id), record, log, tree)
    except JobNotFoundError as error:
        raise FailureError(str(error)) from error
    except UNREADABLE as error:
        raise FailureError(f"{given.job} cannot be read: {type(error).__name__}: {error}") from error
    _print(described)
    return Exit.STOPPED


async def _retry(target: Target, given: argparse.Namespace) -> int:
    if given.all is not None:
        workflow = _workflow(target, given.all)
        _print(f"{await workflow.retry_all()} jobs of {workflow.id} go on")
        return Exit.STOPPED

    async def retry(workflow: Workflow[Any, Any], job: Job[Any]) -> str | None:
        return "goes on" if await workflow.retry(job.id) else None

    return await _each(target, given.jobs, retry)


async def _cancel(target: Target, given: argparse.Namespace) -> int:
    async def cancel(_: Workflow[Any, Any], job: Job[Any]) -> str | None:
        if not await job.cancel(given.reason):
            return None
        try:
            ended = await job.state() in ENDED
        except JobNotFoundError:  # its result is not kept
            ended = True
        return "is cancelled" if ended else "will be cancelled, and is told to end"

    return await _each(target, given.jobs, cancel)


async def _remove(target: Target, given: argparse.Namespace) -> int:
    async def remove(workflow: Workflow[Any, Any], job: Job[Any]) -> str | None:
        return "is removed" if await workflow.remove(job.id) else None

    return await _each(target, given.jobs, remove)


async def _pause(target: Target, given: argparse.Namespace) -> int:
    held = target if given.workflow is None else _workflow(target, given.workflow)
    await held.pause()
    resume = " ".join(["lanner resume", given.target, *filter(None, [given.workflow])])
    _print(f"{held.id} is paused: nothing of it starts until `{resume}`; what runs goes on")
    return Exit.STOPPED


async def _resume(target: Target, given: argparse.Namespace) -> int:
    held = target if given.workflow is None else _workflow(target, given.workflow)
    await held.resume()
    _print(f"{held.id} is not paused")
    if given.workflow is not None and (await queues_of(target).limits()).paused:
        _print("but its namespace is")
    if given.workflow is None:
        for workflow in workflows_of(target):
            if (await workflow.limits()).paused:
                _print(f"but {workflow.id} is paused by itself: `lanner resume {given.target} {workflow.id}`")
    return Exit.STOPPED


Operation = Callable[[Target, argparse.Namespace], Awaitable[int]]
OPERATIONS: Final[Mapping[str, Operation]] = {
    "status": _status,
    "jobs": _jobs,
    "show": _show,
    "retry": _retry,
    "cancel": _cancel,
    "remove": _remove,
    "pause": _pause,
    "resume": _resume,
}


async def _each(
    target: Target, names: list[str], act: Callable[[Workflow[Any, Any], Job[Any]], Awaitable[str | None]]
) -> int:
    """Do something with each job, and say what became of it; None: it was not to be done."""
    # a name that cannot be used is told before anything is done
    jobs = [(_workflow(target, job.workflow), job) for job in [_job(target, name) for name in names]]
    code = Exit.STOPPED
    for workflow, job in jobs:
        try:
            done = await act(workflow, job)
        except ScriptError as error:
            done, said = None, f"stays as it is: {error}"
        else:
            said = done or await _standing(job)
        if done is None:
            code = Exit.FAILED
        _print(f"{name_of(job.workflow, job.id)} {said}")
    return code


async def _standing(job: Job[Any]) -> str:
    try:
        return f"is {await job.state()}, and stays so"
    except JobNotFoundError:
        return "is not there"
    except UNREADABLE as error:
        return f"cannot be read: {type(error).__name__}: {error}"


def _workflow(target: Target, workflow_id: str) -> Workflow[Any, Any]:
    found = {workflow.id: workflow for workflow in workflows_of(target)}
    if workflow_id not in found:
        raise MisuseError(f"there is no workflow {workflow_id!r}, but {', '.join(map(repr, found)) or 'none'}")
    return found[workflow_id]


def _job(target: Target, name: str) -> Job[Any]:
    workflow_id, slash, job_id = name.partition("/")
    if not slash or not job_id:
        raise MisuseError(f"{name!r} does not say which job: give it as WORKFLOW/ID, as `lanner jobs` lists it")
    return _workflow(target, workflow_id).get_job(job_id)


def _print(text: str) -> None:
    print(printable(text))  # noqa: T201 - a command speaks by printing


def _complain(text: str) -> None:
    print(printable(text), file=sys.stderr)  # noqa: T201 - beside what it was asked for
