"""Private servers for one run: a Redis or Valkey on a port of its own, and a PostgreSQL where there is one."""

import contextlib
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import redis

from lanner.embedded import find_server
from lanner.queue.scripts.loader import load

HOST = "127.0.0.1"
LUA = resources.files("lanner.queue") / "lua"
# timing all would cost a server more than it tells; those that are logged are the slowest
LOGGED_US, LOGGED = 200, 100_000


@dataclass
class Server:
    """A running Redis or Valkey that nobody else uses.

    Attributes:
        label: What it is.
        url: Where it is.
        port: The port of that.
        pid: Its process.
        client: A client for what is asked about it.
        apart: Whether it has a core for itself.
    """

    label: str
    url: str
    port: int
    pid: int
    client: Any
    apart: bool = False

    def flush(self) -> None:
        """Leave nothing of what was before."""
        self.client.flushall()

    def memory(self) -> int:
        """Bytes in use, once nobody else is connected: the buffers of a hundred connections are not small."""
        wait_until(lambda: self.client.info("clients")["connected_clients"] == 1, "clients that are gone")
        return int(self.client.info("memory")["used_memory"])

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        cpu = self.client.info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])

    def script_us(self) -> float:
        """Microseconds that scripts have run for."""
        stats = self.client.info("commandstats")
        return float(sum(stats[name]["usec"] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats))

    def put_aside(self) -> float:
        """Milliseconds that its main thread had work, and the kernel ran somebody else; 0 where no kernel tells."""
        told = Path(f"/proc/{self.pid}/schedstat")
        return int(told.read_text().split()[1]) / 1e6 if told.is_file() else 0.0

    def time_scripts(self) -> None:
        """Have scripts timed from now on; ``slowest_script`` gives the slowest."""
        self.client.config_set("slowlog-log-slower-than", LOGGED_US)
        self.client.config_set("slowlog-max-len", LOGGED)
        self.client.slowlog_reset()

    def slowest_script(self) -> tuple[float, str]:
        """The milliseconds of the slowest, and which it was."""
        scripts = [entry for entry in self.client.slowlog_get(-1) if entry["command"][:4].upper() == b"EVAL"]
        if not scripts:
            return LOGGED_US / 1000, "or less, whichever"
        slowest = max(scripts, key=lambda entry: int(entry["duration"]))
        return int(slowest["duration"]) / 1000, _script_names().get(
            slowest["command"].split()[1].decode(), "its first call"
        )

    def sent_commands(self, seconds: float) -> tuple[int, int]:
        """How many commands clients send within some seconds (what scripts call is not counted), and connections."""
        connections = self.client.info("clients")["connected_clients"] - 1
        with socket.create_connection((HOST, self.port)) as watch:
            watch.sendall(b"MONITOR\r\n")
            watch.settimeout(0.2)
            deadline, text = time.monotonic() + seconds, b""
            while time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):
                    text += watch.recv(1 << 16)
        lines = text.split(b"\r\n")[1:]
        return sum(bool(line) and b" lua] " not in line for line in lines), connections


@functools.cache
def _script_names() -> dict[str, str]:
    """What the scripts of Lanner are called, by what EVALSHA calls them."""
    names = [each.name.removesuffix(".lua") for each in LUA.iterdir() if each.name.endswith(".lua")]
    return {load(name).sha: name for name in names}


@contextlib.contextmanager
def apart(server: Server) -> Generator[None]:
    """The thread of a server that runs commands has a core for itself, where that can be, while the context is open.

    This process and those that it starts meanwhile have the others, and so do the server's other threads. Programs that
    are not ours are kept from that core by the thread's priority, where we may give it one.
    """
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    first, *others = sorted(cores)
    if not others:
        yield
        return
    for thread in Path(f"/proc/{server.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {first} if int(thread.name) == server.pid else others)
    os.sched_setaffinity(0, others)
    with contextlib.suppress(PermissionError):  # who may not has to hope that nobody else is at work
        os.sched_setscheduler(server.pid, os.SCHED_RR, os.sched_param(1))
    server.apart = True
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def programs() -> dict[str, Path]:
    """The server programs of this machine by kind; the first is the one that is measured on."""
    chosen = find_server()
    found = {f"{chosen.kind} {'.'.join(map(str, chosen.version))}": chosen.path}
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name)
        if path and Path(path) != chosen.path:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603 - on PATH
            found.setdefault(f"{name.partition('-')[0]} {said.partition('v=')[2].split(' ')[0]}", Path(path))
    return found


@contextlib.contextmanager
def start_server(label: str, program: Path) -> Generator[Server]:
    """A server without persistence, on TCP, while the context is open."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        options = {"port": port, "bind": HOST, "dir": folder, "save": "", "appendonly": "no"}
        command = [str(program), *(part for name, value in options.items() for part in (f"--{name}", str(value)))]
        with Path(os.devnull).open("w") as quiet, subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:  # noqa: S603 - the server that was asked for
            client: Any = redis.Redis(host=HOST, port=port)
            try:
                wait_until(lambda: _answers(client), "an answer of the server")
                yield Server(label, f"redis://{HOST}:{port}/0", port, process.pid, client)
            finally:
                client.close()
                process.terminate()


def _answers(client: Any) -> bool:
    with contextlib.suppress(redis.ConnectionError):
        client.ping()
        return True
    return False


def wait_until(happens: Callable[[], bool], what: str) -> None:
    """Look until something has happened.

    Raises:
        TimeoutError: It has not within ten seconds.
    """
    for _ in range(500):
        if happens():
            return
        time.sleep(0.02)
    raise TimeoutError(f"waited in vain for {what}")


@contextlib.contextmanager
def start_postgres() -> Generator[str]:
    """The URL of a PostgreSQL with default settings, while the context is open.

    Raises:
        FileNotFoundError: There is none on this machine.
    """
    initdb, postgres = shutil.which("initdb"), shutil.which("postgres")
    if initdb is None or postgres is None:
        raise FileNotFoundError("no PostgreSQL on PATH (initdb, postgres)")
    # it refuses to run as root
    user: dict[str, Any] = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder:
        if user:
            shutil.chown(folder, "nobody", "nogroup")
        data = f"{folder}/data"
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        subprocess.run([initdb, "-D", data, "-U", "bench", "--auth=trust"], check=True, **quiet, **user)  # noqa: S603 - on PATH
        command = [postgres, "-D", data, "-p", str(port), "-h", HOST, "-k", folder]
        with subprocess.Popen(command, **quiet, **user) as process:  # noqa: S603 - on PATH
            try:
                wait_until(lambda: _listens(port), "PostgreSQL")
                yield f"postgresql://bench@{HOST}:{port}/postgres"
            finally:
                process.terminate()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
