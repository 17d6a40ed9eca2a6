"""What a run that comes back finds: what its steps gave before, by name, through Redis."""

import asyncio
import enum
import signal
import socket
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from lanner import Context, JobFailedError, SyncContext, Workflow, WorkflowNamespace
from support.commands import started
from support.jobs import Look
from support.servers import Server
from support.waiting import wait_until

BRANCHES = """
    import asyncio
    from pathlib import Path

    from lanner import Context, WorkflowNamespace

    ns = WorkflowNamespace({namespace!r}, redis={redis!r})
    EFFECTS = Path({effects!r})

    def note(what: str) -> None:
        with EFFECTS.open("a") as file:
            file.write(what + "\\n")

    async def stage(name: str) -> str:
        note(f"begun {{name}}")
        while not Path(f"{{EFFECTS}}.{{name}}").exists():
            await asyncio.sleep(0.01)
        note(f"finished {{name}}")
        return name.upper()

    @ns.workflow("branches")
    async def branches(ctx: Context[None]) -> list[list[str]]:
        async def branch(letter: str) -> list[str]:
            return [await ctx.step.do(f"{{letter}}{{number}}", stage, f"{{letter}}{{number}}") for number in (1, 2)]

        return list(await asyncio.gather(branch("a"), branch("b")))
"""


@pytest.mark.parametrize("finished_first", [("a1",), ("b1", "b2"), ("b1", "a1", "a2")], ids="-".join)
async def test_branches_of_a_gather_whose_process_was_killed_run_no_finished_step_again(
    server: Server, namespace_id: str, look: Look, tmp_path: Path, finished_first: Sequence[str]
) -> None:
    effects = tmp_path / "effects.txt"
    effects.touch()
    source = textwrap.dedent(BRANCHES).format(namespace=namespace_id, redis=server.url, effects=str(effects))
    (tmp_path / "branching.py").write_text(source)

    async def elsewhere(_: Context[None]) -> list[list[str]]:
        raise AssertionError("this process only enqueues")

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        job = await ns.create_workflow("branches", run=elsewhere).run(None)
        arguments = ("worker", "branching:ns")
        with started(*arguments, directory=tmp_path, redis_url=server.url) as worker:
            for name in finished_first:
                Path(f"{effects}.{name}").touch()
                await wait_until(lambda: look("HEXISTS", f"branches:steps:{job.id}", name), timeout=60)  # noqa: B023 - awaited at once
            worker.signal(signal.SIGKILL)
            await worker.exit_code()
        # its lease is over, and it is time for a sweep
        look.expire_lease("branches", job.id)
        look("DEL", "swept")
        for name in ("a1", "a2", "b1", "b2"):
            Path(f"{effects}.{name}").touch()
        with started(*arguments, directory=tmp_path, redis_url=server.url):
            assert await job.wait(60) == [["A1", "A2"], ["B1", "B2"]]
    finished = Counter(line.split()[1] for line in effects.read_text().splitlines() if line.startswith("finished"))
    assert finished == {"a1": 1, "a2": 1, "b1": 1, "b2": 1}


async def test_steps_that_were_renamed_added_or_removed_leave_the_others_as_they_were(
    server: Server, namespace_id: str
) -> None:
    ran: list[str] = []

    async def work(name: str) -> str:
        ran.append(name)
        return name.upper()

    async def old(ctx: Context[None]) -> list[str]:
        for name in ("one", "two", "three", "four"):
            await ctx.step.do(name, work, name)
        raise OSError

    async def new(ctx: Context[None]) -> list[str]:
        return [await ctx.step.do(name, work, name) for name in ("four", "added", "one", "two, renamed")]

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("flow", run=old)
        async with workflow.worker():
            job = await workflow.run(None)
            with pytest.raises(JobFailedError, match="OSError"):
                await job.wait(timeout=30)
    ran.clear()
    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("flow", run=new)
        async with workflow.worker():
            assert await workflow.retry(job.id)
            assert await workflow.get_job(job.id).wait(timeout=30) == ["FOUR", "ADDED", "ONE", "TWO, RENAMED"]
    assert ran == ["added", "two, renamed"]


class Size(enum.Enum):
    SMALL = "S"


class Urgency(enum.IntFlag):
    HIGH = 1
    NOW = 2


@dataclass(frozen=True)
class Parcel:
    size: Size
    price: Decimal
    posted: datetime


class Point(msgspec.Struct):
    x: float


class Mail(pydantic.BaseModel):
    to: str
    at: datetime


AT = datetime(2030, 1, 1, 18, 30, 0, 123456, tzinfo=UTC)
VALUES: list[Any] = [
    AT,
    date(2030, 1, 1),
    timedelta(days=1, microseconds=1),
    Size.SMALL,
    Urgency.HIGH | Urgency.NOW,
    Decimal("12.50"),
    Parcel(Size.SMALL, Decimal("12.50"), AT),
    Point(1.5),
    Mail(to="ada", at=AT),
    UUID(int=7),
    b"\x00\xff",
    2**70,
    float("-inf"),
    (1, (2,), [3]),
    {"a": {1, 2}, "b": frozenset({3})},
    {Size.SMALL: 1, (1, 2): 2},
    [Parcel(Size.SMALL, Decimal(1), AT), Point(0.0), None, False, 0, ""],
]


@pytest.mark.parametrize("plain", [False, True])
async def test_what_a_step_gives_is_the_same_in_value_and_type_when_it_is_replayed(
    server: Server, namespace_id: str, *, plain: bool
) -> None:
    got: list[list[Any]] = []

    async def run(ctx: Context[None]) -> None:
        values = [await ctx.step.do(str(index), lambda: value) for index, value in enumerate(VALUES)]  # noqa: B023 - called at once
        got.append(values)
        if len(got) == 1:
            raise OSError

    def run_plainly(ctx: SyncContext[None]) -> None:
        got.append([ctx.step.do(str(index), lambda: value) for index, value in enumerate(VALUES)])  # noqa: B023 - called at once
        if len(got) == 1:
            raise OSError

    def made_in(ns: WorkflowNamespace) -> Workflow[None, None]:
        if plain:
            return ns.create_workflow("flow", run=run_plainly)
        return ns.create_workflow("flow", run=run)

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = made_in(ns)
        async with workflow.worker():
            job = await workflow.run(None)
            with pytest.raises(JobFailedError, match="OSError"):
                await job.wait(timeout=30)
            await workflow.retry(job.id)
            await job.wait(timeout=30)
    first, again = got
    assert first == again == VALUES
    assert list(map(repr, again)) == list(map(repr, VALUES))
    assert list(map(type, again)) == list(map(type, VALUES))


async def test_a_result_of_five_megabytes_is_kept_replayed_and_waited_for(server: Server, namespace_id: str) -> None:
    reads: list[int] = []

    async def read() -> str:
        reads.append(1)
        return "ö" * 5_000_000

    async def run(ctx: Context[None]) -> str:
        text = await ctx.step.do("read", read)
        if ctx.attempt == 1:
            raise OSError
        return text

    async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
        workflow = ns.create_workflow("flow", run=run, max_attempts=2)
        async with workflow.worker():
            assert await workflow.execute(None, timeout=60) == "ö" * 5_000_000
    assert reads == [1]


class Unstorable:
    """What has no value to store: an open socket, a function, a generator."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.socket = socket.socket()

    def __enter__(self) -> Any:
        return {"socket": self.socket, "lambda": lambda: 3, "generator": (n for n in range(3))}[self.kind]

    def __exit__(self, *_: object) -> None:
        self.socket.close()


@pytest.mark.parametrize("kind", ["socket", "lambda", "generator"])
async def test_what_cannot_be_stored_fails_the_attempt_and_says_which_step_and_where_in_the_value(
    server: Server, namespace_id: str, kind: str
) -> None:
    with Unstorable(kind) as value:

        async def connect() -> dict[str, list[Any]]:
            return {"first": [1, value]}

        async def run(ctx: Context[None]) -> None:
            with ctx.step.scope("setup"):
                await asyncio.gather(ctx.step.do("connect", connect))

        async with WorkflowNamespace(namespace_id, redis=server.url) as ns:
            workflow = ns.create_workflow("flow", run=run)
            async with workflow.worker():
                with pytest.raises(
                    JobFailedError, match=r"step 'setup/connect': its result cannot be stored: \$\.first"
                ):
                    await workflow.execute(None, timeout=30)
