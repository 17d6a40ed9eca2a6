"""Fixtures for tests of workflows on a real server. To be named in a ``conftest.py``; nobody else has them.

Example:
    >>> pytest_plugins = ["lanner.testing.pytest_plugin"]
"""

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack

import pytest

from ..embedded import temporary_server
from ..workflow.namespace import WorkflowNamespace
from .server import RealServer

SETTING = "lanner_redis_url"
VARIABLE = "LANNER_TEST_REDIS_URL"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the server be named in the settings of pytest."""
    parser.addini(SETTING, f"The Redis that tests use ({VARIABLE} goes above it); empty: an embedded one", default="")


@pytest.fixture(scope="session")
def lanner_server(pytestconfig: pytest.Config) -> Generator[RealServer]:
    """A Redis for the tests: the one of ``LANNER_TEST_REDIS_URL`` or the setting, else an embedded one of their own."""
    url = os.environ.get(VARIABLE) or str(pytestconfig.getini(SETTING))
    if url:
        yield RealServer(url)
    else:
        with temporary_server() as server:
            yield RealServer(server.url)


@pytest.fixture
def lanner_namespace(lanner_server: RealServer) -> Generator[WorkflowNamespace]:
    """A namespace of the test's own; its keys are deleted after the test."""
    with lanner_server.namespace() as namespace:
        yield namespace


@pytest.fixture
def lanner_isolate(lanner_server: RealServer) -> Generator[Callable[[WorkflowNamespace], WorkflowNamespace]]:
    """A function that puts a namespace, and its workflows, on the tests' server for the test, with keys of its own."""
    with ExitStack() as stack:

        def isolate(namespace: WorkflowNamespace) -> WorkflowNamespace:
            return stack.enter_context(lanner_server.isolate(namespace))

        yield isolate
