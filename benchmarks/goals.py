"""What is to be reached, as ratios within one run."""

from collections.abc import Mapping
from dataclasses import dataclass

from .bench import Measure

REDIS_IS_FULL = 90.0


@dataclass(frozen=True)
class Goal:
    """A ratio and its bound.

    Attributes:
        measure: The id of the measure it is shown with.
        text: What is compared.
        ratio: The ratio; None: something was not measured.
        bound: What it is to be.
        at_most: Whether the bound is an upper one.
        limit: What had no more to give, so that the bound does not count; empty: nothing.
    """

    measure: str
    text: str
    ratio: float | None
    bound: float
    at_most: bool = False
    limit: str = ""

    @property
    def within_bound(self) -> bool | None:
        """Whether the ratio is what it is to be; None: nobody knows."""
        if self.ratio is None:
            return None
        return self.ratio <= self.bound if self.at_most else self.ratio >= self.bound

    @property
    def reached(self) -> bool | None:
        """Whether it is, or as good as can be; None: nobody knows."""
        return True if self.within_bound is False and self.limit else self.within_bound

    @property
    def remark(self) -> str:
        """Why it counts as reached without being within its bound."""
        return self.limit if self.within_bound is False else ""


def goals(measures: Mapping[str, Measure]) -> list[Goal]:
    """All goals, as far as their measures are there."""

    def value(id: str, name: str) -> float | None:
        return measures[id].value(name) if id in measures else None

    def over(a: float | None, b: float | None) -> float | None:
        return a / b if a is not None and b else None

    def peers(id: str, bound: float) -> list[Goal]:
        """The same goal with the peers as fast as they can be made, and with the fastest of them as it comes."""
        if id not in measures:
            return []
        own_value = measures[id].value("lanner")
        found: list[Goal] = []
        for what, left_out in (("the fastest peer", ""), ("the fastest peer, groupmq plain", "groupmq (Node)")):
            fastest = measures[id].fastest_peer(except_for=left_out)
            found.append(Goal(id, f"x {what}", over(own_value, fastest[1] if fastest else None), bound))
        return found

    def slowest() -> float | None:
        if "slowest-script" not in measures:
            return None
        found = [value("slowest-script", name) for name in measures["slowest-script"].rounds]
        return max((each for each in found if each is not None), default=None)

    def full() -> str:
        """Whether Redis has nothing left for a second process."""
        used = value("processes-redis", "lanner, one process")
        if used is None or used < REDIS_IS_FULL:
            return ""
        return f"Redis is the limit: with one process it used {used:.0f}% of a core"

    own = "lanner"
    at_100, piped = value("slots-100", own), value("slots-100", "limit")
    found = [
        Goal("slots-100", "x toro-queue", over(at_100, value("slots-100", "toro-queue")), 6),
        *peers("slots-100", 2.5),
        Goal("slots-100", "x the pipelined limit", over(at_100, piped), 0.65),
        Goal("slots-1", "x the one-at-a-time limit", over(value("slots-1", own), value("slots-1", "limit")), 0.8),
        Goal("workflow", "x the queue level", over(value("workflow", own), value("workflow", "lanner queue")), 0.7),
        Goal(
            "workflow", "x the queue level, results waited for",
            over(value("workflow", "lanner, results waited for"), value("workflow", "lanner queue")), 0.7,
        ),
        Goal("grouped", "x ungrouped", over(value("grouped", own), value("grouped", "lanner ungrouped")), 0.6),
        Goal("cap", "x the ideal 2.0 s", over(value("cap", own), 2.0), 1.05, at_most=True),
        Goal(
            "limiters", "x without, one limiter",
            over(value("limiters", "lanner with one"), value("limiters", "lanner without")), 0.9,
        ),
        Goal(
            "limiters", "x without, three limiters",
            over(value("limiters", "lanner with three"), value("limiters", "lanner without")), 0.8,
        ),
        Goal("steps", "x the pipelined limit", over(value("steps", own), value("steps", "limit")), 0.5),
        Goal("steps", "x DBOS", over(value("steps", own), value("steps", "dbos")), 50),
        Goal("enqueue", "x a bare EVALSHA", over(value("enqueue", own), value("enqueue", "limit")), 0.8),
        *peers("enqueue-100", 1.5),
        *peers("bulk", 2.5),
        Goal("pick-up", "x a bare BRPOP", over(value("pick-up", own), value("pick-up", "limit")), 1.7, at_most=True),
        Goal(
            "pick-up-p99", "x a bare BRPOP",
            over(value("pick-up-p99", own), value("pick-up-p99", "limit")), 1.7, at_most=True,
        ),
        Goal(
            "round-trip", "x two bare scripts and one publish",
            over(value("round-trip", "lanner workflow"), value("round-trip", "limit")), 2.5, at_most=True,
        ),
        Goal("idle-commands", "commands a second", value("idle-commands", "lanner workflow"), 1, at_most=True),
        Goal("idle-connections", "connections", value("idle-connections", "lanner workflow"), 3, at_most=True),
        *(
            Goal(id, "bytes", each.value(own), 600, at_most=True)
            for id, each in measures.items() if id.startswith("memory ")
        ),
        Goal(
            "depth", "x with few waiting",
            over(value("depth", "lanner, many waiting"), value("depth", "lanner, few waiting")), 1.2, at_most=True,
        ),
        Goal(
            "processes", "x one process",
            over(value("processes", "lanner, two processes"), value("processes", "lanner, one process")), 1.6,
            limit=full(),
        ),
        Goal(
            "processes-busy", "x one process",
            over(value("processes-busy", "lanner, two processes"), value("processes-busy", "lanner, one process")), 1.6,
        ),
        Goal("slowest-script", "ms", slowest(), 5, at_most=True),
    ]  # fmt: skip
    return [goal for goal in found if goal.measure in measures and measures[goal.measure].rounds]
