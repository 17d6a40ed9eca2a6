"""Handlers that a test controls, and looks at what a queue has stored."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from lanner.errors import RedisUnavailableError
from lanner.queue import Claim, Job, Namespace, Queue, Worker
from lanner.queue.scripts.claiming import sweep_claims

from .client import Client
from .stored import expired, state_in
from .waiting import wait_until

# long enough that nothing but a wake-up explains that a job was started in time
RELIES_ON_WAKING: Final = 120.0
# how long something may take on a slow machine; less than what a worker that is not woken takes
PATIENCE: Final = 60.0


async def echo(claim: Claim) -> str:
    """A handler that gives the payload back."""
    return claim.data


class Desk:
    """A handler whose jobs run until the test lets them go.

    Attributes:
        started: The ids of the jobs in the order in which they were started, once for each start.
        running: Those that run now, once for each run.
        claims: The last claim of each job.
        most: How many ran at once, at most.
    """

    def __init__(self, *, is_open: bool = False) -> None:
        self.started: list[str] = []
        self.running: list[str] = []
        self.claims: dict[str, Claim] = {}
        self.most = 0
        self._open = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}
        if is_open:
            self._open.set()

    async def __call__(self, claim: Claim) -> str:
        self.started.append(claim.id)
        self.running.append(claim.id)
        self.claims[claim.id] = claim
        self.most = max(self.most, len(self.running))
        gate = self._gates.setdefault(claim.id, asyncio.Event())
        try:
            if self._open.is_set() or gate.is_set():
                await asyncio.sleep(0)
            else:
                await first_of(self._open.wait(), gate.wait())
        finally:
            self.running.remove(claim.id)
        return claim.data

    def let_go(self, *job_ids: str) -> None:
        """Let these jobs end, now and in later attempts."""
        for job_id in job_ids:
            self._gates.setdefault(job_id, asyncio.Event()).set()

    def open(self) -> None:
        """Let every job end from now on."""
        self._open.set()

    async def runs(self, *job_ids: str) -> None:
        """Wait until exactly these jobs run."""
        await wait_until(lambda: Counter(self.running) == Counter(job_ids), PATIENCE)

    async def ended(self, job_id: str) -> None:
        """Wait until a job that was started does not run any more."""
        await wait_until(lambda: job_id in self.started and job_id not in self.running, PATIENCE)

    async def starts(self, count: int) -> None:
        """Wait until so many have been started, in all."""
        await wait_until(lambda: len(self.started) >= count, PATIENCE)

    async def has_started(self, *job_ids: str) -> None:
        """Wait until all of these jobs have been started."""
        await wait_until(lambda: set(job_ids) <= set(self.started), PATIENCE)


async def first_of(*waits: Awaitable[Any]) -> None:
    """Wait for the first of several, and end the others."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def worker_of(queue: Queue, handler: Callable[[Claim], Any], **settings: Any) -> Worker:
    """A worker that is only in time when it is woken, unless the test says otherwise."""
    chosen: dict[str, Any] = {"safety": RELIES_ON_WAKING, "grace": 0, **settings}
    return queue.worker(handler, **chosen)


async def settle_is_in_the_server(namespace: Namespace) -> None:
    """Have the server know the script that claims, so that calls of it are told by its sha and by nothing else."""
    other = namespace.queue("served-before")
    async with worker_of(other, Desk(is_open=True)):
        await (await other.add("x")).wait(PATIENCE)


async def is_refused(queue: Queue, why: str) -> bool:
    """Whether an add fails for a reason; from a server that did not answer in time it may fail for that instead."""
    try:
        await queue.add("x")
    except RedisUnavailableError as error:
        return re.search(why, str(error), re.IGNORECASE) is not None
    raise AssertionError(f"it was added, against {why}")


async def results_of(jobs: Iterable[Job]) -> list[str]:
    """The results of jobs."""
    return list(await asyncio.gather(*(job.wait(PATIENCE) for job in jobs)))


async def sweep(namespace: Namespace) -> list[str]:
    """Sweep now, as some worker does every now and then; what was recovered."""
    call = (await namespace.runtime()).call
    return list((await sweep_claims(call, lease=60_000, interval=0, limit=100)).recovered)


async def lose_claim(look: "Look", namespace: Namespace, workflow: str, job_id: str) -> None:
    """Have a job taken from its worker, as if that had been silent for a lease; however slow this machine is."""
    token = look.token(workflow, job_id)

    async def is_lost() -> bool:
        look.expire_lease(workflow, job_id)
        await sweep(namespace)
        return look.token(workflow, job_id) != token

    # its worker may renew it in between
    await wait_until(is_lost, PATIENCE)


class Look:
    """Looks at a namespace's keys."""

    def __init__(self, client: Client, namespace_id: str) -> None:
        self._client = client
        self.base = f"lanner:{{{namespace_id}}}"

    def __call__(self, command: str, key: str, *arguments: str | float) -> Any:
        """The answer to a command about a key below the base."""
        return self._client(command, f"{self.base}:{key}", *arguments)

    def now(self) -> int:
        """Redis' time in milliseconds."""
        seconds, micros = self._client("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def names(self) -> list[str]:
        """What keys there are, without the base."""
        return [key.removeprefix(f"{self.base}:") for key in self._client("KEYS", f"{self.base}:*")]

    def field(self, workflow: str, job_id: str, name: str) -> str | None:
        """A field of a job's record."""
        answer: str | None = self("HGET", f"{workflow}:j:{job_id}", name)
        return answer

    def token(self, workflow: str, job_id: str) -> str | None:
        """The token of a job's claim; None where nobody has it."""
        claim: str | None = self("HGET", f"{workflow}:active", job_id)
        return None if claim is None else claim[1:].split()[0]

    def give_claim(self, workflow: str, job_id: str, token: str) -> None:
        """Have a job's claim be another's."""
        claim: str = self("HGET", f"{workflow}:active", job_id)
        self("HSET", f"{workflow}:active", job_id, claim[0] + token + claim[claim.index(" ") :])

    def state(self, workflow: str, job_id: str) -> str | None:
        """The state of a job; None where there is no record."""
        claimed = self("HEXISTS", f"{workflow}:active", job_id)
        return state_in(self("HGETALL", f"{workflow}:j:{job_id}"), claimed=claimed)

    def started(self, workflow: str, job_id: str) -> int:
        """When the attempt of a job began that it is in."""
        claim: str = self("HGET", f"{workflow}:active", job_id)
        return int(self.field(workflow, job_id, "started") or claim.split()[1])

    def a_worker_listens(self, workflow: str) -> bool:
        """Whether a worker waits in its blocking pop, and there is nothing to pop."""
        markers = [self("EXISTS", f"{workflow}:{kind}") for kind in ("wake", "clock")]
        return not any(markers) and self.listeners() > 0

    def listeners(self) -> int:
        """How many workers wait in their blocking pops, of this namespace and any other on the server."""
        blocked = [line for line in self._client("CLIENT", "LIST").splitlines() if "cmd=brpop" in line]
        return sum(" flags=b" in line for line in blocked)

    def nothing_is_active(self, *workflows: str) -> bool:
        """Whether no claim is left in any structure."""
        keys = self._client("KEYS", f"{self.base}:*")
        held = {f"{self.base}:{workflow}:{kind}" for workflow in workflows for kind in ("active", "ga")}
        return held.isdisjoint(keys) and f"{self.base}:running" not in keys

    def all_have_followed(self) -> bool:
        """Whether every job whose parent has ended has been told so."""
        return bool(self("EXISTS", "cascades") == 0)

    def deadline(self, workflow: str, job_id: str) -> float:
        """Until when a claim is leased, in milliseconds by Redis' clock."""
        return float(self("HGET", f"{workflow}:active", job_id).split()[2])

    def hold_sweeps(self) -> None:
        """Have no worker sweep of itself, as if somebody had just done it: what is late is taken from nobody."""
        self("SET", "swept", self.now() + 3_600_000)

    def expire_lease(self, workflow: str, job_id: str) -> None:
        """Back-date a claim's deadline, as if its worker had been silent for a lease."""
        self("HSET", f"{workflow}:active", job_id, expired(self("HGET", f"{workflow}:active", job_id)))
