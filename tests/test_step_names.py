"""Steps are known by their names, in scopes and nested."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from lanner.errors import StepError
from lanner.workflow.context import Context
from lanner.workflow.threads import Threads
from support.runs import Counted, MemoryJob, completed, failure_of, plain_threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    with plain_threads() as threads:
        yield threads


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "must not be empty"),
        ("x" * 10_000, "at most 256 characters, and 'xxx"),
        ("two\nlines", "no control characters"),
        ("\ud800", "no control characters or lone surrogates"),
        (7, "must be text, not 7; use str(...)"),
        (None, "must be text, not None"),
    ],
)
async def test_an_unfit_step_name_is_an_error(threads: Threads, name: Any, says: str) -> None:
    async def refused(call: Awaitable[object]) -> None:
        with pytest.raises(StepError) as caught:
            await call
        assert says in str(caught.value)

    async def workflow(ctx: Context[None]) -> None:
        await refused(ctx.step.do(name, Counted().of, "x"))
        await refused(ctx.step.wait(name, 0))
        await refused(ctx.step.wait_for_event(name))
        with pytest.raises(StepError), ctx.step.scope(name):
            pass

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    assert job.record.calls == 0


async def test_names_may_have_any_text(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        for name in ("a/b", "a~b", "a~1b", "a~0b", "naïve ✓ \u00a0 名", " "):
            await ctx.step.do(name, Counted().of, "x")

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(None)
    assert set(job.record.steps) == {"a~1b", "a~0b", "a~01b", "a~00b", "naïve ✓ \u00a0 名", " "}


async def test_a_name_used_twice_in_a_scope_is_an_error(threads: Threads) -> None:
    counted = Counted()

    async def workflow(ctx: Context[None]) -> None:
        await ctx.step.do("send", counted.of, "send")
        await ctx.step.do("send", counted.of, "send")

    job = MemoryJob(workflow, threads=threads)
    for _ in range(2):  # in the first attempt, and when the first of the two is replayed
        assert "StepError: step 'send' was already used in its scope" in failure_of(await job.attempt())
    assert counted.runs == {"send": 1}


async def test_a_name_used_by_two_branches_at_once_is_an_error(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        await asyncio.gather(ctx.step.do("send", Counted().of, "1"), ctx.step.do("send", Counted().of, "2"))

    outcome = await MemoryJob(workflow, threads=threads).attempt()
    assert "'send' was already used in its scope" in failure_of(outcome)


async def test_a_name_found_as_another_kind_is_an_error(threads: Threads) -> None:
    kinds: dict[str, Callable[[Context[None]], Awaitable[object]]] = {
        "do": lambda ctx: ctx.step.do("x", Counted().of, "x"),
        "wait": lambda ctx: ctx.step.wait("x", 0),
        "event": lambda ctx: ctx.step.wait_for_event("x", timeout=0),
    }
    for was, now in itertools.permutations(kinds, 2):

        async def before(ctx: Context[None], kind: str = was) -> None:
            await kinds[kind](ctx)
            raise OSError

        async def after(ctx: Context[None], kind: str = now) -> None:
            await kinds[kind](ctx)

        job = MemoryJob(before, threads=threads)
        await job.attempt()
        assert f"step 'x' is a '{now}' step now and was a '{was}' step" in failure_of(await job.attempt(after))


async def test_a_scope_has_no_checkpoint_and_keeps_names_apart(threads: Threads) -> None:
    counted = Counted()

    async def workflow(ctx: Context[list[str]]) -> list[str]:
        sent: list[str] = []
        for item in ctx.input:
            with ctx.step.scope(item):
                await ctx.step.do("pack", counted.of, f"pack {item}")
                with ctx.step.scope("post"):
                    sent.append(await ctx.step.do("send", counted.of, f"send {item}", item))
        if ctx.attempt == 1:
            raise OSError
        return sent

    job = MemoryJob(workflow, ["a", "b/c"], threads=threads)
    await job.attempt()
    assert list(job.record.steps) == ["a/pack", "a/post/send", "b~1c/pack", "b~1c/post/send"]
    assert await job.attempt() == completed(["a", "b/c"])
    assert set(counted.runs.values()) == {1}


async def test_a_scope_that_is_entered_again_is_the_same_scope(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> None:
        for _ in range(2):
            with ctx.step.scope("items"):
                await ctx.step.do("pack", Counted().of, "x")

    outcome = await MemoryJob(workflow, threads=threads).attempt()
    assert "step 'items/pack' was already used in its scope" in failure_of(outcome)


async def test_a_scope_and_a_step_cannot_share_a_name(threads: Threads) -> None:
    async def scope_first(ctx: Context[None]) -> None:
        with ctx.step.scope("x"):
            pass
        await ctx.step.do("x", Counted().of, "x")

    async def step_first(ctx: Context[None]) -> None:
        await ctx.step.do("x", Counted().of, "x")
        with ctx.step.scope("x"):
            pass

    async def fails(ctx: Context[None]) -> None:
        await ctx.step.do("x", Counted().of, "x")
        raise OSError

    async def step_was_recorded(ctx: Context[None]) -> None:
        with ctx.step.scope("x"):
            pass

    assert "'x' has the name of a scope" in failure_of(await MemoryJob(scope_first, threads=threads).attempt())
    assert "'x' has the name of a step" in failure_of(await MemoryJob(step_first, threads=threads).attempt())
    job = MemoryJob(fails, threads=threads)
    await job.attempt()
    assert "'x' has the name of a step" in failure_of(await job.attempt(step_was_recorded))


async def test_a_call_belongs_to_the_scope_it_was_made_in(threads: Threads) -> None:
    async def workflow(ctx: Context[None]) -> list[str]:
        made: list[Awaitable[str]] = []
        for item in ("a", "b"):
            with ctx.step.scope(item):
                made.append(ctx.step.do("resize", Counted().of, item, item))
        return list(await asyncio.gather(*made))

    job = MemoryJob(workflow, threads=threads)
    assert await job.attempt() == completed(["a", "b"])
    assert set(job.record.steps) == {"a/resize", "b/resize"}


async def test_nested_steps_are_scoped_under_their_outer_step(threads: Threads) -> None:
    counted = Counted()

    async def workflow(ctx: Context[None]) -> Any:
        async def fetch_all(of: str) -> list[Any]:
            with ctx.step.scope("pages"):
                return list(await asyncio.gather(*(ctx.step.do(str(n), counted.of, f"{of}{n}", n) for n in range(2))))

        found = [await ctx.step.do("left", fetch_all, "left"), await ctx.step.do("right", fetch_all, "right")]
        if ctx.attempt == 1:
            raise OSError
        return found

    job = MemoryJob(workflow, threads=threads)
    await job.attempt()
    assert set(job.record.steps) == {
        "left", "left/pages/0", "left/pages/1", "right", "right/pages/0", "right/pages/1",
    }  # fmt: skip
    assert await job.attempt() == completed([[0, 1], [0, 1]])
    assert set(counted.runs.values()) == {1}
