"""The command line: its commands, and what each is given."""

import argparse
from collections.abc import Callable
from importlib.metadata import version
from typing import Final

from .settings import LOG_LEVELS

DESCRIPTION: Final = "Durable workflows for Python on Redis."
WORKER: Final = """\
Run a worker of all workflows of a namespace, until it is signalled.

SIGTERM and SIGINT (Ctrl-C) stop it: it claims no more, lets its jobs run for the grace time, and hands back what is
left, which goes on elsewhere from its last checkpoint. A second signal cuts the grace short.
"""
EXITS_OF_A_WORKER: Final = """\
exit codes: 0 stopped as told; 1 broke down or could not reach Redis, start it again; 2 its arguments, the module or
the namespace cannot be used, starting it again does not help
"""
EXITS: Final = """\
exit codes: 0 done; 1 not done for some job (it says which, and why), or Redis could not be reached; 2 the arguments,
the module or the namespace cannot be used
"""
# as lanner.queue.listing has these, which takes long to import
MOST_A_PAGE: Final = 1000
STATES: Final = ("waiting", "delayed", "parked", "active", "completed", "failed", "cancelled")


def parser() -> argparse.ArgumentParser:
    """What reads the command line."""
    whole = argparse.ArgumentParser(prog="lanner", description=DESCRIPTION)
    whole.add_argument("--version", action="version", version=f"lanner {version('lanner')}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    demo = "watch a workflow survive the death of its worker; needs no Redis, takes 15 seconds"
    commands.add_parser("demo", help=demo, description=demo.capitalize() + ".")
    as_written = argparse.RawDescriptionHelpFormatter
    _describe_worker(
        commands.add_parser(
            "worker",
            help="run the workflows of a namespace",
            description=WORKER,
            epilog=EXITS_OF_A_WORKER,
            formatter_class=as_written,
        )
    )

    def operation(name: str, what: str) -> argparse.ArgumentParser:
        described = commands.add_parser(
            name, help=what, description=what.capitalize() + ".", epilog=EXITS, formatter_class=as_written
        )
        _add_target(described)
        # of what follows the arguments it knows, argparse has the whole command complain, with its usage
        described.set_defaults(complain=described.error)
        return described

    operation("status", "show the workflows of a namespace, how many jobs are in each state, and the workers")
    listing = operation("jobs", "list the jobs of a workflow in a state, each as WORKFLOW/ID")
    listing.add_argument("workflow", metavar="WORKFLOW", help="the workflow's id")
    listing.add_argument("state", metavar="STATE", choices=STATES, help=", ".join(STATES))
    listing.add_argument(
        "--limit",
        type=_from(1, MOST_A_PAGE),
        default=20,
        metavar="N",
        help="how many at most, up to 1000 (default: 20)",
    )
    listing.add_argument(
        "--skip",
        type=_from(0),
        default=0,
        metavar="N",
        help="how many to pass over, from the last of jobs that have ended, else from the first (default: 0)",
    )
    listing.add_argument("--names", action="store_true", help="nothing but their names, as xargs takes them")
    show = operation("show", "show everything that is known of a job: its steps, its log, its failure, its children")
    show.add_argument("job", metavar="WORKFLOW/ID", help="as `lanner jobs` lists it")
    retry = operation("retry", "have jobs that failed for good go on from their last step")
    which = retry.add_mutually_exclusive_group(required=True)
    which.add_argument("jobs", metavar="WORKFLOW/ID", nargs="*", default=[], help="as `lanner jobs` lists them")
    which.add_argument("--all", metavar="WORKFLOW", help="every failed job of a workflow")
    cancel = operation("cancel", "cancel jobs, wherever they are")
    _add_jobs(cancel)
    cancel.add_argument("--reason", default="", metavar="TEXT", help="what those who wait for it are told")
    _add_jobs(operation("remove", "remove jobs and everything of them; a running one is stopped"))
    for name, what in (
        ("pause", "start no more jobs of a namespace, or of one workflow; what runs goes on"),
        ("resume", "start jobs again after a pause"),
    ):
        operation(name, what).add_argument("workflow", metavar="WORKFLOW", nargs="?", help="one workflow only")
    return whole


def _add_target(described: argparse.ArgumentParser) -> None:
    described.add_argument(
        "target",
        metavar="module:namespace",
        help="where the WorkflowNamespace (or one Workflow) is, as in shop.workflows:ns; looked for from here",
    )


def _add_jobs(described: argparse.ArgumentParser) -> None:
    described.add_argument("jobs", metavar="WORKFLOW/ID", nargs="+", help="as `lanner jobs` lists them")


def _describe_worker(worker: argparse.ArgumentParser) -> None:
    _add_target(worker)
    worker.add_argument(
        "--concurrency", type=int, default=10, metavar="N", help="how many jobs at once in each process (default: 10)"
    )
    worker.add_argument(
        "--processes",
        type=_from(1),
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


def _from(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads a whole number that is not below, nor above, these."""

    def read(text: str) -> int:
        number = int(text)
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"must be {least} " + ("or more" if most is None else f"to {most}"))
        return number

    read.__name__ = "int"  # as argparse calls it where it is none
    return read
