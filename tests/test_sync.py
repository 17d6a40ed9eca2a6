"""The same calls without await: from any thread, in one background loop a process."""

import asyncio
import contextvars
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import pytest

from lanner import (
    ClosedError,
    Context,
    Flow,
    InvalidArgumentError,
    Job,
    JobCancelledError,
    JobFailedError,
    Pending,
    RunningLoopError,
    SyncContext,
    WaitTimeoutError,
    Workflow,
    WorkflowNamespace,
)
from lanner.sync import SyncJob, SyncNamespace, SyncPending, SyncWorkflow, sync
from lanner.sync.portal import Portal
from support.commands import ENDS_WITHIN
from support.jobs import PATIENCE

BACKGROUND = "lanner sync"

APPLICATION = """
import asyncio, logging, os, signal, sys, threading, time
# in development mode it warns of what has taken long, as anything does on a loaded machine
logging.getLogger("asyncio").setLevel(logging.ERROR)
# who runs tests in the background may have it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
from lanner import Context, WorkflowNamespace
from lanner.sync import sync

ns = WorkflowNamespace(sys.argv[1])

@ns.workflow("double")
async def double(ctx: Context[int]) -> int:
    if ctx.input < 0:
        await ctx.step.wait_for_event("never")
    return 2 * ctx.input
"""


async def double(ctx: Context[int]) -> int:
    if ctx.input < 0:
        raise ValueError("less than nothing")
    return 2 * ctx.input


async def ask(ctx: Context[None]) -> str:
    await ctx.progress({"asked": True})
    await ctx.log("asked")
    return await ctx.step.wait_for_event("answer", type=str)


@pytest.fixture
def ns(redis_url: str, namespace_id: str) -> Iterator[WorkflowNamespace]:
    ns = WorkflowNamespace(namespace_id, redis=redis_url)
    yield ns
    sync(ns).close()


@pytest.fixture
def doubling(ns: WorkflowNamespace) -> Workflow[int, int]:
    return ns.create_workflow("double", run=double)


@pytest.fixture
def asking(ns: WorkflowNamespace) -> Workflow[None, str]:
    return ns.create_workflow("ask", run=ask)


def script(text: str, namespace_id: str, redis_url: str, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", *options, "-c", APPLICATION + text, namespace_id],
        env={**os.environ, "LANNER_REDIS_URL": redis_url},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def output_of(process: subprocess.Popen[str]) -> list[str]:
    """What a script has printed; it must have said nothing else."""
    said, complained = process.communicate(timeout=ENDS_WITHIN)
    assert (process.returncode, complained) == (0, ""), said + complained
    return said.splitlines()


def test_a_job_is_run_and_waited_for(ns: WorkflowNamespace, doubling: Workflow[int, int]) -> None:
    job = sync(doubling).run(21, id="half")
    assert_type(job, SyncJob[int])
    assert (job.id, job.workflow, job.state()) == ("half", "double", "waiting")
    with sync(ns).worker():
        assert_type(job.wait(timeout=30), int)
        assert job.wait(timeout=30) == 42
        assert sync(doubling).execute(4, timeout=30) == 8
        assert sync(doubling).execute_many([1, 2], timeout=30) == [2, 4]
        ends = sync(doubling).execute_many([3, -1], return_exceptions=True)
        assert (ends[0], type(ends[1])) == (6, JobFailedError)
        with pytest.raises(JobFailedError, match="less than nothing"):
            sync(doubling).execute(-1, timeout=30)
    assert sync(doubling).get_job("half").record().result == '{"json":42}'
    assert sync(doubling).counts().completed == 5


def test_everything_that_a_workflow_can_do_is_done(ns: WorkflowNamespace, doubling: Workflow[int, int]) -> None:
    workflow = sync(doubling)
    later = [workflow.run_in(1, timedelta(hours=1)), workflow.run_at(2, datetime(2100, 1, 1, tzinfo=UTC))]
    assert {job.id for job in workflow.list_jobs("delayed")} == {job.id for job in later}
    assert workflow.promote(later[0].id)
    assert len(workflow.run_many([1, 2, 3])) == 3
    oldest = workflow.oldest_waiting()
    assert oldest is not None
    assert oldest >= 0
    assert workflow.remove(later[1].id)
    assert workflow.remove_all("waiting") == 4
    assert not workflow.retry("nothing")
    assert workflow.retry_all() == 0

    assert workflow.upsert_schedule("nightly", "0 3 * * *", 5, tz="Europe/Berlin")
    assert [schedule.id for schedule in workflow.get_schedules()] == ["nightly"]
    assert workflow.pause_schedule("nightly")
    assert workflow.resume_schedule("nightly")
    assert workflow.trigger_schedule("nightly").cancel()
    assert workflow.remove_schedule("nightly")

    workflow.set_limits(concurrency=3)
    workflow.pause()
    assert (workflow.limits().concurrency, workflow.limits().paused) == (3, True)
    workflow.resume()
    namespace = sync(ns)
    namespace.set_limits(concurrency=7)
    namespace.pause()
    namespace.resume()
    assert (namespace.limits().concurrency, namespace.limits().paused) == (7, False)
    with namespace.worker() as worker:
        assert worker.id in [each.id for each in namespace.workers()]


def test_a_job_is_told_and_asked_everything(ns: WorkflowNamespace, asking: Workflow[None, str]) -> None:
    with sync(ns).worker():
        seen: list[str] = []
        for event in sync(asking).run_and_watch(None, id="asked"):
            seen.append(event.kind)
            if event.kind == "suspended":
                assert sync(asking).get_job("asked").send_event("answer", "42", event_id="one")
        assert "suspended" in seen
        assert seen[-1] == "completed"
        job = sync(asking).get_job("asked")
        assert [event.kind for event in job.watch()][-1] == "completed"
        assert job.wait(timeout=30) == "42"
        assert (job.progress(), set(job.log()), job.tree().state) == ({"asked": True}, {"asked"}, "completed")
        assert not job.set_failure_policy("continue")

        cancelled = sync(asking).run(None)
        assert cancelled.cancel("never mind")
        with pytest.raises(JobCancelledError, match="never mind"):
            cancelled.wait(timeout=30)
        waiting = sync(asking).run(None)
        with pytest.raises(WaitTimeoutError):
            waiting.wait(timeout=0.05)
        waiting.cancel()


def test_a_watch_that_is_left_early_ends(ns: WorkflowNamespace, asking: Workflow[None, str]) -> None:
    with sync(ns).worker():
        for _ in range(3):
            for event in sync(asking).run_and_watch(None):
                assert event.kind in ("started", "progress")
                sync(asking).get_job(event.job_id).cancel()
                break
        watch = sync(asking).run(None).watch()
        first = next(watch)
        watch.close()
        assert next(watch, None) is None
        sync(asking).get_job(first.job_id).cancel()


def test_a_flow_runs(ns: WorkflowNamespace, doubling: Workflow[int, int]) -> None:
    def total(ctx: SyncContext[None]) -> int:
        return sum(ctx.children)

    totalling = ns.create_workflow("total", run=total)
    with sync(ns).worker():
        job = sync(ns).run_flow(Flow(totalling, None, children=[Flow(doubling, 1), Flow(doubling, 2)]))
        assert job.wait(timeout=30) == 6


def test_a_plain_step_may_call(ns: WorkflowNamespace, doubling: Workflow[int, int]) -> None:
    def outer(ctx: SyncContext[int]) -> int:
        return ctx.step.do("enqueue", lambda: sync(doubling).execute(ctx.input, timeout=30))

    outside = ns.create_workflow("outer", run=outer)
    with sync(ns).worker():
        assert sync(outside).execute(5, timeout=30) == 10


def test_any_number_of_threads_share_one_loop(ns: WorkflowNamespace, doubling: Workflow[int, int]) -> None:
    def use(number: int) -> int:
        return sync(doubling).execute(number, timeout=60)

    with sync(ns).worker(concurrency=20), ThreadPoolExecutor(20) as threads:
        assert list(threads.map(use, range(200))) == [2 * number for number in range(200)]
    assert sum(thread.name == BACKGROUND for thread in threading.enumerate()) == 1


def test_one_module_serves_an_async_worker_and_blocking_calls_in_one_process(
    ns: WorkflowNamespace, doubling: Workflow[int, int]
) -> None:
    async def work() -> None:
        before = await ns.queues.runtime()
        async with ns.worker():
            for number in range(5):
                assert await asyncio.to_thread(sync(doubling).execute, number, timeout=30) == 2 * number
                assert await doubling.execute(number, timeout=30) == 2 * number
        assert await ns.queues.runtime() is before, "each loop keeps its connections"

    asyncio.run(work())
    assert sync(doubling).counts().completed == 10


def test_in_a_thread_with_an_event_loop_a_blocking_call_is_a_clear_error(
    ns: WorkflowNamespace, doubling: Workflow[int, int]
) -> None:
    async def block() -> None:
        calls: list[Callable[[], object]] = [
            lambda: sync(doubling).run(1),
            sync(ns).pause,
            sync(doubling.get_job("x")).state,
            lambda: next(sync(doubling.get_job("x")).watch()),
        ]
        for call in calls:
            with pytest.raises(RunningLoopError, match=r"await the same call .* asyncio\.to_thread"):
                call()

    asyncio.run(block())


def test_only_what_has_calls_can_block() -> None:
    with pytest.raises(InvalidArgumentError, match="not 5"):
        sync(5)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType] - as a user may


def test_context_variables_of_the_caller_are_seen(ns: WorkflowNamespace) -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")

    async def whose(_: int) -> str:
        return tenant.get()

    workflow = ns.create_workflow("tenants", run=double, get_group_id=whose)
    tenant.set("ada")
    assert sync(workflow).run(1).record().spec.group == "ada"
    sync(workflow).remove_all("waiting")


def test_a_closed_namespace_ends_waits(ns: WorkflowNamespace, asking: Workflow[None, str]) -> None:
    job = sync(asking).run(None)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            job.wait()
        except ClosedError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while "waiters" not in _fields(ns, job.id):
        pass
    with sync(ns):
        pass
    waiting.join(30)
    assert len(errors) == 1
    with pytest.raises(ClosedError):
        sync(asking).run(None)


def _fields(ns: WorkflowNamespace, job_id: str) -> list[str]:
    async def read() -> list[bytes]:
        runtime = await ns.queues.runtime()
        found: list[bytes] = await runtime.call.link.call("HKEYS", f"{ns.queues.base}:ask:j:{job_id}")
        return found

    return [name.decode() for name in asyncio.run(read())]


def test_what_is_pending_is_sent_after_the_commit(ns: WorkflowNamespace, doubling: Workflow[int, int]) -> None:
    with sync(ns).pending() as pending:
        job = pending.run(doubling, 1)
        assert_type(job, SyncJob[int])
        pending.run_in(sync(doubling), 2, 3600)
        pending.run_at(doubling, 3, datetime(2100, 1, 1, tzinfo=UTC))
        assert (len(pending), sync(doubling).counts().waiting) == (3, 0)
    counts = sync(doubling).counts()
    assert (counts.waiting, counts.delayed) == (1, 2)

    pending = sync(ns).pending()
    pending.run(doubling, 4)
    pending.discard()
    assert pending.send() == []

    def roll_back() -> None:
        with pending:
            pending.run(doubling, 5)
            raise OSError("rolled back")

    with pytest.raises(OSError, match="rolled back"):
        roll_back()
    assert sync(doubling).counts().waiting == 1
    sync(doubling).remove_all("waiting")
    sync(doubling).remove_all("delayed")


LEFT_OUT = {
    # plain ones, which are used as they are, or of the machinery
    Workflow: {"namespace", "belongs_to", "new_node", "new_job", "new_child", "group_of", "observer", "work"},
    WorkflowNamespace: {"workflows", "create_workflow", "workflow", "work", "metrics", "aclose"},
    Job: set[str](),
    Pending: set[str](),
}  # fmt: skip


@pytest.mark.parametrize(
    ("plain", "blocking"),
    [(Workflow, SyncWorkflow), (WorkflowNamespace, SyncNamespace), (Job, SyncJob), (Pending, SyncPending)],
)
def test_no_call_is_left_out(plain: type[Any], blocking: type[Any]) -> None:
    names = {name for name in vars(plain) if not name.startswith("_")} - LEFT_OUT[plain]
    assert names - set(vars(blocking)) == set()
    for name in names:
        given = getattr(plain, name)
        if inspect.isfunction(given):
            parameters = [
                (parameter.name, parameter.kind, parameter.default)
                for parameter in inspect.signature(given).parameters.values()
            ]
            wrapped = inspect.signature(getattr(blocking, name)).parameters.values()
            assert [(each.name, each.kind, each.default) for each in wrapped] == parameters, name


def test_a_script_ends_by_itself_and_without_a_word(redis_url: str, namespace_id: str) -> None:
    text = """
with sync(ns).worker():
    print(sync(double).execute(21, timeout=30))
sync(double).run(1)
"""
    assert output_of(script(text, namespace_id, redis_url)) == ["42"]


def test_a_worker_that_runs_at_the_end_of_a_script_is_stopped(redis_url: str, namespace_id: str) -> None:
    text = """
worker = sync(ns).worker()
worker.start()
print(sync(double).execute(21, timeout=30))
"""
    assert output_of(script(text, namespace_id, redis_url)) == ["42"]
    ns = WorkflowNamespace(namespace_id, redis=redis_url)
    assert [worker.departed for worker in sync(ns).workers()] == ["stopped"]
    sync(ns).close()


def test_a_call_that_waits_while_the_script_ends_is_ended(redis_url: str, namespace_id: str) -> None:
    text = """
def wait():
    try:
        sync(double).run(-1).wait()
    except Exception as error:
        print(type(error).__name__, flush=True)
    ended.set()

ended = threading.Event()
import atexit
# called after the loop has been ended, whose function was registered before
thread = threading.Thread(target=wait, daemon=True)
sync(ns).limits()
thread.start()
while not sync(double).counts().waiting:
    time.sleep(0.01)
from lanner.sync.portal import portal
portal.close()
assert ended.wait(30)
sync(double)
try:
    sync(double).counts()
except Exception as error:
    print(type(error).__name__)
"""
    assert output_of(script(text, namespace_id, redis_url)) == ["ClosedError", "ClosedError"]


def test_every_call_that_is_made_while_the_loop_ends_has_an_end() -> None:
    async def turn() -> None:
        await asyncio.sleep(0)

    def call_on(portal: Portal) -> None:
        with suppress(ClosedError):
            while True:
                portal.call(turn)

    for _ in range(60):
        portal = Portal()
        portal.call(turn)
        with ThreadPoolExecutor(4) as threads:
            calls = [threads.submit(call_on, portal) for _ in range(4)]
            portal.close()
            for call in calls:
                call.result(PATIENCE)


def test_an_interrupt_ends_a_wait_and_nothing_else(redis_url: str, namespace_id: str) -> None:
    text = """
job = sync(double).run(-1)
try:
    print("waits", flush=True)
    job.wait()
except KeyboardInterrupt:
    print("interrupted")
print(job.state())
watch = job.watch()
try:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    next(watch)
except KeyboardInterrupt:
    print("interrupted")
print(sync(double).remove(job.id))
"""
    process = script(text, namespace_id, redis_url)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    assert output_of(process) == ["interrupted", "waiting", "interrupted", "True"]


def test_an_interrupt_that_wakes_no_wait_is_heard_all_the_same(redis_url: str, namespace_id: str) -> None:
    """As one does that comes just before a call blocks: Python has noted it, and nothing wakes the main thread."""
    text = """
job = sync(double).run(-1)
# another thread takes it
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    job.wait()
except KeyboardInterrupt:
    print("interrupted")
print(sync(double).remove(job.id))
"""
    assert output_of(script(text, namespace_id, redis_url)) == ["interrupted", "True"]


def test_a_forked_child_has_a_loop_and_connections_of_its_own(redis_url: str, namespace_id: str) -> None:
    text = """
assert sync(double).run(0).state() == "waiting"
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        for _ in range(20):
            sync(double).run(number)
        assert sum(thread.name == "lanner sync" for thread in threading.enumerate()) == 1
        sys.exit(0)
    children.append(child)
    for _ in range(20):
        sync(double).run(number)
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for _ in range(20):
    sync(double).run(0)
print(sync(double).counts().waiting)
"""
    forking = ("-W", "ignore:This process:DeprecationWarning")
    assert output_of(script(text, namespace_id, redis_url, *forking)) == ["141"]
