import argparse
import io
import os
import sys
from collections.abc import Sequence

from .arguments import parser
from .exits import Exit, FailureError, MisuseError
from .settings import WorkerArguments


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``lanner`` command.

    Args:
        arguments: What follows the command's name; those of this process if omitted.

    Returns:
        The exit code; see ``Exit``.
    """
    commands = parser()
    given, unknown = commands.parse_known_args(arguments)
    if unknown:
        getattr(given, "complain", commands.error)(f"unrecognized arguments: {' '.join(unknown)}")
    output: object = sys.stdout
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="backslashreplace")
    try:
        return _run(given)
    except (MisuseError, FailureError) as error:
        print(f"lanner {given.command}: {error}", file=sys.stderr)  # noqa: T201 - a command speaks by printing
        return Exit.MISUSED if isinstance(error, MisuseError) else Exit.FAILED
    except BrokenPipeError:
        # whoever read the output has gone; what is left of it must not be tried again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except KeyboardInterrupt:
        return 130  # what a shell expects of a command that Ctrl-C has ended


def _run(given: argparse.Namespace) -> int:
    # help and errors come without loading all of Lanner, and each command loads what it needs
    if given.command == "demo":
        from ..demo import run_demo  # noqa: PLC0415

        return run_demo()
    if given.command == "worker":
        return _worker(given)
    from .operating import run_operation  # noqa: PLC0415

    return run_operation(given)


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
        from .fleet import run_fleet  # noqa: PLC0415

        return run_fleet(settings, processes=given.processes, reload=given.reload)
    from .worker import run_worker  # noqa: PLC0415

    return run_worker(settings)
