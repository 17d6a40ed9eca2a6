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
from lanner.queue.scripts.loader import load
from support.client import Client
from support.documents import ROOT
from support.stored import expired
from support.waiting import wait_until

LOOKS_EVERY = 0.02
STARTS_WITHIN = 240.0  # seconds; nearly all that a test has, as a loaded machine has taken a minute for it
SLOTS = 20
NEVER = 3600.0
# have the lease of a claim run out, if it is still the same
EXPIRE = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""


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
        # the last line may be half written yet
        whole, _, _ = self.output.rpartition("\n")
        return [int(line.split()[1]) for line in whole.splitlines() if line.startswith("worker ")]

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
    lease: float | None = 0.5,
) -> AsyncGenerator[Crew]:
    """Have processes work on what ``define``, a function of a module, defines in a namespace; killed at the end.

    Without a lease none runs out, however slow the machine is: what the dead have held is taken back when they are
    gone, and of the living nobody loses anything.
    """
    output = directory / "crew.txt"
    arguments = (f"{define.__module__}:{define.__name__}", namespace, redis_url, str(processes), str(lease or NEVER))
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


def _id_of(pid: int) -> Path:
    """Where a process says which worker it is."""
    return Path(f"id of {pid}")


def _work(target: str, namespace: str, redis_url: str, lease: float) -> None:
    module, _, name = target.partition(":")
    ns = WorkflowNamespace(namespace, redis=redis_url)
    getattr(import_module(module), name)(ns)

    async def work() -> None:
        worker = ns.worker(concurrency=SLOTS, lease=lease, grace=0)
        _id_of(os.getpid()).write_text(worker.id)
        await worker.run()

    asyncio.run(work())


class _Heir:
    """Has what dead workers hold swept, as if their leases had run out."""

    def __init__(self, namespace: str, redis_url: str) -> None:
        self._client = Client(redis_url)
        self._base = f"lanner:{{{namespace}}}"
        self._dead: set[str] = set()

    def hear_of(self, pid: int) -> None:
        """A process has died."""
        if _id_of(pid).exists():
            self._dead.add(_id_of(pid).read_text())

    def take_over(self) -> None:
        """Sweep. What a worker has sent may be executed after its death: it is looked for again and again."""
        late = 0
        for workflow in self._client("HKEYS", f"{self._base}:running"):
            for job, claim in self._client("HGETALL", f"{self._base}:{workflow}:active").items():
                if claim[1:].partition(" ")[0].rpartition(":")[0] in self._dead:
                    late += self._client(
                        "EVAL", EXPIRE, 1, f"{self._base}:{workflow}:active", job, claim, expired(claim)
                    )
        if late:
            self._client("EVAL", load("sweep_claims").text, 1, self._base, int(NEVER * 1000), 0, late + 1)


def _main(target: str, namespace: str, redis_url: str, processes: str, lease: str) -> None:
    import_module(target.partition(":")[0])
    living: set[int] = set()
    heir = _Heir(namespace, redis_url) if float(lease) == NEVER else None
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
        dead = {pid for pid in living if os.waitpid(pid, os.WNOHANG)[0]}
        living -= dead
        if heir is not None:
            for pid in dead:
                heir.hear_of(pid)
            heir.take_over()


if __name__ == "__main__":
    _main(*sys.argv[1:])
