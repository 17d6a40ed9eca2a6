"""What is to be reached, as ratios of medians of one run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .bench import Measure

Medians = Callable[[str, str], float | None]


@dataclass(frozen=True)
class Goal:
    """A ratio and its bound.

    Attributes:
        measure: The id of the measure it is shown with.
        text: What is compared.
        ratio: The ratio; None: something was not measured.
        bound: What it is to be.
        at_most: Whether the bound is an upper one.
    """

    measure: str
    text: str
    ratio: float | None
    bound: float
    at_most: bool = False

    @property
    def reached(self) -> bool | None:
        """Whether it is; None: nobody knows."""
        if self.ratio is None:
            return None
        return self.ratio <= self.bound if self.at_most else self.ratio >= self.bound


def goals(measures: Mapping[str, Measure]) -> list[Goal]:
    """All goals, as far as their measures are there."""

    def median(id: str, name: str) -> float | None:
        return measures[id].median(name) if id in measures else None

    def over(a: float | None, b: float | None) -> float | None:
        return a / b if a is not None and b else None

    def peers(id: str, bound: float) -> list[Goal]:
        """The same goal with the peers as fast as they can be made, and with the fastest of them as it comes."""
        if id not in measures:
            return []
        own_median = measures[id].median("lanner")
        found: list[Goal] = []
        for what, left_out in (("the fastest peer", ""), ("the fastest peer, groupmq plain", "groupmq (Node)")):
            fastest = measures[id].fastest_peer(except_for=left_out)
            found.append(Goal(id, f"x {what}", over(own_median, fastest[1] if fastest else None), bound))
        return found

    own = "lanner"
    at_100, piped = median("slots-100", own), median("slots-100", "limit")
    found = [
        Goal("slots-100", "x toro-queue", over(at_100, median("slots-100", "toro-queue")), 6),
        *peers("slots-100", 2.5),
        Goal("slots-100", "x the pipelined limit", over(at_100, piped), 0.65),
        Goal("slots-1", "x the one-at-a-time limit", over(median("slots-1", own), median("slots-1", "limit")), 0.8),
        Goal("workflow", "x the queue level", over(median("workflow", own), median("workflow", "lanner queue")), 0.7),
        Goal(
            "workflow", "x the queue level, results waited for",
            over(median("workflow", "lanner, results waited for"), median("workflow", "lanner queue")), 0.7,
        ),
        Goal("grouped", "x ungrouped", over(median("grouped", own), median("grouped", "lanner ungrouped")), 0.6),
        Goal("cap", "x the ideal 2.0 s", over(median("cap", own), 2.0), 1.05, at_most=True),
        Goal(
            "limiters", "x without, one limiter",
            over(median("limiters", "lanner with one"), median("limiters", "lanner without")), 0.9,
        ),
        Goal(
            "limiters", "x without, three limiters",
            over(median("limiters", "lanner with three"), median("limiters", "lanner without")), 0.8,
        ),
        Goal("steps", "x the pipelined limit", over(median("steps", own), median("steps", "limit")), 0.5),
        Goal("steps", "x DBOS", over(median("steps", own), median("steps", "dbos")), 50),
        Goal("enqueue", "x a bare EVALSHA", over(median("enqueue", own), median("enqueue", "limit")), 0.8),
        *peers("enqueue-100", 1.5),
        *peers("bulk", 2.5),
        Goal("pick-up", "x a bare BRPOP", over(median("pick-up", own), median("pick-up", "limit")), 1.7, at_most=True),
        Goal(
            "pick-up-p99", "x a bare BRPOP",
            over(median("pick-up-p99", own), median("pick-up-p99", "limit")), 1.7, at_most=True,
        ),
        Goal(
            "round-trip", "x two bare scripts and one publish",
            over(median("round-trip", "lanner workflow"), median("round-trip", "limit")), 2.5, at_most=True,
        ),
        Goal("idle-commands", "commands a second", median("idle-commands", "lanner workflow"), 1, at_most=True),
        Goal("idle-connections", "connections", median("idle-connections", "lanner workflow"), 3, at_most=True),
        *(
            Goal(id, "bytes", each.median(own), 600, at_most=True)
            for id, each in measures.items() if id.startswith("memory ")
        ),
        Goal(
            "depth", "x with few waiting",
            over(median("depth", "lanner, many waiting"), median("depth", "lanner, few waiting")), 1.2, at_most=True,
        ),
        Goal(
            "processes", "x one process",
            over(median("processes", "lanner, two processes"), median("processes", "lanner, one process")), 1.6,
        ),
    ]  # fmt: skip
    return [goal for goal in found if goal.measure in measures and measures[goal.measure].rounds]
