"""How soon an idle worker starts a job, and how soon whoever runs one has its result."""

from collections.abc import Awaitable, Callable

from ..bench import Bench
from ..contestants import LANNER, LANNER_WORKFLOW, MACHINE, PEERS_ON_REDIS, Contestant, Player
from .throughput import fresh

SLOTS = 10
PAUSE = 0.004


async def picking_up(bench: Bench) -> None:
    """From before a job is added in one process to its start in another, whose worker was idle."""
    middle = bench.measure("pick-up", "idle pick-up, median", "ms", lower_is_better=True)
    late = bench.measure("pick-up-p99", "idle pick-up, 99th percentile", "ms", lower_is_better=True)
    if not bench.settings.wants(middle.id, late.id):
        return
    jobs = 100 if bench.settings.quick else 400

    def of(contestant: Contestant) -> Callable[[Player], Awaitable[float]]:
        async def turn(player: Player) -> float:
            producer, queue = await bench.player(contestant, 1), fresh()
            await player.call("listen", queue=queue, slots=SLOTS)
            await producer.call("push" if contestant is MACHINE else "ping", queue=queue, jobs=jobs, pause=PAUSE)
            delays = sorted(await player.call("hush"))
            late.rounds.setdefault(contestant.name, []).append(_at(delays, 0.99))
            return _at(delays, 0.5)

        return turn

    await bench.alternate(middle, [(each.name, each, of(each)) for each in (LANNER, *PEERS_ON_REDIS, MACHINE)])
    late.missing.update(middle.missing)


async def round_trips(bench: Bench) -> None:
    """Run and wait, with an idle worker in another process."""
    measure = bench.measure("round-trip", "run and wait for the result, median", "ms", lower_is_better=True)
    if not bench.settings.wants(measure.id):
        return
    jobs = 60 if bench.settings.quick else 300
    able = [each for each in PEERS_ON_REDIS if each.name in ("toro-queue", "saq", "bullmq (Node)")]

    def of(contestant: Contestant) -> Callable[[Player], Awaitable[float]]:
        async def turn(player: Player) -> float:
            queue = fresh()
            if contestant is MACHINE:
                return _at(sorted(await player.call("round_trip", queue=queue, jobs=jobs)), 0.5)
            worker = await bench.player(contestant, 1)
            await worker.call("listen", queue=queue, slots=SLOTS, timing=False)
            took = await player.call("round_trip", queue=queue, jobs=jobs)
            await worker.call("hush")
            return _at(sorted(took), 0.5)

        return turn

    turns = [(each.name, each, of(each)) for each in (LANNER, LANNER_WORKFLOW, *able, MACHINE)]
    await bench.alternate(measure, turns)


def _at(ordered: list[int], share: float) -> float:
    """A quantile, in milliseconds."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] / 1e6


ALL = (picking_up, round_trips)
