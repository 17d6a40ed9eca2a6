"""A report every night at three, Berlin time, however many workers there are and whenever the clocks change.

A schedule lives in Redis and is set by its id: a process that sets it again at each start changes nothing. Nights that
nobody was there for are made up for by one report, and one that still runs is not joined by another.

    LANNER_REDIS_URL=embedded python examples/nightly_report.py
"""

import asyncio
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from lanner import Context, WorkflowNamespace

ns = WorkflowNamespace("reports")

BERLIN = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True)
class Report:
    country: str


@ns.workflow("report", max_attempts=5)
async def report(ctx: Context[Report]) -> int:
    """Add up what was sold, and mail it."""
    sold = await ctx.step.do("add up", add_up, ctx.input.country)
    await ctx.step.do("mail", mail, f"{ctx.input.country}: {sold} sold")
    return sold


def add_up(country: str) -> int:
    """A plain function: it runs in a thread."""
    return sum(len(word) for word in country.split())


async def mail(text: str) -> None:
    print(text)


async def main() -> None:
    async with ns, report.worker():
        await report.upsert_schedule("nightly", "0 3 * * *", Report("Germany"), tz=BERLIN)
        (nightly,) = await report.get_schedules()
        if nightly.next_fire is not None:  # it is None while the schedule is paused
            print(f"the next one comes at {nightly.next_fire.astimezone(BERLIN):%H:%M}")

        tonight = await report.trigger_schedule("nightly")  # now, and at three all the same
        await tonight.wait()
        (nightly,) = await report.get_schedules()
        print(f"fires by the clock so far: {nightly.fires}")
        await report.remove_schedule("nightly")


if __name__ == "__main__":
    asyncio.run(main())
