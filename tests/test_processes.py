"""Many worker processes on one queue: each job runs once, no cap is exceeded, and a killed one is no loss."""

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from lanner.queue import Job, Namespace
from support import worker_process
from support.client import Client
from support.jobs import PATIENCE, Look, results_of
from support.servers import Server
from support.worker_process import Task

PROGRAM = Path(worker_process.__file__)
WORKERS = 4


@asynccontextmanager
async def process_of(task: Task) -> AsyncGenerator[Process]:
    """A worker process that works; it is stopped in good order at the end of the block, unless it was killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent.parent), *sys.path])}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", PROGRAM, json.dumps(asdict(task)), stdout=PIPE, stderr=PIPE, env=environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        if await process.stdout.readline() != b"works\n":
            raise AssertionError((await process.stderr.read()).decode())
        yield process
        if process.returncode is None:
            process.terminate()
        _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode in {0, -signal.SIGKILL}, said.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def ledger_of(client: Client, namespace_id: str) -> tuple[Counter[str], dict[str, int]]:
    """How often each job ran, and how many ran at once of each kind. Taken from the server."""
    key = f"ledger:{namespace_id}"
    ran = Counter[str](client("LRANGE", f"{key}:ran", 0, -1))
    most = {name: int(count) for name, count in client("ZRANGE", f"{key}:most", 0, -1, "WITHSCORES")}
    client("DEL", f"{key}:ran", f"{key}:most", f"{key}:now")
    return ran, most


def workers_in(client: Client, namespace_id: str) -> set[str]:
    """Which workers have run something."""
    return {kind for kind in client("ZRANGE", f"ledger:{namespace_id}:most", 0, -1) if kind.startswith("worker")}


async def test_a_thousand_jobs_run_once_each_over_four_processes(
    server: Server, namespace: Namespace, look: Look
) -> None:
    queue = namespace.queue("q")
    task = Task(server.url, namespace.id)
    async with AsyncExitStack() as stack:
        first = await queue.add_many([str(n) for n in range(500)])
        await asyncio.gather(*(stack.enter_async_context(process_of(task)) for _ in range(WORKERS)))
        jobs = first + await queue.add_many([str(n) for n in range(500, 1000)])
        assert await results_of(jobs) == [str(n) for n in range(1000)]
        with server.client() as client:
            # one that got no processor meanwhile has had none of them
            async with asyncio.timeout(PATIENCE):
                while len(workers_in(client, namespace.id)) < WORKERS:
                    more = await queue.add_many(["x"] * 100)
                    await results_of(more)
                    jobs += more
    with server.client() as client:
        ran, most = ledger_of(client, namespace.id)
    assert ran == Counter(job.id for job in jobs)
    assert max(count for kind, count in most.items() if kind.startswith("worker")) <= task.slots
    assert look.nothing_is_active("q")
    assert (await queue.counts()).completed == len(jobs)


async def test_no_cap_is_exceeded_over_four_processes(server: Server, namespace: Namespace, look: Look) -> None:
    task = Task(
        server.url, namespace.id, queues=["a", "b"], slots=4, in_namespace=9, in_queue=6, in_group=2, seconds=0.004
    )
    await namespace.set_limits(concurrency=task.in_namespace)
    queues = [namespace.queue(name) for name in task.queues]
    for queue in queues:
        await queue.set_limits(concurrency=task.in_queue, group_concurrency=task.in_group)
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(process_of(task)) for _ in range(WORKERS)))
        adds = [
            random.choice(queues).add(
                "x",
                group=random.choice([None, "g", "h"]),
                priority=random.choice([0, 1]),
                run_in=random.choice([None, 0.05]),
            )
            for _ in range(400)
        ]
        jobs: list[Job] = await asyncio.gather(*adds)
        await results_of(jobs)
    with server.client() as client:
        ran, most = ledger_of(client, namespace.id)
    assert ran == Counter(job.id for job in jobs)
    assert most["all"] <= 9
    for kind, cap in (("queue", 6), ("group", 2), ("worker", 4)):
        assert max(count for name, count in most.items() if name.startswith(kind)) <= cap, kind
    assert look.nothing_is_active("a", "b")


async def test_every_job_ends_while_processes_are_killed(server: Server, namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    task = Task(server.url, namespace.id, lease=1, seconds=0.05)
    # that a worker which gets no processor for a lease may lose one as well is no matter here
    jobs = await asyncio.gather(
        *(queue.add("x", group=random.choice([None, "g", "h"]), max_stalled=100) for _ in range(150))
    )
    async with process_of(task):
        for _ in range(3):
            async with process_of(task) as victim:
                await asyncio.sleep(random.uniform(0.05, 0.2))
                victim.kill()
                # to terminate one that has just ended takes its exit code from who waits for it
                await victim.wait()
        await results_of(jobs)
    with server.client() as client:
        ran, _ = ledger_of(client, namespace.id)
    assert set(ran) == {job.id for job in jobs}
    records = [await job.record() for job in jobs]
    assert {record.state for record in records} == {"completed"}
    assert {record.attempt for record in records} == {1}
    # who ran it twice has lost its worker in between
    assert all(ran[record.id] <= 1 + record.stalls for record in records)
    assert look.nothing_is_active("q")
