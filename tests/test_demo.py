"""``lanner demo`` as its users see it, and that it would tell them if a promise were not kept."""

import io
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lanner.demo.ledger import Effect
from lanner.demo.order import Delivery
from lanner.demo.play import conclude
from lanner.demo.proof import Evidence, judge
from lanner.demo.screen import Screen
from lanner.queue.listing import Counts
from support.commands import ran

FIRST, SECOND = 101, 102
EFFECTS = (
    Effect("23:59:58.000", FIRST, "reserve stock", "stock reserved", "2 x espresso cup, as R-1"),
    Effect("23:59:58.700", FIRST, "charge", "card charged", "45.80 EUR, as P-1"),
    Effect("23:59:58.800", FIRST, "count stock", "stock counted", "espresso cup"),
    Effect("00:00:01.699", FIRST, "ship", "label printed", "for R-1"),
    Effect("00:00:05.000", SECOND, "ship", "label printed", "for R-1"),
    Effect("00:00:07.000", SECOND, "ship", "parcel handed over", "R-1, as T-1"),
    Effect("00:00:07.700", SECOND, "notify", "customer told", "ada@example.org: T-1 is on its way"),
)
NONE_LEFT = Counts(waiting=0, delayed=0, parked=0, active=0, completed=1, failed=0, cancelled=0)
GOOD = Evidence(
    effects=EFFECTS,
    first=FIRST,
    second=SECOND,
    first_exit=-signal.SIGKILL,
    second_exit=0,
    asleep="delayed",
    slots_asleep=0,
    checkpoints=("reserve stock", "charge", "wait for the courier"),
    attempt=1,
    delivery=Delivery("R-1", "P-1", "T-1"),
    left=NONE_LEFT,
)


def _with(*more: Effect) -> Evidence:
    return replace(GOOD, effects=(*EFFECTS, *more))


def _without(index: int) -> Evidence:
    return replace(GOOD, effects=EFFECTS[:index] + EFFECTS[index + 1 :])


def _again(index: int, process: int) -> Evidence:
    return _with(replace(EFFECTS[index], process=process))


CUT, TAKEN_OVER, REPLAYED, ONCE, WAITED, LEFT = range(6)
BROKEN: dict[str, tuple[Callable[[], Evidence], set[int]]] = {
    "stock reserved by both": (lambda: _again(0, SECOND), {REPLAYED, ONCE}),
    "stock reserved twice by the first": (lambda: _again(0, FIRST), {REPLAYED, ONCE}),
    "charged by both": (lambda: _again(1, SECOND), {REPLAYED, ONCE}),
    "handed over twice": (lambda: _again(5, SECOND), {TAKEN_OVER, ONCE}),
    "told by both": (lambda: _again(6, FIRST), {TAKEN_OVER, ONCE}),
    "never charged": (lambda: _without(1), {REPLAYED, ONCE, WAITED}),
    "never told": (lambda: _without(6), {TAKEN_OVER, ONCE}),
    "not killed": (lambda: replace(GOOD, first_exit=0), {CUT}),
    "killed when the step had finished": (lambda: replace(GOOD, checkpoints=(*GOOD.checkpoints, "ship")), {CUT}),
    "a checkpoint lost": (lambda: replace(GOOD, checkpoints=("reserve stock",)), {REPLAYED}),
    "another payment in the result": (lambda: replace(GOOD, delivery=Delivery("R-1", "P-2", "T-1")), {REPLAYED}),
    "another parcel in the result": (lambda: replace(GOOD, delivery=Delivery("R-1", "P-1", "T-2")), {TAKEN_OVER}),
    "a slot held by the wait": (lambda: replace(GOOD, slots_asleep=1), {WAITED}),
    "active while it waits": (lambda: replace(GOOD, asleep="active"), {WAITED}),
    "no other job meanwhile": (lambda: _without(2), {WAITED}),
    "a wait that was too short": (
        lambda: replace(GOOD, effects=(*EFFECTS[:3], replace(EFFECTS[3], at="00:00:01.400"), *EFFECTS[4:])),
        {WAITED},
    ),
    "an attempt used up": (lambda: replace(GOOD, attempt=2), {LEFT}),
    "a job left": (lambda: replace(GOOD, left=replace(NONE_LEFT, active=1)), {LEFT}),
    "a second worker that broke down": (lambda: replace(GOOD, second_exit=1), {TAKEN_OVER}),
}


def test_the_demo_shows_a_kill_a_recovery_and_that_every_promise_was_kept(tmp_path: Path) -> None:
    done = ran("demo", directory=tmp_path, redis_url="redis://127.0.0.1:1/0", COLUMNS="300", TMPDIR=str(tmp_path))
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert not done.stderr
    killed = re.search(r"SIGKILL to worker 1, pid (\d+), in the middle of step 3, 'ship'", said)
    assert killed
    first = killed[1]
    assert re.search(rf"worker 1  step 1 of 4, reserve stock: stock reserved .* \(pid {first}\)", said)
    assert re.search(rf"worker 1  step 2 of 4, charge: card charged .* \(pid {first}\)", said)
    assert "order-1029 is 'delayed' for 3 s" in said
    assert "slots in use: 0 of 1" in said
    for replayed in ("step 1 of 4, reserve stock", "step 2 of 4, charge", "wait for the courier"):
        assert f"worker 2  {replayed}: replayed from Redis, not run again" in said
    assert "worker 2  step 3 of 4, ship: had not finished, runs again" in said
    ledger = [line.split() for line in said.splitlines() if line.startswith("  ") and "  pid " in line]
    assert len(ledger) == 7
    assert len({words[2] for words in ledger}) == 2
    assert said.count("[kept]") == 6
    assert "BROKEN" not in said
    assert "at least once" in said
    assert "\033" not in said
    assert list(tmp_path.iterdir()) == []


def test_every_promise_is_kept_by_what_a_good_run_shows() -> None:
    assert all(check.kept for check in judge(GOOD))


@pytest.mark.parametrize(("seen", "broken"), BROKEN.values(), ids=BROKEN.keys())
def test_a_promise_that_was_not_kept_is_told_and_is_a_failure(
    seen: Callable[[], Evidence], broken: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert {number for number, check in enumerate(judge(seen())) if not check.kept} == broken
    shown = io.StringIO()
    assert conclude(Screen(shown), seen()) == 1
    assert shown.getvalue().count("[BROKEN]") == len(broken)
    assert "Every promise was kept." not in shown.getvalue()


@pytest.mark.parametrize("width", [24, 40, 63, 64, 80, 200])
def test_it_keeps_to_the_width_of_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = io.StringIO()
    screen = Screen(shown)
    screen.said("worker 1", "step 1 of 4, reserve stock: stock reserved 2 x espresso cup, as R-1 (pid 4711)")
    assert conclude(screen, GOOD) == 0
    assert max(map(len, shown.getvalue().splitlines())) <= width


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shown() -> str:
        out = Terminal()
        Screen(out).check("a promise", kept=True)
        return out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert shown() == "\033[32m  [kept]   a promise\033[0m\n"
    monkeypatch.setenv("TERM", "dumb")
    assert shown() == "  [kept]   a promise\n"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown() == "  [kept]   a promise\n"


def test_without_a_server_program_it_says_how_to_get_one(tmp_path: Path) -> None:
    done = ran("demo", directory=tmp_path, LANNER_REDIS_SERVER="/nowhere/redis-server", PATH=str(Path(sys.prefix)))
    assert done.returncode == 1
    assert "lanner demo: " in done.stderr
    assert "LANNER_REDIS_SERVER" in done.stderr
    assert "Traceback" not in done.stderr
