"""Everything that is run on the project: ``nox -s demo``, ``tests``, ``lint``, ``types``, ``bench``."""

import shutil
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_venv = "yes"

PYPROJECT = nox.project.load_toml("pyproject.toml")
CHECKED = [name for name in ("src", "tests", "examples", "benchmarks", "noxfile.py") if Path(name).exists()]


def install(session: nox.Session, extras: str, *groups: str) -> None:
    """Install Lanner as a user gets it, with what the dependency groups name; no build leaves anything to the next."""
    shutil.rmtree("build", ignore_errors=True)
    session.install(f".[{extras}]", *nox.project.dependency_groups(PYPROJECT, *groups))


@nox.session
def demo(session: nox.Session) -> None:
    """Kill a worker in the middle of an order, and watch another one finish it."""
    install(session, "embedded,cli")
    session.run("lanner", "demo", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, on a server that they start themselves. What follows ``--`` goes to pytest."""
    install(session, "embedded,cli,otel,fast", "tests")
    session.run("pytest", "-n", "auto", "--maxprocesses", "8", "--dist", "worksteal", *session.posargs)


@nox.session
def chaos(session: nox.Session) -> None:
    """Run the queue against its model for longer, in sequences that are new each time."""
    install(session, "embedded,cli,otel,fast", "tests")
    session.run("pytest", "tests/test_queue_model.py", *session.posargs, env={"LANNER_MODEL_EXAMPLES": "2000"})


@nox.session
def mutations(session: nox.Session) -> None:
    """Take one thing at a time out of the queue, and see that its tests notice."""
    install(session, "embedded,cli,otel,fast", "tests")
    session.run("python", "tests/mutations.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install(*nox.project.dependency_groups(PYPROJECT, "lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure Lanner beside its peers; ``-- --quick`` takes five minutes at most."""
    install(session, "embedded,fast")
    session.install("-r", "benchmarks/requirements.txt")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of everything, with two checkers."""
    install(session, "embedded,cli,otel,fast", "tests", "types")
    session.install("-r", "benchmarks/requirements.txt")
    session.run("mypy", *CHECKED)
    session.run("pyright")
