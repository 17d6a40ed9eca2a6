"""Private servers for one run: a Redis or Valkey on a port of its own, and a PostgreSQL where there is one."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from lanner.embedded import find_server

HOST = "127.0.0.1"
SLOW_US = 5_000


@dataclass
class Server:
    """A running Redis or Valkey that nobody else uses."""

    label: str
    url: str
    port: int
    client: Any

    def flush(self) -> None:
        """Leave nothing of what was before."""
        self.client.flushall()

    def memory(self) -> int:
        """Bytes in use."""
        return int(self.client.info("memory")["used_memory"])

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        cpu = self.client.info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])

    def script_us(self) -> float:
        """Microseconds that scripts have run for."""
        stats = self.client.info("commandstats")
        return float(sum(stats[name]["usec"] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats))

    def slow_scripts(self) -> list[float]:
        """Scripts that have held the server for longer than 5 ms: milliseconds of each."""
        entries = self.client.slowlog_get(128)
        scripts = [entry for entry in entries if entry["command"][:4].upper() == b"EVAL"]
        return sorted((round(entry["duration"] / 1000, 1) for entry in scripts), reverse=True)

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
        options = {
            "port": port, "bind": HOST, "dir": folder, "save": "", "appendonly": "no",
            "slowlog-log-slower-than": SLOW_US, "slowlog-max-len": 1024,
        }  # fmt: skip
        command = [str(program), *(part for name, value in options.items() for part in (f"--{name}", str(value)))]
        with Path(os.devnull).open("w") as quiet, subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:  # noqa: S603 - the server that was asked for
            client: Any = redis.Redis(host=HOST, port=port)
            try:
                _wait_until_it_answers(client)
                yield Server(label, f"redis://{HOST}:{port}/0", port, client)
            finally:
                client.close()
                process.terminate()


def _wait_until_it_answers(client: Any) -> None:
    for _ in range(200):
        with contextlib.suppress(redis.ConnectionError):
            client.ping()
            return
        time.sleep(0.05)
    raise TimeoutError("the server does not answer")


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
                _wait_for_port(port)
                yield f"postgresql://bench@{HOST}:{port}/postgres"
            finally:
                process.terminate()


def _wait_for_port(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.1)
    raise TimeoutError("PostgreSQL does not answer")
