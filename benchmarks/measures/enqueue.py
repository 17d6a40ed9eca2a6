"""How fast jobs are added: one by one, a hundred calls at once, in bulk."""

from collections.abc import Awaitable, Callable
from typing import Any

from ..bench import Bench
from ..contestants import LANNER, MACHINE, PEERS_ON_REDIS, Player
from .throughput import fresh

WIDTH = 100


async def adding(bench: Bench) -> None:
    """Everybody adds jobs; the limit is a bare script from redis-py."""
    ways: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        ("enqueue", "enqueue, one by one", "add_one_by_one", {}),
        ("enqueue-100", "enqueue, 100 calls in flight", "add_at_once", {"width": WIDTH}),
        ("bulk", "enqueue in bulk", "fill", {}),
    )
    for id, title, call, options in ways:
        measure = bench.measure(id, title, "jobs/s")
        if not bench.settings.wants(id):
            continue
        peers, own = PEERS_ON_REDIS, (LANNER, MACHINE)
        # one by one it is the machine's limit that counts
        rows = {"enqueue": (own, peers), "enqueue-100": ((*own, *peers),), "bulk": ((LANNER, *peers),)}[id]
        for row in rows:
            rounds = bench.settings.aside_rounds if row is peers else None
            turns = [(each.name, each, _turn(bench, id, call, options)) for each in row]
            await bench.alternate(measure, turns, rounds=rounds)


def _turn(bench: Bench, id: str, call: str, options: dict[str, Any]) -> Callable[[Player], Awaitable[float]]:
    async def turn(player: Player) -> float:
        async def some(jobs: int) -> float:
            bench.server.flush()
            took: float = await player.call(call, queue=fresh(), jobs=jobs, **options)
            return took

        return await bench.paced(id, player, some)

    return turn


ALL = (adding,)
