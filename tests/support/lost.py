"""Claims of workers that are gone."""

import asyncio
import itertools

from lanner.queue import Claim, Namespace, Outcome
from lanner.queue.scripts.claiming import settle

NUMBERS = itertools.count(1)


async def vanish(namespace: Namespace, workflow: str, count: int = 1, lease_ms: int = 1) -> list[Claim]:
    """Claim jobs as a worker does that is killed before it has begun any of them; a lease of 1 ms has run out then."""
    runtime = await namespace.runtime()
    settled = await settle(
        runtime.call,
        worker="vanished",
        number=next(NUMBERS),
        lease=lease_ms,
        total=count,
        outcomes=[],
        wants=[(workflow, count)],
    )
    if lease_ms == 1:
        await asyncio.sleep(0.01)
    return list(settled.claims)


async def commit(namespace: Namespace, claim: Claim, outcome: Outcome) -> None:
    """End an attempt as its worker does."""
    settled = await settle(
        (await namespace.runtime()).call,
        worker="vanished",
        number=next(NUMBERS),
        lease=1000,
        total=0,
        outcomes=[(claim, outcome)],
        wants=[],
    )
    assert settled.applied == [True]
