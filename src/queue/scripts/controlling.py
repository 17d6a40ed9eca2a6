"""Control of jobs and queues. A call that is sent again with its ``nonce`` is done once."""

from collections.abc import Sequence

from ..calling import Caller
from ..wire import Argument


async def open_namespace(call: Caller, *, version: int) -> int:
    """Note the data model of the namespace; the version it has."""
    answer: int = await call("open_namespace", version)
    return answer


async def cancel_job(call: Caller, *, workflow: str, id: str, run: str, reason: str, nonce: str = "") -> int:
    """Cancel a job. 1 it is or will end cancelled, 0 it has ended otherwise, -1 there is none."""
    answer: int = await call("cancel_job", workflow, id, run, reason, nonce)
    return answer


async def remove_job(call: Caller, *, workflow: str, id: str, nonce: str = "") -> int:
    """Remove a job. 1 removed, -1 there is none."""
    answer: int = await call("remove_job", workflow, id, nonce)
    return answer


async def retry_job(call: Caller, *, workflow: str, id: str, nonce: str = "") -> int:
    """Have a failed job run again. 1 runnable, 0 it has not failed, -1 there is none."""
    answer: int = await call("retry_job", workflow, id, nonce)
    return answer


async def retry_jobs(call: Caller, *, workflow: str, limit: int, nonce: str = "") -> int:
    """Have some failed jobs run again; how many."""
    answer: int = await call("retry_jobs", workflow, limit, nonce)
    return answer


async def remove_jobs(
    call: Caller, *, workflow: str, state: str, age: int, skip: int, limit: int, nonce: str = ""
) -> tuple[int, int]:
    """Remove a page of the jobs in a state (ended ``age`` ms ago or earlier): how many, and of how many."""
    removed, seen = await call("remove_jobs", workflow, state, age, skip, limit, nonce)
    return removed, seen


async def promote_job(call: Caller, *, workflow: str, id: str, nonce: str = "") -> int:
    """Have a delayed job run now. 1 runnable, 0 it is not delayed, -1 there is none."""
    answer: int = await call("promote_job", workflow, id, nonce)
    return answer


async def set_limits(
    call: Caller, *, workflow: str, level: str, limits: Sequence[tuple[str, int | str]]
) -> tuple[bool, bool]:
    """Set limits of a workflow or (empty) the namespace.

    Whether waiting groups are to be maintained, and whether some stand in line again by ``end_descendants``.
    """
    arguments: list[Argument] = [workflow, level]
    for what, value in limits:
        arguments += (what, value)
    regroup, readmit = await call("set_limits", *arguments)
    return bool(regroup), bool(readmit)


async def maintain_groups(call: Caller, *, workflow: str, cursor: int) -> int:
    """Bring some waiting groups in line with the cap; the next cursor, 0 after the last."""
    answer: int = await call("maintain_groups", workflow, cursor)
    return answer


async def set_paused(call: Caller, *, workflow: str, paused: bool) -> None:
    """Pause a workflow or (empty) the namespace, or have it go on."""
    await call("set_paused", workflow, int(paused))
