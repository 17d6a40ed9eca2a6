"""Redis goes away, comes back, refuses or forgets: workers go on unaided, producers get clear errors in time."""

import asyncio
import logging
import time
from collections import Counter
from functools import partial
from typing import Any

import pytest
import redis.asyncio
from redis.credentials import CredentialProvider

from lanner.errors import RedisUnavailableError
from lanner.queue import Claim, Namespace, Worker
from lanner.queue.scripts.claiming import settle, sweep_claims
from support.jobs import PATIENCE, Desk, Look, echo, is_refused, results_of, worker_of
from support.proxy import Proxy
from support.servers import PrivateServer, Server
from support.waiting import wait_until


def about_redis(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged of Redis being gone, or back."""
    return [record.message.split(": ", 1)[1] for record in caplog.records if ": Redis is " in record.message]


@pytest.mark.parametrize("how", ["restart", "crash"])
async def test_an_idle_worker_consumes_again_after_a_restart(
    own_server: PrivateServer, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Namespace("n", redis=own_server.url) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, echo):
            await (await queue.add("x")).wait(PATIENCE)
            if how == "restart":
                await asyncio.to_thread(own_server.restart)
            else:
                await asyncio.to_thread(own_server.kill)
                await asyncio.to_thread(own_server.start)
            for _ in range(3):
                assert await (await queue.add("x")).wait(PATIENCE) == "x"
    said = about_redis(caplog)
    assert [text.split()[2] for text in said] in (["gone", "back"], [])


async def test_jobs_that_run_during_a_restart_end_once(
    own_server: PrivateServer, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    async with Namespace("n", redis=own_server.url) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, desk, concurrency=100):
            jobs = await queue.add_many([str(n) for n in range(150)])
            waits = [asyncio.create_task(job.wait(PATIENCE)) for job in jobs]
            await wait_until(lambda: len(desk.running) == 100, PATIENCE)
            await asyncio.to_thread(own_server.stop)
            desk.open()
            await wait_until(lambda: not desk.running, PATIENCE)
            await wait_until(lambda: about_redis(caplog))
            await asyncio.to_thread(own_server.start)
            assert list(await asyncio.gather(*waits)) == [str(n) for n in range(150)]
        records = [await job.record() for job in jobs]
    assert Counter(desk.started) == Counter(job.id for job in jobs)
    assert {(record.attempt, record.stalls) for record in records} == {(1, 0)}
    assert [text.split()[2] for text in about_redis(caplog)] == ["gone", "back"]


async def stall_a_listening_worker(proxy: Proxy, look: Look) -> None:
    """Stall the proxy while a worker waits in its pop, and not in between two of them."""
    while True:
        await wait_until(lambda: look.a_worker_listens("q"), PATIENCE)
        proxy.stall()
        # what had passed the proxy may have ended the pop
        if look.a_worker_listens("q"):
            return
        proxy.flow()


async def test_a_wake_up_whose_answer_is_lost_holds_nothing_up(
    namespace_id: str, proxy: Proxy, namespace: Namespace, look: Look
) -> None:
    desk = Desk(is_open=True)
    async with Namespace(namespace_id, redis=proxy.url) as cut_off, worker_of(cut_off.queue("q"), desk):
        for n in range(4):
            await stall_a_listening_worker(proxy, look)
            # a job that can run, and one that will
            job = await namespace.queue("q").add("x", id=str(n), run_in=0.2 if n % 2 else None)
            await wait_until(lambda: not look("EXISTS", "q:wake") and not look("EXISTS", "q:clock"), PATIENCE)
            proxy.cut()
            proxy.flow()
            await job.wait(PATIENCE)


async def test_forgotten_scripts_go_unnoticed(
    server: Server, namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    queue = namespace.queue("q")
    with server.client() as client:
        async with worker_of(queue, echo, warn_blocked=None):
            for n in range(5):
                client("SCRIPT", "FLUSH")
                assert await (await queue.add(str(n))).wait(PATIENCE) == str(n)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("how", ["gone", "frozen"])
async def test_a_producer_is_told_in_time_and_goes_on_afterwards(namespace_id: str, proxy: Proxy, how: str) -> None:
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=0.4) as namespace:
        queue = namespace.queue("q")
        await wait_until(partial(works, queue), PATIENCE)
        if how == "gone":
            await proxy.refuse()
        else:
            proxy.stall()

        async def add(n: int, after: float) -> str:
            await asyncio.sleep(after)
            began = time.monotonic()
            adding = queue.add("x" * 1000, id=f"job {n}") if n % 2 else queue.add_many(["x" * 1000] * 3)
            with pytest.raises(RedisUnavailableError) as raised:
                await adding
            took.append(time.monotonic() - began)
            return str(raised.value)

        took: list[float] = []
        errors = await asyncio.gather(*(add(n, n / 300) for n in range(300)))
        # each within its own time, not one after the other: the last of the 150 calls of `add_many` would take 60 s
        assert max(took) < 30
        for n, error in enumerate(errors):
            assert not n % 2 or f"job {n}" in error
            assert "'q'" in error
        if how == "gone":
            await proxy.accept()
        else:
            proxy.flow()
        await wait_until(partial(works, queue), PATIENCE)
        runtime: Any = await namespace.runtime()
        assert not runtime.call.link._unsent  # noqa: SLF001 - nothing piles up


async def works(queue: Any) -> bool:
    try:
        await queue.add("x")
    except RedisUnavailableError:
        return False
    return True


async def test_reads_and_control_are_told_in_time_too(namespace: Namespace, proxy: Proxy) -> None:
    await namespace.queue("q").add("x", id="a")
    async with Namespace(namespace.id, redis=proxy.url, producer_timeout=0.3) as impatient:
        queue = impatient.queue("q")
        job = queue.job("a")
        await wait_until(partial(works, queue), PATIENCE)
        await proxy.refuse()
        calls = {
            "reading job 'a'": job.record(),
            "cancelling job 'a'": job.cancel(),
            "removing job 'a'": queue.remove("a"),
            "counting jobs of 'q'": queue.counts(),
            "pausing 'q'": queue.pause(),
            "setting limits": queue.set_limits(concurrency=1),
        }
        for what, call in calls.items():
            with pytest.raises(RedisUnavailableError, match=what):
                await call
        await proxy.accept()
        await wait_until(partial(removed, queue, "a"), PATIENCE)


async def removed(queue: Any, job_id: str) -> bool:
    try:
        await queue.remove(job_id)
    except RedisUnavailableError:
        return False
    return True


async def test_a_server_that_refuses_writes_for_a_while_loses_nothing(own_server: PrivateServer) -> None:
    """As a master does that has become a replica."""
    desk = Desk()
    async with Namespace("n", redis=own_server.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        with own_server.client() as client:
            async with worker_of(queue, desk):
                running = await queue.add("runs", id="runs")
                await desk.runs("runs")
                client("CONFIG", "SET", "replica-serve-stale-data", "yes")
                client("REPLICAOF", "127.0.0.1", "1")
                adding = asyncio.create_task(queue.add("added"))
                desk.open()
                await asyncio.sleep(0.2)
                assert not adding.done()
                client("REPLICAOF", "NO", "ONE")
                assert await results_of([running, await adding]) == ["runs", "added"]
    assert len(desk.started) == 2


async def test_a_server_without_memory_loses_nothing(own_server: PrivateServer) -> None:
    desk = Desk()
    async with Namespace("n", redis=own_server.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        with own_server.client() as client:
            async with worker_of(queue, desk):
                running = await queue.add("runs", id="runs", group="g")
                behind = await queue.add("behind", id="behind", group="g")
                await desk.runs("runs")
                client("CONFIG", "SET", "maxmemory", "1")
                adding = asyncio.create_task(queue.add("added"))
                desk.open()
                await asyncio.sleep(0.2)
                assert not adding.done()
                assert desk.started == ["runs"]
                client("CONFIG", "SET", "maxmemory", "0")
                assert await results_of([running, behind, await adding]) == ["runs", "behind", "added"]


async def test_nothing_is_added_where_the_server_is_without_memory(own_server: PrivateServer) -> None:
    async with (
        Namespace("n", redis=own_server.url) as namespace,
        Namespace("n", redis=own_server.url, producer_timeout=0.5) as impatient,
    ):
        queue = namespace.queue("q")
        # an entry among the ended ones is looked at when a job is added
        await (await queue.add("ended", run_in=60)).cancel()
        await impatient.queue("q").counts()
        with own_server.client() as client:
            client("CONFIG", "SET", "maxmemory", "1")
            await wait_until(partial(is_refused, impatient.queue("q"), "OOM"))
            client("CONFIG", "SET", "maxmemory", "0")
        assert (await queue.counts()).waiting == 0


@pytest.mark.filterwarnings("ignore:Call to '__init__' function with deprecated usage:DeprecationWarning")
async def test_what_ends_while_a_password_is_asked_for_is_committed_afterwards(
    own_server: PrivateServer, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    # who says nothing of itself when it connects hears of it with its first call, as everybody does of an old server
    connection: Any = redis.asyncio.Redis
    silent = partial(connection.from_url, own_server.url, lib_name=None, lib_version=None)
    async with (
        Namespace("n", redis=silent()) as namespace,
        Namespace("n", redis=silent(), producer_timeout=0.5) as impatient,
    ):
        queue = namespace.queue("q")
        async with worker_of(queue, desk):
            jobs = [await queue.add("x"), await queue.add("x" * 100_000)]
            await desk.runs(*(job.id for job in jobs))
            with own_server.client() as client:
                client("CONFIG", "SET", "requirepass", "secret")
                client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                desk.open()
                await wait_until(partial(is_refused, impatient.queue("q"), "auth"))
                await wait_until(lambda: about_redis(caplog), PATIENCE)
                client("CONFIG", "SET", "requirepass", "")
            assert await results_of(jobs) == ["x", "x" * 100_000]
        records = [await job.record() for job in jobs]
    assert [(record.state, record.attempt) for record in records] == [("completed", 1)] * 2
    assert [record for record in caplog.records if record.levelno > logging.WARNING] == []


async def test_a_password_that_is_refused_for_a_while_does_not_end_a_worker(
    own_server: PrivateServer, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    caplog.set_level(logging.DEBUG, "lanner")
    async with (
        Namespace("n", redis=own_server.url) as namespace,
        Namespace("n", redis=own_server.url, producer_timeout=0.5) as impatient,
    ):
        queue = namespace.queue("q")
        async with worker_of(queue, desk, lease=1):
            # a worker that gets no processor for a lease may lose it
            job = await queue.add("x", id="a", max_stalled=100)
            await desk.runs("a")
            with own_server.client() as client:
                client("CONFIG", "SET", "requirepass", "secret")
                client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                await wait_until(partial(is_refused, impatient.queue("q"), "auth"))
                await wait_until(lambda: "leases were not renewed" in caplog.text, PATIENCE)
                await wait_until(lambda: about_redis(caplog), PATIENCE)
                client("CONFIG", "SET", "requirepass", "")
            desk.open()
            assert await job.wait(PATIENCE) == "x"
            assert await (await queue.add("y")).wait(PATIENCE) == "y"


class Vault(CredentialProvider):
    """Where a user's client gets its password from, which is away at times."""

    def __init__(self) -> None:
        self.is_away = False

    def get_credentials(self) -> tuple[str, str]:
        if self.is_away:
            raise LookupError("the vault is sealed")
        return "default", "any: the user has no password"

    async def get_credentials_async(self) -> tuple[str, str]:
        return self.get_credentials()


async def test_credentials_that_cannot_be_had_for_a_while_do_not_end_a_worker(namespace_id: str, proxy: Proxy) -> None:
    desk, vault = Desk(), Vault()
    make: Any = redis.asyncio.Redis.from_url  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - redis-py's kwargs
    client = make(proxy.url, credential_provider=vault)
    async with (
        Namespace(namespace_id, redis=client) as namespace,
        Namespace(namespace_id, redis=client, producer_timeout=0.5) as impatient,
    ):
        queue = namespace.queue("q")
        async with worker_of(queue, desk, lease=1):
            job = await queue.add("x", id="a", max_stalled=100)
            waiting = asyncio.create_task(job.wait(PATIENCE))
            await desk.runs("a")
            vault.is_away = True
            proxy.cut()
            await wait_until(partial(is_refused, impatient.queue("q"), "the vault is sealed"))
            desk.open()
            await wait_until(lambda: not desk.running)
            vault.is_away = False
            assert await waiting == "x"
            assert await (await queue.add("y")).wait(PATIENCE) == "y"


@pytest.mark.parametrize("busy", ["idle", "busy"])
async def test_scripts_that_are_refused_for_a_while_hold_nothing_up(own_server: PrivateServer, busy: str) -> None:
    desk, errors = Desk(), list[BaseException]()
    async with Namespace("n", redis=own_server.url) as producer:
        with own_server.client() as client:
            client("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all")
            url = own_server.tcp_url.replace("redis://", "redis://u:p@")
            async with (
                Namespace("n", redis=url) as namespace,
                worker_of(namespace.queue("q"), desk, concurrency=1, on_error=errors.append),
            ):
                await wait_until(lambda: Look(client, "n").a_worker_listens("q"), PATIENCE)
                jobs = [await producer.queue("q").add("a", id="a")] if busy == "busy" else []
                if jobs:
                    await desk.runs("a")
                client("ACL", "SETUSER", "u", "-evalsha")
                jobs.append(await producer.queue("q").add("b", id="b"))
                await wait_until(lambda: len(errors) > 1, PATIENCE)
                client("ACL", "SETUSER", "u", "+evalsha")
                desk.open()
                await results_of(jobs)
    assert desk.started == [job.id for job in jobs]


async def test_a_wrong_password_is_told_by_its_name(own_server: PrivateServer) -> None:
    with own_server.client() as client:
        client("CONFIG", "SET", "requirepass", "secret")
        try:
            url = own_server.tcp_url.replace("redis://", "redis://:wrong@")
            async with Namespace("n", redis=url, producer_timeout=0.5) as namespace:
                await wait_until(partial(is_refused, namespace.queue("q"), "password|auth"))
        finally:
            client("CONFIG", "SET", "requirepass", "")


async def test_a_crash_in_the_middle_of_a_sweep_loses_nothing(own_server: PrivateServer) -> None:
    count, desk = 5000, Desk(is_open=True)
    async with Namespace("n", redis=own_server.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        jobs = await queue.add_many(["x"] * count)
        call = (await namespace.runtime()).call
        for number in range(1, 21):
            await settle(call, worker="gone", number=number, lease=1, total=250, outcomes=[], wants=[("q", 250)])
        await asyncio.sleep(0.01)
        sweeping = [asyncio.create_task(swept(call)) for _ in range(3)]
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
        await asyncio.gather(*sweeping, return_exceptions=True)
        while await swept(call) == 0:
            continue
        async with worker_of(queue, desk, concurrency=100):
            await results_of(jobs)
    assert Counter(desk.started) == Counter(job.id for job in jobs)


async def swept(call: Any) -> int:
    """Sweep a batch, of which no claim is spared as if Redis had been away; 0: there are more."""
    return (await sweep_claims(call, lease=3_600_000, interval=1, limit=200)).again_ms


async def test_a_frozen_server_delays_and_loses_nothing(own_server: PrivateServer) -> None:
    ran = Counter[str]()

    async def handle(claim: Claim) -> None:
        ran[claim.id] += 1
        await asyncio.sleep(0.001)

    async with Namespace("n", redis=own_server.url, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        async with worker_of(queue, handle, concurrency=5):
            jobs = await queue.add_many(["x"] * 300)
            for _ in range(4):
                own_server.freeze()
                await asyncio.sleep(0.1)
                own_server.thaw()
                await asyncio.sleep(0.05)
            await results_of(jobs)
    assert ran == Counter(job.id for job in jobs)


async def test_a_worker_that_was_idle_for_longer_than_a_socket_timeout_starts_at_once(
    namespace: Namespace, caplog: pytest.LogCaptureFixture
) -> None:
    queue = namespace.queue("q")
    caplog.set_level(logging.DEBUG, "lanner")
    async with worker_of(queue, echo, warn_blocked=None):
        await asyncio.sleep(5.5)  # redis-py's own default is 5 s
        assert await (await queue.add("x")).wait(PATIENCE) == "x"
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_who_has_named_no_redis_is_told_how_to(
    namespace_id: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    await proxy.refuse()
    monkeypatch.delenv("LANNER_REDIS_URL", raising=False)
    monkeypatch.setattr("lanner.queue.connection.DEFAULT_URL", proxy.url)
    async with Namespace(namespace_id, producer_timeout=0.2) as namespace:
        with pytest.raises(RedisUnavailableError, match="neither redis= nor LANNER_REDIS_URL names one") as told:
            await namespace.queue("q").add("x")
    assert "'embedded' starts one" in str(told.value)


async def test_a_worker_cannot_start_without_redis_and_says_so(namespace_id: str, proxy: Proxy) -> None:
    await proxy.refuse()
    async with Namespace(namespace_id, redis=proxy.url, producer_timeout=0.2) as namespace:
        worker = worker_of(namespace.queue("q"), echo)
        with pytest.raises(RedisUnavailableError, match="connecting to Redis"):
            await worker.start()
        await worker.stop()
        await proxy.accept()
        workers = await wait_until(partial(started, namespace), PATIENCE)
        async with Namespace(namespace_id, redis=proxy.url) as patient:
            assert await (await patient.queue("q").add("x")).wait(PATIENCE) == "x"
        await workers[0].stop()


async def started(namespace: Namespace) -> list[Worker]:
    """A worker, or none if Redis is not there in time."""
    worker = worker_of(namespace.queue("q"), echo)
    try:
        await worker.start()
    except RedisUnavailableError:
        return []
    return [worker]
