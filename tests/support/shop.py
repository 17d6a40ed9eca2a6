"""A shop whose workflows are simulated."""

from dataclasses import dataclass
from datetime import timedelta

from lanner import (
    Context,
    NonRetryableError,
    WorkflowNamespace,
)

DAY = timedelta(days=1)
shop = WorkflowNamespace("shop", redis="redis://nobody.invalid")


@dataclass
class Order:
    item: str
    price: int = 10


@dataclass
class Receipt:
    item: str
    paid: int


def charge(order: Order) -> Receipt:
    return Receipt(order.item, order.price)


async def send(text: str) -> str:
    return f"sent {text}"


async def ship(ctx: Context[str]) -> str:
    await ctx.step.wait("pack", DAY)
    if ctx.input == "lead":
        raise NonRetryableError("too heavy")
    return await ctx.step.do("send", send, ctx.input)


async def buy(ctx: Context[Order]) -> str:
    receipt = await ctx.step.do("charge", charge, ctx.input)
    await ctx.step.wait("a month", timedelta(days=30))
    return await ctx.step.do("send", send, f"{receipt.item} for {receipt.paid}")


shipping = shop.create_workflow("shipping", run=ship)
buying = shop.create_workflow("buying", run=buy)
