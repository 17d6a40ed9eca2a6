"""A call that is served in few commands leaves, and answers, what the long way would: tried on calls at random."""

import asyncio
import json
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final

import pytest

from lanner.queue import Claim, Namespace
from lanner.queue.listing import ENDED
from lanner.queue.validation import MAX_FREE_ID
from support.client import Client
from support.servers import PrivateServer, Server
from support.ways import LONG_WAYS, Pieces, Way

CALLS: Final = 40
START: Final = 1_700_000_000
HALF, OFTEN, SELDOM = 0.5, 0.2, 0.1
WORKFLOWS: Final = ("a", "b")
LONG_TEXT: Final = f'"{"long " * 4_000}"'
# of a job; a group may be called as a job is
UNUSUAL: Final = {
    "a priority": ',"priority":7',
    "a group": ',"group":"j4"',
    "a group in quotes": ',"group":"\\"j\\""',
    "a strict group": ',"group":"g","strict":true',
    "no result kept": ',"result_ttl":0',
    "a result kept for long": ',"result_ttl":600000',
    "an expiry": ',"expires":1000',
}
# of the calls of a story
CALLED_FOR: Final = (
    "a delay",
    "two workflows",
    "watchers",
    "a key",
    "an id again",
    "several",
    "a flow",
    "children",
    "other ends",
    "lost claims",
)
# what shows little alone
TOGETHER: Final = (("two workflows",), ("a group", "a cap of groups", "a full group", "several"))
RECENT: Final = 6  # of the ids: one of these jobs may wait
OTHER_ENDS: Final = (("limited", 2000), ("suspended", ""), ("cancelled", ""), ("continued", ""))
# what a worker may find: of a job that runs (`job`), of one that may wait, or is gone (`any`), of the one that is added
# next, of a workflow or of the namespace
FOUND: Final[dict[str, Sequence[tuple[str | int, ...]]]] = {
    "steps": [("HSET", ":{workflow}:steps:{job}", "a step", "done")],
    "events": [("ZADD", ":{workflow}:events:{job}", 1, "an event")],
    "a log": [("RPUSH", ":{workflow}:log:{job}", "a line")],
    "cancel": [("HSET", ":{workflow}:j:{job}", "cancel", "enough")],
    "gone": [("DEL", ":{workflow}:j:{any}")],
    "elsewhere": [("HSET", ":{workflow}:j:{any}", "state", "parked")],
    "a cap": [
        *(("HSET", ":{workflow}:limits", "declared:concurrency", count) for count in (1, 2)),
        ("DEL", ":{workflow}:limits"),
    ],
    "a cap of groups": [("HSET", ":{workflow}:limits", "declared:group", count) for count in (1, 2, 3)],
    # as where the cap was lowered
    "a full group": [("HINCRBY", ":{workflow}:ga", "j4", 1)],
    "a cap of all": [
        *(("HSET", ":limits", "declared:concurrency", count) for count in (1, 2)),
        ("DEL", ":limits"),
    ],
    "a stream": [("HSET", ":{workflow}:limits", "declared:stream", "9"), ("DEL", ":{workflow}:limits")],
    "ended": [("ZADD", ":{workflow}:completed", 1, "long ago")],
    "an entry": [
        ("ZADD", ":{workflow}:completed", "inf", "{next}"),
        ("ZADD", ":{workflow}:cancelled", "inf", "{next}"),
    ],
    "children to end": [("ZADD", ":@cascade:{cascade}", "NX", 0, "\n{workflow}:{any}")],
    "a group aside": [("ZADD", ":{workflow}:throttled", (START + 100_000) * 1000, "aside")],
}
BESIDE, ELABORATE = "+!"
MARKED: Final = {"steps": BESIDE, "events": BESIDE, "a log": BESIDE, "cancel": ELABORATE}
CASCADE: Final = "cancel\tchildren\ta\t1.0\tj"


class Story:
    """The same calls in all ways, chosen at random; what is claimed is kept to be ended.

    A story has some of what is out of the ordinary, and not all of it: the short cuts are for where there is little.
    """

    def __init__(self, choose: random.Random, ways: list[Way]) -> None:
        self.choose = choose
        self.ways = ways
        self.number = self.produced = self.added = 0
        self.now = START
        self.held: list[tuple[str, str, str, str]] = []
        self.sent: list[list[str | int]] = []
        # ids whose records are gone, while what claims them may not be: nobody is to have them
        self.lost: set[str] = set()
        some = {*choose.sample([*UNUSUAL, *CALLED_FOR, *FOUND], choose.choice((1, 2, 3, 4, 6, 8)))}
        for together in TOGETHER:
            if choose.random() < OFTEN:
                some |= {*together}
        self.unusual = [each for each in UNUSUAL if each in some]
        self.found = [each for each in FOUND if each in some]
        self.called_for = [each for each in CALLED_FOR if each in some]
        self.slots: Sequence[int] = choose.choice(((0, 1, 1, 2, 4), (2, 4, 8)))
        self.workflows = WORKFLOWS if "two workflows" in self.called_for else WORKFLOWS[:1]
        self.pass_time(0)

    def everywhere(self, *command: str | int) -> list[Any]:
        """Run a command on each side; what begins with a colon is a key of its own, with an @ an attribute."""
        answers: list[Any] = []
        for way in self.ways:
            own: list[str | int] = []
            for part in command:
                text = str(part)
                own.append(
                    way.base + text if text.startswith(":") else getattr(way, text[1:]) if text[:1] == "@" else part
                )
            answers.append(way.client(*own))
        return answers

    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.everywhere("SET", ":now", self.now)

    def add(self) -> None:
        if "a flow" in self.called_for and self.choose.random() < HALF:
            self.produce("add_flow", self._flow())
            return
        if "children" in self.called_for and self.held and self.choose.random() < HALF:
            self._start_child(*self.choose.choice(self.held)[:3])
            return
        jobs: list[str | int] = []
        for _ in range(self.choose.choice((1, 2, 3)) if "several" in self.called_for else 1):
            count = self.choose.choice((1, 1, 2)) if "several" in self.called_for else 1
            jobs += [self.choose.choice(self.workflows), *self._placed(), count]
            for _ in range(count):
                id = self._id()
                jobs += (id, f"nonce{self.added}", f"data of {id}")
        self.produce("add", jobs)
        if len(self.workflows) > 1:
            # an id stands for another job in another workflow
            self.produce("add", [next(each for each in self.workflows if each != jobs[0]), *jobs[1:]])

    def produce(self, script: str, jobs: list[str | int]) -> None:
        self.produced += 1
        number = self.produced - (self.choose.random() < SELDOM)  # a copy changes nothing
        answers = self.everywhere("EVALSHA", f"@{script}", 1, "@base", "producer", number, *jobs)
        assert all(answer == answers[0] for answer in answers), (jobs, answers)

    def _start_child(self, workflow: str, id: str, token: str) -> None:
        self.added += 1
        child = (f"path{self.added}", self.choose.choice(self.workflows), f"j{self.added}")
        spec = f'{{"run":"nonce{self.added}"}}'
        policy = self.choose.choice(("fail", "continue"))
        self.everywhere(
            "EVALSHA", "@start", 1, "@base", workflow, id, token, "barrier", policy, 0, *child, spec, "data"
        )

    def _placed(self) -> list[str]:
        """How a job is to be added: the rest of its spec, when, of which life, who waits for it, for which key."""
        unusual = UNUSUAL[self.choose.choice(self.unusual)] if self.unusual and self.choose.random() < HALF else ""
        at = "+5000" if "a delay" in self.called_for and self.choose.random() < HALF else ""
        unique = self.choose.choice(("live", "live", "retained"))
        waiter = self.choose.choice(("", "waiters me", "watchers me" if "watchers" in self.called_for else ""))
        dedup = "throttle 600000 key" if "a key" in self.called_for and self.choose.random() < HALF else ""
        return [unusual + "}", at, unique, waiter, dedup]

    def _id(self) -> str:
        if "an id again" in self.called_for and self.added and self.choose.random() < HALF:
            id = f"j{self.choose.randint(1, self.added)}"
            if id not in self.lost:
                return id
        self.added += 1
        return f"j{self.added}"

    def _flow(self) -> list[str | int]:
        children = self.choose.choice((1, 2))
        nodes: list[str | int] = []
        for parent, below in ((0, children), *[(1, 0)] * children):
            self.added += 1
            spec = f'{{"run":"nonce{self.added}"}}'
            policy = self.choose.choice(("fail", "continue"))
            nodes += (self.choose.choice(self.workflows), f"j{self.added}", spec, "data", parent, policy, below)
        return nodes

    def find(self) -> None:
        """Have what a worker may find."""
        workflow, job, *_ = self.choose.choice(self.held) if self.held else ("a", "j1", "")
        named = {
            "workflow": workflow,
            "job": job,
            "any": f"j{self.choose.randint(max(self.added - RECENT, 1), self.added + 1)}",
            "next": f"j{self.added + 1}",
            "cascade": CASCADE,
        }
        found = self.choose.choice(self.found or ["time"])
        if found == "time":
            self.pass_time(self.choose.choice((1, 6, 400)))
            return
        if found in MARKED:
            if not self.held:
                return
            self._mark(workflow, job, MARKED[found])
        chosen = self.choose.choice(FOUND[found])
        command = [part.format_map(named) if isinstance(part, str) else part for part in chosen]
        of_a_record = ":j:" in str(command[1])
        ended = of_a_record and any(map(_has_ended, self.everywhere("HGET", command[1], "state")))
        if not of_a_record or (not ended and all(self.everywhere("EXISTS", command[1]))):
            self.everywhere(*command)
        if found == "gone":
            self.lost.add(named["any"])
        if found == "children to end":
            self.everywhere("SADD", ":cascades", CASCADE)

    def _mark(self, workflow: str, job: str, mark: str) -> None:
        """As whoever brings about what was found does it, while the job runs."""
        for way in self.ways:
            claim: str | None = way.client("HGET", f"{way.base}:{workflow}:active", job)
            if claim and claim[0] != ELABORATE:
                way.client("HSET", f"{way.base}:{workflow}:active", job, mark + claim[1:])
                if mark == ELABORATE and way.client("EXISTS", f"{way.base}:{workflow}:j:{job}"):
                    start = ("state", "active", "started", claim.split()[1])
                    way.client("HSET", f"{way.base}:{workflow}:j:{job}", *start)

    def settle(self) -> None:
        self.number += 3
        ends = self.choose.sample(self.held, min(len(self.held), self.choose.choice((0, 1, 1, 1, 1, 2, 5))))
        others = (*OTHER_ENDS, ("suspended", self.now * 1000 + 4000)) if "other ends" in self.called_for else ()
        kinds = [("completed", "")] * 6 + [("retry", 0), ("released", ""), ("failed", ""), *others]
        texts = (*['"text"'] * 9, LONG_TEXT)
        lost = OFTEN if "lost claims" in self.called_for else 0
        runs = [
            (self.choose.choice(kinds), workflow, "of another" if self.choose.random() < lost else token, id, nonce)
            for workflow, id, token, nonce in ends
        ]
        grouped = [(run, [each[3:] for each in of]) for run, of in groupby(runs, key=lambda each: each[:3])]
        # who hands claims back mostly stops
        stops = any(run[0][0] == "released" for run in runs) and self.choose.random() < HALF
        slots = 0 if stops else self.choose.choice(self.slots)
        call: list[str | int] = ["worker", self.number, 30_000, slots, len(grouped)]
        for ((kind, number), workflow, token), jobs in grouped:
            call += (kind, workflow, token, number, len(jobs))
            for id, nonce in jobs:
                text = "" if kind in {"released", "suspended", "limited"} else self.choose.choice(texts)
                call += (id, text, nonce)
        self.held = [each for each in self.held if each not in ends]
        wanted = self.choose.sample(self.workflows, self.choose.randint(1, len(self.workflows)))
        for workflow in wanted:
            call += (workflow, self.choose.choice((1, 1, 3)))
        if self.choose.random() < HALF:
            # it was woken for this
            self.everywhere("DEL", f":{wanted[0]}:wake")
        self.sent.append(call)
        self._take(self.send(call), wanted, f"worker:{self.number}")

    def send_again(self) -> None:
        """A copy of the last call."""
        if self.sent:
            self.send(self.sent[-1])

    def send(self, call: list[str | int]) -> list[Any]:
        answers = self.everywhere("EVALSHA", "@settle", 1, "@base", *call)
        assert all(answer == answers[0] for answer in answers), (call, answers)
        answer: list[Any] = answers[0]
        return answer

    def _take(self, answer: list[Any], wanted: Sequence[str], token: str) -> None:
        fields, index = iter(answer[3:]), 0
        for field in fields:
            index, id = (field, next(fields)) if isinstance(field, int) else (index, field)
            _, spec = next(fields), next(fields)
            self.held.append((wanted[abs(index) - 1], id, token, json.loads(spec)["run"]))
            for _ in range(0 if index > 0 else 2):
                next(fields)

    def compare(self) -> None:
        first, *others = (way.stored() for way in self.ways)
        for other in others:
            assert other == first


def _has_ended(state: str | None) -> bool:
    return state is not None and state.partition(" ")[0] in ENDED


@contextmanager
def telling(server: Server, namespace_id: str, seed: int) -> Generator[Story]:
    with Client(server.url) as client:
        all_ways: dict[str, Pieces] = {"short cuts": (), **LONG_WAYS}
        ways = [Way(client, f"lanner:{{{namespace_id}}}:{name}", way) for name, way in all_ways.items()]
        yield Story(random.Random(seed), ways)
        for way in ways:
            way.erase()


def test_of_two_jobs_of_an_id_that_of_the_workflow_ends(server: Server, namespace_id: str) -> None:
    with telling(server, namespace_id, 0) as story:
        for workflow in WORKFLOWS:
            story.produce("add", [workflow, "}", "", "live", "", "", 1, "j1", "nonce", "data"])
        story.send(["worker", 3, 30_000, 2, 0, "a", 1, "b", 1])
        story.send(["worker", 6, 30_000, 0, 1, "completed", "a", "worker:3", "", 1, "j1", '"text"', "nonce", "b", 0])
        story.compare()


@pytest.mark.parametrize(("first", "second"), [("completed", "completed"), ("retry", "completed"), ("retry", "retry")])
def test_an_outcome_that_comes_twice_in_a_call_counts_once(
    server: Server, namespace_id: str, first: str, second: str
) -> None:
    with telling(server, namespace_id, 0) as story:
        story.produce("add", ["a", "}", "", "live", "waiters me", "", 1, "j1", "nonce", "data"])
        story.send(["worker", 3, 30_000, 1, 0, "a", 1])
        ends: list[list[str | int]] = [["j1", '"first"', "nonce"], ["j1", '"second"', "nonce"]]
        call = [2, first, "a", "worker:3", 0, 1, *ends[0], second, "a", "worker:3", 0, 1, *ends[1]]
        answer = story.send(["worker", 6, 30_000, 0, *call, "a", 0])
        story.compare()
        assert answer[1] == "10"
        assert story.everywhere("LLEN", ":@waiting:me") == [int(first == "completed")] * len(story.ways)


@pytest.mark.parametrize(
    "option", ['"result_ttl":900000', '"expires":600000', '"priority":1', '"timeout":1,"result_ttl":0']
)
@pytest.mark.parametrize("group", ["g", "a,b"])
def test_options_of_a_job_that_has_a_group_count(server: Server, namespace_id: str, group: str, option: str) -> None:
    with telling(server, namespace_id, 0) as story:
        spec = f',"group":"{group}",{option}}}'
        story.produce("add", ["a", spec, "", "live", "", "", 2, "j1", "nonce", "data", "j2", "nonce", "data"])
        story.send(["worker", 3, 30_000, 1, 0, "a", 1])
        story.compare()
        story.send(["worker", 6, 30_000, 1, 1, "completed", "a", "worker:3", "", 1, "j1", '"text"', "nonce", "a", 1])
        story.compare()


def test_who_leaves_work_behind_wakes_another(server: Server, namespace_id: str) -> None:
    with telling(server, namespace_id, 0) as story:
        story.produce("add", ["a", "}", "", "live", "", "", 3, *(f"{part}{n}" for n in range(3) for part in "jnd")])
        for number in (3, 6):
            story.everywhere("DEL", ":a:wake")
            story.send(["worker", number, 30_000, 1, 0, "a", 1])
            assert all(story.everywhere("EXISTS", ":a:wake"))


def test_a_job_of_the_longest_id_has_a_slot_among_many(server: Server, namespace_id: str) -> None:
    ids = [*("-_.0 ~"[number] * MAX_FREE_ID for number in range(6)), *(f"j{number}" for number in range(20))]
    with telling(server, namespace_id, 0) as story:
        jobs = [part for id in ids for part in (id, "nonce", "data")]
        story.produce("add", ["a", "}", "", "live", "", "", len(ids), *jobs])
        story.send(["worker", 3, 30_000, len(ids), 0, "a", len(ids)])
        assert [set(slots) for slots in story.everywhere("HKEYS", ":a:active")] == [set(ids)] * len(story.ways)
        story.compare()


def test_each_of_many_groups_has_its_slot(server: Server, namespace_id: str) -> None:
    groups = [f"g{number}" for number in range(20)]
    with telling(server, namespace_id, 0) as story:
        jobs: list[str | int] = []
        for group in groups:
            jobs += ("a", f',"group":"{group}"}}', "", "live", "", "", 1, f"of {group}", "nonce", "data")
        story.produce("add", jobs)
        story.send(["worker", 3, 30_000, len(groups), 0, "a", len(groups)])
        assert story.everywhere("HGETALL", ":a:ga") == [dict.fromkeys(groups, "1")] * len(story.ways)
        story.compare()
        ends = [part for group in groups for part in (f"of {group}", '"text"', "nonce")]
        story.send(["worker", 6, 30_000, 0, 1, "completed", "a", "worker:3", "", len(groups), *ends, "a", 0])
        assert not any(story.everywhere("EXISTS", ":a:ga"))
        story.compare()


GROUPS: Final = ("g", "h")
# by what a group does not stand in line, though a job of it has ended and others wait
KEPT_OUT: Final[dict[str, Sequence[tuple[str | int, ...]]]] = {
    "nothing": [],
    "as many run as may": [("HINCRBY", ":a:ga", "g", 1)],
    "it stands aside": [
        ("HSET", ":a:limits", "declared:limiters", ""),
        ("ZADD", ":a:throttled", (START + 1000) * 1000, "g"),
    ],
}


@pytest.mark.parametrize("by", KEPT_OUT)
def test_groups_whose_jobs_end_in_a_call_stand_in_line_again_where_they_may(
    server: Server, namespace_id: str, by: str
) -> None:
    with telling(server, namespace_id, 0) as story:
        for number in range(2):
            for group in GROUPS:
                id = f"{group}{number}"
                story.produce("add", ["a", f',"group":"{group}"}}', "", "live", "", "", 1, id, f"nonce{id}", "data"])
        story.send(["worker", 3, 30_000, 2, 0, "a", 2])
        for command in KEPT_OUT[by]:
            story.everywhere(*command)
        ends = [part for group in GROUPS for part in (f"{group}0", '"text"', f"nonce{group}0")]
        story.send(["worker", 6, 30_000, 0, 1, "completed", "a", "worker:3", "", len(GROUPS), *ends, "a", 0])
        story.compare()
        stands = [story.everywhere("ZSCORE", ":a:ready", f"g:{group}")[0] is not None for group in GROUPS]
        assert stands == [by == "nothing", True]


@pytest.mark.parametrize("seed", range(300))
def test_calls_leave_what_the_long_way_leaves(server: Server, namespace_id: str, seed: int) -> None:
    with telling(server, namespace_id, seed) as story:
        steps: list[Callable[[], None]] = [story.add, story.settle, story.find, story.send_again]
        added = story.choose.choice((8, 16))
        for _ in range(CALLS):
            story.choose.choices(steps, (added, 12, 4, 1))[0]()
            story.compare()


async def test_a_worker_without_limits_takes_the_short_cuts(own_server: PrivateServer) -> None:
    async with Namespace("short", redis=own_server.url) as namespace:
        queue, done = namespace.queue("q"), asyncio.Event()

        async def handler(claim: Claim) -> None:
            if claim.data == "last":
                done.set()

        with own_server.client() as client:
            async with queue.worker(handler, concurrency=1):
                client("CONFIG", "RESETSTAT")
                for data in ("first", *["next"] * 50, "last"):
                    await queue.add(data)
                await done.wait()
                # the long way makes sure first that there is memory
                long = client("INFO", "commandstats").get("cmdstat_hsetnx", {"calls": 0})["calls"]
        assert long < 20
