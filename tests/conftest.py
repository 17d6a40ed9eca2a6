from collections.abc import AsyncIterator, Generator, Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from lanner.queue import Namespace
from support.client import Client
from support.jobs import Look
from support.leftovers import check_namespaces
from support.proxy import Proxy, open_proxy
from support.servers import NoServerError, PrivateServer, Server, describe_choice, private_servers, shared_server

CALL_REPORT = pytest.StashKey[pytest.TestReport]()

# how long an example takes is the machine's affair, which may stand still at any moment
settings.register_profile("lanner", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lanner")


def pytest_report_header() -> str:
    return f"lanner: tested on {describe_choice()}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[CALL_REPORT] = report
    return report


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server that tests share which neither stop it nor change its settings."""
    shared = shared_server()
    if shared is not None:
        yield shared
        return
    private = _start_private()
    yield private
    private.close()


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server of the test's own, to be stopped, killed, flushed. All namespaces on it are checked for leftovers."""
    private = _start_private()
    try:
        yield private
        if _passed(request):
            check_namespaces(private, "")
    finally:
        private.close()


@pytest.fixture
def redis_url(server: Server) -> str:
    return server.url


@pytest.fixture
def namespace_id(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace id of the test's own, on the shared server.

    A test that needs several appends to it. Afterwards each of them is checked for leftovers, and deleted.
    """
    namespace = f"test-{uuid4().hex[:16]}"
    yield namespace
    if _passed(request):
        check_namespaces(server, namespace)


@pytest.fixture
async def namespace(server: Server, namespace_id: str) -> AsyncIterator[Namespace]:
    """A namespace on the shared server."""
    async with Namespace(namespace_id, redis=server.url) as namespace:
        yield namespace


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A client of the shared server that knows nothing of namespaces."""
    with server.client() as client:
        yield client


@pytest.fixture
def look(server: Server, namespace_id: str) -> Iterator[Look]:
    """Looks at the keys of the test's namespace."""
    with server.client() as client:
        yield Look(client, namespace_id)


@pytest.fixture
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that says nothing is given up sooner."""
    monkeypatch.setattr("lanner.queue.subscription.QUIET", 1.0)
    monkeypatch.setattr("lanner.queue.subscription.ANSWERS_WITHIN", 3.0)


@pytest.fixture
async def proxy(server: Server, namespace_id: str) -> AsyncIterator[Proxy]:
    """A proxy in front of the shared server; it goes before the check for leftovers."""
    assert namespace_id
    async with open_proxy(server) as proxy:
        yield proxy


def _start_private() -> PrivateServer:
    try:
        return private_servers().start()
    except NoServerError as error:
        pytest.fail(str(error), pytrace=False)


def _passed(request: pytest.FixtureRequest) -> bool:
    """Whether the test itself passed: what a failed one left behind is no news."""
    report = request.node.stash.get(CALL_REPORT, None)
    return report is not None and report.passed
