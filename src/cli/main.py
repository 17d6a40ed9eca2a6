import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from .exits import Exit, MisuseError
from .settings import LOG_LEVELS, WorkerArguments

DESCRIPTION: Final = "Durable workflows for Python on Redis."
WORKER: Final = """\
Run a worker of all workflows of a namespace, until it is signalled.

SIGTERM and SIGINT (Ctrl-C) stop it: it claims no more, lets its jobs run for the grace time, and hands back what is
left, which goes on elsewhere from its last checkpoint. A second signal cuts the grace short.
"""
EXITS: Final = """\
exit codes: 0 stopped as told; 1 broke down or could not reach Redis, start it again; 2 its arguments, the module or
the namespace cannot be used, starting it again does not help
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``lanner`` command.

    Args:
        arguments: What follows the command's name; those of this process if omitted.

    Returns:
        The exit code; see ``Exit``.
    """
    given = _parser().parse_args(arguments)
    try:
        if given.command == "demo":
            return _demo()
        return _worker(given)
    except MisuseError as error:
        print(f"lanner {given.command}: {error}", file=sys.stderr)  # noqa: T201 - a command speaks by printing
        return Exit.MISUSED
    except BrokenPipeError:
        # whoever read the output has gone; what is left of it must not be tried again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except KeyboardInterrupt:
        return 130  # what a shell expects of a command that Ctrl-C has ended


def _demo() -> int:
    from ..demo import run_demo  # noqa: PLC0415 - workers need none of it

    return run_demo()


def _worker(given: argparse.Namespace) -> int:
    settings = WorkerArguments(
        target=given.target,
        concurrency=given.concurrency,
        # while one edits, the new code shall go on with the job, and not wait for the old one to end
        grace=given.grace if given.grace is not None else 0.0 if given.reload else None,
        lease=given.lease,
        log_level=given.log_level,
        lifeline=given.lifeline,
    )
    if given.reload or given.processes > 1:
        from .fleet import run_fleet  # noqa: PLC0415 - a single worker needs none of it

        return run_fleet(settings, processes=given.processes, reload=given.reload)
    from .worker import run_worker  # noqa: PLC0415 - help and errors come without loading all of Lanner

    return run_worker(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lanner", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"lanner {version('lanner')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    demo = "watch a workflow survive the death of its worker; needs no Redis, takes 15 seconds"
    commands.add_parser("demo", help=demo, description=demo.capitalize() + ".")
    as_written = argparse.RawDescriptionHelpFormatter
    _describe_worker(
        commands.add_parser(
            "worker",
            help="run the workflows of a namespace",
            description=WORKER,
            epilog=EXITS,
            formatter_class=as_written,
        )
    )
    return parser


def _describe_worker(worker: argparse.ArgumentParser) -> None:
    worker.add_argument(
        "target",
        metavar="module:namespace",
        help="where the WorkflowNamespace (or one Workflow) is, as in shop.workflows:ns; looked for from here",
    )
    worker.add_argument(
        "--concurrency", type=int, default=10, metavar="N", help="how many jobs at once in each process (default: 10)"
    )
    worker.add_argument(
        "--processes",
        type=_positive,
        default=1,
        metavar="N",
        help="how many processes; one that dies is replaced (default: 1)",
    )
    worker.add_argument(
        "--lease",
        type=float,
        metavar="SECONDS",
        help="how long a job of a worker that was lost stays its own (default: 30)",
    )
    worker.add_argument(
        "--grace", type=float, metavar="SECONDS", help="how long running jobs may go on after a signal (default: 10)"
    )
    worker.add_argument(
        "--reload",
        action="store_true",
        help="for development: start again when a Python file below this directory changes; no grace unless given",
    )
    worker.add_argument("--log-level", choices=LOG_LEVELS, default="info", help="how much is logged (default: info)")
    worker.add_argument("--lifeline", action="store_true", help=argparse.SUPPRESS)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number
