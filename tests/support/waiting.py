import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

import anyio

Answer = TypeVar("Answer")

LOOK_AGAIN = 0.01


@overload
async def wait_until(condition: Callable[[], Awaitable[Answer]], timeout: float = 30) -> Answer: ...  # noqa: ASYNC109 - as below
@overload
async def wait_until(condition: Callable[[], Answer], timeout: float = 30) -> Answer: ...  # noqa: ASYNC109 - as below
async def wait_until(
    condition: Callable[[], object],
    timeout: float = 30,  # noqa: ASYNC109 - it fails the test with what was awaited, which a cancel scope cannot
) -> object:
    """Wait until the condition (a plain or an async function) answers something true, and return that answer."""
    deadline = time.monotonic() + timeout
    while True:
        answered = condition()
        answer: object = await answered if inspect.isawaitable(answered) else answered
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {timeout} s: {_text_of(condition)} (last answer: {answer!r})")
        await anyio.sleep(LOOK_AGAIN)


def _text_of(condition: Callable[[], object]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
