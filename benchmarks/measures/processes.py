"""Two processes on one queue: with jobs that leave the work to Redis, and with jobs of a little Python."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ..bench import Bench, Measure, Turn
from ..contestants import LANNER, Player
from .throughput import fresh

BUSY = 0.0002
LONGEST = 60.0
LOOK = 0.02
ENOUGH = 0.9
NAMES = {1: "lanner, one process", 2: "lanner, two processes"}


async def by_two(bench: Bench) -> None:
    """One process and two, and what Redis used of a core meanwhile."""
    for kind, id, title in (
        ("noop", "processes", "no-op jobs, 100 slots a process"),
        ("busy", "processes-busy", f"jobs of {BUSY * 1000:g} ms of Python, 100 slots a process"),
    ):
        measure = bench.measure(id, title, "jobs/s")
        if bench.settings.wants(id):
            cpu = bench.measure(f"{id}-redis", f"CPU of Redis, {title}", "% of a core", lower_is_better=None)
            turns = (await (await bench.player(LANNER)).call("calibrate", seconds=BUSY)) if kind == "busy" else 0

            def use(name: str, share: float, cpu: Measure = cpu) -> None:
                cpu.rounds.setdefault(name, []).append(100 * share)

            kinds = [(name, LANNER, _working(bench, kind, count, turns, use)) for count, name in NAMES.items()]
            await bench.alternate(measure, kinds, rounds=bench.settings.long_rounds)
            said = ", ".join(f"{name} {cpu.value(name):.0f}" for name in cpu.rounds)
            print(f"{cpu.id} ({cpu.unit}): {said}", flush=True)


def _working(bench: Bench, kind: str, count: int, turns: int, use: Callable[[str, float], None]) -> Turn:
    """A turn of so many processes. ``turns`` are those of a busy job's loop; ``use`` is told Redis' share of a core."""

    async def turn(player: Player) -> float:
        players = [player, *[await bench.player(LANNER, number) for number in range(1, count)]]
        for each in players:
            await each.call("be_busy", turns=turns)
        used = 0.0

        async def some(jobs: int) -> float:
            nonlocal used
            bench.server.flush()
            queue = fresh(kind)
            await player.call("fill", queue=queue, jobs=jobs)
            took, used = await _work_together(bench, players, queue, jobs)
            return took

        rate = await bench.paced(f"{kind}-processes-{count}", player, some)
        use(NAMES[count], used)
        return rate

    return turn


@dataclass(frozen=True)
class _Moment:
    """How many jobs each process has run, what Redis has used, and when that was."""

    counts: list[int]
    cpu: float
    at: float

    @property
    def done(self) -> int:
        return sum(self.counts)


async def _work_together(bench: Bench, players: list[Player], queue: str, jobs: int) -> tuple[float, float]:
    """Seconds that the jobs take, at the rate of a time in which all processes run; Redis' share of a core in it."""
    loop = asyncio.get_running_loop()

    async def moment() -> _Moment:
        for each in players:
            each.send("counted")
        counts = [await each.answer(30) for each in players]
        return _Moment(counts, bench.server.cpu(), loop.time())

    async def first_of(wanted: Callable[[_Moment], bool]) -> _Moment:
        while True:
            now = await moment()
            if wanted(now) or now.at - began > LONGEST:
                return now
            await asyncio.sleep(LOOK)

    began = loop.time()
    for each in players:
        each.send("listen", queue=queue, slots=100, timing=False)
    for each in players:
        await each.answer(30)
    first = await first_of(lambda now: all(now.counts) or now.done > jobs / 2)
    last = await first_of(lambda now: now.done >= ENOUGH * jobs)
    for each in players:
        await each.call("hush")
    if last.done == first.done:  # too few to be seen: a warm-up
        return last.at - began, 0.0
    took = last.at - first.at
    return took * jobs / (last.done - first.done), (last.cpu - first.cpu) / took


ALL = (by_two,)
