"""A namespace with a codec: what it keeps tells nothing to who reads Redis, and everything works as without."""

import asyncio
import base64
import zlib
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from cryptography.fernet import Fernet

from lanner import (
    Backoff,
    ChildFailedError,
    Context,
    ContinueAsNew,
    InvalidArgumentError,
    Job,
    JobCancelledError,
    JobFailedError,
    NonRetryableError,
    SerializationError,
    SyncContext,
    WorkflowNamespace,
)
from support.client import Client
from support.servers import Server
from support.waiting import wait_until

# nothing but values contains it: no name, no id, no line of this file's code that a traceback would show
SECRET = f"{4111}-{1111}"


class Encrypted:
    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)

    def encode(self, text: str, /) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def decode(self, text: str, /) -> str:
        return self._fernet.decrypt(text.encode()).decode()


class Compressed:
    def encode(self, text: str, /) -> str:
        return base64.b85encode(zlib.compress(text.encode())).decode()

    def decode(self, text: str, /) -> str:
        return zlib.decompress(base64.b85decode(text)).decode()


class Order(msgspec.Struct):
    card: str
    tags: set[str] = set()


def stored(client: Client, namespace_id: str) -> str:
    """Everything that a namespace keeps: names, values, members, fields, of whatever type."""
    reads = {
        "string": ("GET",),
        "hash": ("HGETALL",),
        "list": ("LRANGE", 0, -1),
        "set": ("SMEMBERS",),
        "zset": ("ZRANGE", 0, -1),
        "stream": ("XRANGE", "-", "+"),
    }
    parts: list[object] = []
    for names in client.keys(f"lanner:{{{namespace_id}}}*"):
        for name in names:
            kind = client("TYPE", name)
            if kind != "none":
                command, *arguments = reads[kind]
                parts += [name, client(command, name, *arguments)]
    return repr(parts)


async def echo(value: Any) -> Any:
    return value


async def refuse(value: str) -> None:
    raise NonRetryableError(f"no such card: {value}")


async def ship(ctx: Context[str]) -> str:
    return f"parcel for {ctx.input}"


async def lose(ctx: Context[str]) -> None:
    raise ValueError(f"lost: {ctx.input}")


async def spoil(value: str) -> None:
    raise OSError(f"cannot give back to {value}")


async def travel(ctx: Context[str]) -> None:
    ctx.on_failure("give back", spoil, ctx.input)
    raise NonRetryableError(f"no way for {ctx.input}")


def take(ctx: SyncContext[Order]) -> str:
    return ctx.step.do("take", lambda: ctx.input.card)


class Shop:
    """Workflows that use all there is; every value has the secret in it.

    Attributes:
        looks: What was stored at each moment that was looked at.
    """

    def __init__(self, namespace: WorkflowNamespace, client: Client) -> None:
        self.namespace = namespace
        self.looks: list[str] = []
        self._client = client
        self.shipping = namespace.create_workflow("shipping", run=ship)
        self.losing = namespace.create_workflow("losing", run=lose)
        self.travelling = namespace.create_workflow("travelling", run=travel, backoff=Backoff(first=0))
        self.taking = namespace.create_workflow("taking", run=take)
        self.buying = namespace.create_workflow("buying", run=self.buy, max_attempts=2, events=100)

    def look(self) -> None:
        self.looks.append(stored(self._client, self.namespace.id))

    async def buy(self, ctx: Context[Order]) -> dict[str, Any]:
        card = await ctx.step.do("read card", echo, ctx.input.card)
        await ctx.progress({"card": card})
        await ctx.log(f"charging {card}")
        refused = await self.caught(ctx.step.do("refuse", refuse, card))
        self.look()
        if ctx.attempt == 1:
            raise RuntimeError(f"the bank knows no {card}")
        approval = await ctx.step.wait_for_event("approved", type=Order)
        parcel = await ctx.step.run("ship", self.shipping, card)
        lost = await self.caught(ctx.step.run("lose", self.losing, card))
        self.look()
        return {"card": card, "by": approval, "refused": refused, "parcel": parcel, "lost": lost}

    async def caught(self, step: Awaitable[Any]) -> str:
        try:
            await step
        except (NonRetryableError, ChildFailedError) as error:
            return error.message if isinstance(error, ChildFailedError) else str(error)
        raise AssertionError

    async def sell(self) -> list[str]:
        """Do everything, check that it worked, and say what was stored meanwhile."""
        order = Order(SECRET, {SECRET})
        await self.buying.upsert_schedule("yearly", "0 0 1 1 *", order)
        assert SECRET in (await self.buying.get_schedules())[0].data
        job = await self.buying.run(order, id="one")
        early = await self.buying.run_in(order, timedelta(days=1), id="later")
        self.look()
        async with self.namespace.worker():
            await wait_until(lambda: is_in(job, "parked"))
            await self.check_what_is_told_of(job)
            await job.send_event("other", SECRET)
            self.look()
            await job.send_event("approved", order)
            assert await job.wait(timeout=30) == {
                "card": SECRET,
                "by": order,
                "parcel": f"parcel for {SECRET}",
                "lost": f"lost: {SECRET}",
                # the second attempt has met the failure that the first one kept
                "refused": f"step 'refuse' has failed for good: NonRetryableError: no such card: {SECRET}",
            }
            self.look()
            assert await self.taking.execute(order, timeout=30) == SECRET
            await self.check_failures(early)
            self.look()
        self.look()
        await self.buying.remove_schedule("yearly")
        return self.looks

    async def check_what_is_told_of(self, job: Job[Any]) -> None:
        self.look()
        record = await job.record()
        assert record.failure is not None
        assert SECRET in record.data
        assert SECRET in (record.progress or "")
        assert SECRET in record.failure.message
        assert SECRET in record.failure.traceback
        assert SECRET in record.steps["read card"]
        assert SECRET in record.steps["refuse"]
        assert await job.log() == [f"charging {SECRET}"] * 2

    async def check_failures(self, early: Job[Any]) -> None:
        assert await early.cancel(f"stolen: {SECRET}")
        with pytest.raises(JobCancelledError) as cancelled:
            await early.wait()
        assert cancelled.value.reason == f"stolen: {SECRET}"
        assert SECRET in ((await early.record()).reason or "")
        with pytest.raises(JobFailedError) as failed:
            await self.losing.execute(SECRET, timeout=30)
        assert failed.value.type == "ValueError"
        assert failed.value.message == f"lost: {SECRET}"
        assert f"ValueError: lost: {SECRET}" in failed.value.traceback
        with pytest.raises(JobFailedError) as failed:
            await self.travelling.execute(SECRET, timeout=30)
        assert failed.value.message == (
            f"no way for {SECRET}; compensation 'give back' has failed: OSError: cannot give back to {SECRET}"
        )


async def is_in(job: Job[Any], state: str) -> bool:
    return await job.state() == state


@pytest.mark.parametrize("codec", [Encrypted(Fernet.generate_key()), Compressed()], ids=["encrypted", "compressed"])
async def test_nothing_that_is_stored_shows_a_value(server: Server, namespace_id: str, codec: Any) -> None:
    with server.client() as client:
        async with WorkflowNamespace(namespace_id, redis=server.url, codec=codec) as namespace:
            looks = await Shop(namespace, client).sell()
    assert [look for look in looks if SECRET in look] == []


async def test_without_a_codec_each_look_finds_the_values(server: Server, namespace_id: str) -> None:
    """That the looks of the test above would see one."""
    with server.client() as client:
        async with WorkflowNamespace(namespace_id, redis=server.url) as namespace:
            looks = await Shop(namespace, client).sell()
    assert [look for look in looks if SECRET not in look] == []


async def test_nothing_that_is_pushed_to_who_waits_or_watches_shows_a_value(server: Server, namespace_id: str) -> None:
    async def run(ctx: Context[str]) -> str:
        await ctx.progress(ctx.input)
        return ctx.input

    with server.client() as client:
        async with WorkflowNamespace(namespace_id, redis=server.url, codec=Compressed()) as namespace:
            workflow = namespace.create_workflow("flow", run=run)
            job = workflow.queue.job((await workflow.run(SECRET)).id)

            async def heard() -> list[str]:
                return [happening.text async for happening in job.watch()]

            watching = asyncio.create_task(heard())
            await wait_until(lambda: client("HGET", f"lanner:{{{namespace_id}}}:flow:j:{job.id}", "watchers"))
            async with workflow.worker():
                texts = await watching
    assert len([text for text in texts if text]) >= 2
    assert not any(SECRET in text for text in texts)


async def test_a_namespace_that_has_another_key_says_that_it_cannot_read(server: Server, namespace_id: str) -> None:
    async def run(ctx: Context[str]) -> str:
        if ctx.input == "fail":
            raise ValueError(SECRET)
        return ctx.input

    def opened(key: bytes) -> WorkflowNamespace:
        return WorkflowNamespace(namespace_id, redis=server.url, codec=Encrypted(key))

    ours = Fernet.generate_key()
    async with opened(ours) as writing, opened(Fernet.generate_key()) as reading:
        writer = writing.create_workflow("flow", run=run)
        reader = reading.create_workflow("flow", run=run)
        async with writer.worker():
            job = await writer.run("fine")
            await job.wait(timeout=30)
            with pytest.raises(SerializationError, match=r"the codec refuses it \(InvalidToken\): every process"):
                await reader.get_job(job.id).wait()
            assert "cannot be read" in ((await reader.get_job(job.id).record()).result or "")
            failing = await writer.run("fail")
            with pytest.raises(JobFailedError, match=r"ValueError: .*cannot be read"):
                await reader.get_job(failing.id).wait(timeout=30)
        # a worker with the wrong key fails the job for good, in words that those with its key can read
        async with reader.worker():
            job = await writer.run("fine", max_attempts=5)
            with pytest.raises(JobFailedError) as failed:
                await reader.get_job(job.id).wait(timeout=30)
            assert failed.value.type == "SerializationError"
            assert "workflow 'flow': the input does not fit its schema: the codec refuses it" in failed.value.message
        # mended, and retried by hand, it runs
        async with writer.worker():
            assert await writer.retry(job.id)
            assert await job.wait(timeout=30) == "fine"


async def test_a_namespace_without_the_codec_says_that_it_cannot_read(server: Server, namespace_id: str) -> None:
    async def run(ctx: Context[Any]) -> Any:
        return ctx.input

    async with (
        WorkflowNamespace(namespace_id, redis=server.url, codec=Compressed()) as coded,
        WorkflowNamespace(namespace_id, redis=server.url) as plain,
    ):
        with_codec = coded.create_workflow("flow", run=run)
        without = plain.create_workflow("flow", run=run)
        async with with_codec.worker():
            job = await without.run({"a": 1})
            with pytest.raises(JobFailedError) as failed:
                await with_codec.get_job(job.id).wait(timeout=30)
            assert "the codec refuses it (ValueError" in failed.value.message


class Broken:
    def __init__(self, encoded: Any) -> None:
        self._encoded = encoded

    def encode(self, _text: str, /) -> Any:
        if isinstance(self._encoded, Exception):
            raise self._encoded
        return self._encoded

    def decode(self, text: str, /) -> str:
        return text


@pytest.mark.parametrize(
    ("encoded", "why"),
    [
        (ValueError("no key"), "the codec cannot encode it: ValueError: no key"),
        (b"bytes", "the codec's encode returned bytes: it must return a str"),
        ("\ud800", "the codec's encode returned a text that UTF-8 cannot write"),
    ],
)
async def test_an_input_that_the_codec_refuses_is_not_enqueued(
    server: Server, namespace_id: str, encoded: Any, why: str
) -> None:
    async def run(ctx: Context[str]) -> None: ...

    async with WorkflowNamespace(namespace_id, redis=server.url, codec=Broken(encoded)) as namespace:
        workflow = namespace.create_workflow("flow", run=run)
        with pytest.raises(SerializationError) as refused:
            await workflow.run("x")
        assert str(refused.value) == f"workflow 'flow': the input cannot be stored: {why}"
        assert (await workflow.counts()).waiting == 0


class Choosy(Compressed):
    """It refuses some texts."""

    def encode(self, text: str, /) -> str:
        if "refuse this" in text:
            raise ValueError("refused")
        return super().encode(text)


async def test_a_result_that_the_codec_refuses_fails_the_attempt_and_says_which_step(
    server: Server, namespace_id: str
) -> None:
    async def words() -> str:
        return "refuse this"

    async def run(ctx: Context[str]) -> str:
        return await ctx.step.do("words", words)

    async with WorkflowNamespace(namespace_id, redis=server.url, codec=Choosy()) as namespace:
        workflow = namespace.create_workflow("flow", run=run)
        async with workflow.worker():
            job = await workflow.run("x")
            with pytest.raises(JobFailedError) as failed:
                await job.wait(timeout=30)
    assert failed.value.message == (
        f"workflow 'flow', job {job.id!r}, step 'words': its result cannot be stored: "
        "the codec cannot encode it: ValueError: refused"
    )


async def test_a_failure_whose_text_the_codec_refuses_fails_the_job_all_the_same(
    server: Server, namespace_id: str
) -> None:
    async def run(ctx: Context[str]) -> None:
        raise KeyError("refuse " + ctx.input)

    async with WorkflowNamespace(namespace_id, redis=server.url, codec=Choosy()) as namespace:
        workflow = namespace.create_workflow("flow", run=run)
        async with workflow.worker():
            job = await workflow.run("this")
            with pytest.raises(JobFailedError) as failed:
                await job.wait(timeout=30)
    assert failed.value.type == "KeyError"
    assert "could not be stored: the codec cannot encode it" in failed.value.message


class Panic(BaseException):
    """What an extension raises that has panicked: no ``Exception``."""


class Panicking(Compressed):
    """It panics over some texts."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def encode(self, text: str, /) -> str:
        if "refuse this" in text:
            raise self._error
        return super().encode(text)


@pytest.mark.parametrize("kind", [Panic, SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("what", ["result", "failure", "next input"])
async def test_a_codec_that_panics_over_an_outcome_fails_its_job_and_frees_the_slot(
    server: Server, namespace_id: str, what: str, kind: type[BaseException]
) -> None:
    async def run(ctx: Context[str]) -> str:
        text = ctx.input.replace("accept", "refuse")
        if what == "failure" and text != ctx.input:
            raise KeyError(text)
        if what == "next input" and text != ctx.input:
            raise ContinueAsNew(text)
        return text

    async with WorkflowNamespace(namespace_id, redis=server.url, codec=Panicking(kind("refused"))) as namespace:
        workflow = namespace.create_workflow("flow", run=run)
        async with workflow.worker(concurrency=1):
            job = await workflow.run("accept this")
            with pytest.raises(JobFailedError):
                await job.wait(timeout=30)
            assert await workflow.execute("a result", timeout=30) == "a result"


@pytest.mark.parametrize(
    ("codec", "why"),
    [
        ("rot13", "codec must have methods encode and decode, from str to str"),
        (object(), "codec must have methods encode and decode, from str to str"),
        (Encrypted, "codec must be an object, not a class: make one of Encrypted"),
    ],
    ids=["text", "object", "class"],
)
def test_what_is_no_codec_is_refused(codec: Any, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        WorkflowNamespace("shop", codec=codec)
