"""Where Redis is, and how it is spoken to: URLs, clients of the caller, and what is checked when connecting."""

import asyncio
import logging
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from lanner.errors import DataModelError, InvalidArgumentError, RedisUnavailableError, ServerVersionError
from lanner.queue import Namespace
from lanner.queue.runtime import check_version
from lanner.queue.scripts.loader import load
from support.jobs import PATIENCE, Desk, Look, echo, results_of, worker_of
from support.proxy import Proxy
from support.servers import PrivateServer, Server
from support.waiting import wait_until

# redis-py's own types are incomplete
MAKE: Any = redis.asyncio.Redis
POOL: Any = redis.asyncio.ConnectionPool
BLOCKING_POOL: Any = redis.asyncio.BlockingConnectionPool


async def works(namespace: Namespace) -> None:
    queue = namespace.queue("q")
    async with worker_of(queue, echo):
        assert await (await queue.add("x")).wait(PATIENCE) == "x"


@pytest.mark.parametrize("settings", [{}, {"protocol": 3}, {"protocol": 2}, {"socket_timeout": 30}])
async def test_a_client_of_the_callers_is_used_for_its_settings_and_never_closed(
    server: Server, namespace_id: str, settings: dict[str, Any]
) -> None:
    client = MAKE(host=server.host, port=server.port, **settings)
    try:
        async with Namespace(namespace_id, redis=client) as namespace:
            await works(namespace)
        assert await client.ping()
    finally:
        await client.aclose()


@pytest.mark.parametrize("pool", [POOL, BLOCKING_POOL])
async def test_a_client_with_a_small_pool_serves_hundreds_of_slots(
    server: Server, namespace_id: str, pool: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client = MAKE(connection_pool=pool(host=server.host, port=server.port, max_connections=1))
    async with Namespace(namespace_id, redis=client) as namespace:
        queue, desk = namespace.queue("q"), Desk()
        async with worker_of(queue, desk, concurrency=500):
            jobs = await queue.add_many(["x"] * 500)
            waits = asyncio.create_task(results_of(jobs))
            await wait_until(lambda: len(desk.running) == 500, PATIENCE)
            desk.open()
            await waits
    await client.aclose()
    assert "Redis is gone" not in caplog.text


UNFIT = [({"decode_responses": True}, "decode_responses"), ({"socket_timeout": 1}, "socket_timeout")]


@pytest.mark.parametrize(("settings", "named"), UNFIT)
async def test_a_client_that_does_not_fit_is_refused_by_the_name_of_its_setting(
    server: Server, settings: dict[str, Any], named: str
) -> None:
    client = MAKE(host=server.host, port=server.port, **settings)
    with pytest.raises(InvalidArgumentError, match=named):
        Namespace("n", redis=client)
    await client.aclose()


@pytest.mark.parametrize(("settings", "named"), UNFIT)
def test_a_url_that_does_not_fit_is_refused_by_the_name_of_its_setting(settings: dict[str, Any], named: str) -> None:
    query = "&".join(f"{name}={value}" for name, value in settings.items())
    with pytest.raises(InvalidArgumentError, match=named):
        Namespace("n", redis=f"redis://localhost:6379/0?{query}")


@pytest.mark.parametrize("query", ["protocol=3", "socket_timeout=60", "health_check_interval=1", "client_name=ours"])
async def test_a_url_may_have_settings(server: Server, namespace_id: str, query: str) -> None:
    async with Namespace(namespace_id, redis=f"{server.tcp_url}?{query}") as namespace:
        await works(namespace)


async def test_a_database_of_its_own(own_server: PrivateServer) -> None:
    async with Namespace("n", redis=own_server.tcp_url.replace("/0", "/3")) as namespace:
        await works(namespace)
        with own_server.client() as client:
            assert not client("DBSIZE")
            client("SELECT", 3)
            assert client("DBSIZE")
            client("FLUSHALL")


@pytest.mark.parametrize(
    "where", ["", "localhost:6379", "http://localhost", "redis://[", "redis://h:port", 5, b"redis://h"]
)
def test_a_place_that_is_none_is_refused(where: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANNER_REDIS_URL", "")
    with pytest.raises(InvalidArgumentError, match="redis="):
        Namespace("n", redis=where)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("redis+sentinel://h:1,g:2", "names no master"),
        ("redis+sentinel://h:1,g:2/?sentinel_password=x", "names no master"),
        ("redis+sentinel:///mymaster", "an address is missing"),
        ("redis+sentinel://h:1,,g:2/mymaster", "an address is missing"),
        ("redis+sentinel://h:port/mymaster", "'h:port' is no address"),
        ("redis+cluster://", "an address is missing"),
        ("redis+cluster://h:1/3", "names a database"),
        ("rediss+sentinel://h/mymaster/0?decode_responses=True", "decode_responses"),
        ("redis+cluster://h?socket_timeout=1", "socket_timeout"),
        ("redis+cluster://h?colour=red", "colour"),
        ("redis://h?colour=red", "colour"),
        ("redis+ring://h", "not understood"),
        ("redis://h/mine", "no number"),
        ("redis://h/1/2", "no number"),
        ("redis+sentinel://h/mymaster/mine", "no number"),
    ],
)
def test_a_url_says_what_is_wrong_with_it(where: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        Namespace("n", redis=where)


@pytest.mark.parametrize(
    "where",
    [
        "redis+sentinel://ada:secret@h:1,g:2",
        "redis+sentinel://:secret@h:1,g:2/?sentinel_username=ada&sentinel_password=secret",
        "redis+sentinel://h:1,g:2?sentinel_password=secret&db=1",
        "redis+cluster://ada:secret@h:port",
        "rediss+cluster://h/3?password=secret",
        "http://ada:secret@h",
        "redis://ada:secret@h:port",
        "redis://ada:se/c@secret@h:port",
        "redis://ada:12/secret@h",
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_its_passwords(where: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        Namespace("n", redis=where)
    assert "secret" not in str(raised.value)
    assert "h" in str(raised.value)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("redis://ada:secret@h:1/2", "redis://h:1/2"),
        ("rediss://h", "rediss://h:6379/0"),
        ("unix:///tmp/s?db=1", "unix:///tmp/s"),
        (
            "redis+sentinel://ada:secret@h,[::1]:2/the%2Dmaster?sentinel_password=secret",
            "redis+sentinel://h:26379,[::1]:2/the-master/0",
        ),
        ("rediss+sentinel://:secret@h/the-master/7?ssl_cert_reqs=none", "rediss+sentinel://h:26379/the-master/7"),
        ("rediss+cluster://ada:secret@h,g:2/0", "rediss+cluster://h:6379,g:2"),
    ],
)
def test_where_redis_is_is_told_without_passwords(where: str, told: str) -> None:
    assert str(Namespace("n", redis=where).connector) == told


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("redis", r"redis://127\.0\.0\.1:1/0: Redis cannot be reached: .*127\.0\.0\.1:1"),
        ("redis+cluster", r"redis\+cluster://127\.0\.0\.1:1: .*127\.0\.0\.1:1: "),
        (
            "redis+sentinel",
            r"redis\+sentinel://127\.0\.0\.1:1/m/0: .*names a master 'm' .*127\.0\.0\.1:1: ",
        ),
    ],
)
async def test_where_nobody_is_the_error_says_where_in_few_words(namespace_id: str, kind: str, said: str) -> None:
    url = f"{kind}://ada:secret@127.0.0.1:1" + ("/m" if "sentinel" in kind else "")
    async with Namespace(namespace_id, redis=url, producer_timeout=0.5) as namespace:
        with pytest.raises(RedisUnavailableError, match="connecting to Redis at " + said) as raised:
            await namespace.queue("q").counts()
    assert "secret" not in str(raised.value)
    assert len(str(raised.value)) < 300


async def test_a_server_that_is_no_sentinel_is_told(server: Server, namespace_id: str) -> None:
    url = f"redis+sentinel://{server.host}:{server.port}/mymaster"
    async with Namespace(namespace_id, redis=url, producer_timeout=0.5) as namespace:
        with pytest.raises(RedisUnavailableError, match=f"{server.host}:{server.port}: it is no Sentinel"):
            await namespace.queue("q").counts()


def test_a_blocking_client_is_refused_by_its_full_name() -> None:
    blocking: Any = redis.Redis()
    with pytest.raises(
        InvalidArgumentError, match=r"redis\.asyncio\.Redis or RedisCluster client, not redis\.client\.Redis"
    ):
        Namespace("n", redis=blocking)


async def test_where_nothing_is_said_the_environment_says_it(
    server: Server, namespace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANNER_REDIS_URL", server.url)
    async with Namespace(namespace_id) as namespace:
        await works(namespace)


async def test_a_call_is_sent_again_by_us_and_by_nobody_else(namespace_id: str, proxy: Proxy) -> None:
    client = MAKE.from_url(proxy.url, retry=Retry(NoBackoff(), 10))
    async with Namespace(namespace_id, redis=client, producer_timeout=60) as namespace:
        queue = namespace.queue("q")
        await queue.add("x")
        before = proxy.requests_with(load("add_jobs").sha)
        proxy.lose_answers(load("add_jobs").sha, every=2)
        await queue.add("x")
        await queue.add("x")
        await queue.add("x")
        proxy.lose_no_answers()
        assert proxy.requests_with(load("add_jobs").sha) - before == 3 + proxy.lost_answers
        assert await queue.remove_all("waiting") == 4
    await client.aclose()


async def test_a_process_needs_few_connections_however_much_it_does(own_server: PrivateServer) -> None:
    async with Namespace("n", redis=own_server.tcp_url) as namespace:
        queue, desk = namespace.queue("q"), Desk()
        with own_server.client() as client:
            before = count_of(client("CLIENT", "LIST"))
            producing = await queue.add("x")
            assert count_of(client("CLIENT", "LIST")) - before == 1
            async with worker_of(queue, desk, concurrency=200, lease=1):
                jobs = await asyncio.gather(*(queue.add("x") for _ in range(200)))
                await wait_until(lambda: len(desk.running) == 200, PATIENCE)
                # calls, the blocking pop, leases
                await wait_until(lambda: count_of(client("CLIENT", "LIST")) - before == 3)
                waits = asyncio.create_task(results_of([producing, *jobs]))
                await wait_until(lambda: count_of(client("CLIENT", "LIST")) - before == 4)  # and what is pushed
                desk.open()
                await waits
            # Redis notices at any time that a connection was closed
            await wait_until(lambda: count_of(client("CLIENT", "LIST")) - before == 2)
    with own_server.client() as client:
        await wait_until(lambda: count_of(client("CLIENT", "LIST")) == before)


def count_of(listed: str) -> int:
    return len(listed.splitlines())


async def test_data_of_a_newer_version_is_left_alone(server: Server, namespace_id: str, look: Look) -> None:
    look("HSET", "meta", "version", 999)
    async with Namespace(namespace_id, redis=server.url) as namespace:
        queue = namespace.queue("q")
        with pytest.raises(DataModelError, match=r"999.*upgrade"):
            await queue.add("x")
        with pytest.raises(DataModelError):
            await worker_of(queue, echo).start()
    assert look.names() == ["meta"]


@pytest.mark.parametrize("info", ["redis_version:6.0.16\r\n", "redis_version:7.2.4\r\nvalkey_version:7.1.0\r\n"])
def test_a_server_that_is_too_old_is_refused(info: str) -> None:
    with pytest.raises(ServerVersionError, match=r"needs Redis 6\.2 or Valkey 7\.2"):
        check_version(info)


def test_a_server_for_32_bits_is_refused() -> None:
    with pytest.raises(ServerVersionError, match="for 32 bits"):
        check_version("redis_version:7.2.4\r\narch_bits:32\r\n")


@pytest.mark.parametrize(
    "info",
    [
        "redis_version:6.2.0\r\n",
        "redis_version:10.0.1\r\n",
        "redis_version:7.2.4\r\nvalkey_version:8.1.8\r\narch_bits:64\r\n",
    ],
)
def test_a_server_that_is_new_enough_is_taken(info: str) -> None:
    check_version(info)


async def test_a_server_that_may_drop_keys_is_warned_of(
    own_server: PrivateServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "lanner")
    with own_server.client() as client:
        client("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    async with Namespace("n", redis=own_server.url) as namespace:
        await works(namespace)
    [warning] = [record.message for record in caplog.records if "maxmemory-policy" in record.message]
    assert "allkeys-lru" in warning
    assert "noeviction" in warning
