"""A worker in a process of its own, which keeps a ledger in Redis of what it runs. Run as a program."""

import asyncio
import json
import random
import signal
import sys
from dataclasses import dataclass, field
from typing import Any

import redis.asyncio

from lanner.queue import Claim, Namespace, Worker


@dataclass(frozen=True)
class Task:
    """What a worker process is told to do.

    Attributes:
        url: Where Redis is.
        namespace: The namespace's id.
        queues: What it works on.
        slots: How many at once.
        lease: In seconds.
        seconds: How long a job takes, at most.
        in_namespace: The namespace's cap.
        in_queue: Each queue's cap.
        in_group: Each group's cap.
    """

    url: str
    namespace: str
    queues: list[str] = field(default_factory=lambda: ["q"])
    slots: int = 8
    lease: float = 30
    seconds: float = 0.002
    in_namespace: int | None = None
    in_queue: int | None = None
    in_group: int | None = 1


class Ledger:
    """What ran, and how many at once of each kind, over all processes."""

    def __init__(self, client: Any, namespace: str) -> None:
        self._client = client
        self._key = f"ledger:{namespace}"

    async def begin(self, job_id: str, kinds: list[str]) -> None:
        """A job runs now; it is counted by some kinds."""
        async with self._client.pipeline(transaction=False) as pipe:
            pipe.rpush(f"{self._key}:ran", job_id)
            for kind in kinds:
                pipe.hincrby(f"{self._key}:now", kind, 1)
            _, *counts = await pipe.execute()
            for kind, count in zip(kinds, counts, strict=True):
                pipe.zadd(f"{self._key}:most", {kind: count}, gt=True)
            await pipe.execute()

    async def end(self, kinds: list[str]) -> None:
        """It runs no more."""
        async with self._client.pipeline(transaction=False) as pipe:
            for kind in kinds:
                pipe.hincrby(f"{self._key}:now", kind, -1)
            await pipe.execute()


async def work(task: Task) -> None:
    """Work until SIGTERM."""
    connect: Any = redis.asyncio.Redis
    client = connect.from_url(task.url)
    ledger = Ledger(client, task.namespace)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Namespace(task.namespace, redis=task.url, concurrency=task.in_namespace) as namespace:

        async def handle(claim: Claim) -> str:
            kinds = ["all", f"queue {claim.workflow}", f"worker {worker.id}"]
            if claim.spec.group:
                kinds.append(f"group {claim.workflow} {claim.spec.group}")
            await ledger.begin(claim.id, kinds)
            await asyncio.sleep(random.uniform(0, task.seconds))
            await ledger.end(kinds)
            return claim.data

        queues = [
            namespace.queue(name, concurrency=task.in_queue, group_concurrency=task.in_group) for name in task.queues
        ]
        worker = Worker(
            namespace,
            {queue.id: handle for queue in queues},
            concurrency=task.slots,
            limits={queue.id: queue.declared for queue in queues},
            lease=task.lease,
            safety=120,
            grace=5,
        )
        async with worker:
            print("works", flush=True)  # noqa: T201 - the test waits for it
            await stop.wait()
    await client.aclose()


if __name__ == "__main__":
    asyncio.run(work(Task(**json.loads(sys.argv[1]))))
