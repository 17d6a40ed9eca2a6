"""A call that is served in few commands leaves, and answers, what the long way would: tried on calls at random."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from lanner.queue.scripts.loader import load
from support.client import Client
from support.servers import Server

CALLS = 40
HALF, SELDOM = 0.5, 0.1
WORKFLOWS: Sequence[str] = ("a", "b")
CLOCK = ("redis.call('TIME')", "{ '1700000000', '0' }")
# what is pushed stays where it can be compared
PUSHED = ("'PUBLISH'", "'RPUSH'")
# each takes short cuts out, and must be found in the script
LONG_WAYS = {
    "no whole call": [
        ("local simply = settleSimply()", "local simply"),
        ("local simply = addSimply()", "local simply"),
    ],
    "nothing": [
        ("local simply = settleSimply()", "local simply"),
        ("local simply = addSimply()", "local simply"),
        ("kind == 'completed' and completeSimply(", "false and completeSimply("),
        ("if namespace.limiters or", "if true or namespace.limiters or"),
        ("assumeNoLimits(base, wants)\nlocal", "local"),
    ],
}
# a group may be called as a job is
UNUSUAL = {
    "a priority": ',"priority":7',
    "a group": ',"group":"j4"',
    "no result kept": ',"result_ttl":0',
    "an expiry": ',"expires":1000',
}
DISTURBANCES = (
    "steps",
    "cancel",
    "token",
    "cap",
    "wake",
    "ended",
    "stream",
    "a delay",
    "two workflows",
    "watchers",
    "failures",
)


class Side:
    """A namespace in which calls are settled in one way."""

    def __init__(self, client: Client, base: str, long_way: list[tuple[str, str]]) -> None:
        self.client = client
        self.base = base
        scripts = [load("settle").text, load("add_jobs").text]
        for piece, instead in (CLOCK, PUSHED, *long_way):
            assert any(piece in text for text in scripts), f"there is no such piece any more: {piece}"
            scripts = [text.replace(piece, instead) for text in scripts]
        self.settle, self.add = (client("SCRIPT", "LOAD", text) for text in scripts)
        client("HSET", f"{base}:meta", "version", "1")  # as whoever connects finds it, or writes it

    def stored(self) -> dict[str, Any]:
        """Everything, whether it has a time to live included."""
        found: dict[str, Any] = {}
        for names in self.client.keys(f"{self.base}:*"):
            for name in names:
                found[name.removeprefix(self.base)] = (self._content(name), self.client("PTTL", name) > 0)
        return found

    def _content(self, name: str) -> Any:
        match self.client("TYPE", name):
            case "hash":
                return self.client("HGETALL", name)
            case "zset":
                return self.client("ZRANGE", name, 0, -1, "WITHSCORES")
            case "set":
                return sorted(self.client("SMEMBERS", name))
            case "stream":
                return [fields for _, fields in self.client("XRANGE", name, "-", "+")]
            case "list":
                return self.client("LRANGE", name, 0, -1)
            case _:
                return self.client("GET", name)


class Story:
    """The same calls on all sides, chosen at random; what is claimed is kept to be ended.

    A story has some of what is out of the ordinary, and not all of it: the short cuts are for where there is little.
    """

    def __init__(self, choose: random.Random, sides: list[Side]) -> None:
        self.choose = choose
        self.sides = sides
        self.number = self.added = 0
        self.held: list[tuple[str, str, str]] = []
        self.sent: list[list[str | int]] = []
        share = choose.choice((0.1, 0.3))
        self.unusual = [each for each in UNUSUAL if choose.random() < share]
        self.disturbances = [each for each in DISTURBANCES if choose.random() < share]
        self.workflows = WORKFLOWS if "two workflows" in self.disturbances else WORKFLOWS[:1]

    def everywhere(self, *command: str | int) -> list[Any]:
        """Run a command on each side; what begins with a colon is a key of its own, with an @ an attribute."""
        answers: list[Any] = []
        for side in self.sides:
            own: list[str | int] = []
            for part in command:
                text = str(part)
                own.append(
                    side.base + text if text.startswith(":") else getattr(side, text[1:]) if text[:1] == "@" else part
                )
            answers.append(side.client(*own))
        return answers

    def add(self) -> None:
        self.added += 1
        workflow, id = self.choose.choice(self.workflows), f"j{self.added}"
        unusual = UNUSUAL[self.choose.choice(self.unusual)] if self.unusual and self.choose.random() < HALF else ""
        at = "+5000" if "a delay" in self.disturbances and self.choose.random() < HALF else ""
        waiter = self.choose.choice(("", "waiters me", "watchers me" if "watchers" in self.disturbances else ""))
        job = (workflow, unusual + "}", at, "live", waiter, "", 1, id, f"nonce{self.added}", f"data of {id}")
        number = self.added - (self.choose.random() < SELDOM)  # a copy changes nothing
        answers = self.everywhere("EVALSHA", "@add", 1, "@base", "producer", number, *job)
        assert all(answer == answers[0] for answer in answers)

    def disturb(self) -> None:
        """Something that a worker may find."""
        workflow, id, _ = self.choose.choice(self.held) if self.held else ("a", "j1", "")
        job = f":{workflow}:j:{id}"
        match self.choose.choice(self.disturbances or ["nothing"]):
            case "steps":
                self.everywhere("HSET", f":{workflow}:steps:{id}", "a step", "done")
            case "cancel" if self.held:
                self.everywhere("HSET", job, "cancel", "enough")
            case "token" if self.held:
                self.everywhere("HSET", job, "token", "of another")
            case "cap":
                self.everywhere(
                    *self.choose.choice(
                        (("HSET", f":{workflow}:limits", "declared:concurrency", "2"), ("DEL", f":{workflow}:limits"))
                    )
                )
            case "stream":
                self.everywhere("HSET", f":{workflow}:limits", "declared:stream", "9")
            case "wake":
                self.everywhere("DEL", f":{workflow}:wake")
            case "ended":
                self.everywhere("ZADD", f":{workflow}:completed", 1, "long ago")
            case _:
                pass

    def settle(self) -> None:
        self.number += 3
        ends = self.choose.sample(self.held, min(len(self.held), self.choose.choice((0, 0, 1, 1, 1, 2, 5))))
        call: list[str | int] = ["worker", self.number, 30_000, self.choose.choice((0, 1, 1, 2, 4)), len(ends)]
        for workflow, id, token in ends:
            kind, number = self.choose.choice(
                (("completed", ""), ("completed", ""), ("completed", ""), ("retry", 0), ("failed", ""))
            )
            call += (kind, workflow, token, number, 1, id, '"text"')
        self.held = [each for each in self.held if each not in ends]
        wanted = self.choose.sample(self.workflows, self.choose.randint(1, len(self.workflows)))
        for workflow in wanted:
            call += (workflow, self.choose.choice((1, 1, 3)))
        self.sent.append(call)
        self._take(self.send(call), wanted, f"worker:{self.number}")

    def send(self, call: list[str | int]) -> list[Any]:
        answers = self.everywhere("EVALSHA", "@settle", 1, "@base", *call)
        assert all(answer == answers[0] for answer in answers), (call, answers)
        answer: list[Any] = answers[0]
        return answer

    def _take(self, answer: list[Any], wanted: list[str], token: str) -> None:
        fields = iter(answer[2])
        index: int
        for index in fields:
            self.held.append((wanted[abs(index) - 1], next(fields), token))
            for _ in range(2 if index > 0 else 4):
                next(fields)

    def compare(self) -> None:
        first, *others = (side.stored() for side in self.sides)
        for other in others:
            assert other == first


@pytest.mark.parametrize("seed", range(60))
def test_calls_leave_what_the_long_way_leaves(server: Server, namespace_id: str, seed: int) -> None:
    with Client(server.url) as client:
        ways: dict[str, list[tuple[str, str]]] = {"all": [], **LONG_WAYS}
        sides = [Side(client, f"lanner:{{{namespace_id}}}:{number}", way) for number, way in enumerate(ways.values())]
        story = Story(random.Random(seed), sides)
        for _ in range(CALLS):
            story.choose.choices((story.add, story.settle, story.disturb), (4, 6, 1))[0]()
            story.compare()
        story.send(story.choose.choice(story.sent[-1:]))
        story.compare()
        for side in sides:
            for names in client.keys(f"{side.base}:*"):
                client("DEL", *names)
