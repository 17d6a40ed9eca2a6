"""The servers that the other tests rely on keep what they promise."""

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import redis
from anyio.streams.buffered import BufferedByteReceiveStream

from support.client import Client
from support.servers import NoServerError, PrivateServer, Server, describe_choice, private_servers
from support.waiting import wait_until

HERE = Path(__file__).parent
STARTS_ONE_AND_WAITS = """
from support.servers import private_servers
server = private_servers().start()
print(server.url, server.tcp_url, flush=True)
input()
"""


def test_clients_reach_the_shared_server_by_both_addresses(server: Server) -> None:
    for url in (server.url, server.tcp_url):
        with Client(url) as client:
            assert client("PING")


def test_a_namespace_id_is_new_in_every_test(server: Server, namespace_id: str) -> None:
    with server.client() as client:
        assert [name for names in client.keys(f"*{namespace_id}*") for name in names] == []


def _stop(server: PrivateServer) -> None:
    server.stop()


def _kill(server: PrivateServer) -> None:
    server.kill()


@pytest.mark.parametrize("end", [_stop, _kill])
def test_what_was_stored_is_there_again_after_a_start(
    own_server: PrivateServer, end: Callable[[PrivateServer], None]
) -> None:
    with own_server.client() as client:
        client("SET", "kept", "1", "EX", 60)
        end(own_server)
        with pytest.raises(redis.ConnectionError):
            client("PING")
        own_server.start()
        assert client("GET", "kept") == "1"


def test_a_frozen_server_answers_when_it_is_thawed(own_server: PrivateServer) -> None:
    own_server.freeze()
    with Client(f"{own_server.tcp_url}?socket_timeout=0.2") as client, pytest.raises(redis.TimeoutError):
        client("PING")
    own_server.thaw()
    with Client(own_server.tcp_url) as client:
        assert client("PING")


def test_two_own_servers_do_not_share_anything(own_server: PrivateServer, server: Server) -> None:
    with own_server.client() as mine, server.client() as shared:
        mine("SET", "mine", "1", "EX", 60)
        assert shared("GET", "mine") is None


async def test_a_server_does_not_outlive_a_killed_test_run() -> None:
    async with await anyio.open_process([sys.executable, "-c", STARTS_ONE_AND_WAITS], cwd=HERE) as run:
        assert run.stdout is not None
        line = await BufferedByteReceiveStream(run.stdout).receive_until(b"\n", 1000)
        url, tcp_url = line.decode().split()
        with Client(tcp_url) as client:
            assert client("PING")
        run.kill()
    directory = Path(url.removeprefix("unix://")).parent

    def gone() -> bool:
        try:
            with Client(tcp_url) as client:
                return not client("PING")
        except redis.ConnectionError:
            return True

    await wait_until(gone, timeout=60)
    await wait_until(lambda: not directory.exists())


def _find_nothing(_name: str) -> None:
    """No wheel of a server is installed."""


def test_without_any_server_the_run_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("LANNER_REDIS_SERVER", raising=False)
    monkeypatch.delenv("LANNER_TEST_REDIS_URL", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", _find_nothing)

    with pytest.raises(NoServerError, match="pip install 'lanner"):
        private_servers()
    assert "LANNER_TEST_REDIS_URL" in describe_choice()


def test_a_running_server_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANNER_TEST_REDIS_URL", "redis://example.org:7000/0")
    assert describe_choice().startswith("redis://example.org:7000/0; ")
