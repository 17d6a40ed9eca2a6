"""An expense that somebody has to approve, which may take days, or never happen.

The workflow waits for an event; whoever decides sends it, from any process, by the job's id. An event that comes before
the workflow waits for it is kept.

    LANNER_REDIS_URL=embedded python examples/approval.py
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from lanner import Context, WorkflowNamespace

ns = WorkflowNamespace("expenses")

SMALL = 5_000


@dataclass(frozen=True)
class Expense:
    by: str
    what: str
    cents: int
    patience: timedelta = timedelta(days=3)


@dataclass(frozen=True)
class Decision:
    by: str
    approved: bool


Outcome = Literal["paid", "rejected", "forgotten"]


@ns.workflow("expense", max_attempts=5)
async def expense(ctx: Context[Expense]) -> Outcome:
    """Pay an expense when it is small, or approved."""
    claim = ctx.input
    if claim.cents > SMALL:
        await ctx.step.do("ask the boss", tell, "boss", f"{claim.by} wants {claim.what}; answer to {ctx.job_id}")
        decision = await ctx.step.wait_for_event("decision", timeout=claim.patience, type=Decision)
        if decision is None:
            await ctx.step.do("say that nobody answered", tell, claim.by, "nobody has answered, please ask again")
            return "forgotten"
        if not decision.approved:
            await ctx.step.do("say no", tell, claim.by, f"{decision.by} says no to {claim.what}")
            return "rejected"
    # the job's id makes it safe to ask twice: a step that was cut in the middle runs again
    await ctx.step.do("pay", pay, claim, key=ctx.job_id)
    return "paid"


async def tell(whom: str, text: str) -> None:
    print(f"to {whom}: {text}")


async def pay(claim: Expense, *, key: str) -> None:
    print(f"{claim.cents / 100:.2f} to {claim.by}, for {claim.what} ({key})")


async def main() -> None:
    async with ns, expense.worker():
        stamps = await expense.run(Expense("ada", "stamps", 120), id="stamps")
        chair = await expense.run(Expense("ada", "a chair", 49_900), id="chair")
        yacht = await expense.run(Expense("bob", "a yacht", 99_000_000), id="yacht")
        plant = await expense.run(Expense("bob", "a plant", 8_000, patience=timedelta(seconds=1.5)), id="plant")

        # the boss answers from somewhere else, knowing nothing but the ids
        await expense.get_job("chair").send_event("decision", Decision("grace", approved=True))
        await expense.get_job("yacht").send_event("decision", Decision("grace", approved=False))

        for job in (stamps, chair, yacht, plant):
            print(f"{job.id}: {await job.wait()}")


if __name__ == "__main__":
    asyncio.run(main())
