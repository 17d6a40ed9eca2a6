"""One worker process."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Final

from ..queue.namespace import Namespace
from ..workflow.worker import Worker, WorkerSettings
from .exits import Exit
from .faults import in_words
from .settings import WorkerArguments
from .target import Target, load_target, queues_of, workflows_of

LOG_FORMAT: Final = "%(asctime)s %(levelname)s [%(process)d] %(message)s"
STANDARD_INPUT: Final = 0
# between two looks of the garbage collector: those of some hundred small jobs
NEW_OBJECTS: Final = 10_000

logger: Final = logging.getLogger(__name__)


def run_worker(arguments: WorkerArguments) -> int:
    """Work until signalled. Returns the exit code.

    Raises:
        MisuseError: The arguments cannot be used.
        FailureError: Redis cannot be reached.
    """
    target = load_target(arguments.target)
    # does nothing where the module has set up logging of its own
    logging.basicConfig(level=arguments.log_level.upper(), format=LOG_FORMAT, stream=sys.stderr)
    settings: WorkerSettings = {}
    if arguments.lease is not None:
        settings["lease"] = arguments.lease
    if arguments.grace is not None:
        settings["grace"] = arguments.grace
    with in_words():
        worker = target.worker(concurrency=arguments.concurrency, **settings)
        name, make_loop = _loop()
        _announce(target, arguments, name)
        _spare_the_collector()
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(_work(worker, queues_of(target), lifeline=arguments.lifeline))
    return Exit.STOPPED


def _spare_the_collector() -> None:
    """Have the garbage collector look at less, and less often."""
    # what has been imported stays: it need not go through that again and again
    gc.freeze()
    # by default it looks for cycles in the midst of each handful of jobs, which are gone without it when they end; 0 is
    # for never
    if gc.isenabled() and 0 < gc.get_threshold()[0] < NEW_OBJECTS:
        gc.set_threshold(NEW_OBJECTS)


async def _work(worker: Worker, queues: Namespace, *, lifeline: bool) -> None:
    if lifeline:
        asyncio.get_running_loop().add_reader(STANDARD_INPUT, _stop_at_the_end_of_input)
    try:
        await worker.run()
    finally:
        await queues.aclose()


def _stop_at_the_end_of_input() -> None:
    if not os.read(STANDARD_INPUT, 1024):
        asyncio.get_running_loop().remove_reader(STANDARD_INPUT)
        os.kill(os.getpid(), signal.SIGTERM)


def _loop() -> tuple[str, Callable[[], asyncio.AbstractEventLoop] | None]:
    """The event loop to use, by name, and what makes one."""
    try:
        import uvloop  # noqa: PLC0415 - an extra
    except ImportError:
        return "asyncio", None
    return "uvloop", uvloop.new_event_loop


def _announce(target: Target, arguments: WorkerArguments, loop: str) -> None:
    queues = queues_of(target)
    names = ", ".join(workflow.id for workflow in workflows_of(target))
    _say(f"lanner {version('lanner')}, process {os.getpid()}: namespace {queues.id!r} on {queues.connector}")
    how = "" if arguments.lifeline else "; Ctrl-C or SIGTERM stops it, a second one at once"
    slots = "1 slot" if arguments.concurrency == 1 else f"{arguments.concurrency} slots"
    _say(f"{slots} for {names} ({loop}){how}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a command speaks by printing
