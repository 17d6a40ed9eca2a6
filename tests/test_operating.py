"""The commands by which jobs are looked at, retried, cancelled and removed from a shell."""

import subprocess
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lanner import Backoff, Context, WorkflowNamespace
from lanner.cli import arguments
from lanner.queue import listing
from lanner.queue.scripts.claiming import settle
from support.commands import ran
from support.jobs import PATIENCE, Look
from support.servers import Server
from support.waiting import wait_until

MODULE = """
import base64
from lanner import Context, WorkflowNamespace

class Base64:
    def encode(self, text):
        return base64.b64encode(text.encode()).decode()

    def decode(self, text):
        return base64.b64decode(text).decode()

async def run(ctx):
    raise AssertionError("the test runs it")

ns = WorkflowNamespace("{namespace}")
order = ns.create_workflow("order", run=run)
stock = ns.create_workflow("stock", run=run)
for name in ("approval", "loud"):
    ns.create_workflow(name, run=run)
coded = WorkflowNamespace("{namespace}-coded", codec=Base64())
coded.create_workflow("order", run=run)
"""


class Base64:
    """As the module has it."""

    def encode(self, text: str, /) -> str:
        return b64encode(text.encode()).decode()

    def decode(self, text: str, /) -> str:
        return b64decode(text).decode()


async def count(ctx: Context[str]) -> int:
    return len(ctx.input)


class Shop:
    """Workflows that run in the test, and a module from which the command knows them."""

    def __init__(self, directory: Path, server: Server, namespace: str) -> None:
        self.directory = directory
        self.redis_url = server.url
        (directory / "shops.py").write_text(MODULE.format(namespace=namespace))
        self.namespace = WorkflowNamespace(namespace, redis=server.url)
        self.broken = True
        self.order = self.namespace.create_workflow("order", run=self._order, max_attempts=2, backoff=Backoff(0.01))
        self.stock = self.namespace.create_workflow("stock", run=count)
        self.approval = self.namespace.create_workflow("approval", run=self._approval)
        self.loud = self.namespace.create_workflow("loud", run=self._loud)

    async def _order(self, ctx: Context[str]) -> str:
        packed = await ctx.step.do("pack", lambda: f"packed {ctx.input}")
        await ctx.log(f"attempt {ctx.attempt}")
        await ctx.progress({"packed": True})
        await ctx.step.run("count", self.stock, ctx.input)
        if self.broken:
            raise ValueError("no\nsuch address")
        await ctx.step.wait("a day", timedelta(days=1))
        return packed

    async def _approval(self, ctx: Context[None]) -> object:
        return await ctx.step.wait_for_event("approved")

    async def _loud(self, ctx: Context[None]) -> None:
        del ctx
        raise ValueError("\x1b[2J" + "y" * 300)

    def run(self, *arguments: str, code: int = 0) -> str:
        """What the command prints, which ends as it should."""
        done = ran(arguments[0], "shops:ns", *arguments[1:], directory=self.directory, redis_url=self.redis_url)
        assert done.returncode == code, done
        assert (not done.stderr) == (code == 0 or bool(done.stdout)), done
        return done.stdout or done.stderr

    def run_as_it_is(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command, ended."""
        return ran(*arguments, directory=self.directory, redis_url=self.redis_url)


@pytest.fixture
async def shop(tmp_path: Path, server: Server, namespace_id: str) -> AsyncIterator[Shop]:
    shop = Shop(tmp_path, server, namespace_id)
    async with shop.namespace:
        yield shop


async def _until(job: Any, state: str) -> None:
    async def there() -> bool:
        return bool(await job.state() == state)

    await wait_until(there, timeout=PATIENCE)


async def test_a_failed_job_is_found_looked_at_and_retried(shop: Shop) -> None:
    async with shop.namespace.worker():
        job = await shop.order.run("cups", id="an order/1")
        await _until(job, "failed")
        status = shop.run("status")
        assert [line.split()[:8] for line in status.splitlines() if line.startswith(("order", "stock"))] == [
            ["order", "0", "0", "0", "0", "0", "1", "0"],
            ["stock", "0", "0", "0", "0", "1", "0", "0"],
        ]
        assert "10 slots for order, stock," in status

        (listed,) = shop.run("jobs", "order", "failed").splitlines()
        assert listed.startswith("'order/an order/1'  failed  attempt 2  ")
        assert listed.endswith("ValueError: no such address")
        assert " ended 20" in listed
        assert shop.run("jobs", "order", "failed", "--skip", "1") == ""
        assert shop.run("jobs", "order", "failed", "--names") == "'order/an order/1'\n"

        shown = shop.run("show", "order/an order/1")
        for text in (
            "attempt   2 of 2",
            'input     "cups"',
            'progress  {"packed":true}',
            "failure   ValueError: no such address",
            'pack   do done     "packed cups"',
            "count  child done  4",
            " (count): completed",
            "attempt 1\n  attempt 2",
            'raise ValueError("no\\nsuch address")',
        ):
            assert text in shown, shown

        shop.broken = False
        assert shop.run("retry", "order/an order/1") == "'order/an order/1' goes on\n"
        await _until(job, "delayed")
        assert shop.run("retry", "order/an order/1", code=1) == "'order/an order/1' is delayed, and stays so\n"
        delayed = shop.run("show", "order/an order/1")
        assert "a day  wait until  20" in delayed
        assert "due       20" in delayed
        assert "  due 20" in shop.run("jobs", "order", "delayed")


async def test_all_failed_jobs_are_retried_at_once(shop: Shop) -> None:
    async with shop.namespace.worker():
        jobs = [await shop.order.run(item) for item in ("cups", "plates")]
        for job in jobs:
            await _until(job, "failed")
        shop.broken = False
        assert shop.run("retry", "--all", "order") == "2 jobs of order go on\n"
        for job in jobs:
            await _until(job, "delayed")


async def test_jobs_are_cancelled_and_removed_each_told_and_what_is_not_there_is_no_success(shop: Shop) -> None:
    first, second = await shop.stock.run("cups"), await shop.stock.run("plates")
    said = shop.run("cancel", f"stock/{first.id}", "stock/none", "--reason", "sold out", code=1)
    assert said == f"stock/{first.id} is cancelled\nstock/none is not there\n"
    assert "reason    sold out" in shop.run("show", f"stock/{first.id}")
    assert shop.run("remove", f"stock/{first.id}", f"stock/{second.id}").count(" is removed\n") == 2
    assert "there is no job" in shop.run("show", f"stock/{second.id}", code=1)
    assert (await shop.stock.counts()).waiting == 0


async def test_a_namespace_and_a_workflow_are_paused_and_go_on(shop: Shop) -> None:
    shop.run("pause")
    shop.run("pause", "stock")
    status = shop.run("status")
    assert status.count("(paused)") == 2
    assert status.endswith("no worker has slots for order, stock, approval, loud\n")
    assert (await shop.namespace.limits()).paused
    assert (await shop.stock.limits()).paused
    said = shop.run("resume")
    assert said.endswith("but stock is paused by itself: `lanner resume shops:ns stock`\n")
    assert not (await shop.namespace.limits()).paused
    assert (await shop.stock.limits()).paused
    shop.run("resume", "stock")
    assert not (await shop.stock.limits()).paused


def test_what_the_arguments_know_is_as_the_queue_has_it() -> None:
    assert arguments.STATES == listing.STATES
    assert arguments.MOST_A_PAGE == listing.MOST_A_PAGE


async def test_of_many_that_ended_the_last_are_listed_and_that_there_are_more_is_said(shop: Shop) -> None:
    jobs = [await shop.stock.run("cups", id=str(number)) for number in range(5)]
    for job in jobs:
        await job.cancel()
    done = shop.run_as_it_is("jobs", "shops:ns", "stock", "cancelled", "--limit", "2", "--names")
    assert done.stdout == "stock/3\nstock/4\n"
    assert done.stderr == "3 more ended before these: --skip, --limit\n"
    done = shop.run_as_it_is("jobs", "shops:ns", "stock", "cancelled", "--limit", "2", "--skip", "2", "--names")
    assert done.stdout == "stock/1\nstock/2\n"
    waiting = [await shop.order.run("cups") for _ in range(2)]
    done = shop.run_as_it_is("jobs", "shops:ns", "order", "waiting", "--limit", "1", "--names")
    assert done.stdout == f"order/{waiting[0].id}\n"
    assert done.stderr == "there may be more: --skip, --limit\n"


async def test_a_job_that_runs_will_be_cancelled(shop: Shop) -> None:
    job = await shop.stock.run("cups", id="1")
    call = (await shop.namespace.queues.runtime()).call
    # nobody who would end it
    await settle(call, worker="gone", number=1, lease=60_000, total=1, outcomes=[], wants=[("stock", 1)])
    assert await job.state() == "active"
    assert shop.run("cancel", "stock/1") == "stock/1 will be cancelled, and is told to end\n"
    assert shop.run("remove", "stock/1") == "stock/1 is removed\n"


async def test_what_a_job_waits_for_is_shown(shop: Shop) -> None:
    async with shop.namespace.worker():
        job = await shop.approval.run(None, id="1")
        await _until(job, "parked")
    assert "awaits    'approved'" in shop.run("show", "approval/1")


async def test_text_does_nothing_to_the_terminal(shop: Shop) -> None:
    async with shop.namespace.worker():
        job = await shop.loud.run(None, id="1")
        await _until(job, "failed")
    for said in (shop.run("show", "loud/1"), shop.run("jobs", "loud", "failed")):
        assert "\x1b" not in said
        assert "\\x1b[2J" in said
    # the last of the two has it in a line
    assert "yyyy ..." in said


@pytest.mark.parametrize("field", ["spec", "failure", "started", "failures", "data", "its kind"])
async def test_a_record_that_cannot_be_read_hides_no_other(shop: Shop, look: Look, field: str) -> None:
    async with shop.namespace.worker():
        for number in range(3):
            await _until(await shop.loud.run(None, id=str(number)), "failed")
    if field == "its kind":
        look("SET", "loud:j:1", "garbage")
    else:
        look("HSET", "loud:j:1", field, "garbage")
    done = shop.run_as_it_is("jobs", "shops:ns", "loud", "failed")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["loud/0", "loud/1", "loud/2"]
    assert "Traceback" not in done.stderr
    done = shop.run_as_it_is("show", "shops:ns", "loud/1")
    assert "Traceback" not in done.stderr
    done = shop.run_as_it_is("remove", "shops:ns", "loud/1", "loud/2")
    assert "loud/2 is removed\n" in done.stdout
    assert "Traceback" not in done.stderr
    look("DEL", "loud:j:1")
    assert await shop.loud.remove("1") in (True, False)
    await shop.loud.remove_all("failed")


async def test_a_namespace_without_the_codec_says_so(shop: Shop) -> None:
    async with WorkflowNamespace(shop.namespace.id, redis=shop.redis_url, codec=Base64()) as ns:
        job = await ns.create_workflow("stock", run=count).run("cups", id="1")
        await job.cancel("sold out")
    shown = shop.run("show", "stock/1")
    assert "has the namespace the codec" in shown
    assert "reason    (written with a codec, which this namespace has not)" in shown


async def test_one_workflow_may_be_the_target(shop: Shop) -> None:
    await shop.stock.run("cups")
    said = shop.run_as_it_is("status", "shops:stock").stdout
    assert "stock  " in said
    assert "order  " not in said


async def test_values_are_shown_as_the_codec_reads_them(shop: Shop, namespace_id: str, server: Server) -> None:
    async with WorkflowNamespace(f"{namespace_id}-coded", redis=server.url, codec=Base64()) as ns:
        await ns.create_workflow("order", run=count).run("cups", id="1")
    assert 'input     "cups"' in shop.run_as_it_is("show", "shops:coded", "order/1").stdout


MISUSES = {
    "no job": (("show", "order"), "'order' does not say which job: give it as WORKFLOW/ID"),
    "no id": (("cancel", "order/"), "'order/' does not say which job"),
    "an unknown workflow": (("remove", "odrer/1"), "there is no workflow 'odrer', but 'order', 'stock', 'approval'"),
    "an unknown workflow to list": (("jobs", "odrer", "failed"), "there is no workflow 'odrer'"),
    "an unknown state": (("jobs", "order", "broken"), "invalid choice: 'broken'"),
    "a page of nothing": (("jobs", "order", "failed", "--limit", "0"), "must be 1 to 1000"),
    "a target too many": (("status", "extra"), "usage: lanner status"),
    "a skip below nothing": (("jobs", "order", "failed", "--skip", "-1"), "must be 0 or more"),
    "no job to retry": (("retry",), "WORKFLOW/ID --all is required"),
    "an id that cannot be": (("cancel", "order/" + "x" * 300), "job id"),
}


@pytest.mark.parametrize(("arguments", "said"), MISUSES.values(), ids=MISUSES.keys())
async def test_what_cannot_be_done_is_said_and_nothing_is_done(
    shop: Shop, arguments: tuple[str, ...], said: str
) -> None:
    job = await shop.order.run("cups", id="1")
    assert said in shop.run(*arguments, code=2)
    if arguments[0] in ("cancel", "remove"):
        shop.run(arguments[0], "order/1", *arguments[1:], code=2)
    assert await job.state() == "waiting"


async def test_a_redis_that_cannot_be_reached_is_a_failure(shop: Shop) -> None:
    done = ran("status", "shops:ns", directory=shop.directory)
    assert done.returncode == 1
    assert done.stderr.startswith("lanner status: connecting to Redis at redis://127.0.0.1:1/0")
    assert "Traceback" not in done.stderr
