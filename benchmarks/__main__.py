"""Lanner beside its peers: ``python -m benchmarks [--quick]``, or ``nox -s bench -- --quick``."""

import argparse
import asyncio
import importlib.metadata
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from .bench import Bench, Settings
from .contestants import DBOS, PEERS, PEERS_ON_REDIS, prepare
from .measures import durable, enqueue, footprint, latency, processes, scale, scripts, throughput
from .report import as_data, write_json, write_plot, write_table
from .servers import apart, programs, start_server

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "benchmarks"
LATEST = HERE / "results" / "latest.json"


def versions() -> dict[str, str]:
    """What was measured."""
    found = {"lanner": importlib.metadata.version("lanner"), "redis-py": importlib.metadata.version("redis")}
    for each in PEERS_ON_REDIS:
        if each.requirements == "package.json":
            name = each.name.partition(" ")[0]
            found[each.name] = json.loads((PEERS / each.requirements).read_text())["dependencies"][name]
        elif each.requirements:
            found[each.name] = (PEERS / each.requirements).read_text().split()[0].partition("==")[2]
    return found


async def measure(bench: Bench) -> None:
    """Everything that the settings want."""
    await _all_of((*throughput.ALL, *processes.ALL, *enqueue.ALL, footprint.idling), bench)
    await footprint.memory(bench, programs())
    await durable.steps_on_postgres(bench)


async def time_scripts(bench: Bench) -> None:
    """What is about the time of the server alone, which nobody is to interrupt."""
    with apart(bench.server):
        await _all_of((*scale.ALL, *scripts.ALL), bench)


async def _all_of(subjects: Iterable[Callable[[Bench], Awaitable[None]]], bench: Bench) -> None:
    try:
        for subject in subjects:
            await subject(bench)
    finally:
        await bench.close()


async def run(settings: Settings) -> None:
    """Measure and report."""
    began = time.monotonic()
    unavailable = prepare((*PEERS_ON_REDIS, DBOS))
    print(f"the peers are installed ({time.monotonic() - began:.0f} s)", unavailable or "", flush=True)
    label, program = next(iter(programs().items()))
    with start_server(label, program) as server:
        bench = Bench(server, settings, unavailable)
        await measure(bench)
        with start_server(label, program) as unused:
            await _all_of(latency.ALL, Bench(unused, settings, unavailable, bench.measures))
        with start_server(label, program) as undisturbed:
            await time_scripts(Bench(undisturbed, settings, unavailable, bench.measures))
        data = as_data(bench, versions())
    write_json(data, LATEST)
    if not settings.quick and not settings.only:
        write_table(data, DOCS / "results.md")
        write_plot(data, DOCS / "results.png")
    for each in data["measures"].values():
        for goal in each["goals"]:
            verdict = {True: "reached", False: "MISSED", None: "unknown"}[goal["reached"]]
            ratio = float("nan") if goal["ratio"] is None else goal["ratio"]
            print(
                f"{verdict:8} {each['title']}: {ratio:.3g} {goal['what']} ({goal['bound']}) {goal['remark']}".rstrip()
            )
    print(f"{time.monotonic() - began:.0f} s; {LATEST}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five minutes at most, no table and no plot")
    parser.add_argument("--only", nargs="*", default=[], metavar="MEASURE", help="these measures only, by their ids")
    parser.add_argument("--rounds", type=int, help="how often everybody takes a turn")
    parser.add_argument("--seconds", type=float, help="how long a turn takes, about")
    options = parser.parse_args()
    quick: bool = options.quick
    rounds = options.rounds or (2 if quick else 5)
    settings = Settings(
        quick=quick,
        rounds=rounds,
        own_rounds=(options.rounds and 3 * options.rounds) or (9 if quick else 15),
        long_rounds=options.rounds or (3 if quick else 7),
        short_rounds=rounds * (2 if quick else 6),
        aside_rounds=options.rounds or (1 if quick else 5),
        seconds=options.seconds or (0.4 if quick else 2.0),
        only=frozenset(options.only),
    )
    asyncio.run(run(settings))


main()
