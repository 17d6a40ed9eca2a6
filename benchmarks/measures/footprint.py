"""What a system costs while it waits: commands and connections of an idle worker, memory of a waiting job."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from ..bench import Bench
from ..contestants import LANNER, LANNER_WORKFLOW, PEERS_ON_REDIS, Contestant, Player, UnavailableError
from ..servers import Server, start_server
from .throughput import fresh

SETTLE = 3.0
FEW = 100


async def idling(bench: Bench) -> None:
    """An idle worker: commands that its process sends a second, and its connections."""
    commands = bench.measure("idle-commands", "commands of an idle worker", "1/s", lower_is_better=True)
    connections = bench.measure("idle-connections", "connections of an idle worker", "", lower_is_better=True)
    if not bench.settings.wants(commands.id, connections.id):
        return
    window = 5.0 if bench.settings.quick else 30.0

    def of(contestant: Contestant) -> Callable[[Player], Awaitable[float]]:
        async def turn(player: Player) -> float:
            # a process that has done nothing else has no other connections
            await bench.drop(contestant)
            player = await bench.player(contestant)
            if contestant is LANNER_WORKFLOW:
                await player.call("listen_to_many", workflows=10, slots=100)
            else:
                await player.call("listen", queue=fresh(), slots=10)
            await asyncio.sleep(SETTLE)
            sent, open_ = bench.server.sent_commands(window)
            connections.rounds.setdefault(contestant.name, []).append(open_)
            await bench.drop(contestant)
            return sent / window

        return turn

    everybody = (LANNER_WORKFLOW, *(() if bench.settings.quick else PEERS_ON_REDIS))
    await bench.close()
    await bench.alternate(commands, [(each.name, each, of(each)) for each in everybody], rounds=1)
    connections.missing.update(commands.missing)


async def memory(bench: Bench, programs: dict[str, Path]) -> None:
    """Bytes of a waiting job with a payload of 100 bytes, on every server of this machine."""
    for label, program in programs.items():
        measure = bench.measure(f"memory {label}", f"memory of a waiting job, {label}", "B", lower_is_better=True)
        if not bench.settings.wants("memory", measure.id):
            continue
        with start_server(label, program) as server:
            jobs = 5_000 if bench.settings.quick else 20_000
            for contestant in (LANNER, *PEERS_ON_REDIS):
                try:
                    if why := bench.unavailable.get(contestant.name):
                        raise UnavailableError(f"cannot be installed: {why}")
                    measure.rounds[contestant.name] = [await _weigh(server, contestant, jobs)]
                except (UnavailableError, TimeoutError) as error:
                    measure.missing[contestant.name] = str(error)
        said = ", ".join(f"{name} {values[0]:,.0f}" for name, values in measure.rounds.items())
        print(f"{measure.id} ({measure.unit}): {said} {measure.missing or ''}", flush=True)


async def _weigh(server: Server, contestant: Contestant, jobs: int) -> float:
    server.flush()
    queue = fresh()

    async def with_more(jobs: int) -> int:
        player = await Player.start(contestant, server.url)
        try:
            await player.call("fill", queue=queue, jobs=jobs)
        finally:
            await player.stop()
        return server.memory()

    # what there is once, such as scripts, is there after the first few
    before = await with_more(FEW)
    return (await with_more(jobs) - before) / jobs
