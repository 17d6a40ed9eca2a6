"""Steps, children and compensations that are replaced in a simulation."""

from datetime import timedelta
from unittest.mock import AsyncMock, Mock

import pytest

from lanner import (
    Context,
    InvalidArgumentError,
    NonRetryableError,
    SyncContext,
)
from lanner.testing import Simulation, simulate
from support.shop import Order, Receipt, buying, charge, send, shipping, shop


def give_away(order: Order) -> Receipt:
    return Receipt(order.item, 0)


async def test_steps_are_replaced_by_functions_and_mocks() -> None:
    asked = AsyncMock(return_value="nothing sent")
    job = await simulate(buying, Order("tea"), replace={"charge": give_away, "send": asked})
    assert job.output == "nothing sent"
    asked.assert_awaited_once_with("tea for 0")
    assert job.ran == ["charge", "send"]

    job = await simulate(buying, Order("tea"), replace={"charge": Mock(side_effect=NonRetryableError("no money"))})
    assert job.state == "failed"
    assert job.attempts[0].error == "NonRetryableError: no money"


async def test_a_step_is_replaced_by_its_path_or_in_one_workflow_only() -> None:
    async def nested(ctx: Context[None]) -> list[str]:
        sent: list[str] = []
        for name in ("a/b", "c"):
            with ctx.step.scope(name):
                sent.append(await ctx.step.do("send", send, name))
        return [*sent, await ctx.step.run("ship", shipping, "d")]

    above = shop.create_workflow("nested", run=nested)
    simulation = Simulation()
    simulation.replace("a~1b/send", Mock(return_value="by path"))
    simulation.replace("send", Mock(return_value="in shipping"), workflow=shipping)
    assert await simulation.run(above, None).wait() == ["by path", "sent c", "in shipping"]


async def test_a_step_that_starts_children_is_replaced_by_what_gives_their_outputs() -> None:
    async def parent(ctx: Context[list[str]]) -> list[str]:
        first = await ctx.step.run("ship first", shipping, ctx.input[0])
        return [first, *await ctx.step.map("ship others", shipping, ctx.input[1:])]

    above = shop.create_workflow("replaced", run=parent)

    def first(item: str) -> str:
        return f"no {item}"

    async def others(item: str) -> str:
        return f"not {item}"

    job = await simulate(above, ["a", "b", "c"], replace={"ship first": first, "ship others": others})
    assert job.output == ["no a", "not b", "not c"]
    assert job.elapsed == timedelta(0)
    assert [child.ran for child in job.children] == [[], [], []]


async def test_what_cannot_replace_a_step_is_an_error_that_says_so() -> None:
    def plain(ctx: SyncContext[None]) -> None:
        ctx.step.do("send", lambda: None)

    job = await simulate(plain, None, replace={"send": AsyncMock()})
    assert "replace it by a plain one" in job.attempts[0].error
    with pytest.raises(InvalidArgumentError, match="step 'send' is replaced by 5"):
        Simulation().replace("send", 5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as a user may


async def test_a_compensation_is_replaced_by_its_name() -> None:
    async def saga(ctx: Context[None]) -> None:
        ctx.on_failure("refund", charge, Order("tea"))
        await ctx.step.do("charge", charge, Order("tea"))
        raise NonRetryableError("no stock")

    refund = Mock()
    job = await simulate(saga, None, replace={"refund": refund})
    refund.assert_called_once_with(Order("tea"))
    assert (job.state, job.ran, job.undone) == ("failed", ["charge"], ["refund"])
