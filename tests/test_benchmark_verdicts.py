"""What a run of the benchmarks says of its goals, and what it leaves out."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.bench import Bench, Measure, Settings, quantile
from benchmarks.contestants import LANNER, MACHINE, Contestant, Player, UnavailableError
from benchmarks.goals import Goal, goals
from benchmarks.report import as_data, write_table
from benchmarks.servers import Server

ONE, TWO = "lanner, one process", "lanner, two processes"
SETTINGS = Settings(
    quick=True, rounds=2, own_rounds=3, long_rounds=3, short_rounds=4, aside_rounds=1, seconds=0.1, only=frozenset()
)


class _Idle:
    """A server that has nothing to forget."""

    label = "redis 0"

    def flush(self) -> None:
        """Nothing is there."""


class _Offline(Bench):
    """Contestants without processes."""

    def __init__(self) -> None:
        super().__init__(cast("Server", _Idle()), SETTINGS, {})
        self.dropped: list[str] = []

    async def player(self, contestant: Contestant, number: int = 0) -> Player:
        del number
        return Player(contestant, cast("asyncio.subprocess.Process", None))

    async def drop(self, contestant: Contestant) -> None:
        self.dropped.append(contestant.name)


def measured(id: str, **rounds: list[float]) -> Measure:
    return Measure(id, id, "jobs/s", rounds={name.replace("_", " "): values for name, values in rounds.items()})


def two_processes(rates: tuple[float, float], redis: float | None) -> dict[str, Measure]:
    found = {"processes": Measure("processes", "no-op jobs", "jobs/s", rounds={ONE: [rates[0]], TWO: [rates[1]]})}
    if redis is not None:
        found["processes-redis"] = Measure("processes-redis", "CPU", "%", rounds={ONE: [redis], TWO: [100.0]})
    return found


def only_goal(measures: dict[str, Measure]) -> Goal:
    (goal,) = [goal for goal in goals(measures) if goal.measure in ("processes", "processes-busy", "slowest-script")]
    return goal


@pytest.mark.parametrize(("redis", "needs"), [(97, 155), (62.6, 100)])
def test_two_processes_count_as_reached_where_so_many_jobs_would_take_more_than_a_core_of_redis(
    redis: float, needs: int
) -> None:
    goal = only_goal(two_processes((60_000, 62_000), redis=redis))
    assert goal.reached is True
    assert goal.remark == (
        f"Redis is the limit: with one process it used {redis:.0f}% of a core, and would need {needs}%"
    )


@pytest.mark.parametrize("redis", [62.5, 40, None])
def test_two_processes_are_missed_where_redis_had_more_to_give_or_nobody_knows(redis: float | None) -> None:
    # what it used with two processes says nothing: it may be full with two because two is what it takes
    goal = only_goal(two_processes((60_000, 62_000), redis=redis))
    assert goal.reached is False
    assert not goal.remark


def test_two_processes_that_are_fast_enough_need_no_remark() -> None:
    goal = only_goal(two_processes((10_000, 16_000), redis=97))
    assert goal.reached is True
    assert not goal.remark


def test_processes_that_were_not_measured_have_no_verdict_even_where_redis_was_full() -> None:
    found = two_processes((10_000, 16_000), redis=97)
    found["processes"].lose(TWO, "its process ended")
    assert only_goal(found).reached is None
    assert not only_goal(found).remark


def test_jobs_of_some_python_have_to_run_faster_in_two_processes_whatever_redis_does() -> None:
    busy = Measure("processes-busy", "busy", "jobs/s", rounds={ONE: [4000], TWO: [6000]})
    cpu = Measure("processes-busy-redis", "CPU", "%", rounds={ONE: [99], TWO: [99]})
    assert only_goal({busy.id: busy, cpu.id: cpu}).reached is False
    busy.rounds[TWO] = [6400]
    assert only_goal({busy.id: busy, cpu.id: cpu}).reached is True


def test_the_slowest_script_is_that_of_the_worst_kind_of_work() -> None:
    scripts = Measure("slowest-script", "scripts", "ms", rounds={"bulk": [1, 2, 9], "groups": [4, 6, 7], "waits": [1]})
    goal = only_goal({scripts.id: scripts})
    assert goal.ratio == 6
    assert goal.reached is False
    scripts.rounds["groups"] = [3, 4, 60]
    assert only_goal({scripts.id: scripts}).reached is True


def test_where_no_server_had_a_core_for_itself_nothing_is_said_of_scripts() -> None:
    scripts = Measure("slowest-script", "scripts", "ms", missing={"lanner": "it needs Linux"})
    assert goals({scripts.id: scripts}) == []


def test_a_goal_is_a_bound_in_its_own_direction() -> None:
    assert Goal("a", "x", 2.0, 2.0).reached is True
    assert Goal("a", "x", 1.9, 2.0).reached is False
    assert Goal("a", "x", 1.9, 2.0, at_most=True).reached is True
    assert Goal("a", "x", 2.1, 2.0, at_most=True).reached is False
    assert Goal("a", "x", None, 2.0, limit="the machine").reached is None


def test_the_fastest_peer_is_found_among_those_that_were_measured() -> None:
    found = measured("slots-100", lanner=[60, 70, 80], saq=[10], arq=[20], limit=[500])
    assert found.fastest_peer() == ("arq", 20)
    (first, second) = [goal for goal in goals({found.id: found}) if "fastest peer" in goal.text]
    assert first.ratio == second.ratio == 3.5


def test_a_latency_is_a_quantile_of_all_jobs_not_of_rounds() -> None:
    late = Measure("late", "late", "ms", share=0.99)
    for number in range(10):
        slow = [50.0] if number == 0 else [2.0]
        late.rounds.setdefault("lanner", []).append(late.pool("lanner", [1.0] * 24 + slow))
    assert late.rounds["lanner"] == [50.0] + [2.0] * 9
    assert late.value("lanner") == 2.0
    middle = Measure("middle", "middle", "ms")
    assert middle.pool("lanner", [3.0, 1.0, 2.0]) == 2.0
    assert middle.value("lanner") == 2.0
    assert middle.value("nobody") is None


def test_a_ratio_is_that_of_rounds_in_which_both_were_neighbours() -> None:
    # an hour that is slow for both says nothing about either
    found = measured("limiters", lanner_with_one=[90.0, 9.0, 45.0], lanner_without=[100.0, 10.0, 40.0])
    assert found.ratio("lanner with one", "lanner without") == 0.9
    found.rounds["lanner without"].append(20.0)
    assert found.ratio("lanner with one", "lanner without") == 45.0 / 30.0
    assert found.ratio("lanner with one", "nobody") is None


def test_a_quantile_is_one_of_the_values() -> None:
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([1], 0.99) == 1
    assert quantile(range(100), 0.99) == 99


async def test_contestants_take_turns_and_each_round_is_begun_by_another() -> None:
    bench, seen = _Offline(), list[str]()

    def of(name: str) -> Any:
        async def turn(_: Player) -> float:
            seen.append(name)
            return float(len(seen))

        return turn

    measure = bench.measure("m", "m", "ms")
    turns = [("lanner", LANNER, of("lanner")), ("limit", MACHINE, of("limit"))]
    await bench.alternate(measure, turns)
    assert seen == ["lanner", "limit", "limit", "lanner", "lanner", "limit"]
    assert measure.rounds == {"lanner": [1, 4, 5], "limit": [2, 3, 6]}


async def test_a_contestant_that_fails_is_left_out_with_the_reason_and_the_others_go_on() -> None:
    bench, tries = _Offline(), list[int]()

    async def fine(_: Player) -> float:
        return 1.0

    async def failing(_: Player) -> float:
        tries.append(1)
        if len(tries) == 2:
            raise UnavailableError("did not end within 60 s")
        return measure.pool("limit", [5.0])

    measure = bench.measure("m", "m", "ms")
    await bench.alternate(measure, [("lanner", LANNER, fine), ("limit", MACHINE, failing)], rounds=5)
    assert measure.rounds == {"lanner": [1.0] * 5}
    assert measure.value("limit") is None
    assert measure.missing == {"limit": "did not end within 60 s"}
    assert len(tries) == 2
    assert bench.dropped == ["limit"]


def test_the_table_says_why_a_goal_counts_as_reached(tmp_path: Path) -> None:
    bench = _Offline()
    bench.measures |= two_processes((60_000, 62_000), redis=97)
    data = as_data(bench, {"lanner": "0.1.0"})
    write_table(data, tmp_path / "results.md")
    table = (tmp_path / "results.md").read_text()
    assert (
        "| no-op jobs | 1.03 x one process | at least 1.6 | yes (Redis is the limit: with one process it used" in table
    )
    assert "| lanner, one process | 97 | 97 to 97 |" in table
    assert data["measures"]["processes"]["goals"][0]["reached"] is True
