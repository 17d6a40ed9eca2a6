"""How soon an idle worker starts a job, and how soon whoever runs one has its result.

What a process that sleeps takes to wake up changes with whatever else the machine does, several times a minute. So
turns are short and many, Lanner and the limit next to each other, and what counts is a quantile of all their jobs.

These two take theirs first, on a server that knows no scripts yet: Redis collects what its Lua has left of all scripts,
whoever loaded them, and with those of all contestants one call in 150 took a millisecond more for that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ..bench import Bench
from ..contestants import LANNER, LANNER_WORKFLOW, MACHINE, PEERS_ON_REDIS, Contestant, Player, UnavailableError
from .throughput import fresh

SLOTS = 10
PAUSE = 0.004
JOBS = 25
# those of a turn that come first open connections and load code, and count for nobody
WARM_UP = 5
LAST = 1.0
# rounds of those that are compared, for one of the others
OWN = 4


async def picking_up(bench: Bench) -> None:
    """From before a job is added in one process to its start in another, whose worker was idle."""
    middle = bench.measure("pick-up", "idle pick-up, median", "ms", lower_is_better=True)
    late = bench.measure("pick-up-p99", "idle pick-up, 99th percentile", "ms", lower_is_better=True)
    late.share = 0.99
    if not bench.settings.wants(middle.id, late.id):
        return

    def of(contestant: Contestant) -> Callable[[Player], Awaitable[float]]:
        async def turn(player: Player) -> float:
            producer, queue = await bench.player(contestant, 1), fresh()
            await player.call("listen", queue=queue, slots=SLOTS)
            await producer.call(
                "push" if contestant is MACHINE else "ping", queue=queue, jobs=WARM_UP + JOBS, pause=PAUSE
            )
            await _until_ran(player, WARM_UP + JOBS)
            delays = _counting(await player.call("hush"))
            late.rounds.setdefault(contestant.name, []).append(late.pool(contestant.name, delays))
            return middle.pool(contestant.name, delays)

        return turn

    for contestants, often in (((LANNER, MACHINE), OWN), (PEERS_ON_REDIS, 1)):
        turns = [(each.name, each, of(each)) for each in contestants]
        await bench.alternate(middle, turns, rounds=often * bench.settings.short_rounds)
    for name, why in middle.missing.items():
        late.lose(name, why)


async def _until_ran(player: Player, jobs: int) -> None:
    """The slowest are waited for too, not only those that have run when the last was added."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LAST
    while await player.call("counted") < jobs and loop.time() < deadline:  # noqa: ASYNC110 - it is in another process
        await asyncio.sleep(0.005)


async def round_trips(bench: Bench) -> None:
    """Run and wait, with an idle worker in another process."""
    measure = bench.measure("round-trip", "run and wait for the result, median", "ms", lower_is_better=True)
    if not bench.settings.wants(measure.id):
        return
    able = [each for each in PEERS_ON_REDIS if each.name in ("toro-queue", "saq", "bullmq (Node)")]

    def of(contestant: Contestant) -> Callable[[Player], Awaitable[float]]:
        async def turn(player: Player) -> float:
            queue = fresh()
            if contestant is MACHINE:
                took = await player.call("round_trip", queue=queue, jobs=WARM_UP + JOBS)
            else:
                worker = await bench.player(contestant, 1)
                await worker.call("listen", queue=queue, slots=SLOTS, timing=False)
                took = await player.call("round_trip", queue=queue, jobs=WARM_UP + JOBS)
                await worker.call("hush")
            return measure.pool(contestant.name, _counting(took))

        return turn

    for contestants, often in (((LANNER_WORKFLOW, MACHINE, LANNER), OWN), (able, 1)):
        turns = [(each.name, each, of(each)) for each in contestants]
        await bench.alternate(measure, turns, rounds=often * bench.settings.short_rounds)


def _counting(took: Sequence[int]) -> list[float]:
    """Those that count, in milliseconds."""
    if len(took) <= WARM_UP:
        raise UnavailableError(f"no more than {len(took)} jobs ran in a turn")
    return [each / 1e6 for each in took[WARM_UP:]]


ALL = (picking_up, round_trips)
