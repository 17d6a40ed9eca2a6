"""The check that runs after every test finds what has no TTL and no owner, and nothing else."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.client import Client
from support.leftovers import leftovers
from support.servers import Server

Command = tuple[str | float, ...]

FUTURE = time.time() * 1000 + 3_600_000
PAST = 1.0

RECORD: Command = ("HSET", "wf:j:a:1", "data", "x", "spec", "{}")
ACTIVE, DELAYED, PARKED, COMPLETED, FAILED = (
    (*RECORD, "state", state) for state in ("active", "delayed", "parked", "completed", "failed")
)
ENDS: Command = ("PEXPIRE", "wf:j:a:1", 60_000)
COUNTER: Command = ("SET", "wf:pc", 7)

LINK = "wf\np\nlife\nmap\nmap/0\n2\nfail"
PARENT: list[Command] = [
    ("HSET", "wf:j:p", "state", "parked", "spec", "{}", "kids", "1"),
    ("ZADD", "wf:parked", 1, "p"),
    ("ZADD", "wf:children:p", 0, "map/0\nwf:c"),
]
AWAITED: Command = ("ZADD", "wf:barrier:p", 0, "map\nwf:c")
HELD: Command = ("ZADD", "wf:held:p", 0, "map\n0000000000\nwf:c")
CHILD: list[Command] = [
    ("HSET", "wf:j:c", "state", "parked", "spec", "{}", "parent", LINK),
    ("ZADD", "wf:parked", 1, "c"),
]
ENDED_CHILD: list[Command] = [
    ("HSET", "wf:j:c", "state", "completed", "spec", "{}", "parent", LINK),
    ("ZADD", "wf:completed", math.inf, "c"),
]

FINE: dict[str, list[Command]] = {
    "a waiting job": [RECORD, ("ZADD", "wf:ready", 1, "j:a:1"), COUNTER],
    "a waiting job of a group": [
        RECORD,
        ("ZADD", "wf:g:user:42", 1, "a:1"),
        ("SADD", "wf:groups", "user:42"),
        ("ZADD", "wf:ready", 1, "g:user:42"),
        COUNTER,
    ],
    "a running job of a group, and one behind it": [
        (*ACTIVE, "spec", '{"group":"user:42"}'),
        ("HSET", "wf:j:b", "data", "x", "spec", "{}"),
        ("HSET", "wf:steps:a:1", "step", "1"),
        ("ZADD", "wf:events:a:1", 0, "event"),
        ("HSET", "wf:active", "a:1", ".w:1 1"),
        ("HSET", "wf:ga", "user:42", 1),
        ("HSET", "running", "wf", 1),
        ("ZADD", "wf:g:user:42", 1, "b"),
        ("SADD", "wf:groups", "user:42"),
        COUNTER,
    ],
    "a job that sleeps and keeps its group": [
        (*DELAYED, "holds", "1", "spec", '{"group":"g"}'),
        ("HSET", "wf:ga", "g", 1),
        ("ZADD", "wf:delayed", FUTURE, "a:1"),
    ],
    "a job that waits for an event": [PARKED, ("ZADD", "wf:parked", PAST, "a:1")],
    "a job that fails unless it starts in time": [
        RECORD,
        ("ZADD", "wf:ready", 1, "j:a:1"),
        ("ZADD", "wf:expiring", FUTURE, "a:1"),
    ],
    "a completed job": [COMPLETED, ENDS, ("ZADD", "wf:completed", FUTURE, "a:1")],
    "a completed job that is kept": [COMPLETED, ("ZADD", "wf:completed", math.inf, "a:1")],
    "a completed job whose record has expired": [("ZADD", "wf:completed", PAST, "a:1")],
    "a failed job with its steps": [FAILED, ("HSET", "wf:steps:a:1", "step", "1"), ("ZADD", "wf:failed", PAST, "a:1")],
    "a parent that waits for a child, which it holds back": [*PARENT, AWAITED, HELD, *CHILD],
    "a child that has ended and its parent may need": [*PARENT, *ENDED_CHILD],
    "a failed child that its parent may need and no list has": [
        *PARENT,
        ("HSET", "wf:j:c", "state", "failed", "spec", "{}", "parent", LINK),
    ],
    "a schedule": [("ZADD", "wf:due", FUTURE, "nightly"), ("HSET", "wf:schedule:nightly", "pattern", "* * * * *")],
    "a worker": [("ZADD", "workers", PAST, "w1"), ("SET", "@worker:w1", "{}", "EX", 60)],
    "a marker and a receipt with TTLs": [("SET", "wf:wake", 1, "EX", 60), ("SET", "@w:worker", 1, "EX", 60)],
    "the settings of the namespace": [
        ("HSET", "limits", "concurrency", 1),
        ("HSET", "wf:limits", "group", 1),
        ("HSET", "meta", "version", 1),
        ("SET", "swept", 1),
        ("SADD", "workflows", "wf"),
    ],
}

WRONG: dict[str, tuple[list[Command], str]] = {
    "a key of no known kind": ([("SET", "surprise", 1)], "surprise: has no TTL, and no rule names an owner"),
    "a key of no known kind in a workflow": ([("SET", "wf:odd", 1)], "wf:odd: has no TTL, and no rule"),
    "a record that is nowhere": ([RECORD], "wf:j:a:1: has no TTL and is nowhere"),
    "a record in two places": (
        [RECORD, ("ZADD", "wf:ready", 1, "j:a:1"), ("ZADD", "wf:delayed", FUTURE, "a:1")],
        "wf:j:a:1: is in more than one place",
    ),
    "a record that says something else than where it is": (
        [RECORD, ("ZADD", "wf:delayed", FUTURE, "a:1")],
        "wf:j:a:1: says that it is waiting, and is in delayed",
    ),
    "a job that waits and whose record says something else": (
        [PARKED, ("ZADD", "wf:ready", 1, "j:a:1")],
        "wf:j:a:1: says that it is parked, and is in ready",
    ),
    "a live record that expires": ([PARKED, ENDS, ("ZADD", "wf:parked", PAST, "a:1")], "is live (parked) and would"),
    "a failed record that expires": ([FAILED, ENDS, ("ZADD", "wf:failed", PAST, "a:1")], "has failed and would expire"),
    "a completed record without TTL": (
        [COMPLETED, ("ZADD", "wf:completed", FUTURE, "a:1")],
        "is completed with an expiry, and has no TTL",
    ),
    "steps of no job": ([("HSET", "wf:steps:a:1", "step", "1")], "wf:steps:a:1: its job has no record"),
    "a log that outlives its job": (
        [COMPLETED, ENDS, ("ZADD", "wf:completed", FUTURE, "a:1"), ("RPUSH", "wf:log:a:1", "line")],
        "wf:log:a:1: has no TTL, while its job's record will expire",
    ),
    "a worker that says nothing": ([("ZADD", "workers", PAST, "w1")], "workers: holds 'w1', which says nothing"),
    "events of no job": ([("ZADD", "wf:events:a:1", 0, "event")], "wf:events:a:1: its job has no record"),
    "a runnable job without record": ([("ZADD", "wf:ready", 1, "j:a:1")], "wf:ready: holds j:a:1, which has no"),
    "a runnable group without jobs": ([("ZADD", "wf:ready", 1, "g:a:1")], "wf:ready: holds g:a:1, which has no"),
    "a structure that expires": (
        [RECORD, ("ZADD", "wf:ready", 1, "j:a:1"), ("PEXPIRE", "wf:ready", 60_000)],
        "wf:ready: would expire",
    ),
    "a group that nobody starts": (
        [RECORD, ("ZADD", "wf:g:g", 1, "a:1"), ("SADD", "wf:groups", "g")],
        "wf:g:g: waits, nothing of it runs, and it is not in ready",
    ),
    "a group not in groups": (
        [RECORD, ("ZADD", "wf:g:g", 1, "a:1"), ("ZADD", "wf:ready", 1, "g:g")],
        "wf:g:g: is not in groups",
    ),
    "a group without jobs in groups": ([("SADD", "wf:groups", "g")], "wf:groups: holds 'g', which has no waiting jobs"),
    "a group slot that nobody holds": (
        [DELAYED, ("HSET", "wf:ga", "g", 1), ("ZADD", "wf:delayed", FUTURE, "a:1")],
        "wf:ga: says that 1 jobs of 'g' run, or keep it, and 0 do",
    ),
    "an active job that is not counted": (
        [ACTIVE, ("HSET", "wf:active", "a:1", ".w:1 1")],
        "wf:active: holds 1 claims, and running says 0",
    ),
    "a job that is counted and not active": (
        [("HSET", "running", "wf", 1)],
        "running: says that 1 jobs of 'wf' run, and none does",
    ),
    "a delayed job without record": ([("ZADD", "wf:delayed", FUTURE, "a:1")], "wf:delayed: holds 'a:1', which has no"),
    "a failed job without record": (
        [("ZADD", "wf:failed", PAST, "a:1")],
        "wf:failed: holds 'a:1', which has",
    ),
    "a completed job without record": (
        [("ZADD", "wf:completed", FUTURE, "a:1")],
        "wf:completed: holds 'a:1', which",
    ),
    "an expiry of a job that was started": (
        [(*PARKED, "started", "1"), ("ZADD", "wf:parked", PAST, "a:1"), ("ZADD", "wf:expiring", FUTURE, "a:1")],
        "wf:expiring: holds 'a:1', which has been started",
    ),
    "a parent that waits for a child that has ended": (
        [*PARENT, AWAITED, *ENDED_CHILD],
        "wf:barrier:p: waits for wf:c, which is completed",
    ),
    "a parent that waits for nobody": ([*PARENT, AWAITED], "wf:barrier:p: waits for wf:c, which has no record"),
    "children that nobody waits for": ([AWAITED], "wf:barrier:p: its job has no record"),
    "a child that is held back and not awaited": (
        [*PARENT, HELD, *CHILD],
        "wf:held:p: holds back 'wf:c', which it does not wait for",
    ),
    "the children of no job": ([PARENT[2]], "wf:children:p: its job has no record"),
    "a child whose parent is gone, and that stays": (
        ENDED_CHILD,
        "wf:j:c: has ended as its parent has, and would stay for ever",
    ),
    "a child that its parent may need, and that expires": (
        [*PARENT, *ENDED_CHILD, ("PEXPIRE", "wf:j:c", 60_000)],
        "wf:j:c: would expire, while its parent may need it",
    ),
    "children that have not followed their parent": (
        [("SADD", "cascades", "cancel"), ("ZADD", "@cascade:cancel", 0, "map\nwf:c")],
        "cascades: jobs are still to follow their parents: 'cancel'",
    ),
    "children that nobody knows are to follow": (
        [("ZADD", "@cascade:cancel", 0, "map\nwf:c")],
        "@cascade:cancel: is not in cascades",
    ),
    "a counter with nothing to count": ([COUNTER], "wf:pc: is left while nothing waits"),
    "a marker without TTL": ([("LPUSH", "wf:wake", 1)], "wf:wake: has no TTL"),
    "a receipt without TTL": ([("SET", "@w:worker", 1)], "@w:worker: has no TTL"),
    "a due schedule that is none": ([("ZADD", "wf:due", FUTURE, "nightly")], "wf:due: holds 'nightly', which is no"),
    "a schedule that is never due": ([("HSET", "wf:schedule:nightly", "x", "1")], "wf:schedule:nightly: is never due"),
    "a refusal with nothing to run": ([("ZADD", "capped", PAST, "wf")], "capped: holds 'wf', which has nothing to run"),
}


def _store(client: Client, base: str, commands: list[Command]) -> None:
    for command in commands:
        client(command[0], f"{base}:{command[1]}", *command[2:])


def _delete(client: Client, base: str) -> None:
    for names in client.keys(f"{base}:*"):
        client.many([("DEL", name) for name in names])


@pytest.mark.parametrize("commands", FINE.values(), ids=FINE)
def test_what_has_an_owner_or_a_ttl_may_stay(server: Server, namespace_id: str, commands: list[Command]) -> None:
    base = f"lanner:{{{namespace_id}}}"
    with server.client() as client:
        _store(client, base, commands)
        assert leftovers(client, base) == []


@pytest.mark.parametrize(("commands", "complaint"), WRONG.values(), ids=WRONG)
def test_what_has_neither_is_named(server: Server, namespace_id: str, commands: list[Command], complaint: str) -> None:
    base = f"lanner:{{{namespace_id}}}"
    with server.client() as client:
        _store(client, base, commands)
        found = leftovers(client, base)
        _delete(client, base)
    assert any(complaint in line for line in found), found


LEAVES_SOMETHING = """
from support import leftovers

leftovers.SETTLES_WITHIN = 0  # nothing is on its way here

def test_it(SERVER, namespace_id):
    with SERVER.client() as client:
        client("SET", f"lanner:{{{namespace_id}}}:surprise", 1)
"""


@pytest.mark.parametrize("fixture", ["server", "own_server"])
def test_a_test_that_leaves_something_behind_fails(tmp_path: Path, fixture: str) -> None:
    (tmp_path / "test_it.py").write_text(LEAVES_SOMETHING.replace("SERVER", fixture))
    paths = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", tmp_path],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    assert "surprise: has no TTL, and no rule names an owner" in ran.stdout
    assert "1 passed, 1 error" in ran.stdout
