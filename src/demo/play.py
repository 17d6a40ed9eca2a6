"""What happens in the demo, in order. All of it is real: the processes, the server, the kill."""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from ..embedded import find_server, temporary_server
from ..errors import LannerError
from ..workflow.job import Job
from ..workflow.namespace import WorkflowNamespace
from . import ledger
from .ledger import Effect
from .order import PICKUP, Delivery, Order, count_stock, fulfil
from .proof import FINISHED_BEFORE, LABEL, Evidence, judge
from .screen import Screen

LEASE: Final = 2
TIME_LIMIT: Final = 60.0  # for the slowest of machines; it takes 15 seconds
LOOK_AGAIN: Final = 0.02
COMMAND: Final = ("worker", "lanner.demo.shop:shop", "--concurrency", "1", "--lease", str(LEASE))
STEPS: Final = ("reserve stock", "charge", "ship", "notify")
COLOURS: Final = {"worker 1": "cyan", "worker 2": "magenta"}
LOG_PREFIX: Final = re.compile(r"^\S+ \S+ [A-Z]+ \[\d+\] ")


class DemoError(LannerError):
    """The demo cannot go on."""


def run_demo() -> int:
    """Play the demo on a server of its own. The exit code: 0 if every promise was kept."""
    screen = Screen(sys.stdout)
    screen.heading(f"Lanner {version('lanner')}: an order survives the death of its worker")
    screen.text("Everything is real: a server, two worker processes, one after the other, and a SIGKILL between them.")
    try:
        with tempfile.TemporaryDirectory(prefix="lanner-demo-") as directory, temporary_server() as server:
            return asyncio.run(_demo(Play(screen, server.url, Path(directory))))
    except LannerError as error:
        print(f"lanner demo: {error}", file=sys.stderr)  # noqa: T201 - a command speaks by printing
        return 1


async def _demo(play: "Play") -> int:
    try:
        async with asyncio.timeout(TIME_LIMIT):
            seen = await play.run()
    except TimeoutError:
        raise DemoError(f"it has not come to an end within {TIME_LIMIT:g} s") from None
    return conclude(play.screen, seen)


def conclude(screen: Screen, seen: Evidence) -> int:
    """Show what was done to the world, and which promises were kept. The exit code."""
    screen.heading("The ledger, a file with a line for each side effect")
    for effect in seen.effects:
        screen.columns(effect.at, f"pid {effect.process}", f"{effect.step:<13}", f"{effect.what} {effect.detail}")
    screen.heading("The proof")
    checks = judge(seen)
    for check in checks:
        screen.check(check.promise, check.kept)
    screen.heading("What is not promised")
    screen.text(
        "'ship' was cut in the middle, so it ran again from its beginning, and its label was printed twice. A step "
        "runs at least once: how far it had come when its process died, only the courier could know; a moment later "
        "the parcel would have been handed over twice. Give what such a step calls an id that stays the same, say "
        "ctx.job_id, by which a repetition is told from something new."
    )
    kept = all(check.kept for check in checks)
    screen.heading("Every promise was kept." if kept else "A promise was BROKEN: please report this output.")
    return 0 if kept else 1


class Play:
    """The demo, on one server, in one directory.

    Attributes:
        screen: Where it is shown.
    """

    def __init__(self, screen: Screen, redis: str, directory: Path) -> None:
        self.screen = screen
        self._redis = redis
        self._directory = directory
        self._ledger = directory / "ledger"
        self._told = 0
        self._names: dict[int, str] = {}
        self._working: asyncio.subprocess.Process | None = None

    async def run(self) -> Evidence:
        """Play it. What was seen."""
        say, act = self.screen.said, self.screen.heading
        async with WorkflowNamespace("shop", redis=self._redis) as shop:
            order = shop.create_workflow("order", run=fulfil)
            stock = shop.create_workflow("stock", run=count_stock)

            act("An order comes in, and a worker begins")
            server = find_server()
            say("redis", f"a temporary {server.kind.capitalize()} {'.'.join(map(str, server.version))} has started")
            job = await order.run(Order("espresso cup", 2, 4580, "ada@example.org"), id="order-1029")
            say("shop", "order-1029: reserve stock, charge, wait for the courier, ship, notify", "bold")
            async with self._worker("worker 1") as first:
                await self._until(lambda effects: _has(effects, "card charged"))

                asleep = await _rest(job)
                slots = (await order.counts()).active + (await stock.counts()).active
                act("It waits, and holds nothing")
                say("redis", f"order-1029 is {asleep!r} for {PICKUP.seconds} s, a record and nothing else", "yellow")
                say("redis", f"slots in use: {slots} of 1, so there is room for another job", "yellow")
                await stock.execute("espresso cup")
                await self._until(lambda effects: _has(effects, LABEL))

                act("Its worker is killed")
                await asyncio.sleep(0.7)
                checkpoints = list((await job.record()).steps)
                say("demo", f"SIGKILL to worker 1, pid {first.pid}, in the middle of step 3, 'ship'", "red")
                first.kill()
                first_exit = await first.wait()
                say("redis", f"has kept {', '.join(map(repr, checkpoints))}", "yellow")
                say("redis", f"takes the job from the dead when {LEASE} s have passed, its lease", "yellow")

            act("Another worker takes over")
            async with self._worker("worker 2") as second:
                await self._until(lambda effects: _has(effects, LABEL, second.pid))
                attempt = (await job.record()).attempt
                await self._until(lambda effects: _has(effects, "customer told"))
                delivery = await job.wait()
                say("shop", f"order-1029 has ended: {_shown(delivery)}", "bold")
                second.terminate()
                second_exit = await second.wait()
            return Evidence(
                effects=ledger.read(self._ledger),
                first=first.pid,
                second=second.pid,
                first_exit=first_exit,
                second_exit=second_exit,
                asleep=asleep,
                slots_asleep=slots,
                checkpoints=checkpoints,
                attempt=attempt,
                delivery=delivery,
                left=await order.counts(),
            )

    @contextlib.asynccontextmanager
    async def _worker(self, name: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        """A worker in a process of its own, as anybody starts one."""
        self.screen.said("demo", f"$ lanner {' '.join(COMMAND)}", "bold")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lanner", *COMMAND, "--lifeline"),
            cwd=self._directory,
            env={**os.environ, "LANNER_DEMO_REDIS": self._redis, ledger.VARIABLE: str(self._ledger)},
            stdin=asyncio.subprocess.PIPE,  # it ends when this process does
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self._names[process.pid] = name
        self._working = process
        speaking = asyncio.create_task(self._speak(name, process))
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await speaking

    async def _speak(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Show what a worker says."""
        assert process.stdout is not None  # noqa: S101 - it has a pipe
        async for line in process.stdout:
            self.screen.said(name, LOG_PREFIX.sub("", line.decode(errors="replace").rstrip()), "dim")

    async def _until(self, seen: Callable[[Sequence[Effect]], bool]) -> None:
        """Wait for something in the ledger, and show what comes meanwhile."""
        while True:
            effects = ledger.read(self._ledger)
            for effect in effects[self._told :]:
                self._tell(effect, effects)
            self._told = len(effects)
            if seen(effects):
                return
            if self._working is not None and self._working.returncode is not None:
                raise DemoError(f"its worker has ended by itself, with exit code {self._working.returncode}")
            await asyncio.sleep(LOOK_AGAIN)

    def _tell(self, effect: Effect, effects: Sequence[Effect]) -> None:
        who = self._names[effect.process]
        if effect.what == LABEL and who == "worker 2":
            ran = {earlier.step for earlier in effects if earlier.process == effect.process}
            for step in FINISHED_BEFORE:
                if step not in ran:  # it has come past it all the same
                    self.screen.said(who, f"{_numbered(step)}: replayed from Redis, not run again", "green")
            self.screen.said(who, f"{_numbered(effect.step)}: had not finished, runs again from its beginning", "bold")
        what = f"{effect.what} {effect.detail} (pid {effect.process})"
        self.screen.said(who, f"{_numbered(effect.step)}: {what}", COLOURS[who])


def _numbered(step: str) -> str:
    return f"step {STEPS.index(step) + 1} of {len(STEPS)}, {step}" if step in STEPS else step


def _has(effects: Sequence[Effect], what: str, process: int | None = None) -> bool:
    return any(effect.what == what and process in (None, effect.process) for effect in effects)


async def _rest(job: Job[Delivery]) -> str:
    """The state of a job once no worker has it."""
    while (state := await job.state()) == "active":  # noqa: ASYNC110 - it is another process that changes it
        await asyncio.sleep(LOOK_AGAIN)
    return state


def _shown(delivery: Delivery) -> str:
    return f"{delivery.reservation} paid by {delivery.payment} goes as {delivery.tracking}"
