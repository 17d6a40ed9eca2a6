"""What a handler makes of a job: its result, an outcome, an error, or something that cannot be kept."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lanner.errors import JobFailedError
from lanner.queue import Claim, Completed, Failed, Failure, Namespace
from lanner.queue.claim import EndReason
from support.jobs import results_of, worker_of
from support.waiting import wait_until

SEVERAL = 6


@pytest.mark.parametrize(("given", "kept"), [("text", "text"), ("", ""), (None, ""), (Completed("text"), "text")])
async def test_what_a_handler_returns_is_the_result(namespace: Namespace, given: Any, kept: str) -> None:
    async def handle(_: Claim) -> Any:
        return given

    queue = namespace.queue("q")
    async with worker_of(queue, handle):
        assert await (await queue.add("x")).wait(60) == kept


async def test_a_handler_may_say_that_its_job_failed(namespace: Namespace) -> None:
    async def handle(_: Claim) -> Failed:
        return Failed(Failure("Refused", "not today"))

    queue = namespace.queue("q")
    async with worker_of(queue, handle):
        with pytest.raises(JobFailedError, match="Refused: not today") as raised:
            await (await queue.add("x")).wait(60)
    assert (raised.value.type, raised.value.message) == ("Refused", "not today")


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a number": (lambda: 5, "int"),
    "bytes": (lambda: b"text", "bytes"),
    "a list": (list, "list"),
    "a class": (lambda: Completed, "type"),
    "text that UTF-8 cannot write": (lambda: "\ud800", "UTF-8"),
    "an outcome with such a text": (lambda: Completed("\ud800"), "UTF-8"),
}


@pytest.mark.parametrize(("give", "said"), BAD.values(), ids=BAD)
async def test_a_result_that_cannot_be_kept_fails_its_job_and_no_other(
    namespace: Namespace, give: Callable[[], Any], said: str
) -> None:
    async def handle(claim: Claim) -> Any:
        return give() if claim.data == "bad" else claim.data

    queue = namespace.queue("q")
    good = await queue.add_many([f"good {number}" for number in range(SEVERAL)])
    bad = await queue.add("bad", priority=1)
    async with worker_of(queue, handle):
        with pytest.raises(JobFailedError, match=said):
            await bad.wait(60)
        assert await results_of(good) == [f"good {number}" for number in range(SEVERAL)]
        assert await (await queue.add("later")).wait(60) == "later"


class Promise:
    """What runs a claim without a task: a future, which becomes the reason when the job is to end."""

    def __init__(self) -> None:
        self.future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(self, reason: EndReason) -> None:
        """Say why."""
        self.future.set_result(f"ended: {reason}")

    def event_arrived(self, name: str) -> None:
        """Wait for none."""

    def count_threads(self) -> int:
        """Have none."""
        return 0


async def test_a_handler_may_give_a_future(namespace: Namespace) -> None:
    def handle(claim: Claim) -> asyncio.Future[str]:
        promise = Promise()
        if claim.data == "x":
            promise.future.set_result("kept")
        else:
            promise.future.set_exception(ValueError("broken"))
        return promise.future

    queue = namespace.queue("q")
    async with worker_of(queue, handle):
        assert await (await queue.add("x")).wait(60) == "kept"
        with pytest.raises(JobFailedError, match="ValueError: broken"):
            await (await queue.add("y")).wait(60)


async def test_a_handler_that_raises_instead_of_giving_a_future_fails_its_job(namespace: Namespace) -> None:
    def handle(claim: Claim) -> asyncio.Future[str]:
        raise ValueError(claim.data)

    queue = namespace.queue("q")
    async with worker_of(queue, handle):
        with pytest.raises(JobFailedError, match="ValueError: x"):
            await (await queue.add("x")).wait(60)


async def test_a_job_whose_handler_gave_a_future_is_told_of_its_end(namespace: Namespace) -> None:
    promises: list[Promise] = []

    def handle(claim: Claim) -> asyncio.Future[str]:
        promises.append(Promise())
        claim.run_by(promises[-1])
        return promises[-1].future

    queue = namespace.queue("q")
    async with worker_of(queue, handle):
        job = await queue.add("x", timeout=0.05)
        with pytest.raises(JobFailedError, match="TimeoutError: the attempt took longer"):
            await job.wait(60)
        assert promises[0].future.result() == "ended: timeout"
    stopped = await queue.add("y")
    worker = worker_of(queue, handle)
    await worker.start()
    await wait_until(lambda: len(promises) > 1)
    await worker.stop()
    assert promises[1].future.result() == "ended: shutdown"
    assert await stopped.wait(60) == "ended: shutdown"  # a result is a result, however late
