"""A workflow's input is what its schema says: where it is enqueued, where it is scheduled, and where it is claimed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest

from lanner import (
    Context,
    Flow,
    InvalidArgumentError,
    JobFailedError,
    SerializationError,
    SyncContext,
    Workflow,
    WorkflowNamespace,
)
from support.servers import Server


class Address(msgspec.Struct):
    street: str
    number: int


class Customer(msgspec.Struct):
    name: str
    addresses: list[Address] = []


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Ticket(pydantic.BaseModel):
    level: Level
    votes: int = pydantic.Field(default=0, ge=0)


class Tickets(pydantic.BaseModel):
    tickets: list[Ticket]


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict):
    name: str


Positive = Annotated[int, msgspec.Meta(gt=0)]

# schema, input, the place and what is wrong there
MISFITS: list[tuple[Any, Any, str]] = [
    (Customer, {"addresses": []}, "$: Object missing required field `name`"),
    (
        Customer,
        {"name": "Ada", "addresses": [{"street": "A"}]},
        "$.addresses[0]: Object missing required field `number`",
    ),
    (Customer, Customer(name=3), "$.name: Expected `str`, got `int`"),  # type: ignore[arg-type]
    (Point, {"y": 1}, "$: Object missing required field `x`"),
    (Named, {"nme": "Ada"}, "$: Object missing required field `name`"),
    (Positive, 0, "$: Expected `int` >= 1"),
    (dict[str, list[int]], {"a": ["b"]}, "$[...][0]: Expected `int`, got `str`"),
    (Level, "middle", "$: Invalid enum value 'middle'"),
    (Ticket, {"level": "low", "votes": -1}, "$.votes: Input should be greater than or equal to 0"),
    (Tickets, {"tickets": [{"level": "low"}, {"level": "no"}]}, "$.tickets[1].level: Input should be 'low' or 'high'"),
    (list[Ticket], [{"level": "low"}, {}], "$[1].level: Field required"),
]
FITS: list[tuple[Any, Any, Any]] = [
    (Customer, {"name": "Ada", "addresses": [{"street": "A", "number": 1}]}, Customer("Ada", [Address("A", 1)])),
    (Customer, Customer("Ada"), Customer("Ada")),
    (Point, {"x": 1}, Point(1)),
    (Named, {"name": "Ada"}, {"name": "Ada"}),
    (Positive, 3, 3),
    (dict[str, set[int]], {"a": [1, 2]}, {"a": {1, 2}}),
    (Level, "low", Level.LOW),
    (Ticket, {"level": "high"}, Ticket(level=Level.HIGH)),
    (list[Ticket], [{"level": "low", "votes": 2}], [Ticket(level=Level.LOW, votes=2)]),
    (datetime, datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)),
]


async def echo(ctx: Context[Any]) -> Any:
    return ctx.input


@pytest.fixture
async def namespace(server: Server, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        yield namespace


AnyWorkflow = Workflow[Any, Any]


async def watch(workflow: AnyWorkflow, value: Any) -> None:
    async for _ in workflow.run_and_watch(value):
        pass


async def flow(workflow: AnyWorkflow, value: Any, namespace: WorkflowNamespace) -> None:
    await namespace.run_flow(Flow(workflow, value))


CALLS: dict[str, Callable[[AnyWorkflow, Any, WorkflowNamespace], Awaitable[object]]] = {
    "run": lambda workflow, value, _: workflow.run(value),
    "run_in": lambda workflow, value, _: workflow.run_in(value, 60),
    "run_at": lambda workflow, value, _: workflow.run_at(value, datetime.now(UTC)),
    "run_many": lambda workflow, value, _: workflow.run_many([value]),
    "execute_many": lambda workflow, value, _: workflow.execute_many([value]),
    "execute": lambda workflow, value, _: workflow.execute(value, timeout=1),
    "run_and_watch": lambda workflow, value, _: watch(workflow, value),
    "upsert_schedule": lambda workflow, value, _: workflow.upsert_schedule("nightly", "0 3 * * *", value),
    "run_flow": flow,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("schema", "value", "where"), MISFITS)
async def test_an_input_that_does_not_fit_is_refused_with_its_place_and_nothing_is_sent(
    namespace: WorkflowNamespace, call: str, schema: Any, value: Any, where: str
) -> None:
    workflow: AnyWorkflow = namespace.create_workflow("flow", run=echo, schema=schema)
    with pytest.raises(SerializationError) as refused:
        await CALLS[call](workflow, value, namespace)
    place = f"inputs[0] of {call}, which has sent nothing: " if call.endswith("_many") else ""
    assert str(refused.value).startswith(f"{place}workflow 'flow': the input does not fit its schema: {where}")
    counts = await workflow.counts()
    assert (counts.waiting, counts.delayed) == (0, 0)
    assert await workflow.get_schedules() == []


@pytest.mark.parametrize(("schema", "value", "read"), FITS)
async def test_an_input_that_fits_is_given_to_the_run_as_what_the_schema_says(
    namespace: WorkflowNamespace, schema: Any, value: Any, read: Any
) -> None:
    seen: list[Any] = []

    async def run(ctx: Context[Any]) -> None:
        seen.append(ctx.input)

    workflow: AnyWorkflow = namespace.create_workflow("flow", run=run, schema=schema)
    async with workflow.worker():
        await workflow.execute(value, timeout=30)
    assert seen == [read]
    assert type(seen[0]) is type(read)


async def test_of_many_inputs_one_that_does_not_fit_stops_all(namespace: WorkflowNamespace) -> None:
    workflow: AnyWorkflow = namespace.create_workflow("flow", run=echo, schema=Point)
    with pytest.raises(SerializationError, match=r"\$\.x: Expected `int`, got `str`"):
        await workflow.run_many([Point(1), {"x": "two"}, Point(3)])
    assert (await workflow.counts()).waiting == 0


async def test_one_text_is_no_list_of_inputs(namespace: WorkflowNamespace) -> None:
    workflow: AnyWorkflow = namespace.create_workflow("flow", run=echo, schema=str)
    with pytest.raises(InvalidArgumentError, match="takes a list of inputs, not 'abc': put them into a list"):
        await workflow.run_many("abc")
    assert (await workflow.counts()).waiting == 0


@pytest.mark.parametrize("option", [{"id": "one"}, {"if_exists": "return"}], ids=lambda option: next(iter(option)))
async def test_many_jobs_have_ids_of_their_own(namespace: WorkflowNamespace, option: dict[str, Any]) -> None:
    workflow: AnyWorkflow = namespace.create_workflow("flow", run=echo, schema=str)
    with pytest.raises(InvalidArgumentError, match=f"takes no {next(iter(option))}=: every job has an id of its own"):
        await workflow.run_many(["a", "b"], **option)
    assert (await workflow.counts()).waiting == 0


async def test_without_a_schema_the_annotation_of_the_function_is_it(namespace: WorkflowNamespace) -> None:
    async def typed(ctx: Context[Point]) -> int:
        return ctx.input.x

    def plain(ctx: SyncContext[Point]) -> int:
        return ctx.input.x

    for id, run in (("typed", typed), ("plain", plain)):
        workflow: AnyWorkflow = namespace.create_workflow(id, run=run)
        with pytest.raises(SerializationError, match=f"workflow '{id}': the input does not fit its schema"):
            await workflow.run({"x": "one"})
        async with workflow.worker():
            assert await workflow.execute({"x": 1}, timeout=30) == 1


async def test_the_group_is_that_of_the_input_as_the_schema_reads_it(namespace: WorkflowNamespace) -> None:
    workflow: AnyWorkflow = namespace.create_workflow(
        "flow", run=echo, schema=Customer, get_group_id=lambda customer: customer.name
    )
    with pytest.raises(SerializationError, match=r"\$: Object missing required field `name`"):
        await workflow.run({"nme": "Ada"})
    async with workflow.worker():
        job = await workflow.run({"name": "Ada"})
        await job.wait(timeout=30)
        assert (await job.record()).spec.group == "Ada"


async def test_a_child_whose_input_does_not_fit_fails_its_parent_with_the_place(namespace: WorkflowNamespace) -> None:
    child: AnyWorkflow = namespace.create_workflow("child", run=echo, schema=Point)

    async def parent(ctx: Context[Any]) -> Any:
        return await ctx.step.run("child", child, ctx.input)

    workflow = namespace.create_workflow("parent", run=parent)
    async with namespace.worker():
        with pytest.raises(JobFailedError, match=r"SerializationError: workflow 'child': .*\$\.x: Expected `int`"):
            await workflow.execute({"x": "one"}, timeout=30)
        assert await workflow.execute({"x": 1}, timeout=30) == Point(1)


async def test_an_input_that_no_longer_fits_fails_its_job_for_good_and_can_be_retried_after_a_fix(
    server: Server, namespace_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[str] = []

    async def old(ctx: Context[Point]) -> None: ...

    async def new(ctx: Context[Customer]) -> None:
        runs.append(ctx.input.name)

    async def mended(ctx: Context[Point | Customer]) -> str:
        runs.append("mended")
        return repr(ctx.input)

    def version(run: Any) -> tuple[WorkflowNamespace, AnyWorkflow]:
        namespace = WorkflowNamespace(namespace_id, redis=server.url, max_attempts=5)
        return namespace, namespace.create_workflow("flow", run=run, schema=None)

    first, writer = version(old)
    second, breaking = version(new)
    third, fixed = version(mended)
    async with first, second, third:
        job = await writer.run(Point(1, 2))
        others = await writer.run_many([Point(3, 4)] * 5)
        async with breaking.worker():
            with pytest.raises(JobFailedError) as failed:
                await job.wait(timeout=30)
            for other in others:
                with pytest.raises(JobFailedError):
                    await other.wait(timeout=30)
        [said] = [record.getMessage() for record in caplog.records if "fails at once" in record.getMessage()]
        assert "of workflow 'flow' fails at once, and others may too: workflow 'flow': the input does not fit" in said
        assert "give new fields a default" in said
        assert failed.value.type == "SerializationError"
        assert failed.value.message.startswith("workflow 'flow': the input does not fit its schema: $: ")
        record = await job.record()
        assert (record.state, record.attempt, runs) == ("failed", 1, [])
        async with fixed.worker():
            assert await fixed.retry(job.id)
            assert await job.wait(timeout=30) == "Point(x=1, y=2)"
            assert await fixed.retry_all() == len(others)
            assert [await other.wait(timeout=30) for other in others] == ["Point(x=3, y=4)"] * len(others)
        assert runs == ["mended"] * 6


async def test_a_schedule_whose_input_no_longer_fits_fails_its_jobs_with_that_reason(
    server: Server, namespace_id: str
) -> None:
    async def old(ctx: Context[Point]) -> None: ...

    async def new(ctx: Context[Customer]) -> None: ...

    first = WorkflowNamespace(namespace_id, redis=server.url)
    second = WorkflowNamespace(namespace_id, redis=server.url)
    async with first, second:
        await first.create_workflow("flow", run=old).upsert_schedule("yearly", "0 0 1 1 *", Point(1))
        breaking = second.create_workflow("flow", run=new)
        async with breaking.worker():
            job = await breaking.trigger_schedule("yearly")
            with pytest.raises(JobFailedError, match="the input does not fit its schema"):
                await job.wait(timeout=30)
        await breaking.remove_schedule("yearly")


async def test_plain_json_of_another_producer_is_read_by_the_schema(namespace: WorkflowNamespace) -> None:
    seen: list[object] = []

    async def run(ctx: Context[Tickets]) -> int:
        seen.append(ctx.input)
        return len(ctx.input.tickets)

    workflow = namespace.create_workflow("flow", run=run)
    async with workflow.worker():
        fits = await workflow.queue.add('{"json":{"tickets":[{"level":"low"}]}}')
        assert await fits.wait(30) == '{"json":1}'
        for text in ('{"json":{"tickets":[{"level":"none"}]}}', "no JSON", '{"json":'):
            with pytest.raises(JobFailedError, match="SerializationError: workflow 'flow'"):
                await (await workflow.queue.add(text)).wait(30)
    assert seen == [Tickets(tickets=[Ticket(level=Level.LOW)])]
