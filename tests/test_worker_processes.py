"""Worker processes as ``lanner worker`` runs them: how they start, stop, are replaced and start again."""

import asyncio
import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lanner import Backoff, Context, WorkflowNamespace
from lanner.cli.fleet import terminate
from support.commands import Command, started
from support.jobs import PATIENCE
from support.servers import Server
from support.waiting import wait_until

MODULE = """
import gc
import os
from pathlib import Path
import anyio
from lanner import Context, WorkflowNamespace

async def hold(ctx: Context[str]) -> int:
    Path(ctx.input, "begun").touch()
    while not Path(ctx.input, "go").exists():
        await anyio.sleep(0.01)
    return os.getpid()

ns = WorkflowNamespace("{namespace}")
hold = ns.create_workflow("hold", run=hold)
"""
STARTED = "has started"
STOPS = [signal.SIGTERM, signal.SIGINT]


async def _hold(_: Context[str]) -> int:
    raise AssertionError("the worker process runs it")


class Shop:
    """A module of workflows in a directory of its own, and a producer of jobs for it."""

    def __init__(self, directory: Path, server: Server, namespace: str) -> None:
        self.directory = directory
        self.redis_url = server.url
        self.namespace = WorkflowNamespace(namespace, redis=server.url)
        self.hold = self.namespace.create_workflow("hold", run=_hold)
        self.write(MODULE.format(namespace=namespace))

    def write(self, text: str) -> None:
        (self.directory / "shops.py").write_text(text)

    def worker(self, *arguments: str, target: str = "shops:ns") -> AbstractContextManager[Command]:
        return started("worker", target, *arguments, directory=self.directory, redis_url=self.redis_url)

    async def until_it_runs(self) -> None:
        await wait_until((self.directory / "begun").exists, timeout=PATIENCE)

    def let_go(self) -> None:
        (self.directory / "go").touch()


@pytest.fixture
def shop(tmp_path: Path, server: Server, namespace_id: str) -> Shop:
    return Shop(tmp_path, server, namespace_id)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_a_signal_lets_what_runs_end_and_the_exit_code_is_0(shop: Shop, stop: signal.Signals) -> None:
    async with shop.namespace:
        with shop.worker() as worker:
            job = await shop.hold.run(str(shop.directory))
            await shop.until_it_runs()
            worker.signal(stop)
            await worker.until_it_says(f"{stop.name}: stopping")
            shop.let_go()
            assert await worker.exit_code() == 0, worker.output
        assert await job.wait(timeout=PATIENCE) == worker.process.pid


async def test_the_garbage_collector_passes_over_what_was_imported(shop: Shop) -> None:
    shop.write(MODULE.format(namespace=shop.namespace.id).replace("return os.getpid()", "return gc.get_freeze_count()"))
    shop.let_go()
    async with shop.namespace:
        with shop.worker():
            assert await shop.hold.execute(str(shop.directory), timeout=PATIENCE) > 10_000


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (700, 10_000), (50_000, 50_000)])
async def test_the_garbage_collector_looks_no_more_often_than_it_was_asked_to(
    shop: Shop, asked: int, given: int
) -> None:
    text = MODULE.format(namespace=shop.namespace.id).replace("return os.getpid()", "return gc.get_threshold()[0]")
    shop.write(f"{text}\ngc.set_threshold({asked})\n")
    shop.let_go()
    async with shop.namespace:
        with shop.worker():
            assert await shop.hold.execute(str(shop.directory), timeout=PATIENCE) == given


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_a_second_signal_hands_back_at_once_and_uses_no_attempt(shop: Shop, stop: signal.Signals) -> None:
    async with shop.namespace:
        job = await shop.hold.run(str(shop.directory))
        with shop.worker("--grace", "600") as worker:
            await shop.until_it_runs()
            worker.signal(stop)
            await worker.until_it_says(f"{stop.name}: stopping")
            worker.signal(stop)
            assert await worker.exit_code() == 0, worker.output
        record = await job.record()
        assert (record.state, record.attempt) == ("waiting", 1)
        await job.cancel()


async def test_grace_is_how_long_jobs_may_go_on(shop: Shop) -> None:
    async with shop.namespace:
        job = await shop.hold.run(str(shop.directory))
        with shop.worker("--grace", "0.1") as worker:
            await shop.until_it_runs()
            worker.signal(signal.SIGTERM)
            assert await worker.exit_code() == 0, worker.output
        assert await job.state() == "waiting"
        await job.cancel()


async def test_a_signal_while_redis_is_away_stops_it_without_an_error(shop: Shop) -> None:
    shop.redis_url = "redis://127.0.0.1:1/0"
    with shop.worker() as worker:
        await worker.until_it_says("Ctrl-C or SIGTERM stops it")
        worker.signal(signal.SIGTERM)
        # before it can handle any, the signal itself ends it, which supervisors take for the same
        assert await worker.exit_code() in (0, -signal.SIGTERM)


async def test_start_up_lines_say_what_works_where(shop: Shop) -> None:
    with shop.worker("--concurrency", "3") as worker:
        await worker.until_it_says(STARTED)
        assert f"process {worker.process.pid}: namespace {shop.namespace.id!r} on unix://" in worker.output
        assert "3 slots for hold (uvloop)" in worker.output
        worker.signal(signal.SIGTERM)
        assert await worker.exit_code() == 0, worker.output


async def test_it_works_without_uvloop(shop: Shop) -> None:
    (shop.directory / "uvloop.py").write_text("raise ImportError\n")
    async with shop.namespace:
        with shop.worker() as worker:
            shop.let_go()
            assert await shop.hold.execute(str(shop.directory), timeout=PATIENCE) == worker.process.pid
            assert "10 slots for hold (asyncio)" in worker.output


FAILING = """
from lanner import Context, WorkflowNamespace

async def charge() -> None:
    raise ValueError("the card was declined")

async def hold(ctx: Context[str]) -> int:
    await ctx.step.do("charge", charge)

ns = WorkflowNamespace("{namespace}")
hold = ns.create_workflow("hold", run=hold)
"""


async def test_each_attempt_that_fails_is_in_the_log_with_its_traceback(shop: Shop) -> None:
    shop.write(FAILING.format(namespace=shop.namespace.id))
    async with shop.namespace:
        with shop.worker() as worker:
            job = await shop.hold.run("", max_attempts=2, backoff=Backoff(first=0))
            failed = f"at job {job.id!r} of workflow 'hold' has failed"
            await worker.until_it_says(f"attempt 1 of 2 {failed}, the next follows in 0 s\n")
            await worker.until_it_says(f"attempt 2 of 2 {failed}, for good\n")
            await worker.until_it_says("ValueError: the card was declined\n", times=2)
            assert worker.output.count("in charge\n") == 2


async def test_one_workflow_can_be_named_instead_of_all(shop: Shop) -> None:
    async with shop.namespace:
        with shop.worker(target="shops:hold") as worker:
            shop.let_go()
            assert await shop.hold.execute(str(shop.directory), timeout=PATIENCE) == worker.process.pid


async def test_a_process_that_is_killed_is_replaced(shop: Shop) -> None:
    with shop.worker("--processes", "2") as fleet:
        await fleet.until_it_says(STARTED, times=2)
        first, second = _workers(fleet)
        os.kill(first, signal.SIGKILL)
        await fleet.until_it_says("a worker process ended with SIGKILL; another one is started")
        await fleet.until_it_says(STARTED, times=3)
        *_, third = _workers(fleet)
        assert len({first, second, third}) == 3
        fleet.signal(signal.SIGTERM)
        assert await fleet.exit_code() == 0, fleet.output
        assert fleet.output.count("has stopped") == 2


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_several_processes_stop_as_one_does(shop: Shop, stop: signal.Signals) -> None:
    async with shop.namespace:
        job = await shop.hold.run(str(shop.directory))
        with shop.worker("--processes", "2", "--grace", "600") as fleet:
            await shop.until_it_runs()
            await fleet.until_it_says(STARTED, times=2)
            fleet.signal(stop)
            await fleet.until_it_says("SIGTERM: stopping", times=2)
            assert fleet.process.poll() is None
            fleet.signal(stop)
            assert await fleet.exit_code() == 0, fleet.output
        assert (await job.record()).state == "waiting"
        await job.cancel()


async def test_a_process_that_ends_just_when_it_is_told_to_has_the_exit_code_that_it_has() -> None:
    for _ in range(50):
        process = await asyncio.create_subprocess_exec("true")
        while process.returncode is None:
            terminate(process)
            await asyncio.sleep(0)
        assert process.returncode in (0, -signal.SIGTERM)


async def test_processes_end_when_the_one_that_started_them_is_killed(shop: Shop) -> None:
    with shop.worker("--processes", "2") as fleet:
        await fleet.until_it_says(STARTED, times=2)
        fleet.signal(signal.SIGKILL)
        await fleet.exit_code()
        await wait_until(lambda: fleet.output.count("has stopped") == 2, timeout=PATIENCE)


async def test_a_module_that_cannot_be_used_ends_all_processes(shop: Shop) -> None:
    with shop.worker("--processes", "3", target="nowhere:ns") as fleet:
        assert await fleet.exit_code() == 2
        assert "there is no module 'nowhere'" in fleet.output


async def test_reload_runs_the_new_code_and_waits_where_it_is_broken(shop: Shop) -> None:
    module = MODULE.format(namespace=shop.namespace.id)
    async with shop.namespace:
        with shop.worker("--reload") as worker:
            job = await shop.hold.run(str(shop.directory))
            await shop.until_it_runs()
            shop.write(module + "def (\n")
            await worker.until_it_says("shops.py has changed: starting again")
            await worker.until_it_says("it is started again when a file changes")
            # the job was handed back: it does not wait for the code that it was begun with
            assert (await job.record()).attempt == 1
            shop.write(module.replace("return os.getpid()", "return -1"))
            await worker.until_it_says(STARTED, times=2)
            shop.let_go()
            assert await job.wait(timeout=PATIENCE) == -1
            worker.signal(signal.SIGINT)
            assert await worker.exit_code() == 0, worker.output


def _workers(fleet: Command) -> list[int]:
    return [int(line.split("process ")[1].split(":")[0]) for line in fleet.output.splitlines() if ", process " in line]


async def test_a_module_that_closes_its_namespace_is_told_so_in_a_line(shop: Shop) -> None:
    """As a program does that runs when it is imported."""
    shop.write(MODULE.format(namespace=shop.namespace.id) + "import asyncio\nasyncio.run(ns.aclose())\n")
    with shop.worker() as worker:
        assert await worker.exit_code() == 2
        assert "has been closed" in worker.output
        assert "Traceback" not in worker.output
