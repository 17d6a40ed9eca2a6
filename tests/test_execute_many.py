"""``execute_many``: jobs that are added in bulk and waited for together, and what goes wrong for one or for all."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, assert_type

import pytest

from lanner import (
    ClosedError,
    Context,
    Dedup,
    InvalidArgumentError,
    JobCancelledError,
    JobError,
    JobFailedError,
    SerializationError,
    WaitTimeoutError,
    Workflow,
    WorkflowNamespace,
)
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Look
from support.proxy import Proxy
from support.servers import Server
from support.waiting import wait_until

MANY = 1000
ONE_DAY = 86_400


@dataclass
class Order:
    number: int
    how: str = "well"


@dataclass
class Receipt:
    number: int
    notes: list[str] = field(default_factory=list[str])


class Desk:
    """Runs orders, once it is open.

    Attributes:
        begun: The numbers of those that have begun.
        order: The workflow.
    """

    def __init__(self, ns: WorkflowNamespace) -> None:
        self.begun: list[int] = []
        self.open = asyncio.Event()
        self.order: Workflow[Order, Receipt] = ns.create_workflow("order", run=self._run)

    async def _run(self, ctx: Context[Order]) -> Receipt:
        self.begun.append(ctx.input.number)
        if not self.open.is_set():
            await self.open.wait()
        if ctx.input.how == "badly":
            raise ValueError(f"no {ctx.input.number}")
        if ctx.input.how == "never":
            await asyncio.sleep(ONE_DAY)
        return Receipt(ctx.input.number, [ctx.input.how] if ctx.input.number % 2 else [])


@pytest.fixture
async def ns(redis_url: str, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        yield ns


@pytest.fixture
def desk(ns: WorkflowNamespace) -> Desk:
    return Desk(ns)


def receipts(count: int) -> list[Receipt]:
    return [Receipt(number, ["well"] if number % 2 else []) for number in range(count)]


def are_waited_for(look: Look, count: int) -> bool:
    """Whether so many jobs wait, and somebody for the end of each."""
    return bool(look("ZCARD", "order:ready") == count)


async def test_the_outputs_come_in_the_order_of_the_inputs(desk: Desk) -> None:
    desk.open.set()
    async with desk.order.worker(concurrency=100):
        assert await desk.order.execute_many([]) == []
        assert await desk.order.execute_many([Order(0)]) == receipts(1)
        outputs = await desk.order.execute_many([Order(number) for number in range(MANY)], timeout=PATIENCE)
        assert_type(outputs, list[Receipt])
    assert outputs == receipts(MANY)
    assert sorted(desk.begun[1:]) == list(range(MANY))


async def test_nobody_looks_for_the_ends(namespace_id: str, server: Server, proxy: Proxy) -> None:
    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url) as waiting,
        WorkflowNamespace(namespace_id, redis=server.url) as working,
    ):
        desk = Desk(working)
        desk.open.set()
        async with desk.order.worker(concurrency=100):
            assert await Desk(waiting).order.execute_many([Order(number) for number in range(MANY)]) == receipts(MANY)
    assert proxy.requests_with(load("wait_jobs").sha) == 0


async def test_the_first_error_is_raised_at_once_and_the_other_jobs_go_on(desk: Desk, look: Look) -> None:
    inputs = [Order(0), Order(1, "never"), Order(2), Order(3, "badly")]
    desk.open.set()
    async with desk.order.worker():
        with pytest.raises(JobFailedError, match="no 3") as caught:
            await desk.order.execute_many(inputs)
        assert caught.value.__notes__ == ["That is what came of inputs[3]."]
        await wait_until(lambda: sorted(desk.begun) == [0, 1, 2, 3], PATIENCE)
        (goes_on,) = await desk.order.list_jobs("active")
        # nobody is left who would be told
        await wait_until(lambda: not look("HEXISTS", f"order:j:{goes_on.id}", "waiters"), PATIENCE)
        await goes_on.cancel()


async def test_a_job_that_has_failed_says_more_than_one_that_is_late(desk: Desk) -> None:
    desk.open.set()
    async with desk.order.worker():
        with pytest.raises(JobFailedError, match="no 2"):
            await desk.order.execute_many([Order(0, "never"), Order(1), Order(2, "badly")], timeout=PATIENCE)
        (goes_on,) = await desk.order.list_jobs("active")
        with pytest.raises(WaitTimeoutError, match=r"had not ended after 0.5 s; it goes on") as caught:
            await desk.order.execute_many([Order(3), Order(4, "never")], timeout=0.5)
        assert caught.value.__notes__ == ["That is what came of inputs[1]."]
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        for job in await desk.order.list_jobs("active"):
            await job.cancel()
        assert await goes_on.state() != "waiting"


async def test_errors_stand_in_the_places_of_their_jobs(desk: Desk) -> None:
    inputs = [Order(0), Order(1, "badly"), Order(2, "never"), Order(3), Order(4, "badly")]
    desk.open.set()
    async with desk.order.worker():
        waiting = asyncio.create_task(desk.order.execute_many(inputs, timeout=PATIENCE, return_exceptions=True))
        await wait_until(lambda: len(desk.begun) == len(inputs), PATIENCE)
        found = await wait_until(lambda: desk.order.list_jobs("active"), PATIENCE)
        assert await found[0].cancel("enough")
        ends = await waiting
    assert_type(ends, list[Receipt | JobError | SerializationError])
    assert (ends[0], ends[3]) == (Receipt(0), Receipt(3, ["well"]))
    failed, cancelled, also = ends[1], ends[2], ends[4]
    assert isinstance(failed, JobFailedError)
    assert isinstance(also, JobFailedError)
    assert "no 1" in str(failed)
    assert "no 4" in str(also)
    assert isinstance(cancelled, JobCancelledError)
    assert cancelled.reason == "enough"


@pytest.mark.parametrize("short", [0, 0.05])
async def test_the_jobs_are_added_however_short_the_timeout(desk: Desk, look: Look, short: float) -> None:
    with pytest.raises(WaitTimeoutError, match=f"had not ended after {short:g} s; it goes on"):
        await desk.order.execute_many([Order(number) for number in range(5)], timeout=short)
    waiting = await desk.order.list_jobs("waiting")
    assert len(waiting) == 5
    await wait_until(lambda: not any(look("HEXISTS", f"order:j:{job.id}", "waiters") for job in waiting), PATIENCE)
    desk.open.set()
    async with desk.order.worker():
        assert [await job.wait(PATIENCE) for job in waiting] == receipts(5)


async def test_what_came_in_time_is_given_beside_what_did_not(desk: Desk) -> None:
    inputs = [Order(0, "never"), Order(1), Order(2, "badly"), Order(3, "never"), Order(4)]
    desk.open.set()
    async with desk.order.worker():
        ends = await desk.order.execute_many(inputs, timeout=3, return_exceptions=True)
        running = await desk.order.list_jobs("active")
        assert [type(end) for end in ends] == [WaitTimeoutError, Receipt, JobFailedError, WaitTimeoutError, Receipt]
        late = {end.job_id for end in ends if isinstance(end, WaitTimeoutError)}
        assert late == {job.id for job in running}
        for job in running:
            await job.cancel()


async def test_whoever_gives_up_is_told_no_more(desk: Desk, look: Look) -> None:
    waiting = asyncio.create_task(desk.order.execute_many([Order(number) for number in range(300)]))
    await wait_until(lambda: are_waited_for(look, 300), PATIENCE)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    jobs = await desk.order.list_jobs("waiting", limit=300)
    await wait_until(lambda: not any(look("HEXISTS", f"order:j:{job.id}", "waiters") for job in jobs), PATIENCE)


async def test_ends_are_heard_of_although_the_connections_break(
    namespace_id: str, server: Server, proxy: Proxy, look: Look
) -> None:
    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url) as waiting,
        WorkflowNamespace(namespace_id, redis=server.url) as working,
    ):
        desk = Desk(working)
        outputs = asyncio.create_task(Desk(waiting).order.execute_many([Order(number) for number in range(MANY)]))
        await wait_until(lambda: are_waited_for(look, MANY), PATIENCE)
        async with desk.order.worker(concurrency=100):
            await wait_until(lambda: len(desk.begun) == 100, PATIENCE)
            await proxy.refuse()
            desk.open.set()
            await asyncio.sleep(0.2)  # some end while nobody hears of it, some when they are looked for again
            await proxy.accept()
            assert await outputs == receipts(MANY)


async def test_a_namespace_that_is_closed_ends_the_wait(
    redis_url: str, namespace_id: str, desk: Desk, look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        waiting = asyncio.create_task(Desk(ns).order.execute_many([Order(1), Order(2)], return_exceptions=True))
        await wait_until(lambda: are_waited_for(look, 2), PATIENCE)
    with pytest.raises(ClosedError):
        await waiting
    del waiting
    gc.collect()  # of nobody is told that an error was never looked at, which is logged then
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    await desk.order.remove_all("waiting")


async def test_inputs_of_which_one_job_is_made_give_its_output(desk: Desk) -> None:
    desk.open.set()
    only = Dedup("the only one", ONE_DAY)
    async with desk.order.worker():
        once = await desk.order.execute_many([Order(1), Order(2), Order(3)], throttle=only)
        assert once == [Receipt(1, ["well"])] * 3
        # it has ended, and is given however short the timeout
        again = await desk.order.execute_many([Order(number) for number in range(MANY)], throttle=only, timeout=0)
        assert again == [Receipt(1, ["well"])] * MANY
    assert desk.begun == [1]


async def test_inputs_of_which_one_job_is_made_are_late_together(desk: Desk) -> None:
    only = Dedup("the only one", ONE_DAY)
    job = await desk.order.run(Order(1), throttle=only)
    ends = await desk.order.execute_many([Order(2)] * 5, throttle=only, timeout=0.05, return_exceptions=True)
    assert [type(end) for end in ends] == [WaitTimeoutError] * 5
    with pytest.raises(WaitTimeoutError):
        await desk.order.execute_many([Order(2)] * 5, throttle=only, timeout=0.05)
    await job.cancel()


async def test_one_job_that_many_inputs_stand_for_is_looked_at_once(
    namespace_id: str, server: Server, proxy: Proxy
) -> None:
    only = Dedup("the only one", ONE_DAY)
    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url) as waiting,
        WorkflowNamespace(namespace_id, redis=server.url) as working,
    ):
        desk = Desk(working)
        job = await desk.order.run(Order(1), throttle=only)
        outputs = asyncio.create_task(Desk(waiting).order.execute_many([Order(2)] * MANY, throttle=only))
        look = f"{working.queues.base}:order:j:{job.id}"
        runtime = await working.queues.runtime()
        await wait_until(lambda: runtime.call.link.call("HEXISTS", look, "waiters"), PATIENCE)
        desk.open.set()
        async with desk.order.worker():
            assert await outputs == [Receipt(1, ["well"])] * MANY
    assert proxy.requests_with(load("wait_jobs").sha) == 1


async def test_nothing_is_missed_where_the_channel_opens_again_as_the_jobs_are_added(
    namespace_id: str, server: Server, proxy: Proxy
) -> None:
    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url) as waiting,
        WorkflowNamespace(namespace_id, redis=server.url) as working,
    ):
        desk, order = Desk(working), Desk(waiting).order
        desk.open.set()
        inputs = [Order(number) for number in range(MANY)]
        async with desk.order.worker(concurrency=100):
            await order.execute(Order(1))
            runtime = await waiting.queues.runtime()
            for _ in range(3):
                proxy.cut()
                await wait_until(lambda: not runtime.waiters._subscription.is_open, PATIENCE)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nobody else is told
                # of what has ended nothing is left to look at
                assert await order.execute_many(inputs, result_ttl=0, timeout=PATIENCE) == receipts(MANY)


async def test_an_output_that_cannot_be_read_is_an_error_in_its_place(
    redis_url: str, namespace_id: str, desk: Desk
) -> None:
    @dataclass
    class Unknown:
        number: int

    async def run(ctx: Context[Order]) -> Any:
        return Unknown(2) if ctx.input.number == 2 else Receipt(ctx.input.number)

    async with WorkflowNamespace(namespace_id, redis=redis_url) as other:
        newer = other.create_workflow("order", run=run)
        async with newer.worker():
            orders = [Order(1), Order(2), Order(3)]
            ends = await desk.order.execute_many(orders, return_exceptions=True)
            assert (ends[0], ends[2]) == (Receipt(1), Receipt(3))
            with pytest.raises(SerializationError, match=r"the output cannot be read.*Unknown"):
                await desk.order.execute_many(orders)
    assert isinstance(ends[1], SerializationError)


@pytest.mark.parametrize(
    ("inputs", "options", "said"),
    [
        ("abc", {}, "execute_many takes a list of inputs, not 'abc'"),
        ({"a": 1}, {}, "execute_many takes a list of inputs"),
        ({1, 2}, {}, "execute_many takes a list of inputs"),
        (bytearray(b"ab"), {}, "execute_many takes a list of inputs"),
        (None, {}, "execute_many takes a list of inputs, not None"),
        (Order(1), {}, r"execute_many takes a list of inputs, not Order\(number=1"),
        ([Order(1)], {"id": "a"}, "execute_many takes no id="),
        ([Order(1)], {"if_exists": "return"}, "execute_many takes no if_exists="),
        ([Order(1)], {"timeout": -1}, "timeout"),
        ([Order(1)], {"priority": -1}, "priority"),
        (
            [Order(1), {"number": "x"}],
            {},
            r"inputs\[1\] of execute_many, which has sent nothing: ",
        ),
    ],
)
async def test_bad_input_is_refused_and_nothing_is_sent(
    desk: Desk, look: Look, inputs: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises((InvalidArgumentError, SerializationError), match=said):
        await desk.order.execute_many(inputs, **options)
    assert look("ZCARD", "order:ready") == 0


@pytest.mark.parametrize("how", ["well", "x" * 20_000, "badly", "never"], ids=["pushed", "too long", "failed", "late"])
async def test_however_ends_were_heard_nobody_is_left_who_hears_of_them(
    ns: WorkflowNamespace, desk: Desk, how: str
) -> None:
    desk.open.set()
    runtime = await ns.queues.runtime()
    inputs = [Order(number, how if number == 7 else "well") for number in range(20)]
    async with desk.order.worker(grace=0):
        await desk.order.execute_many(inputs, return_exceptions=True, timeout=2 if how == "never" else PATIENCE)
    assert not runtime.waiters._waiting  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nobody else knows


async def test_nobody_is_left_who_hears_of_ends_that_were_missed(
    namespace_id: str, server: Server, proxy: Proxy
) -> None:
    async with (
        WorkflowNamespace(namespace_id, redis=proxy.url) as waiting,
        WorkflowNamespace(namespace_id, redis=server.url) as working,
    ):
        desk, order = Desk(working), Desk(waiting).order
        together = asyncio.create_task(order.execute_many([Order(number) for number in range(MANY)], timeout=PATIENCE))
        runtime = await waiting.queues.runtime()
        async with desk.order.worker(concurrency=100):
            await wait_until(lambda: len(desk.begun) == 100, PATIENCE)
            proxy.cut()
            desk.open.set()
            assert await together == receipts(MANY)
        assert not runtime.waiters._waiting  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nobody else knows
