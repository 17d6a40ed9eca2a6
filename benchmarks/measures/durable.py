"""Steps a second of a durable execution engine on PostgreSQL, for comparison."""

import subprocess

from ..bench import Bench
from ..contestants import DBOS, Player, UnavailableError
from ..servers import start_postgres

WIDTH = 100


async def steps_on_postgres(bench: Bench) -> None:
    """DBOS, the same workflow of three steps, added to the measure of Lanner's steps."""
    measure = bench.measure("steps", "workflows of 3 steps, 100 slots", "checkpoints/s")
    if not bench.settings.wants(measure.id):
        return
    workflows = 100 if bench.settings.quick else 400
    try:
        if why := bench.unavailable.get(DBOS.name):
            raise UnavailableError(f"cannot be installed: {why}")
        with start_postgres() as url:
            player = await Player.start(DBOS, url)
            try:
                await player.call("run_steps", workflows=20, width=10)
                for _ in range(bench.settings.long_rounds):
                    took = await player.call("run_steps", workflows=workflows, width=WIDTH, within=120)
                    measure.rounds.setdefault(DBOS.name, []).append(3 * workflows / took)
            finally:
                await player.stop()
    except (UnavailableError, OSError, TimeoutError, subprocess.SubprocessError) as error:
        measure.missing[DBOS.name] = str(error)
    print(f"steps of dbos: {measure.value(DBOS.name)} {measure.missing}", flush=True)
