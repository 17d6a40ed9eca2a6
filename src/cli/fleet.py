"""Several worker processes, each replaced when it dies, and all of them when the code changes."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from .changes import changes, check_watchable
from .exits import Exit
from .settings import WorkerArguments

# a process that lives for less than this has not recovered what killed the one before it
LIVED: Final = 10.0
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0


def run_fleet(arguments: WorkerArguments, *, processes: int, reload: bool) -> int:
    """Keep ``processes`` worker processes running until signalled. Returns the exit code.

    Raises:
        MisuseError: Changes are to be watched for, and what sees them is not installed.
    """
    if reload:
        check_watchable()
    worker = replace(arguments, lifeline=True)
    command = [sys.executable, "-m", "lanner", *worker.words()]
    return asyncio.run(Fleet(command, processes, watched=Path.cwd().resolve() if reload else None).run())


class Fleet:
    """Processes that run one command.

    They get no signals of the terminal, only those that this process hands on; and they end when it is gone, which
    they see by the end of their standard input.
    """

    def __init__(self, command: Sequence[str], processes: int, *, watched: Path | None) -> None:
        """Run ``command`` in so many processes; start them again when Python below ``watched`` changes."""
        self._command = command
        self._processes = processes
        self._watched = watched
        self._running: set[asyncio.subprocess.Process] = set()
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._code = Exit.STOPPED

    async def run(self) -> int:
        """Keep them running until signalled. The exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        many = "1 worker process" if self._processes == 1 else f"{self._processes} worker processes"
        _say(f"{many}; Ctrl-C or SIGTERM stops, a second one at once")
        watching = asyncio.create_task(self._watch(self._watched)) if self._watched else None
        async with asyncio.TaskGroup() as places:
            for _ in range(self._processes):
                places.create_task(self._keep())
        if watching:
            watching.cancel()
        return self._code

    def _stop(self) -> None:
        self._stopping.set()
        self._signal_all()

    def _signal_all(self) -> None:
        for process in self._running:
            terminate(process)

    async def _watch(self, directory: Path) -> None:
        async for changed in changes(directory):
            _say(f"{changed} has changed: starting again")
            self._changed.set()
            self._changed = asyncio.Event()
            self._signal_all()

    async def _keep(self) -> None:
        """Keep one process running."""
        pause, ever_lived = FIRST_PAUSE, False
        while not self._stopping.is_set():
            changed, began = self._changed, time.monotonic()
            code = await self._run_one()
            if self._stopping.is_set():
                # a signal that comes before it can handle any ends it as well
                if code not in (Exit.STOPPED, -signal.SIGTERM) and self._code == Exit.STOPPED:
                    self._code = Exit.FAILED
                return
            if changed.is_set():
                continue
            if self._watched:
                _say(f"the worker ended with {_shown(code)}; it is started again when a file changes")
                await self._pause(changed, None)
                continue
            lived = time.monotonic() - began >= LIVED
            if code == Exit.MISUSED and not (lived or ever_lived):
                self._code = Exit.MISUSED
                self._stop()
                return
            ever_lived = ever_lived or lived
            pause = FIRST_PAUSE if lived else pause
            _say(f"a worker process ended with {_shown(code)}; another one is started in {pause:g} s")
            await self._pause(changed, pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _run_one(self) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, start_new_session=True
        )
        self._running.add(process)
        if self._stopping.is_set():
            terminate(process)
        try:
            return await process.wait()
        finally:
            self._running.discard(process)

    async def _pause(self, changed: asyncio.Event, seconds: float | None) -> None:
        """Wait for so long, or for a change; no longer than until the fleet is told to stop."""
        waits = [asyncio.create_task(self._stopping.wait()), asyncio.create_task(changed.wait())]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def terminate(process: asyncio.subprocess.Process) -> None:
    """Send SIGTERM to a process that lives.

    Its own method looks whether it does, and so takes the exit code of one that has just ended from who waits for it.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)


def _shown(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _say(text: str) -> None:
    print(f"lanner: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a command speaks by printing
