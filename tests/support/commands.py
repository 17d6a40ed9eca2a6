"""The ``lanner`` command, run as its users run it."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.waiting import wait_until

LANNER = (sys.executable, "-m", "lanner")
ENDS_WITHIN = 150.0  # seconds: on a loaded machine a process has taken a minute to start


class Command:
    """A command that runs in the background.

    Attributes:
        process: Its process.
    """

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def output(self) -> str:
        """What it has printed so far, errors included."""
        return self._output.read_text()

    async def until_it_says(self, text: str, *, times: int = 1) -> None:
        """Wait until it has printed the text so many times."""

        def said() -> bool:
            assert self.process.poll() is None or self.output.count(text) >= times, self.output
            return self.output.count(text) >= times

        await wait_until(said, timeout=ENDS_WITHIN)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        """Wait for its end."""
        await wait_until(lambda: self.process.poll() is not None, timeout=ENDS_WITHIN)
        return self.process.wait()


@contextmanager
def running(*command: str, directory: Path, environment: Mapping[str, str]) -> Generator[Command]:
    """A command that runs during the block, in a directory; killed at its end if it still does."""
    output = directory / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Command(process, output)
    finally:
        process.kill()
        process.wait()


@contextmanager
def started(
    *arguments: str, directory: Path, redis_url: str, environment: Mapping[str, str] | None = None
) -> Generator[Command]:
    """A ``lanner`` command that runs during the block, as ``running`` has it."""
    settings = {"LANNER_REDIS_URL": redis_url, **(environment or {})}
    with running(*LANNER, *arguments, directory=directory, environment=settings) as command:
        yield command


def ran(
    *arguments: str, directory: Path, redis_url: str = "redis://127.0.0.1:1/0", **environment: str
) -> subprocess.CompletedProcess[str]:
    """A ``lanner`` command that has ended by itself."""
    return subprocess.run(
        [*LANNER, *arguments],
        cwd=directory,
        env={**os.environ, "LANNER_REDIS_URL": redis_url, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=ENDS_WITHIN,
        check=False,
        text=True,
    )
