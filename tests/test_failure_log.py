"""Every attempt that fails is in the worker's log: which it was of how many, and whether another follows."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lanner import Backoff, Context, Job, JobCancelledError, JobFailedError, NonRetryableError, WorkflowNamespace
from support.servers import Server
from support.waiting import wait_until

LOGGER = "lanner.workflow.attempts"


@pytest.fixture
async def namespace(server: Server, namespace_id: str) -> AsyncIterator[WorkflowNamespace]:
    async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
        yield namespace


async def ended(job: Job[Any]) -> None:
    with pytest.raises((JobFailedError, JobCancelledError)):
        await job.wait(timeout=30)


def said(caplog: pytest.LogCaptureFixture, logger: str = LOGGER) -> list[tuple[int, str, str]]:
    """Level, text and error of what was logged."""
    return [
        (each.levelno, each.getMessage(), type(each.exc_info[1]).__name__ if each.exc_info else "")
        for each in caplog.records
        if each.name == logger
    ]


async def charge(_: Context[None]) -> None:
    raise ValueError("declined")


async def test_attempts_are_counted_and_the_last_one_is_an_error(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    workflow = namespace.create_workflow("charge", run=charge)
    async with workflow.worker():
        job = await workflow.run(None, max_attempts=3, backoff=Backoff(first=0))
        await ended(job)
    at = f"at job {job.id!r} of workflow 'charge' has failed"
    assert said(caplog) == [
        (logging.WARNING, f"attempt 1 of 3 {at}, the next follows in 0 s", "ValueError"),
        (logging.WARNING, f"attempt 2 of 3 {at}, the next follows in 0 s", "ValueError"),
        (logging.ERROR, f"attempt 3 of 3 {at}, for good", "ValueError"),
    ]
    assert "in charge\n" in caplog.text


async def test_the_log_says_in_how_many_seconds_the_next_attempt_follows(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    workflow = namespace.create_workflow("charge", run=charge)
    async with workflow.worker():
        job = await workflow.run(None, max_attempts=2, backoff=Backoff(first=86_400))
        await wait_until(lambda: bool(said(caplog)))
        assert await job.state() == "delayed"
    assert re.search(r", the next follows in \d+(\.\d{1,3})? s$", said(caplog)[0][1])


async def test_what_is_not_tried_again_is_an_error_at_once(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    async def charge(_: Context[None]) -> None:
        raise NonRetryableError("no such card")

    workflow = namespace.create_workflow("charge", run=charge)
    async with workflow.worker():
        job = await workflow.run(None, max_attempts=3)
        await ended(job)
    assert said(caplog) == [
        (
            logging.ERROR,
            f"attempt 1 of 3 at job {job.id!r} of workflow 'charge' has failed, for good",
            "NonRetryableError",
        )
    ]


async def test_a_timeout_is_logged_as_the_failure_that_it_is(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    async def hang(_: Context[None]) -> None:
        await asyncio.Event().wait()

    workflow = namespace.create_workflow("hang", run=hang)
    async with workflow.worker():
        await ended(await workflow.run(None, timeout=0.05))
    assert [(level, error) for level, _, error in said(caplog)] == [(logging.ERROR, "TimeoutError")]


async def test_each_failure_of_a_compensation_says_whose_it_is_and_how_often_it_is_tried(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    async def refund() -> None:
        raise OSError("the bank is away")

    async def order(ctx: Context[None]) -> None:
        ctx.on_failure("refund", refund)
        raise ValueError("sold out")

    workflow = namespace.create_workflow("order", run=order)
    async with workflow.worker():
        job = await workflow.run(None, backoff=Backoff(first=0))
        await ended(job)
    whose = f"compensation 'refund' of job {job.id!r} of workflow 'order' has failed"
    assert said(caplog) == [
        (logging.ERROR, f"attempt 1 of 1 at job {job.id!r} of workflow 'order' has failed, for good", "ValueError")
    ]
    assert said(caplog, "lanner.workflow.compensation") == [
        (logging.WARNING, f"{whose}, 1 of 3 times, and is tried again in 0 s", "OSError"),
        (logging.WARNING, f"{whose}, 2 of 3 times, and is tried again in 0 s", "OSError"),
        (logging.ERROR, f"{whose} 3 times and is given up", "OSError"),
    ]


async def test_an_input_that_cannot_be_read_is_explained_once(
    namespace: WorkflowNamespace, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def greet(ctx: Context[str]) -> str:
        return ctx.input

    async def count(ctx: Context[int]) -> int:
        return ctx.input

    greeting = namespace.create_workflow("greet", run=greet)
    job, other = await greeting.run("ada", max_attempts=3), await greeting.run("bob", max_attempts=3)
    async with (
        WorkflowNamespace(namespace.id, redis=server.url) as others,
        others.create_workflow("greet", run=count).worker(),
    ):
        await ended(job)
        await ended(other)
    (explained, *failed) = said(caplog)
    assert "the input does not fit its schema" in explained[1]
    # the others are not explained, but say why they have failed
    assert [text for _, text, _ in failed] == [
        f"attempt 1 of 3 at job {each.id!r} of workflow 'greet' has failed, for good" for each in (job, other)
    ]
    assert [error for _, _, error in failed] == ["", "SerializationError"]


async def test_records_say_by_themselves_which_attempt_it_was(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    workflow = namespace.create_workflow("charge", run=charge)
    async with workflow.worker():
        job = await workflow.run(None)
        await ended(job)
    record = next(each for each in caplog.records if each.name == LOGGER)
    fields = {name: getattr(record, name) for name in ("workflow", "job_id", "attempt")}
    assert fields == {"workflow": "charge", "job_id": job.id, "attempt": 1}


async def test_nothing_is_said_of_what_ends_well_or_is_cancelled(
    namespace: WorkflowNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    began = asyncio.Event()

    async def work(ctx: Context[str]) -> None:
        if ctx.input == "hang":
            began.set()
            await asyncio.Event().wait()

    workflow = namespace.create_workflow("work", run=work)
    async with workflow.worker():
        await workflow.execute("go", timeout=30)
        job = await workflow.run("hang")
        await began.wait()
        await job.cancel()
        await ended(job)
    assert said(caplog) == []
