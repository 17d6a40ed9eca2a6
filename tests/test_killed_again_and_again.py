"""One job, and a worker process that is killed over and over while it runs."""

import os
import signal
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from lanner import Context, Workflow, WorkflowNamespace
from support.commands import LANNER, Command, running, started
from support.jobs import Look, lose_claim
from support.waiting import wait_until

STEPS = 12
KILLS = 10

JOURNEY = """
    import asyncio
    from pathlib import Path

    from lanner import Context, WorkflowNamespace

    ns = WorkflowNamespace({namespace!r}, redis={redis!r})
    EFFECTS = Path({effects!r})

    def note(what: str) -> None:
        with EFFECTS.open("a") as file:
            file.write(what + "\\n")

    async def stage(number: int) -> int:
        note(f"begun {{number}}")
        while not Path(f"{{EFFECTS}}.{{number}}").exists():
            await asyncio.sleep(0.01)
        note(f"finished {{number}}")
        return number * number

    @ns.workflow("journey", max_stalled=3)
    async def journey(ctx: Context[int]) -> list[int]:
        return [await ctx.step.do(f"stage {{number}}", stage, number) for number in range(ctx.input)]
"""


def journey_of(ns: WorkflowNamespace) -> Workflow[int, list[int]]:
    async def journey(_: Context[int]) -> list[int]:
        raise AssertionError("this process only enqueues")

    return ns.create_workflow("journey", run=journey, max_stalled=3)


def module_in(directory: Path, *, namespace: str, redis: str) -> Path:
    effects = directory / "effects.txt"
    source = textwrap.dedent(JOURNEY).format(namespace=namespace, redis=redis, effects=str(effects))
    (directory / "travel.py").write_text(source)
    effects.touch()
    return effects


def begun(effects: Path) -> list[str]:
    return [line for line in effects.read_text().splitlines() if line.startswith("begun")]


async def test_ten_kills_over_twelve_steps_each_finished_step_ran_once_and_the_job_ended_once(
    redis_url: str, namespace_id: str, tmp_path: Path, look: Look
) -> None:
    effects = module_in(tmp_path, namespace=namespace_id, redis=redis_url)
    async with WorkflowNamespace(namespace_id, redis=redis_url) as ns:
        job = await journey_of(ns).run(STEPS)
        for kill in range(KILLS + 1):
            attempts = len(begun(effects))
            with started("worker", "travel:ns", directory=tmp_path, redis_url=redis_url) as worker:
                await wait_until(lambda: len(begun(effects)) > attempts, timeout=60)  # noqa: B023 - awaited at once
                if kill < KILLS:
                    # the step that runs now finishes, and the next one is cut
                    Path(f"{effects}.{kill}").touch()
                    await wait_until(lambda: f"begun {kill + 1}" in begun(effects), timeout=60)  # noqa: B023
                    worker.signal(signal.SIGKILL)
                    await worker.exit_code()
                    # a lease later, which a worker that lives is never without, however slow the machine is
                    await lose_claim(look, ns.queues, "journey", job.id)
                    continue
                for number in range(STEPS):
                    Path(f"{effects}.{number}").touch()
                assert await job.wait(60) == [number * number for number in range(STEPS)]
        finished = [line for line in effects.read_text().splitlines() if line.startswith("finished")]
        assert finished == [f"finished {number}" for number in range(STEPS)]
        assert len(begun(effects)) == STEPS + KILLS
        record = await job.record()
        assert (record.state, record.attempt) == ("completed", 1)


PRODUCER = """
    import asyncio

    import travel

    async def main() -> None:
        job = await travel.journey.run(2, id="trip", if_exists="return")
        print("enqueued", flush=True)
        print("result:", await job.wait(), flush=True)

    asyncio.run(main())
"""


@pytest.mark.parametrize("victims", [("worker",), ("producer",), ("keeper",), ("worker", "producer", "keeper")])
async def test_two_terminals_on_one_embedded_directory_whoever_is_killed_the_job_comes_to_its_end(
    namespace_id: str, tmp_path: Path, victims: tuple[str, ...]
) -> None:
    data = tmp_path / "data"
    effects = module_in(tmp_path, namespace=namespace_id, redis=f"embedded:{data}")
    (tmp_path / "producer.py").write_text(textwrap.dedent(PRODUCER))
    Path(f"{effects}.0").touch()
    with ExitStack() as terminals:

        def terminal(name: str, *command: str) -> Command:
            folder = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
            return terminals.enter_context(running(*command, directory=folder, environment={"PYTHONPATH": path}))

        def work() -> Command:
            return terminal("worker", *LANNER, "worker", "travel:ns", "--lease", "0.5")

        def produce() -> Command:
            return terminal("producer", sys.executable, str(tmp_path / "producer.py"))

        producer, worker = produce(), work()
        await producer.until_it_says("enqueued")
        await wait_until(lambda: "begun 1" in begun(effects), timeout=60)
        for victim in victims:
            if victim == "keeper":
                os.kill(int((data / "keeper.lock").read_text()), signal.SIGKILL)
            else:
                (producer if victim == "producer" else worker).signal(signal.SIGKILL)
        if "producer" in victims:
            producer = produce()
        if "worker" in victims:
            worker = work()
        Path(f"{effects}.1").touch()
        await producer.until_it_says("result: [0, 1]")
        worker.signal(signal.SIGTERM)
        assert await worker.exit_code() == 0
