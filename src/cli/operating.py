"""What those who run workflows ask of them, and do with their jobs, from a shell."""

import argparse
import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from ..errors import JobNotFoundError
from ..workflow.job import Job
from ..workflow.workflow import Workflow
from .arguments import STATES
from .exits import Exit, FailureError, MisuseError
from .faults import in_words
from .target import Target, load_target, queues_of, workflows_of
from .telling import describe_job, describe_workers, instant, one_line, table


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
    rows: list[tuple[str, ...]] = [("workflow", *STATES, "oldest waiting")]
    for workflow in workflows_of(target):
        counts, oldest = await workflow.counts(), await workflow.oldest_waiting()
        name = workflow.id + (" (paused)" if (await workflow.limits()).paused else "")
        figures = (str(getattr(counts, state)) for state in STATES)
        rows.append((name, *figures, "-" if oldest is None else f"{oldest:.0f} s"))
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
    rows: list[tuple[str, ...]] = []
    for job in await workflow.list_jobs(given.state, skip=given.skip, limit=given.limit):
        try:
            record = await job.record()
        except JobNotFoundError:  # it has gone since
            continue
        failure = f"{record.failure.type}: {one_line(record.failure.message)}" if record.failure else ""
        since = record.finished or record.started or record.created
        rows.append((_name(job), record.state, f"attempt {record.attempt}", instant(since), failure))
    if rows:
        _print(table(rows))
    return Exit.STOPPED


async def _show(target: Target, given: argparse.Namespace) -> int:
    job = _job(target, given.job)
    try:
        record, log, tree = await job.record(), await job.log(), await job.tree()
    except JobNotFoundError as error:
        raise FailureError(str(error)) from error
    _print(describe_job(_name(job), record, log, tree))
    return Exit.STOPPED


async def _retry(target: Target, given: argparse.Namespace) -> int:
    if given.all is not None:
        workflow = _workflow(target, given.all)
        _print(f"{await workflow.retry_all()} jobs of {workflow.id} go on")
        return Exit.STOPPED
    return await _each(
        target, given.jobs, lambda workflow, job: workflow.retry(job.id), "goes on", "had not failed, or is gone"
    )


async def _cancel(target: Target, given: argparse.Namespace) -> int:
    reason: str = given.reason
    return await _each(
        target, given.jobs, lambda _, job: job.cancel(reason), "is cancelled", "had ended otherwise, or is gone"
    )


async def _remove(target: Target, given: argparse.Namespace) -> int:
    return await _each(target, given.jobs, lambda workflow, job: workflow.remove(job.id), "is removed", "was not there")


async def _pause(target: Target, given: argparse.Namespace) -> int:
    held = target if given.workflow is None else _workflow(target, given.workflow)
    await held.pause()
    _print(f"{held.id} is paused: nothing starts until `lanner resume`; what runs goes on")
    return Exit.STOPPED


async def _resume(target: Target, given: argparse.Namespace) -> int:
    held = target if given.workflow is None else _workflow(target, given.workflow)
    await held.resume()
    _print(f"{held.id} starts jobs again")
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
    target: Target,
    names: list[str],
    act: Callable[[Workflow[Any, Any], Job[Any]], Awaitable[bool]],
    done: str,
    otherwise: str,
) -> int:
    """Do something with each job, and say of each whether it was done."""
    # a name that cannot be used is told before anything is done
    jobs = [(_workflow(target, job.workflow), job) for job in [_job(target, name) for name in names]]
    code = Exit.STOPPED
    for workflow, job in jobs:
        if await act(workflow, job):
            _print(f"{_name(job)} {done}")
        else:
            _print(f"{_name(job)} {otherwise}")
            code = Exit.FAILED
    return code


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


def _name(job: Job[Any]) -> str:
    return shlex.quote(f"{job.workflow}/{job.id}")


def _print(text: str) -> None:
    print(text)  # noqa: T201 - a command speaks by printing
