"""Runs the jobs of a simulation, and moves its clock when they have nothing to do."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from typing import TYPE_CHECKING, Final

from ..errors import SerializationError, SimulationError
from ..queue.claim import EndReason
from ..queue.outcome import Failed, Failure, Outcome
from ..workflow.attempts import program_of
from ..workflow.run import Run
from ..workflow.threads import Threads
from .entry import Attempt, Entry
from .replacing import Replacements, Watcher
from .world import World, nothing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

# the clock stands still while a run goes on: no wait is short, and what is quiet at all stays so
IN_PLACE_MS: Final = -1
QUIET: Final = 0.005
THREADS: Final = 64
MOST_ATTEMPTS: Final = 10_000


class Driver:
    """Runs what may run, all of it at once."""

    def __init__(self, world: World, replacements: Replacements, *, seed: int) -> None:
        self._world = world
        self._replacements = replacements
        self._rng = random.Random(seed)  # noqa: S311 - jitter, no secret
        self._drive: _Drive | None = None

    async def drive(self, entry: Entry | None, until_ms: int | None) -> None:
        """Run jobs until one has ended (None: until nothing is left to do), or until an instant.

        Raises:
            SimulationError: The job can never end, or goes round and round; or the simulation is being run already.
        """
        world = self._world
        async with self._driving() as drive:
            while True:
                await drive.until_idle(self._attempt)
                if entry is not None and entry.ended:
                    return
                due_ms = world.next_due_ms()
                if due_ms is None or (until_ms is not None and due_ms > until_ms):
                    if until_ms is not None:
                        world.move_to(until_ms)
                    elif entry is not None:
                        raise SimulationError(stuck_text(entry, world))
                    return
                world.move_to(due_ms)

    @contextlib.asynccontextmanager
    async def _driving(self) -> AsyncGenerator[_Drive]:
        if self._drive is not None:
            raise SimulationError(
                "the simulation is being run already, and all its jobs with it: await one thing of it after another, "
                "and nothing of it within a step"
            )
        self._drive = drive = _Drive(self._world)
        try:
            yield drive
        finally:
            await drive.aclose()
            self._drive = None

    async def _attempt(self, entry: Entry, threads: Threads) -> None:
        world, workflow = self._world, entry.workflow
        attempt = Attempt(entry.failures + 1, world.at(world.now_ms()))
        entry.attempts.append(attempt)
        entry.state = "active"
        try:
            value = workflow.payloads.read_input(entry.data)
        except SerializationError as error:
            world.commit(entry, workflow.notes.write_outcome(Failed(Failure.of(error))))
            return
        program = program_of(
            workflow,
            threads,
            entry.function,
            rng=self._rng,
            interceptor=Watcher(attempt, workflow, self._replacements),
            in_place_ms=IN_PLACE_MS,
            quiet=QUIET,
        )
        run = Run(
            program, value, entry.id, entry.spec, entry.failures, entry.record.claim(), asyncio.get_running_loop()
        )
        outcome = await self._outcome_of(entry, run)
        if run.ended is EndReason.LOST:
            world.lose(entry)
        else:
            world.commit(entry, workflow.notes.write_outcome(outcome))

    async def _outcome_of(self, entry: Entry, run: Run) -> Outcome:
        loop = asyncio.get_running_loop()
        timer = None
        if entry.spec.timeout:
            timer = loop.call_later(entry.spec.timeout / 1000, run.end, EndReason.TIMEOUT)
        entry.run, entry.loop = run, loop
        try:
            return await run.execute()
        except asyncio.CancelledError:
            self._world.hand_back(entry)
            raise
        finally:
            entry.run = entry.loop = None
            if timer is not None:
                timer.cancel()


class _Drive:
    """One time that the simulation runs: the tasks and threads of that."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._threads = Threads(THREADS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._attempts: Counter[str] = Counter()
        self._turn = asyncio.Event()
        loop = asyncio.get_running_loop()
        world.on_runnable = lambda: loop.call_soon_threadsafe(self._turn.set)

    async def until_idle(self, attempt: Callable[[Entry, Threads], Coroutine[None, None, None]]) -> None:
        """Run what may run, and what may run then, until nothing runs."""
        while True:
            self._turn.clear()
            while (entry := self._world.next_runnable()) is not None:
                self._attempts[entry.id] += 1
                if self._attempts[entry.id] > MOST_ATTEMPTS:
                    raise SimulationError(
                        f"job {entry.id!r} of workflow {entry.workflow.id!r} has begun {MOST_ATTEMPTS} times and does "
                        f"not end: give job.wait a timeout, in simulated time"
                    )
                task = asyncio.create_task(attempt(entry, self._threads))
                self._tasks.add(task)
                task.add_done_callback(lambda _: self._turn.set())
            if not self._tasks:
                return
            await self._turn.wait()
            for task in [task for task in self._tasks if task.done()]:
                self._tasks.discard(task)
                task.result()

    async def aclose(self) -> None:
        """End what runs still, which is only so when the caller was interrupted."""
        self._world.on_runnable = nothing
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.close()


def stuck_text(entry: Entry, world: World) -> str:
    """Why a job can never end."""
    waits = [
        f"job {each.id!r} of workflow {each.workflow.id!r} waits for {', '.join(map(repr, events))}"
        for each in world.entries.values()
        if (events := sorted(name for name in each.awaits if not name.startswith("\t")))
    ]
    return (
        f"job {entry.id!r} of workflow {entry.workflow.id!r} can never end: nothing is left to happen, and "
        f"{'; '.join(waits) or f'it is {entry.state}'}. Send the event with job.send_event, or later with "
        f"simulation.after, or give the step a timeout."
    )
