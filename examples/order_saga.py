"""An order that books a payment, stock and a parcel, and takes back what it has booked when one of them cannot be had.

Each compensation is registered before the step that it undoes. It is kept in Redis from then on, so it runs whatever
becomes of the worker: after a failure for good, after a crash, and when somebody cancels the order days later.

    LANNER_REDIS_URL=embedded python examples/order_saga.py
"""

import asyncio
import logging
from dataclasses import dataclass

from lanner import Context, JobCancelledError, JobFailedError, NonRetryableError, WorkflowNamespace

ns = WorkflowNamespace("orders")

STOCK = {"book": 3, "lamp": 1, "piano": 1}


@dataclass(frozen=True)
class Order:
    item: str
    cents: int


charged: dict[str, Order] = {}
reserved: dict[str, str] = {}


@ns.workflow("shipping", max_attempts=3)
async def shipping(ctx: Context[Order]) -> str:
    """Ship an order: a workflow of its own, which orders start as a child."""
    return await ctx.step.do("hand over", hand_over, ctx.input.item)


@ns.workflow("order", max_attempts=3)
async def order(ctx: Context[Order]) -> str:
    """Charge, reserve, have it confirmed, ship; or leave nothing behind."""
    # the job's id tells a repetition from a new order, and lets a refund find its charge, should there have been one
    ctx.on_failure("refund", refund, ctx.job_id)
    await ctx.step.do("charge", charge, ctx.job_id, ctx.input)
    ctx.on_failure("put back", put_back, ctx.job_id)
    await ctx.step.do("reserve", reserve, ctx.job_id, ctx.input.item)
    if ctx.input.item == "lamp":
        await ctx.step.wait_for_event("confirmed")  # the customer is asked; it takes as long as it takes
    return await ctx.step.run("ship", shipping, ctx.input)


async def charge(key: str, bought: Order) -> None:
    if key not in charged:
        charged[key] = bought
        print(f"{bought.item}: {bought.cents / 100:.2f} charged")


async def refund(key: str) -> None:
    bought = charged.pop(key, None)
    if bought is not None:
        print(f"{bought.item}: {bought.cents / 100:.2f} refunded")


async def reserve(key: str, item: str) -> None:
    if key not in reserved:
        reserved[key] = item
        STOCK[item] -= 1
        print(f"{item}: reserved")


async def put_back(key: str) -> None:
    item = reserved.pop(key, None)
    if item is not None:
        STOCK[item] += 1
        print(f"{item}: put back")


async def hand_over(item: str) -> str:
    if item == "piano":
        raise NonRetryableError("no carrier takes a piano")
    return f"parcel with a {item}"


async def main() -> None:
    async with ns, ns.worker():
        book = await order.run(Order("book", 2_000))
        print(f"book: {await book.wait()}")

        piano = await order.run(Order("piano", 500_000))
        try:
            await piano.wait()
        except JobFailedError as error:
            print(f"piano: {error.type}, {'no carrier takes a piano' in error.message}")

        async for event in order.run_and_watch(Order("lamp", 8_000), id="lamp"):
            if event.kind == "suspended":  # it waits to be confirmed, and holds nothing
                break
        lamp = order.get_job("lamp")
        await lamp.cancel("found a nicer one")
        try:
            await lamp.wait()
        except JobCancelledError as error:
            print(f"lamp: cancelled, {error.reason}")
        print(f"in stock: {STOCK}")


if __name__ == "__main__":
    # what fails here is meant to: the log of its attempts would hide what is shown
    logging.getLogger("lanner.workflow").setLevel(logging.CRITICAL)
    asyncio.run(main())
