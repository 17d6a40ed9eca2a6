"""How long a script holds the server, where the server has a core for itself."""

from collections.abc import Awaitable, Callable

from ..bench import Bench, Turn
from ..contestants import LANNER, LANNER_WORKFLOW, Contestant, Player
from .throughput import fresh

GROUPS = 10_000
JOBS = {True: 10_000, False: 50_000}
WAITED = 2_000
TRIES = 3
UNDISTURBED = 1.0


async def slowest(bench: Bench) -> None:
    """The slowest script of each kind of work, as Redis itself has timed it.

    A script that the kernel puts aside is timed with what ran meanwhile. So Redis has a core that nobody else uses, and
    a turn in which it was put aside all the same is taken again: the least disturbed counts.
    """
    measure = bench.measure(
        "slowest-script", "slowest script, Redis on a core of its own", "ms", lower_is_better=True
    )  # fmt: skip
    if not bench.settings.wants(measure.id):
        return
    if not bench.server.apart:
        measure.missing[LANNER.name] = "it needs Linux and more than one core"
        return
    jobs = JOBS[bench.settings.quick]

    async def drain(player: Player, **filling: int) -> None:
        queue = fresh()
        await player.call("fill", queue=queue, jobs=jobs, **filling)
        await player.call("work", queue=queue, slots=100, jobs=jobs)

    async def grouped(player: Player) -> None:
        queue = fresh()
        await player.call("fill_groups", queue=queue, jobs=jobs, groups=GROUPS)
        await player.call("work", queue=queue, slots=100, jobs=jobs)

    async def steps(player: Player) -> None:
        queue = fresh("steps")
        await player.call("fill", queue=queue, jobs=jobs // 4)
        await player.call("work", queue=queue, slots=100, jobs=jobs // 4)

    async def waits(player: Player) -> None:
        producer, queue = await bench.player(LANNER_WORKFLOW, 1), fresh()
        await producer.call("fill_and_wait", queue=queue, jobs=WAITED, together=True)
        await player.call("work", queue=queue, slots=100, jobs=WAITED)
        await producer.call("waited")

    def of(name: str, work: Callable[[Player], Awaitable[None]]) -> Turn:
        async def turn(player: Player) -> float:
            found: list[tuple[float, float, str]] = []
            while len(found) < TRIES and (not found or found[-1][0] > UNDISTURBED):
                bench.server.flush()
                bench.server.time_scripts()
                before = bench.server.put_aside()
                await work(player)
                found.append((bench.server.put_aside() - before, *bench.server.slowest_script()))
            aside, took, script = min(found)
            measure.notes[name] = script + (f", put aside for {aside:.0f} ms in all" if aside > UNDISTURBED else "")
            return took

        return turn

    kinds: tuple[tuple[str, Contestant, Callable[[Player], Awaitable[None]]], ...] = (
        ("lanner, bulk adds and 100 slots", LANNER, drain),
        (f"lanner, the same in {GROUPS:,} groups", LANNER, grouped),
        ("lanner, workflows of 3 steps", LANNER_WORKFLOW, steps),
        ("lanner, results waited for", LANNER_WORKFLOW, waits),
    )
    turns = [(name, contestant, of(name, work)) for name, contestant, work in kinds]
    await bench.alternate(measure, turns, rounds=bench.settings.long_rounds)


ALL = (slowest,)
