"""A process's use of an embedded server."""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from ..errors import EmbeddedServerError, InvalidArgumentError
from . import directory as shared
from .binary import find_server
from .orders import Orders
from .release import Release

START_TIMEOUT: Final = 30.0
_MOST_KEEPERS: Final = 5
# The folder becomes a package of its own there: importing it as a part of Lanner would import all of Lanner, and a
# folder of Lanner on the module path could hide a module of the standard library.
_KEEPER: Final = """
import sys, types
package = types.ModuleType("embedded")
package.__path__ = [sys.argv[1]]
sys.modules["embedded"] = package
from embedded.keeper import main
main(sys.argv[2])
"""


class EmbeddedHandle:
    """Keeps an embedded server running until it is closed. Made by ``open_embedded``.

    A process that was forked while the handle was open keeps the server running, too.

    Attributes:
        url: Where the server answers, as ``unix://`` URL.
        directory: Its data directory.
    """

    def __init__(self, *, url: str, directory: Path, users_lock: int) -> None:
        self.url = url
        self.directory = directory
        self._release = weakref.finalize(self, os.close, users_lock)

    def close(self) -> None:
        """Let go of the server, which stops when nobody uses it any more. Closing again does nothing."""
        if self._release.alive:
            # without a keeper, nobody would stop the server
            with contextlib.suppress(OSError, EmbeddedServerError):
                report = _spawn_keeper(self.directory)
                if report is not None:
                    os.close(report)
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<EmbeddedHandle {self.url} on {self.directory}{'' if self._release.alive else ', closed'}>"


def open_embedded(spec: str = "embedded", *, timeout: float = START_TIMEOUT) -> EmbeddedHandle:
    """Use the server of a directory; it is started unless it runs. Blocks for as long as that takes.

    All handles on one directory, in any number of processes, share one server.

    Args:
        spec: ``"embedded"`` for the user's own data directory (``XDG_DATA_HOME``, else ``~/.local/share/lanner`` or
            ``~/Library/Application Support/lanner``), or ``"embedded:PATH"`` for another; it is made if missing.
        timeout: Seconds to wait for a server that gives no sign of life. One that loads its data is waited for.

    Raises:
        InvalidArgumentError: ``spec`` is neither form.
        EmbeddedServerError: No server program was found, or it cannot run on this directory; the text says why.

    Example:
        >>> with open_embedded("embedded:./data") as server:
        ...     client = redis.Redis.from_url(server.url)
    """
    if sys.platform == "win32":
        raise EmbeddedServerError(
            "The embedded server needs Linux or macOS. Give the URL of a Redis: redis='redis://…'."
        )
    directory = _directory_of(spec)
    give_up = time.monotonic() + timeout
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        users_lock = shared.open_lock(directory / shared.USERS_LOCK)
        try:
            _join(users_lock, directory, give_up)
            socket = _await_server(directory, give_up)
        except BaseException:
            os.close(users_lock)
            raise
    except OSError as error:
        raise EmbeddedServerError(
            f"The directory {directory} cannot be used for an embedded server: {error}. "
            "Name a directory of your own on a local disk: redis='embedded:PATH'."
        ) from error
    return EmbeddedHandle(url=f"unix://{quote(socket)}", directory=directory, users_lock=users_lock)


@contextlib.contextmanager
def temporary_server() -> Generator[EmbeddedHandle]:
    """A server of one's own for the block, with a directory that is deleted with the last user of it.

    Its processes and files go away, too, when this process is killed.

    Raises:
        EmbeddedServerError: No server program was found, or it cannot be started.

    Example:
        >>> with temporary_server() as server:
        ...     namespace = WorkflowNamespace("test", redis=server.url)
    """
    directory = Path(tempfile.mkdtemp(prefix="lanner-"))
    (directory / shared.TEMPORARY).touch()
    try:
        handle = open_embedded(f"embedded:{directory}")
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    try:
        yield handle
    finally:
        handle.close()
        give_up = time.monotonic() + START_TIMEOUT
        # a process that was handed the directory may still use it; then it goes when that one does
        while directory.exists() and not _in_use(directory) and time.monotonic() < give_up:
            time.sleep(shared.PAUSE)


def _directory_of(spec: str) -> Path:
    name, colon, path = spec.partition(":")
    if name != "embedded" or (colon and not path) or "\0" in path:
        raise InvalidArgumentError(f"redis={spec!r} is not understood: it is 'embedded' or 'embedded:PATH'")
    try:
        return Path(path).expanduser().absolute() if colon else _default_directory()
    except RuntimeError as error:
        raise EmbeddedServerError(
            f"The place of redis={spec!r} cannot be told: {error} Name a directory: redis='embedded:PATH'."
        ) from None


def _default_directory() -> Path:
    named = os.environ.get("XDG_DATA_HOME", "")
    # relative ones are to be ignored, says the XDG specification
    if os.path.isabs(named):  # noqa: PTH117 - an empty path is not absolute either way
        return Path(named, "lanner")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lanner"
    return Path.home() / ".local" / "share" / "lanner"


def _join(users_lock: int, directory: Path, give_up: float) -> None:
    """Become a user. A keeper that is stopping the server is waited for; after this, none can begin to."""
    while not shared.try_lock(users_lock, shared=True):
        if time.monotonic() > give_up:
            raise EmbeddedServerError(
                f"The server of {directory} is being stopped and has not ended yet; see {directory / shared.LOG}."
            )
        time.sleep(shared.PAUSE)


def _await_server(directory: Path, give_up: float) -> str:
    """The path of the socket of a server that answers; whoever finds it without a keeper starts one."""
    patience = give_up - time.monotonic()
    report: int | None = None
    spawned = 0
    try:
        while True:
            if report is None:
                report = _spawn_keeper(directory)
                spawned += report is not None
            socket = shared.read_socket(directory)
            state = shared.probe(socket)
            if state == "ready":
                return socket
            if state == "loading":
                give_up = time.monotonic() + patience
            if time.monotonic() > give_up or spawned > _MOST_KEEPERS:
                raise EmbeddedServerError(
                    f"The server of {directory} does not answer (socket: {socket or 'none yet'}). "
                    f"What it says is in {directory / shared.LOG}."
                )
            if report is None:
                time.sleep(shared.PAUSE)
            elif select.select([report], [], [], shared.PAUSE)[0]:
                failure = os.read(report, 1 << 16).decode(errors="replace")
                if failure:
                    raise EmbeddedServerError(failure)
                os.close(report)
                report = None
    finally:
        if report is not None:
            os.close(report)


def _spawn_keeper(directory: Path) -> int | None:
    """Start a keeper unless there is one. Returns the pipe on which it tells a failure."""
    lock = shared.open_lock(directory / shared.KEEPER_LOCK)
    try:
        if not shared.try_lock(lock):
            return None
        if not sys.executable:
            raise EmbeddedServerError(
                "The embedded server cannot be started: sys.executable, the Python to use, is unset."
            )
        try:
            server = find_server()
        except EmbeddedServerError as missing:
            # a server that runs already can be used all the same
            orders = Orders(str(directory), lock, "", str(missing))
        else:
            release = Release(server.kind, server.version)
            orders = Orders(str(directory), lock, str(server.path), release)
        return _run_keeper(directory, orders)
    finally:
        os.close(lock)


def _run_keeper(directory: Path, orders: Orders) -> int:
    report, output = os.pipe()
    try:
        with (directory / shared.LOG).open("ab") as log:
            # our own Python and our own file
            ended = subprocess.run(  # noqa: S603 - see above
                [sys.executable, "-P", "-S", "-c", _KEEPER, str(Path(__file__).parent), orders.to_json()],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                pass_fds=(orders.lock,),
                start_new_session=True,
                check=False,
            )
        # one that was killed is like one that is killed a moment later: there is none, and the next look sees it
        if ended.returncode > 0:
            raise EmbeddedServerError(
                f"The process that keeps the server of {directory} ended with status {ended.returncode}; "
                f"see {directory / shared.LOG}."
            )
    except BaseException:
        os.close(report)
        raise
    finally:
        os.close(output)
    return report


def _in_use(directory: Path) -> bool:
    """Whether another user holds a share of the directory's server."""
    try:
        lock = os.open(directory / shared.USERS_LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # not to be had alone, but together: the keeper, which never gives it back, does not have it
        return not shared.try_lock(lock) and shared.try_lock(lock, shared=True)
    finally:
        os.close(lock)
