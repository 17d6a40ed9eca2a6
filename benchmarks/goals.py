"""What is to be reached, as ratios within one run."""

from collections.abc import Mapping
from dataclasses import dataclass

from .bench import Measure

WHOLE_CORE = 100.0
TWO_PROCESSES = 1.6


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

    def ratio(id: str, name: str, other: str) -> float | None:
        return measures[id].ratio(name, other) if id in measures else None

    def peers(id: str, bound: float) -> list[Goal]:
        """The same goal with the peers as fast as they can be made, and with the fastest of them as it comes."""
        if id not in measures:
            return []
        found: list[Goal] = []
        for what, left_out in (("the fastest peer", ""), ("the fastest peer, groupmq plain", "groupmq (Node)")):
            fastest = measures[id].fastest_peer(except_for=left_out)
            found.append(Goal(id, f"x {what}", ratio(id, own, fastest[0]) if fastest else None, bound))
        return found

    def slowest() -> float | None:
        if "slowest-script" not in measures:
            return None
        found = [value("slowest-script", name) for name in measures["slowest-script"].rounds]
        return max((each for each in found if each is not None), default=None)

    def full() -> str:
        """Whether as many times the jobs would take Redis more than a core."""
        used = value("processes-redis", "lanner, one process")
        if used is None or used * TWO_PROCESSES <= WHOLE_CORE:
            return ""
        return (
            f"Redis is the limit: with one process it used {used:.0f}% of a core, and would need "
            f"{used * TWO_PROCESSES:.0f}%"
        )

    own = "lanner"
    capped = value("cap", own)
    found = [
        Goal("slots-100", "x toro-queue", ratio("slots-100", own, "toro-queue"), 6),
        *peers("slots-100", 2.5),
        Goal("slots-100", "x the pipelined limit", ratio("slots-100", own, "limit"), 0.65),
        Goal("slots-1", "x the one-at-a-time limit", ratio("slots-1", own, "limit"), 0.8),
        Goal("workflow", "x the queue level", ratio("workflow", own, "lanner queue"), 0.7),
        Goal(
            "workflow", "x the queue level, results waited for",
            ratio("workflow", "lanner, results waited for", "lanner queue"), 0.7,
        ),
        Goal("grouped", "x ungrouped", ratio("grouped", own, "lanner ungrouped"), 0.6),
        Goal("cap", "x the ideal 2.0 s", capped and capped / 2.0, 1.05, at_most=True),
        Goal(
            "limiters", "x without, one limiter",
            ratio("limiters", "lanner with one", "lanner without"), 0.9,
        ),
        Goal(
            "limiters", "x without, three limiters",
            ratio("limiters", "lanner with three", "lanner without"), 0.8,
        ),
        Goal("steps", "x the pipelined limit", ratio("steps", own, "limit"), 0.5),
        Goal("steps", "x DBOS", ratio("steps", own, "dbos"), 50),
        Goal("enqueue", "x a bare EVALSHA", ratio("enqueue", own, "limit"), 0.8),
        *peers("enqueue-100", 1.5),
        *peers("bulk", 2.5),
        Goal("pick-up", "x a bare BRPOP", ratio("pick-up", own, "limit"), 1.7, at_most=True),
        Goal(
            "pick-up-p99", "x a bare BRPOP",
            ratio("pick-up-p99", own, "limit"), 1.7, at_most=True,
        ),
        Goal(
            "round-trip", "x two bare scripts and one publish",
            ratio("round-trip", "lanner workflow", "limit"), 2.5, at_most=True,
        ),
        Goal("idle-commands", "commands a second", value("idle-commands", "lanner workflow"), 1, at_most=True),
        Goal("idle-connections", "connections", value("idle-connections", "lanner workflow"), 3, at_most=True),
        *(
            Goal(id, "bytes", each.value(own), 600, at_most=True)
            for id, each in measures.items() if id.startswith("memory ")
        ),
        Goal(
            "depth", "x with few waiting",
            ratio("depth", "lanner, many waiting", "lanner, few waiting"), 1.2, at_most=True,
        ),
        Goal(
            "processes", "x one process",
            ratio("processes", "lanner, two processes", "lanner, one process"), 1.6,
            limit=full(),
        ),
        Goal(
            "processes-busy", "x one process",
            ratio("processes-busy", "lanner, two processes", "lanner, one process"), 1.6,
        ),
        Goal("slowest-script", "ms", slowest(), 5, at_most=True),
    ]  # fmt: skip
    return [goal for goal in found if goal.measure in measures and measures[goal.measure].rounds]
