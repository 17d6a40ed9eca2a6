"""What a handler makes of a job: its result, an outcome, an error, or something that cannot be kept."""

from collections.abc import Callable
from typing import Any

import pytest

from lanner.errors import JobFailedError
from lanner.queue import Claim, Completed, Failed, Failure, Namespace
from support.jobs import results_of, worker_of

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
