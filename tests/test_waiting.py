import anyio
import pytest

from support.waiting import wait_until


async def test_the_answer_of_the_condition_is_returned() -> None:
    answers = iter([0, "", None, "there"])
    assert await wait_until(lambda: next(answers)) == "there"


async def test_a_condition_may_be_asynchronous() -> None:
    answers = iter([False, True])

    async def condition() -> bool:
        await anyio.lowlevel.checkpoint()
        return next(answers)

    assert await wait_until(condition)


async def test_what_never_becomes_so_fails_with_the_condition_in_the_text() -> None:
    with pytest.raises(AssertionError, match=r"lambda: 1 > 2.*last answer: False"):
        await wait_until(lambda: 1 > 2, timeout=0.05)  # noqa: PLR0133 - it is never so
