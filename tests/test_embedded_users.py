import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import redis.exceptions

from lanner.embedded import EmbeddedHandle, open_embedded
from lanner.errors import EmbeddedServerError
from support.client import Client
from support.waiting import wait_until

USER: Final = """
import sys
from lanner.embedded import open_embedded
server = open_embedded("embedded:" + sys.argv[1])
print(server.url, flush=True)
sys.stdin.readline()
server.close()
"""
TEMPORARY: Final = """
import sys
from lanner.embedded import temporary_server
with temporary_server() as server:
    print(server.url, server.directory, flush=True)
    sys.stdin.readline()
"""


class User:
    """A process of its own that uses a server until it is told to leave, or killed."""

    def __init__(self, program: str, *arguments: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._says: list[str] = []

    def says(self) -> list[str]:
        """What it printed once the server answered."""
        if not self._says:
            assert self._process.stdout is not None
            self._says = self._process.stdout.readline().split()
            assert self._says, self._process.communicate()[1]
        return self._says

    @property
    def url(self) -> str:
        """Where the server answers, once it does."""
        return self.says()[0]

    def client(self) -> Client:
        return Client(self.url)

    def leave(self) -> None:
        """Have it end, and wait for its end and for that of its output."""
        assert self.url
        output, errors = self._process.communicate("\n", timeout=30)
        assert (self._process.returncode, output, errors) == (0, "", "")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class Directory:
    """A data directory, and who is alive on it: whoever holds the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users: list[User] = []

    def user(self, **environment: str) -> User:
        user = User(USER, str(self.path), **environment)
        self.users.append(user)
        return user

    def open(self, timeout: float = 30) -> EmbeddedHandle:
        return open_embedded(f"embedded:{self.path}", timeout=timeout)

    def server_runs(self) -> bool:
        return _is_locked(self.path, fcntl.LOCK_EX)

    def keeper_runs(self) -> bool:
        return _is_locked(self.path / "keeper.lock", fcntl.LOCK_EX)

    def is_closing(self) -> bool:
        """Whether the keeper lets no more users in."""
        return _is_locked(self.path / "users.lock", fcntl.LOCK_SH)

    def keeper_pid(self) -> int:
        return int((self.path / "keeper.lock").read_text())

    async def stopped(self) -> None:
        await wait_until(lambda: not self.server_runs() and not self.keeper_runs())


def _is_locked(path: Path, kind: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def server_pid(client: Client) -> int:
    return int(client("INFO", "server")["process_id"])


def answers(url: str) -> bool:
    try:
        with Client(url) as client:
            return bool(client("PING"))
    except redis.exceptions.ConnectionError:
        return False


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    directory = Directory(tmp_path / "data")
    yield directory
    for user in directory.users:
        user.kill()
    # nobody outlives a test: the next user's leaving stops whatever a killed keeper has left
    directory.open().close()


async def test_two_processes_share_one_server_and_its_data(directory: Directory) -> None:
    first, second = directory.user(), directory.user()
    with first.client() as one, second.client() as other:
        assert server_pid(one) == server_pid(other)
        one("SET", "by the first", "yes")
        assert other("GET", "by the first") == "yes"
    first.leave()
    assert answers(second.url)
    second.leave()
    await directory.stopped()
    with directory.user().client() as client:
        assert client("GET", "by the first") == "yes"


async def test_several_handles_of_one_process_share_one_server(directory: Directory) -> None:
    one, other = directory.open(), directory.open()
    assert one.url == other.url
    one.close()
    assert answers(other.url)
    other.close()
    await directory.stopped()


async def test_eight_processes_that_start_at_once_get_one_server(directory: Directory) -> None:
    users = [directory.user() for _ in range(8)]
    pids: set[int] = set()
    for user in users:
        with user.client() as client:
            pids.add(server_pid(client))
    assert len(pids) == 1
    for user in users:
        user.leave()
    await directory.stopped()


@pytest.mark.parametrize("killed", ["user", "keeper", "server", "user and keeper", "server and keeper"])
async def test_whoever_is_killed_the_others_go_on_and_the_next_start_works(killed: str, directory: Directory) -> None:
    victim, survivor = directory.user(), directory.user()
    with victim.client() as client:
        client("SET", "before", "kept")
        server = server_pid(client)
    assert survivor.url
    if "keeper" in killed:
        os.kill(directory.keeper_pid(), signal.SIGKILL)
    if "server" in killed:
        os.kill(server, signal.SIGKILL)
    if "user" in killed:
        victim.kill()
    newcomer = directory.user()
    with newcomer.client() as client:
        assert client("GET", "before") == "kept"
        client("SET", "after", "kept, too")
        assert (server_pid(client) == server) == ("server" not in killed)
    assert await wait_until(lambda: answers(survivor.url))
    with survivor.client() as client:
        assert client("GET", "after") == "kept, too"
    newcomer.leave()
    survivor.leave()
    if "user" not in killed:
        victim.leave()
    await directory.stopped()


async def test_a_server_that_dies_is_started_again_for_the_users_it_has(directory: Directory) -> None:
    user = directory.user()
    with user.client() as client:
        client("SET", "before", "kept")
        killed = server_pid(client)
    os.kill(killed, signal.SIGKILL)
    assert await wait_until(lambda: answers(user.url))
    with user.client() as client:
        assert client("GET", "before") == "kept"
        assert server_pid(client) != killed


async def test_a_server_that_everybody_left_by_being_killed_is_adopted_by_the_next(directory: Directory) -> None:
    user = directory.user()
    with user.client() as client:
        client("SET", "before", "kept")
        server = server_pid(client)
    os.kill(directory.keeper_pid(), signal.SIGKILL)
    user.kill()
    newcomer = directory.user()
    with newcomer.client() as client:
        assert client("GET", "before") == "kept"
        assert server_pid(client) == server
    newcomer.leave()
    await directory.stopped()


async def test_a_user_that_leaves_after_the_keeper_was_killed_has_the_server_stopped(directory: Directory) -> None:
    user = directory.user()
    assert user.url
    os.kill(directory.keeper_pid(), signal.SIGKILL)
    await wait_until(lambda: not directory.keeper_runs())
    user.leave()
    await directory.stopped()


async def test_the_server_stops_when_its_last_user_is_killed(directory: Directory) -> None:
    user = directory.user()
    with user.client() as client:
        socket = Path(client("CONFIG", "GET", "unixsocket")["unixsocket"])
    user.kill()
    await directory.stopped()
    assert not socket.parent.exists()


@pytest.mark.parametrize("keeper", ["lives", "is killed"])
async def test_a_user_that_comes_while_the_server_is_being_stopped_gets_a_running_one(
    keeper: str, directory: Directory
) -> None:
    user = directory.user()
    with user.client() as client:
        client("SET", "before", "kept")
        server = server_pid(client)
    os.kill(server, signal.SIGSTOP)
    user.kill()
    await wait_until(directory.is_closing)
    if keeper == "is killed":
        os.kill(directory.keeper_pid(), signal.SIGKILL)
    newcomer = directory.user()
    os.kill(server, signal.SIGCONT)
    assert newcomer.url
    # one that was told to stop by a keeper that was killed may answer once more
    await wait_until(lambda: answers(newcomer.url) and _pid_at(newcomer.url) != server)
    with newcomer.client() as client:
        assert client("GET", "before") == "kept"
    newcomer.leave()
    await directory.stopped()


def _pid_at(url: str) -> int:
    try:
        with Client(url) as client:
            return server_pid(client)
    except redis.exceptions.ConnectionError:
        return 0


async def test_coming_and_going_in_quick_succession_always_finds_a_running_server(directory: Directory) -> None:
    for turn in range(1, 31):
        with directory.open() as server, Client(server.url) as client:
            assert client("INCR", "turns") == turn
    await directory.stopped()


async def test_no_second_server_starts_even_where_the_files_of_the_first_were_deleted(directory: Directory) -> None:
    user = directory.user()
    assert user.url
    for file in directory.path.iterdir():
        if file.is_file():
            file.unlink()
    with pytest.raises(EmbeddedServerError, match="does not answer"):
        directory.open(timeout=0.5)
    assert answers(user.url)
    user.leave()
    await directory.stopped()


async def test_a_running_server_can_be_used_without_any_server_program(directory: Directory) -> None:
    first = directory.user()
    assert first.url
    assert directory.user(LANNER_REDIS_SERVER="/does/not/exist").url == first.url
    os.kill(directory.keeper_pid(), signal.SIGKILL)
    assert directory.user(LANNER_REDIS_SERVER="/does/not/exist").url == first.url


async def test_a_server_that_is_missing_is_told_to_each_of_many_users(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANNER_REDIS_SERVER", "/does/not/exist")
    for _ in range(3):
        with pytest.raises(EmbeddedServerError, match="/does/not/exist is not a file"):
            directory.open()
    monkeypatch.undo()


async def test_whoever_waits_for_the_output_of_the_process_that_started_the_server_gets_its_end(
    directory: Directory,
) -> None:
    starter = directory.user()
    assert starter.url
    other = directory.user()
    assert other.url
    starter.leave()
    assert answers(other.url)


async def test_the_server_does_not_die_with_the_terminal_of_the_process_that_started_it(directory: Directory) -> None:
    starter = directory.user()
    assert starter.url
    other = directory.user()
    assert other.url
    os.killpg(starter.pid, signal.SIGINT)
    os.killpg(starter.pid, signal.SIGHUP)
    starter.kill()
    assert answers(other.url)
    with other.client() as client:
        assert os.getsid(server_pid(client)) != starter.pid
    assert os.getsid(directory.keeper_pid()) != starter.pid


async def test_a_temporary_server_goes_away_with_a_process_that_is_killed() -> None:
    user = User(TEMPORARY)
    assert answers(user.url)
    directory = Directory(Path(user.says()[1]))
    user.kill()
    await wait_until(lambda: not directory.path.exists())
    await wait_until(lambda: not answers(user.url))
