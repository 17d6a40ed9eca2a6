"""Worker processes that die, by their own hand or by a test's, and are replaced at once.

Run as a program it is the crew: it forks its workers, so that a new one costs next to nothing, and ends with its
standard input. What they work on is defined by a function that is given the namespace, there as in the test's process.
"""

import asyncio
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

from lanner import WorkflowNamespace
from support.documents import ROOT
from support.waiting import wait_until

LOOKS_EVERY = 0.02
STARTS_WITHIN = 240.0  # seconds; nearly all that a test has, as a loaded machine has taken a minute for it
SLOTS = 20


class Crew:
    """A crew at work, made by ``crew``."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self._process = process
        self._output = output

    @property
    def output(self) -> str:
        """What its processes have said."""
        return self._output.read_text()

    def workers(self) -> list[int]:
        """The ids of all worker processes so far; dead ones are among them."""
        return [int(line.split()[1]) for line in self.output.splitlines() if line.startswith("worker ")]

    def kill_one(self, rng: random.Random) -> None:
        """Kill one of the workers that live, if there is one, as a crash would."""
        living = [pid for pid in self.workers() if _lives(pid)]
        if living:
            os.kill(rng.choice(living), signal.SIGKILL)


@asynccontextmanager
async def crew(
    define: Callable[[WorkflowNamespace], object],
    namespace: str,
    redis_url: str,
    directory: Path,
    *,
    processes: int = 2,
    lease: float = 0.5,
) -> AsyncGenerator[Crew]:
    """Have processes work on what ``define``, a function of a module, defines in a namespace; killed at the end."""
    output = directory / "crew.txt"
    arguments = (f"{define.__module__}:{define.__name__}", namespace, redis_url, str(processes), str(lease))
    process = _start(arguments, directory, output)
    at_work = Crew(process, output)
    try:
        try:
            await wait_until(at_work.workers, STARTS_WITHIN)
        except AssertionError as error:
            error.add_note(f"the crew, whose process has ended with {process.poll()}, has said: {at_work.output!r}")
            raise
        yield at_work
    finally:
        process.communicate()


def _start(arguments: Sequence[str], directory: Path, output: Path) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join((str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")))
    with output.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "support.crew", *arguments],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _work(target: str, namespace: str, redis_url: str, lease: float) -> None:
    module, _, name = target.partition(":")
    ns = WorkflowNamespace(namespace, redis=redis_url)
    getattr(import_module(module), name)(ns)
    asyncio.run(ns.work(concurrency=SLOTS, lease=lease, grace=0))


def _main(target: str, namespace: str, redis_url: str, processes: str, lease: str) -> None:
    import_module(target.partition(":")[0])
    living: set[int] = set()
    while True:
        while len(living) < int(processes):
            pid = os.fork()
            if pid == 0:
                _work(target, namespace, redis_url, float(lease))
                os._exit(0)
            living.add(pid)
            print("worker", pid, flush=True)  # noqa: T201 - how the test hears of it
        if select.select([sys.stdin], [], [], LOOKS_EVERY)[0] and not os.read(sys.stdin.fileno(), 1):
            os.killpg(0, signal.SIGKILL)
        living -= {pid for pid in living if os.waitpid(pid, os.WNOHANG)[0]}


if __name__ == "__main__":
    _main(*sys.argv[1:])
