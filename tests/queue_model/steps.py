"""What the rules are made of: the queue and the model side by side, and the comparison after each step."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from lanner.queue.claim import Claim
from lanner.queue.scripts.claiming import Settlement
from lanner.queue.scripts.controlling import maintain_groups, open_namespace, set_limits
from lanner.queue.scripts.descending import end_descendants
from lanner.queue.spec import MAX_PRIORITY, Spec

from .clock import UNIT, Clock
from .driver import Driver
from .invariants import check
from .jobs import Job, Limiter
from .model import Model
from .workers import Worker, check_heard

A, B = WORKFLOWS = ("a", "b")
WINDOWS: Final = {"l": UNIT, "k": 2 * UNIT}
BY_GROUP: Final = {"l": False, "k": True}

MOST: Final = 11
READMITTED: Final = 50

nth = st.integers(0, MOST)
workflows = st.sampled_from(WORKFLOWS)
ids = st.sampled_from(["1", "2", "3", "4", "x:5"])
texts = st.sampled_from(["u", "v"])
caps: st.SearchStrategy[int | str] = st.sampled_from(["none", 1, 2, 3])
# one draw for a whole spec: so the sequences can be longer
_ENDS = [
    Spec(run=""),
    Spec(run="", result_ttl=0, max_stalled=0),
    Spec(run="", result_ttl=-1, max_stalled=1, keep_failed=(1, 0)),
    Spec(run="", result_ttl=UNIT, expires=UNIT, keep_failed=(-1, UNIT)),
    Spec(run="", result_ttl=0, expires=2 * UNIT, max_stalled=0, keep_failed=(0, 0)),
]
_SPECS = [
    msgspec.structs.replace(ends, group=group, priority=priority, strict=strict)
    for group, strict in (("", False), ("g", False), ("g", True), ("h:1", False), ("h:1", True))
    for priority in (0, 0, 1, MAX_PRIORITY)
    for ends in _ENDS
]
specs = st.sampled_from(_SPECS)


class Steps(RuleBasedStateMachine):
    """The state that all rules share.

    Attributes:
        lost: Claims that somebody still believes in.
        copies: Calls that may arrive once more.
        pending: Calls whose answers were lost, by worker and whether their number is even or odd.
    """

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.driver = driver
        self.clock = Clock(driver.server_time)
        self.model = Model(self.clock, WORKFLOWS)
        self.workers = [Worker("X", 3, [A, B]), Worker("Y", 1, [A, B]), Worker("Z", 2, [B])]
        self.lost: list[Claim] = []
        self.copies: list[Callable[[], object]] = []
        self.pending: dict[tuple[str, int], Callable[[], Settlement]] = {}
        self._runs = 0

    def new_life(self, spec: Spec) -> Spec:
        """A spec with a nonce of its own."""
        self._runs += 1
        return msgspec.structs.replace(spec, run=f"r{self._runs}")

    def at(self, after: int) -> int:
        """The server's time so long after this step."""
        return self.clock.began() + after

    def step(self) -> None:
        """What follows in a rule is to be at an instant of its own."""
        self.compare()
        self.clock.begin()

    @initialize(cap=caps, of_a=caps, of_b=caps, group=caps)
    def open(self, cap: int | str, of_a: int | str, of_b: int | str, group: int | str) -> None:
        """The namespace is opened, and its workers say what their code says."""
        self.driver.run(open_namespace(self.driver, version=1))
        self.store_limits("", "declared", {"concurrency": cap})
        self.store_limits(A, "declared", {"concurrency": of_a, "group": group})
        self.store_limits(B, "declared", {"concurrency": of_b})

    @invariant()
    def compare(self) -> None:
        """The queue is as the model is."""
        held = self.driver.read()
        self.clock.end(held.now)
        check(self.model, held, self.clock)
        check_heard(self.model, held, self.workers)

    def store_limits(self, workflow: str, level: str, values: Mapping[str, int | str]) -> None:
        """Set caps, as a queue or its namespace does it."""
        for what, value in values.items():
            if value == "unset":
                self.model.limits[workflow].stored.pop(f"{level}:{what}", None)
            else:
                self.model.limits[workflow].stored[f"{level}:{what}"] = value
        self._send_limits(workflow, level, values)

    def store_limiters(self, limits: Mapping[str, int | None]) -> None:
        """Declare the namespace's limiters."""
        declared = {name: limit for name, limit in limits.items() if limit is not None}
        self.model.limits[""].limiters = {
            name: Limiter(limit, WINDOWS[name], BY_GROUP[name]) for name, limit in declared.items()
        }
        packed = {name: (limit, WINDOWS[name], int(BY_GROUP[name])) for name, limit in declared.items()}
        self._send_limits("", "declared", {"limiters": msgspec.json.encode(packed).decode() if packed else "unset"})

    def choose_limiters(self, workflow: str, names: tuple[str, ...] | None) -> None:
        """Declare a workflow's own list of limiters."""
        self.model.limits[workflow].chosen = names
        packed = "unset" if names is None else msgspec.json.encode(names).decode()
        self._send_limits(workflow, "declared", {"limiters": packed})

    def _send_limits(self, workflow: str, level: str, values: Mapping[str, int | str]) -> None:
        regroup, readmit = self.driver.run(
            set_limits(self.driver, workflow=workflow, level=level, limits=list(values.items()))
        )
        cursor = 0
        while regroup:
            cursor = self.driver.run(maintain_groups(self.driver, workflow=workflow, cursor=cursor))
            regroup = cursor != 0
        while readmit:
            readmit = self.driver.run(end_descendants(self.driver, limit=READMITTED)) == READMITTED

    def some_job(self, n: int, *states: str) -> tuple[str, str]:
        """Workflow and id of a job, in one of the states if there is any; in the last case of none."""
        jobs = self.model.having(*states) or list(self.model.jobs.values())
        if n == MOST or not jobs:
            return A, "nobody"
        return jobs[n % len(jobs)].workflow, jobs[n % len(jobs)].id

    def job_of(self, claim: Claim) -> Job | None:
        """The job that a claim holds, if it still does."""
        return self.model.claimed(claim.workflow, claim.id, claim.token)

    def safety_net(self) -> None:
        """Every worker looks by itself, as it does every few seconds."""
        for worker in self.workers:
            worker.looking = True
