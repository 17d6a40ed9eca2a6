"""Every example runs, and shows what it says."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from lanner import NonRetryableError
from support.documents import ROOT
from support.servers import PrivateServer

EXAMPLES = ROOT / "examples"
SCRIPTS = {
    "mail_course": [
        "to ada@example.org: lesson 3: what a wait is",
        "bob@example.org gave up after lesson 2",
        "ada@example.org knows it all",
    ],
    "approval": [
        "499.00 to ada, for a chair (chair)",
        "stamps: paid",
        "chair: paid",
        "yacht: rejected",
        "plant: forgotten",
    ],
    "ai_pipeline": [
        "19 of 20 summaries, 1 failed",
        "model calls at once: 3",
        "published: whales: 19 sources, without a photo; mention the photo",
        "model calls in all: 22",
    ],
    "order_saga": [
        "book: parcel with a book",
        "piano: 5000.00 refunded",
        "piano: ChildFailedError, True",
        "lamp: 80.00 refunded",
        "lamp: cancelled, found a nicer one",
        "in stock: {'book': 2, 'lamp': 1, 'piano': 1}",
    ],
    "web_crawl": [
        "level 5: 28 pages",
        "59 pages on 6 levels; broken: /30",
        "fetched at once: 4",
        "fetched more than once: ['/30']",
    ],
    "enqueue_after_commit": [
        "rolled back: nobody pays 1200 for Persuasion",
        "order 1: shipped Emma",
        "jobs: 1 completed, 0 waiting",
    ],
    "nightly_report": ["the next one comes at 03:00", "Germany: 7 sold", "fires by the clock so far: 0"],
}
RUN_OTHERWISE = {"fastapi_service"}


def test_no_example_is_left_out() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SCRIPTS, *RUN_OTHERWISE}


@pytest.mark.parametrize(("name", "lines"), SCRIPTS.items(), ids=SCRIPTS.keys())
def test_an_example_prints_what_it_shows_and_runs_again(name: str, lines: list[str], own_server: PrivateServer) -> None:
    said = _said_by(name, own_server)
    assert [line for line in lines if said.count(line) != 1] == [], said
    _said_by(name, own_server)


def _said_by(name: str, server: PrivateServer) -> list[str]:
    """What an example prints, as a script that ends well."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        env={**os.environ, "LANNER_REDIS_URL": server.url},
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert not ran.stderr
    return ran.stdout.splitlines()


@pytest.fixture
def service(own_server: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return _loaded(EXAMPLES / "fastapi_service.py", own_server.url, monkeypatch)


@pytest.fixture
async def client(service: ModuleType) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=service.app)
    async with (
        service.app.router.lifespan_context(service.app),
        httpx.AsyncClient(transport=transport, base_url="http://service") as client,
    ):
        yield client


async def test_the_service_accepts_a_job_and_answers_with_its_result(client: httpx.AsyncClient) -> None:
    created = await client.post("/exports", json={"table": "orders", "rows": 100})
    assert created.status_code == 202
    answer = created.json()
    assert answer["state"] == "accepted"
    url = f"/exports/{answer['id']}"
    done = {**answer, "state": "completed", "url": "https://files.example.org/orders-100.csv"}
    assert (await client.get(url, params={"wait": 30})).json() == done
    assert (await client.get(url)).json() == done


async def test_the_service_tells_the_state_of_a_job_that_goes_on(
    client: httpx.AsyncClient, service: ModuleType
) -> None:
    await service.export.pause()
    answer = (await client.post("/exports", json={"table": "orders", "rows": 1})).json()
    shown = (await client.get(f"/exports/{answer['id']}", params={"wait": 0.1})).json()
    assert (shown["state"], shown["url"]) == ("waiting", None)
    await service.export.resume()
    ended = (await client.get(f"/exports/{answer['id']}", params={"wait": 30})).json()
    assert ended["state"] == "completed"


async def test_the_service_tells_why_a_job_failed(
    client: httpx.AsyncClient, service: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: str) -> str:
        raise NonRetryableError("the disk is full")

    monkeypatch.setattr(service, "publish", refuse)
    answer = (await client.post("/exports", json={"table": "orders", "rows": 1})).json()
    ended = (await client.get(f"/exports/{answer['id']}", params={"wait": 30})).json()
    assert (ended["state"], ended["error"]) == ("failed", "the disk is full")


async def test_the_service_refuses_what_does_not_fit_and_knows_no_other_job(client: httpx.AsyncClient) -> None:
    assert (await client.post("/exports", json={"table": "orders", "rows": 0})).status_code == 422
    assert (await client.get("/exports/nothing")).status_code == 404


def _loaded(path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of an example, for the duration of a test."""
    monkeypatch.setenv("LANNER_REDIS_URL", redis_url)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module
