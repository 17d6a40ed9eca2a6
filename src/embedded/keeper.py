"""The process that keeps one embedded server: it starts it, starts it again when it dies, and stops it after its users.

It lives as long as the server does, so it is started without site-packages, which costs a tenth of the memory: like
the modules it shares with its users, it imports the standard library alone.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .directory import (
    LOG,
    PAUSE,
    SOCKET,
    TEMPORARY,
    USERS_LOCK,
    WRITER,
    call,
    is_private,
    open_lock,
    probe,
    read_socket,
    try_lock,
)
from .orders import Orders
from .release import Release

_LONGEST_SOCKET_PATH: Final = 103  # macOS; Linux has 107
_SHORT_PLACE: Final = "/tmp"  # noqa: S108 - a private directory of random name is made there
_LARGEST_LOG: Final = 1 << 20
_LONGEST_PAUSE: Final = 1.0
_DEATHS_APART: Final = 1.0
_MOST_TRIES: Final = 3


def _write(name: str, content: bytes) -> None:
    """Replace a small file of the current directory at once, so that no reader sees a part of it."""
    new = Path(f"{name}.new")
    new.write_bytes(content)
    new.replace(name)


def _remember_writer(release: Release) -> None:
    _write(WRITER, json.dumps([release.kind, release.version]).encode())


class _StartError(Exception):
    """The server cannot be started; the text is for the user."""


class Keeper:
    """Keeps the server of the current directory alive while it has users, and then stops it."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._child: subprocess.Popen[bytes] | None = None
        self._socket = read_socket(Path())
        self._unused = threading.Event()
        self._log_start = 0
        self._last_death = -_DEATHS_APART
        self._served = False
        self._tries = 0

    def run(self) -> None:
        """Return when the server has been stopped, or raise when it cannot be started."""
        threading.Thread(target=self._stop_when_unused, daemon=True).start()
        lock = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            while True:
                # a server that runs already was left by a keeper that died
                if not try_lock(lock):
                    self._see_it_through(lock)
                if self._unused.is_set():
                    break
                lock = self._start(lock)
        except _StartError:
            # clients of a server that ran may find the next one where it was
            if not self._served:
                self._tidy_up()
            raise
        self._tidy_up()

    def _see_it_through(self, lock: int) -> None:
        """Wait until the server is dead, which is when its lock can be had."""
        pauses = _pauses()
        while not (ready := probe(self._socket) == "ready") and not try_lock(lock):
            time.sleep(next(pauses))
        if ready:
            self._served, self._tries = True, 0
            if self._child is not None and isinstance(self._orders.release, Release):
                _remember_writer(self._orders.release)
            _report("")
            fcntl.flock(lock, fcntl.LOCK_EX)
        child, self._child = self._child, None
        status = child.wait() if child is not None else 0
        if self._unused.is_set():
            return
        # a server that ends by itself at its start always will; one that was killed there may start the next time
        if not ready and (status > 0 or self._tries >= _MOST_TRIES):
            raise _StartError(self._failure())
        if time.monotonic() - self._last_death < _DEATHS_APART:
            time.sleep(_DEATHS_APART)
        self._last_death = time.monotonic()

    def _start(self, lock: int) -> int:
        """Start a server that inherits the lock, and return a descriptor with which to wait for its death."""
        release = self._orders.release
        if isinstance(release, str):
            raise _StartError(release)
        self._refuse_unreadable(release)
        self._tries += 1
        # one that was used before is used again: clients know it
        if not self._socket or not is_private(Path(self._socket).parent):
            self._socket = _make_socket_place()
        settings = {
            "port": "0",
            "unixsocket": self._socket,
            "unixsocketperm": "700",
            "daemonize": "no",
            "dir": ".",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        log = Path(LOG)
        with log.open("wb" if log.exists() and log.stat().st_size > _LARGEST_LOG else "ab") as output:
            self._log_start = output.tell()
            try:
                # the program was found by `find_server`
                self._child = subprocess.Popen(  # noqa: S603 - see above
                    [self._orders.binary, *(word for name, value in settings.items() for word in (f"--{name}", value))],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(lock,),
                    start_new_session=True,
                    umask=0o077,
                    # a locale that is not installed would keep the server from starting
                    env={**os.environ, "LC_ALL": "C"},
                )
            except OSError as error:
                raise _StartError(f"{self._orders.binary} cannot be run: {error}") from None
        os.close(lock)
        return os.open(".", os.O_RDONLY | os.O_CLOEXEC)

    def _refuse_unreadable(self, release: Release) -> None:
        if not any(Path().glob("appendonlydir/*")) and not Path("appendonly.aof").exists():
            # nobody may live to say it later
            _remember_writer(release)
            return
        try:
            kind, version = json.loads(Path(WRITER).read_bytes())
        except FileNotFoundError:
            return
        writer = Release(kind, tuple(version))
        if not release.reads(writer):
            raise _StartError(
                f"The data in {self._orders.directory} was written by {writer}, and {release} "
                f"({self._orders.binary}) cannot read it. Use that server again (LANNER_REDIS_SERVER names the "
                "program to run), use another directory (redis='embedded:PATH'), or delete this one with its data."
            )

    def _failure(self) -> str:
        with Path(LOG).open("rb") as log:
            log.seek(self._log_start)
            said = log.read().decode(errors="replace").splitlines()
        return (
            f"{self._orders.release} ({self._orders.binary}) did not start in {self._orders.directory}. "
            f"The end of its log, {Path(self._orders.directory, LOG)}:\n" + "\n".join(said[-5:])
        )

    def _stop_when_unused(self) -> None:
        fcntl.flock(open_lock(Path(USERS_LOCK)), fcntl.LOCK_EX)
        self._unused.set()
        # again until the process ends with the server: it may be about to start
        for pause in _pauses():
            try:
                # all is in the AOF; without NOSAVE a server busy with a script would refuse
                call(self._socket, "SHUTDOWN", "NOSAVE")
            except OSError:
                child = self._child
                if child is not None:
                    child.terminate()
            time.sleep(pause)

    def _tidy_up(self) -> None:
        # somebody may have deleted any of it before
        with contextlib.suppress(OSError):
            if self._socket and is_private(Path(self._socket).parent):
                Path(self._socket).unlink(missing_ok=True)
                Path(self._socket).parent.rmdir()
                Path(SOCKET).unlink()
        with contextlib.suppress(OSError):
            directory = Path(self._orders.directory)
            if Path(TEMPORARY).exists() and directory.samefile("."):
                shutil.rmtree(directory)


def _pauses() -> Iterator[float]:
    """Seconds between looks: short at first, and no burden where it takes long."""
    pause = PAUSE
    while True:
        yield pause
        pause = min(pause * 1.2, _LONGEST_PAUSE)


def _make_socket_place() -> str:
    """Make a directory for the server's socket, and record the socket's path."""
    # not XDG_RUNTIME_DIR first: it goes away at logout, when a worker in a terminal multiplexer still runs
    for parent in (_SHORT_PLACE, os.environ.get("TMPDIR"), os.environ.get("XDG_RUNTIME_DIR")):
        path = Path(parent or "", f"lanner-{secrets.token_hex(8)}", "redis.sock")
        if path.is_absolute() and len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
            # recorded before it is made: one that is not recorded would stay for ever
            _write(SOCKET, os.fsencode(path))
            with contextlib.suppress(OSError):
                path.parent.mkdir(mode=0o700)
                return str(path)
    raise _StartError(
        "There is no place for the server's socket: neither /tmp nor TMPDIR is writable and short enough."
    )


def _report(failure: str) -> None:
    """Tell the user who started this process how it went, and let go of the pipe to it."""
    # the user may have gone, or have seen for itself that the server answers
    with contextlib.suppress(OSError):
        os.write(1, failure.encode(errors="replace"))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.close(silence)


def main(orders_json: str) -> None:
    """Detach from the user who started this process, and keep the server."""
    orders = Orders.from_json(orders_json)
    # the user waits for its child; the keeper must not be one
    if os.fork():
        os._exit(0)
    os.ftruncate(orders.lock, 0)
    os.write(orders.lock, f"{os.getpid()}\n".encode())
    try:
        Keeper(orders).run()
    except _StartError as error:
        _report(str(error))
        sys.exit(1)
    except Exception as error:
        _report(f"The server of {orders.directory} cannot be kept: {error!r}; see {Path(orders.directory, LOG)}.")
        raise
