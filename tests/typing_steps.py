"""What type checkers make of a workflow's steps: nothing here is run.

Calls that are wrong are marked; a checker that finds nothing wrong with one of them complains of its mark.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from datetime import datetime, timedelta
from functools import partial
from typing import Any, assert_type

from lanner.workflow.context import Context, SyncContext


class Order:
    card: str


class Receipt:
    number: int


async def charge(order: Order, amount: int, *, currency: str = "EUR") -> Receipt:
    raise NotImplementedError(order, amount, currency)


def print_label(order: Order) -> bytes:
    raise NotImplementedError(order)


class Mailer:
    async def send(self, to: str) -> None:
        raise NotImplementedError(to)

    def check(self, to: str) -> bool:
        raise NotImplementedError(to)


async def steps(ctx: Context[Order]) -> None:
    assert_type(ctx.input, Order)
    assert_type(ctx.attempt, int)
    assert_type(await ctx.step.do("charge", charge, ctx.input, 3), Receipt)
    assert_type(await ctx.step.do("charge", charge, ctx.input, amount=3, currency="USD"), Receipt)
    assert_type(await ctx.step.do("print", print_label, ctx.input), bytes)
    assert_type(await ctx.step.do("check", Mailer().check, "ada@example.org"), bool)
    assert_type(await ctx.step.do("lambda", lambda: 3), int)
    assert_type(await ctx.step.do("partial", partial(print_label, ctx.input)), bytes)
    await ctx.step.do("send", Mailer().send, to="ada@example.org")


async def wrong_steps(ctx: Context[Order]) -> None:
    await ctx.step.do("charge", charge, ctx.input)  # type: ignore[call-overload]
    await ctx.step.do("charge", charge, ctx.input, "3")  # type: ignore[call-overload]
    await ctx.step.do("charge", charge, ctx.input, 3, curency="x")  # type: ignore[call-arg]
    await ctx.step.do("print", print_label, "order")  # type: ignore[call-overload]
    await ctx.step.do(7, print_label, ctx.input)  # type: ignore[call-overload]
    await ctx.step.do("charge", charge(ctx.input, 3))  # type: ignore[call-overload]


async def waits(ctx: Context[None], at: datetime) -> None:
    await ctx.step.wait("a day", timedelta(days=1))
    await ctx.step.wait("a moment", 0.5)
    await ctx.step.wait_until("then", at)
    await ctx.step.wait("a day", "1d")  # type: ignore[arg-type]
    await ctx.step.wait_until("then", 12.5)  # type: ignore[arg-type]


async def events(ctx: Context[None]) -> None:
    assert_type(await ctx.step.wait_for_event("paid"), Any)
    assert_type(await ctx.step.wait_for_event("paid", timeout=3), Any)
    assert_type(await ctx.step.wait_for_event("paid", type=Receipt), Receipt)
    assert_type(await ctx.step.wait_for_event("paid", type=list[Receipt]), list[Receipt])
    assert_type(await ctx.step.wait_for_event("paid", timeout=3, type=Receipt), Receipt | None)
    assert_type(
        await ctx.step.wait_for_event("paid", timeout=timedelta(days=1), type=int, on_timeout="none"), int | None
    )
    assert_type(await ctx.step.wait_for_event("paid", timeout=3, type=Receipt, on_timeout="raise"), Receipt)
    await ctx.step.wait_for_event("paid", on_timeout="ignore")  # type: ignore[call-overload]
    await ctx.step.wait_for_event("paid", timeout="3 days")  # type: ignore[call-overload]


def plain_steps(ctx: SyncContext[Order]) -> None:
    assert_type(ctx.input, Order)
    assert_type(ctx.step.do("print", print_label, ctx.input), bytes)
    assert_type(ctx.step.do("lambda", lambda: 3), int)
    assert_type(ctx.step.wait_for_event("paid", timeout=3, type=Receipt), Receipt | None)
    assert_type(ctx.step.wait_for_event("paid", timeout=3, type=Receipt, on_timeout="raise"), Receipt)
    assert_type(ctx.step.wait_for_event("paid", type=Receipt), Receipt)
    ctx.step.wait("a day", timedelta(days=1))
    with ctx.step.scope("more"):
        ctx.step.do("print", print_label)  # type: ignore[call-arg]
    ctx.step.do("print", print_label, "order")  # type: ignore[arg-type]
    ctx.step.wait("a day", "1d")  # type: ignore[arg-type]


async def takes_anything(ctx: Context[object]) -> None:
    assert_type(ctx.input, object)


async def a_narrower_input_will_do(ctx: Context[Order]) -> None:
    await takes_anything(ctx)
