"""How fast jobs that wait are worked through: by slots, in groups, as workflows, under limits."""

import itertools
from collections.abc import Awaitable, Callable

from ..bench import Bench, Turn
from ..contestants import LANNER, LANNER_WORKFLOW, MACHINE, PEERS_ON_REDIS, Contestant, Player

SLOTS = (1, 32, 100)
GROUPS = 1000
PIPELINED_BY = 50
# which a goal is about: they take as many turns as Lanner and the limit
FASTEST = ("bullmq (Node)", "groupmq (Node)")
_numbers = itertools.count()


def fresh(kind: str = "noop") -> str:
    """The name of a queue that was not used before."""
    return f"{kind}-{next(_numbers)}"


def draining(
    bench: Bench, what: str, slots: int, *, groups: int = 0, kind: str = "noop"
) -> Callable[[Player], Awaitable[float]]:
    """A turn that works through jobs that wait."""

    async def turn(player: Player) -> float:
        async def some(jobs: int) -> float:
            bench.server.flush()
            queue = fresh(kind)
            more = {"slots": slots} if "groupmq" in player.contestant.name else {}
            await player.call("fill", queue=queue, jobs=jobs, groups=groups, **more)
            took: float = await player.call("work", queue=queue, slots=slots, jobs=jobs)
            return took

        return await bench.paced(what, player, some)

    return turn


async def by_slots(bench: Bench) -> None:
    """No-op jobs of everybody, with 1, 32 and 100 slots."""
    for slots in SLOTS:
        measure = bench.measure(f"slots-{slots}", f"no-op jobs, one process, {slots} slot(s)", "jobs/s")
        if not bench.settings.wants(measure.id):
            continue
        turns = {each.name: (each.name, each, draining(bench, measure.id, slots)) for each in (LANNER, *PEERS_ON_REDIS)}
        beside: list[tuple[str, Contestant, Turn]] = []
        if slots == 1:
            beside = [(MACHINE.name, MACHINE, _one_at_a_time(bench))]
        elif slots == SLOTS[-1]:
            beside = [*(turns.pop(name) for name in FASTEST), (MACHINE.name, MACHINE, _pipelined(bench))]
        if beside:
            await bench.alternate(measure, [turns.pop(LANNER.name), *beside])
        # the goals are about 100 slots, and of one about the limit
        rounds = None if slots == SLOTS[-1] else bench.settings.aside_rounds
        await bench.alternate(measure, list(turns.values()), rounds=rounds)


def _one_at_a_time(bench: Bench) -> Callable[[Player], Awaitable[float]]:
    async def turn(player: Player) -> float:
        return await bench.paced("one", player, lambda n: player.call("one_at_a_time", queue=fresh(), jobs=n))

    return turn


def _pipelined(bench: Bench) -> Callable[[Player], Awaitable[float]]:
    async def turn(player: Player) -> float:
        async def some(jobs: int) -> float:
            took: float = await player.call("pipelined", queue=fresh(), jobs=jobs, by=PIPELINED_BY)
            return took

        return await bench.paced("pipelined", player, some)

    return turn


async def as_workflows(bench: Bench) -> None:
    """The same jobs as workflows with typed input and output."""
    measure = bench.measure("workflow", "no-op jobs through create_workflow, 100 slots", "jobs/s")
    if bench.settings.wants(measure.id):
        await bench.alternate(
            measure,
            [
                ("lanner queue", LANNER, draining(bench, "workflow-queue", 100)),
                ("lanner", LANNER_WORKFLOW, draining(bench, measure.id, 100)),
                ("lanner, results waited for", LANNER_WORKFLOW, _waited(bench, together=True)),
                ("lanner, each waited for by itself", LANNER_WORKFLOW, _waited(bench, together=False)),
            ],
        )


def _waited(bench: Bench, *, together: bool) -> Callable[[Player], Awaitable[float]]:
    async def turn(player: Player) -> float:
        producer = await bench.player(LANNER_WORKFLOW, 1)

        async def some(jobs: int) -> float:
            bench.server.flush()
            queue = fresh()
            await producer.call("fill_and_wait", queue=queue, jobs=jobs, together=together)
            began: float = await player.call("work_from", queue=queue, slots=100, jobs=jobs)
            ended: float = await producer.call("waited")
            return ended - began

        return await bench.paced(f"waited-{together}", player, some)

    return turn


async def with_steps(bench: Bench) -> None:
    """Workflows of three steps: checkpoints a second."""
    measure = bench.measure("steps", "workflows of 3 steps, 100 slots", "checkpoints/s")
    if not bench.settings.wants(measure.id):
        return
    drain = draining(bench, measure.id, 100, kind="steps")

    async def turn(player: Player) -> float:
        return 3 * await drain(player)

    await bench.alternate(measure, [("lanner", LANNER_WORKFLOW, turn), (MACHINE.name, MACHINE, _pipelined(bench))])


async def in_groups(bench: Bench) -> None:
    """Jobs of 1,000 groups that run one at a time each."""
    measure = bench.measure("grouped", f"no-op jobs in {GROUPS:,} groups of one at a time, 100 slots", "jobs/s")
    if bench.settings.wants(measure.id):
        turns = [
            (each.name, each, draining(bench, measure.id, 100, groups=GROUPS))
            for each in (LANNER, *PEERS_ON_REDIS)
            if each.name in (LANNER.name, "toro-queue", "groupmq (Node)")
        ]
        await bench.alternate(measure, [("lanner ungrouped", LANNER, draining(bench, "ungrouped", 100)), turns[0]])
        await bench.alternate(measure, turns[1:], rounds=bench.settings.rounds)


async def under_limits(bench: Bench) -> None:
    """A saturated cap of the namespace; open rate limiters."""
    cap = bench.measure("cap", "60 jobs of 100 ms under a namespace cap of 3", "s", lower_is_better=True)
    if bench.settings.wants(cap.id):

        async def capped(player: Player) -> float:
            queue = fresh("nap")
            await player.call("fill", queue=queue, jobs=60)
            took: float = await player.call("work_within", queue=queue, slots=100, jobs=60, cap=3, limiters=0)
            return took

        await bench.alternate(cap, [("lanner", LANNER_WORKFLOW, capped)], rounds=bench.settings.long_rounds)
    limited = bench.measure("limiters", "no-op workflows under open rate limiters, 100 slots", "jobs/s")
    if bench.settings.wants(limited.id):

        def within(limiters: int) -> Callable[[Player], Awaitable[float]]:
            async def turn(player: Player) -> float:
                async def some(jobs: int) -> float:
                    bench.server.flush()
                    queue = fresh()
                    await player.call("fill", queue=queue, jobs=jobs)
                    took: float = await player.call(
                        "work_within", queue=queue, slots=100, jobs=jobs, cap=0, limiters=limiters
                    )
                    return took

                return await bench.paced(f"limiters-{limiters}", player, some)

            return turn

        names = {0: "lanner without", 1: "lanner with one", 3: "lanner with three"}
        await bench.alternate(limited, [(names[n], LANNER_WORKFLOW, within(n)) for n in (0, 1, 3)])


# what Lanner is compared with itself in comes before the server has the scripts of others
ALL: tuple[Callable[[Bench], Awaitable[None]], ...] = (
    as_workflows, with_steps, under_limits, in_groups, by_slots,
)  # fmt: skip
