"""An order, from the shop to the customer's door. Nothing in it knows that its worker will be killed."""

import asyncio
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ..workflow.context import Context
from .ledger import happen

PICKUP: Final = timedelta(seconds=3)


@dataclass(frozen=True)
class Order:
    """What a customer has bought."""

    item: str
    quantity: int
    cents: int
    email: str


@dataclass(frozen=True)
class Delivery:
    """What has become of an order."""

    reservation: str
    payment: str
    tracking: str


async def fulfil(ctx: Context[Order]) -> Delivery:
    """See an order through. Each `do` is a step: when it has finished, its result is kept, and it never runs again."""
    order = ctx.input
    reservation = await ctx.step.do("reserve stock", reserve_stock, order)
    payment = await ctx.step.do("charge", charge, order)
    await ctx.step.wait("wait for the courier", PICKUP)
    tracking = await ctx.step.do("ship", ship, reservation)
    await ctx.step.do("notify", notify, order.email, tracking)
    return Delivery(reservation, payment, tracking)


def reserve_stock(order: Order) -> str:
    """Put the goods aside. A plain function: it runs in a thread."""
    time.sleep(0.7)
    reservation = f"R-{secrets.token_hex(2)}"
    happen("reserve stock", "stock reserved", f"{order.quantity} x {order.item}, as {reservation}")
    return reservation


async def charge(order: Order) -> str:
    """Take the money."""
    await asyncio.sleep(0.7)
    payment = f"P-{secrets.token_hex(2)}"
    happen("charge", "card charged", f"{order.cents / 100:.2f} EUR, as {payment}")
    return payment


async def ship(reservation: str) -> str:
    """Hand the parcel over. The courier takes his time."""
    happen("ship", "label printed", f"for {reservation}")
    await asyncio.sleep(3)
    tracking = f"T-{secrets.token_hex(2)}"
    happen("ship", "parcel handed over", f"{reservation}, as {tracking}")
    return tracking


async def notify(email: str, tracking: str) -> None:
    """Write to the customer."""
    await asyncio.sleep(0.7)
    happen("notify", "customer told", f"{email}: {tracking} is on its way")


async def count_stock(ctx: Context[str]) -> None:
    """Another job of the shop, which needs a slot as well."""
    await ctx.step.do("count stock", happen, "count stock", "stock counted", ctx.input)
