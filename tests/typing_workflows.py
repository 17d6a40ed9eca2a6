"""What type checkers make of workflows, their jobs and their children: nothing here is run.

Calls that are wrong are marked; a checker that finds nothing wrong with one of them complains of its mark.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from datetime import datetime, timedelta
from typing import Any, assert_type

from lanner import (
    Child,
    ChildCancelledError,
    ChildFailedError,
    Context,
    Flow,
    Job,
    JobCompleted,
    JobError,
    JobProgress,
    SerializationError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from lanner.sync import SyncJob, SyncWorkflow, sync


class Order:
    card: str


class Receipt:
    number: int


class Percent:
    done: float


class Approval:
    by: str


ns = WorkflowNamespace("shop")


async def sell(ctx: Context[Order]) -> Receipt:
    raise NotImplementedError(ctx)


def print_receipt(ctx: SyncContext[Receipt]) -> bytes:
    raise NotImplementedError(ctx)


async def upload(ctx: Context[str, Percent]) -> int:
    await ctx.progress(Percent())
    await ctx.progress(0.5)  # type: ignore[arg-type]
    return 3


selling = ns.create_workflow("sell", run=sell, get_group_id=lambda order: order.card)
printing = ns.create_workflow("print", run=print_receipt, max_attempts=3)
uploading = ns.create_workflow("upload", run=upload, progress=Percent)


@ns.workflow("refund", max_attempts=3)
async def refund(ctx: Context[Receipt]) -> bool:
    raise NotImplementedError(ctx)


@ns.workflow("label", non_retryable=[ValueError])
def label(ctx: SyncContext[Order, Percent]) -> str:
    ctx.progress(Percent())
    ctx.progress("half")  # type: ignore[arg-type]
    raise NotImplementedError(ctx)


def definitions() -> None:
    assert_type(selling, Workflow[Order, Receipt])
    assert_type(printing, Workflow[Receipt, bytes])
    assert_type(uploading, Workflow[str, int, Percent])
    assert_type(refund, Workflow[Receipt, bool])
    assert_type(label, Workflow[Order, str, Percent])


def wrong_definitions() -> None:
    ns.create_workflow("a", run=sell, schema=Receipt)  # type: ignore[arg-type]
    ns.create_workflow("b", run=upload, progress=float)  # type: ignore[arg-type]
    ns.create_workflow("c", run=sell, get_group_id=lambda order: order.tenant)  # type: ignore[attr-defined]
    ns.create_workflow("d", run=sell, retries=3)  # type: ignore[call-overload]
    ns.create_workflow("e", run=3)  # type: ignore[call-overload]
    ns.workflow("f", max_attempt=3)  # type: ignore[call-arg]
    ns.workflow("g")(3)  # type: ignore[call-overload]


async def runs(order: Order, at: datetime) -> None:
    assert_type(await selling.run(order), Job[Receipt])
    assert_type(await selling.run(order, id="one", priority=3, group="ada"), Job[Receipt])
    assert_type(await selling.run_in(order, timedelta(hours=1)), Job[Receipt])
    assert_type(await selling.run_at(order, at), Job[Receipt])
    assert_type(await selling.run_many([order, order]), list[Job[Receipt]])
    assert_type(await selling.execute(order, timeout=30), Receipt)
    assert_type(await selling.execute_many([order], timeout=30), list[Receipt])
    assert_type(
        await selling.execute_many([order], return_exceptions=True), list[Receipt | JobError | SerializationError]
    )
    assert_type(await (await selling.run(order)).wait(), Receipt)
    assert_type(await selling.get_job("one").wait(timedelta(seconds=3)), Receipt)
    assert_type(await selling.upsert_schedule("nightly", "0 3 * * *", order, tz="Europe/Berlin"), bool)
    assert_type(await selling.upsert_schedule("hourly", None, order, every=timedelta(hours=1)), bool)
    assert_type(await selling.trigger_schedule("nightly"), Job[Receipt])
    assert_type(await selling.list_jobs("failed"), list[Job[Receipt]])
    assert_type(await printing.execute(Receipt()), bytes)
    assert_type(await refund.execute(Receipt()), bool)
    assert_type(await label.execute(order), str)


async def wrong_runs(order: Order, at: datetime) -> None:
    await selling.run("order")  # type: ignore[arg-type]
    await selling.run(order, prio=3)  # type: ignore[call-arg]
    await selling.run(order, priority="high")  # type: ignore[arg-type]
    await selling.run_in(order, "1h")  # type: ignore[arg-type]
    await selling.run_in(Receipt(), 3)  # type: ignore[arg-type]
    await selling.run_at(order, 1.5)  # type: ignore[arg-type]
    await selling.run_at(Receipt(), at)  # type: ignore[arg-type]
    await selling.run_many([order, "order"])  # type: ignore[list-item]
    await selling.run_many(order)  # type: ignore[arg-type]
    await selling.execute(Receipt(), timeout=30)  # type: ignore[arg-type]
    await selling.execute(order, timeout="30")  # type: ignore[arg-type]
    await selling.execute_many([order, "order"])  # type: ignore[list-item]
    await selling.upsert_schedule("nightly", "0 3 * * *", Receipt())  # type: ignore[arg-type]
    await selling.upsert_schedule("nightly", "0 3 * * *", order, overlap="maybe")  # type: ignore[arg-type]
    await selling.list_jobs("running")  # type: ignore[arg-type]
    await printing.run(order)  # type: ignore[arg-type]
    await refund.run(order)  # type: ignore[arg-type]
    await label.run(Receipt())  # type: ignore[arg-type]


async def progress(order: Order) -> None:
    job = await uploading.run("cat.jpg")
    assert_type(job, Job[int, Percent])
    assert_type(await job.progress(), Percent | None)
    async for event in job.watch():
        if isinstance(event, JobProgress):
            assert_type(event.value, Percent)
        elif isinstance(event, JobCompleted):
            assert_type(event.value, int)
    async for event in uploading.run_and_watch("cat.jpg"):
        if event.kind == "progress":
            assert_type(event.value, Percent)
    # what has no type is anything
    assert_type(await (await selling.run(order)).progress(), Any | None)


async def children(ctx: Context[Order], orders: list[Order]) -> None:
    assert_type(await ctx.step.run("sell", selling, ctx.input), Receipt)
    assert_type(await ctx.step.run("print", printing, Receipt(), priority=3, group="ada"), bytes)
    assert_type(await ctx.step.run("upload", uploading, "cat.jpg"), int)
    child = await ctx.step.start("sell later", selling, ctx.input)
    assert_type(child, Child[Receipt])
    assert_type(await child.wait(), Receipt)
    assert_type(await ctx.step.map("all", selling, orders, max_concurrency=3), list[Receipt])
    assert_type(
        await ctx.step.map("some", selling, orders, on_failure="collect", min_successful=1),
        list[Receipt | ChildFailedError | ChildCancelledError],
    )


async def wrong_children(ctx: Context[Order], orders: list[Order]) -> None:
    await ctx.step.run("sell", selling, "order")  # type: ignore[misc]
    await ctx.step.run("sell", sell, ctx.input)  # type: ignore[arg-type]
    await ctx.step.run("sell", selling, ctx.input, id="one")  # type: ignore[call-arg]
    await ctx.step.start("sell", selling, Receipt())  # type: ignore[misc]
    await ctx.step.map("all", selling, [Receipt()])  # type: ignore[misc]
    await ctx.step.map("all", selling, orders, on_failure="ignore")  # type: ignore[call-overload]
    await ctx.step.map("all", selling, orders, min_successful=1)  # type: ignore[call-overload]


def plain_children(ctx: SyncContext[Order], orders: list[Order]) -> None:
    assert_type(ctx.step.run("sell", selling, ctx.input), Receipt)
    assert_type(ctx.step.start("sell later", selling, ctx.input).wait(), Receipt)
    assert_type(ctx.step.map("all", selling, orders), list[Receipt])
    ctx.step.run("sell", selling, "order")  # type: ignore[misc]
    ctx.step.map("all", selling, [Receipt()])  # type: ignore[misc]


async def flows(order: Order) -> None:
    flow = Flow(selling, order, children=[Flow(refund, Receipt()), Flow(uploading, "cat.jpg")])
    assert_type(await ns.run_flow(flow), Job[Receipt])
    assert_type(sync(ns).run_flow(flow), SyncJob[Receipt])
    any_flow: Flow = flow
    assert_type(await ns.run_flow(any_flow), Job[Any])
    Flow(selling, "order")  # type: ignore[misc]
    Flow(selling, order, children=[refund])  # type: ignore[list-item]
    Flow(selling, order, on_failure="ignore")  # type: ignore[arg-type]


async def events(ctx: Context[Order], job: Job[Receipt]) -> None:
    assert_type(await ctx.step.wait_for_event("approved", type=Approval), Approval)
    assert_type(await ctx.step.wait_for_event("approved", timeout=timedelta(days=3), type=Approval), Approval | None)
    assert_type(await job.send_event("approved", Approval()), bool)
    await job.send_event(Approval())  # type: ignore[arg-type]


def blocking(order: Order) -> None:
    workflow = sync(selling)
    assert_type(workflow, SyncWorkflow[Order, Receipt])
    assert_type(workflow.run(order), SyncJob[Receipt])
    assert_type(workflow.run(order).wait(timeout=3), Receipt)
    assert_type(workflow.execute(order, timeout=3), Receipt)
    assert_type(workflow.execute_many([order]), list[Receipt])
    assert_type(sync(uploading).run("cat.jpg").progress(), Percent | None)
    assert_type(sync(selling.get_job("one")), SyncJob[Receipt])
    workflow.run("order")  # type: ignore[arg-type]
    workflow.execute(order, timeout="3")  # type: ignore[arg-type]
    sync(sell)  # type: ignore[call-overload]
