"""Where a scenario is played: in a simulation, or with a worker on a server. What it sees is to be the same."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self

from lanner import ChildCancelledError, ChildFailedError, Flow, Job, JobError, Worker, Workflow, WorkflowNamespace
from lanner.testing import SimulatedJob, Simulation
from support.jobs import RELIES_ON_WAKING
from support.waiting import wait_until

PATIENCE = 60
NAMED = re.compile(r"(job|child) ([^ ,]+)")


class Played(Protocol):
    """A job, wherever it is."""

    async def end(self) -> object:
        """How it ends: its output, or the text of its error."""
        ...

    async def stands(self) -> str:
        """Where it stands at the moment."""
        ...

    async def state(self) -> str:
        """Where it stands when nothing is to happen without it."""
        ...

    async def cancel(self) -> bool:
        """Cancel it."""
        ...

    async def retry(self) -> bool:
        """Have it run again."""
        ...

    async def send(self, event: str) -> bool:
        """Send it an event."""
        ...

    async def children(self) -> list[Self]:
        """What it has started."""
        ...


class Stage(Protocol):
    """Where jobs run."""

    ns: WorkflowNamespace

    async def run(self, workflow: Workflow[Any, Any], input: Any) -> Played:
        """Add a job."""
        ...

    async def run_flow(self, flow: Flow) -> Played:
        """Add a flow."""
        ...

    async def until(self, condition: Callable[[], object]) -> None:
        """Let things happen until something is so, and after that as long as nothing keeps them up."""
        ...


def text_of(error: JobError) -> str:
    """What an error says, without ids, which differ."""
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__} " + NAMED.sub(r"\1", first_line)


def described(result: object) -> object:
    """A child's result, or in its place what its error says."""
    if isinstance(result, (ChildFailedError, ChildCancelledError)):
        return text_of(result)
    return result


class SimulatedPlayed:
    """A job of a simulation."""

    def __init__(self, job: SimulatedJob[Any]) -> None:
        self._job = job

    async def end(self) -> object:
        try:
            return await self._job.wait()
        except JobError as error:
            return text_of(error)

    async def stands(self) -> str:
        return self._job.state

    async def state(self) -> str:
        await self._job.simulation.settle()
        return self._job.state

    async def cancel(self) -> bool:
        return self._job.cancel("enough")

    async def retry(self) -> bool:
        return self._job.retry()

    async def send(self, event: str) -> bool:
        return self._job.send_event(event)

    async def children(self) -> list["SimulatedPlayed"]:
        return [SimulatedPlayed(child) for child in self._job.children]


class SimulatedStage:
    """A simulation."""

    def __init__(self) -> None:
        self.ns = WorkflowNamespace("simulated", redis="redis://nobody.invalid")
        self._simulation = Simulation()

    async def run(self, workflow: Workflow[Any, Any], input: Any) -> SimulatedPlayed:
        return SimulatedPlayed(self._simulation.run(workflow, input))

    async def run_flow(self, flow: Flow) -> SimulatedPlayed:
        return SimulatedPlayed(await self._simulation.run_flow(flow))

    async def until(self, condition: Callable[[], object]) -> None:
        await self._simulation.settle()
        assert condition()


class RealPlayed:
    """A job on a server."""

    def __init__(self, stage: "RealStage", workflow: str, id: str) -> None:
        self._stage = stage
        self._workflow = next(each for each in stage.ns.workflows if each.id == workflow)
        self._job: Job[Any] = self._workflow.get_job(id)

    async def end(self) -> object:
        try:
            return await self._job.wait(PATIENCE)
        except JobError as error:
            return text_of(error)

    async def stands(self) -> str:
        return await self._job.state()

    async def state(self) -> str:
        await self._stage.quiet()
        return await self._job.state()

    async def cancel(self) -> bool:
        return await self._job.cancel("enough")

    async def retry(self) -> bool:
        return await self._workflow.retry(self._job.id)

    async def send(self, event: str) -> bool:
        return await self._job.send_event(event)

    async def children(self) -> list["RealPlayed"]:
        tree = await self._job.tree()
        return [RealPlayed(self._stage, child.workflow, child.id) for child in tree.children]


class RealStage:
    """A namespace on a server, and a worker."""

    def __init__(self, ns: WorkflowNamespace) -> None:
        self.ns = ns
        self._roots: list[Job[Any]] = []
        self._seen = ""
        self._worker: Worker | None = None

    async def run(self, workflow: Workflow[Any, Any], input: Any) -> RealPlayed:
        return await self._added(await workflow.run(input))

    async def run_flow(self, flow: Flow) -> RealPlayed:
        return await self._added(await self.ns.run_flow(flow))

    async def _added(self, job: Job[Any]) -> RealPlayed:
        self._roots.append(job)
        if self._worker is None:
            self._worker = self.ns.worker(concurrency=20, safety=RELIES_ON_WAKING, grace=0)
            await self._worker.start()
        return RealPlayed(self, job.workflow, job.id)

    async def aclose(self) -> None:
        """End the worker."""
        if self._worker is not None:
            await self._worker.stop()

    async def until(self, condition: Callable[[], object]) -> None:
        await wait_until(condition)
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until every job of every tree has ended or sleeps."""
        await wait_until(self._is_quiet)

    async def _is_quiet(self) -> bool:
        """Nothing runs; and as a tree is read a job at a time, it is the same when it is read again."""
        trees = [await job.tree() for job in self._roots]
        busy = ("waiting", "active")
        seen, self._seen = self._seen, "\n".join(map(str, trees))
        return self._seen == seen and not any(tree.state in busy or any(map(tree.count, busy)) for tree in trees)


@asynccontextmanager
async def real_stage(namespace_id: str, redis_url: str) -> AsyncGenerator[RealStage]:
    """A stage on a server for the block."""
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        stage = RealStage(ns)
        try:
            yield stage
        finally:
            await stage.aclose()
