"""Whether a claim costs more when more waits; whether any script holds the server for long."""

from collections.abc import Awaitable, Callable

from ..bench import Bench
from ..contestants import LANNER, Player
from .throughput import fresh

CLAIMED = 5000
FEW, FEW_GROUPS = 1_000, 100


async def deep_queues(bench: Bench) -> None:
    """What the server spends on a job, from its claim to its end, with few and with many that wait."""
    many, groups = (100_000, 10_000) if bench.settings.quick else (1_000_000, 100_000)
    measure = bench.measure(
        "depth", f"server time of a job, {FEW:,} waiting / {many:,} waiting in {groups:,} groups", "us",
        lower_is_better=True,
    )  # fmt: skip
    if not bench.settings.wants(measure.id):
        return

    def among(waiting: int, groups: int) -> Callable[[Player], Awaitable[float]]:
        async def turn(player: Player) -> float:
            queue, used = fresh(), 0.0
            # topped up in between, so that about as many wait at the end as at the beginning
            await player.call("fill_groups", queue=queue, jobs=waiting, groups=groups, within=300)
            step = min(CLAIMED, waiting // 2)
            for _ in range(CLAIMED // step):
                before = bench.server.script_us()
                await player.call("work", queue=queue, slots=100, jobs=step)
                used += bench.server.script_us() - before
                await player.call("fill_groups", queue=queue, jobs=step, groups=groups)
            return used / CLAIMED

        return turn

    await bench.alternate(
        measure,
        [
            ("lanner, few waiting", LANNER, among(FEW, FEW_GROUPS)),
            ("lanner, many waiting", LANNER, among(many, groups)),
        ],
        rounds=2 if bench.settings.quick else 3,
    )


ALL = (deep_queues,)
