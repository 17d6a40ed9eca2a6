"""What the processes on one data directory share: its files, its locks, and how they talk to its server.

Who is alive is told by `flock`s, which the kernel releases however a process ends. All lie in the data directory:

* the directory itself, exclusive: held by the server, which inherits the descriptor. So no second server can start
  there, whatever became of the keeper, and not even after the directory's files were deleted.
* ``keeper.lock``, exclusive: held by the keeper, which inherits it from the user that started it.
* ``users.lock``, shared: held by each user. A keeper that gets it exclusively knows that nobody is left, and new users
  wait until it has stopped the server.
"""

import os
import socket
import stat
import sys
from pathlib import Path
from typing import Final, Literal

if sys.platform != "win32":
    import fcntl

State = Literal["ready", "loading", "absent"]

KEEPER_LOCK: Final = "keeper.lock"
USERS_LOCK: Final = "users.lock"
SOCKET: Final = "socket"
LOG: Final = "server.log"
WRITER: Final = "written-by.json"
TEMPORARY: Final = "temporary"
"""The name of a file that marks a directory as one to delete once its server has stopped."""

PAUSE: Final = 0.02
"""Seconds between two looks at a server that is starting."""

_CALL_TIMEOUT: Final = 5.0


def open_lock(path: Path) -> int:
    """Open a lock file, making it where it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock now, or say that another holds it."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_socket(directory: Path) -> str:
    """The path of the socket of the directory's server, or the empty string when it never had one."""
    try:
        return os.fsdecode((directory / SOCKET).read_bytes())
    except FileNotFoundError:
        return ""


def probe(path: str) -> State:
    """Ask a server whether it is ready."""
    if not path or not is_private(Path(path).parent):
        return "absent"
    try:
        answer = call(path, "PING")
    except OSError:
        return "absent"
    # any other answer than PONG (busy with a script, say) comes from a server at work, too
    return "loading" if answer.startswith(b"-LOADING") else "ready" if answer else "absent"


def is_private(directory: Path) -> bool:
    """Whether it is a directory of ours that nobody else can enter: in /tmp, anybody could have made it."""
    try:
        status = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def call(path: str, *words: str) -> bytes:
    """Send a command of plain words and return the first line of its answer; nothing when the server has closed."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_CALL_TIMEOUT)
        connection.connect(path)
        connection.sendall(f"{' '.join(words)}\r\n".encode())
        with connection.makefile("rb") as answers:
            return answers.readline()
