"""Which jobs a claiming call gets, and when it is worth asking again."""

import math
from collections.abc import Sequence

from .jobs import NEVER, Job, Limiter
from .model import Model

REFUSAL_LIVES = 10_000  # a workflow that asks no more is left no slot
UNREADABLE_FOR = 5_000


class Reservation:
    """One claiming call of a worker.

    Attributes:
        claims: The jobs it gets, with whether each goes on with an attempt.
        again: When the worker has to ask again by itself: no later than this.
    """

    def __init__(self, model: Model, *, token: str, lease: int, total: int, wants: Sequence[tuple[str, int]]) -> None:
        self.claims: list[Job] = []
        # those that take a slot of their group, and have not kept it
        self.entering: list[Job] = []
        self.again = NEVER
        self._model = model
        self._token = token
        self._deadline = model.now + lease
        for workflow, most in wants:
            self._ask(workflow, most, total)
        self.again = min([self.again, *(_next_instant(model, workflow) for workflow, _ in wants)])

    def _ask(self, workflow: str, most: int, total: int) -> None:
        model, limits = self._model, self._model.limits[workflow]
        model.become_due(workflow)
        model.expire(workflow)
        if model.limits[""].paused or limits.paused:
            return
        capacity = limits.cap("concurrency") - len(model.having("active", workflow=workflow))
        share = fair_share(model, workflow)
        # when those that go first have none that ask any more
        ahead = refused_for_longer(model, workflow) if model.room_in_namespace() > 0 else []
        ends = [model.refusals[other][1] + REFUSAL_LIVES + 1 for other in ahead]
        asked = min(most, total - len(self.claims))
        served = self._claim(workflow, min(asked, capacity, share))
        left = bool(model.line(workflow))
        # who had no slot to fill was neither refused nor served
        if model.limits[""].cap("concurrency") < math.inf and (asked > 0 or not left):
            wanted = asked > served and capacity > served
            refused = left and wanted and share <= served
            if refused:
                self.again = min([self.again, *ends])
            _note_refusal(model, workflow, refused=refused, served=served > 0)

    def _claim(self, workflow: str, room: float) -> int:
        model, served = self._model, 0
        if room <= 0:
            return 0
        if model.limiters(workflow) is None:
            self.again = min(self.again, model.now + UNREADABLE_FOR)
            return 0
        while served < room:
            job, opens, aside = next_claim(model, workflow)
            for each, until in aside:
                model.delay(each, until)
            if job is None:
                self.again = min(self.again, opens)
                break
            if not job.started:
                for key in budgets_of(model, job):
                    model.starts.setdefault(key, []).append(model.now)
            if not job.holds:
                self.entering.append(job)
            job.state, job.token, job.deadline = "active", self._token, self._deadline
            job.started, job.unless_started, job.holds = True, None, False
            self.claims.append(job)
            served += 1
        return served


def next_claim(model: Model, workflow: str) -> tuple[Job | None, int, list[tuple[Job, int]]]:
    """The job that is claimed next, if no cap forbids it; without one, when a limiter would let one start.

    And the jobs before it that keep their group, and sleep until the limiter of that lets them start.
    """
    opens, aside = NEVER, list[tuple[Job, int]]()
    for job in model.line(workflow):
        shared = opening(model, {name: each for name, each in _limiters(model, workflow).items() if not each.by_group})
        if job.started:
            return job, NEVER, aside
        own = opening(model, _budgets_of_group(model, job))
        if own > model.now:
            opens = min(opens, own)
            if job.holds:
                aside.append((job, own))
        elif shared > model.now:
            # who is refused by a budget of all keeps its place, and those behind it theirs
            return None, min(opens, shared), aside
        else:
            return job, NEVER, aside
    return None, opens, aside


def budgets_of(model: Model, job: Job) -> dict[str, Limiter]:
    """What the start of an attempt is counted by, by key; a limiter by groups counts only jobs that have one."""
    return {
        f"{name}:{job.spec.group}" if limiter.by_group else name: limiter
        for name, limiter in _limiters(model, job.workflow).items()
        if job.spec.group or not limiter.by_group
    }


def _budgets_of_group(model: Model, job: Job) -> dict[str, Limiter]:
    return {key: limiter for key, limiter in budgets_of(model, job).items() if limiter.by_group}


def opening(model: Model, budgets: dict[str, Limiter]) -> int:
    """When all of the budgets let one more start: now, or later."""
    return max([model.now, *(_opening(model, key, limiter) for key, limiter in budgets.items())])


def _opening(model: Model, key: str, limiter: Limiter) -> int:
    paused = model.pauses.get(key.partition(":")[0], 0)
    counted = [start for start in model.starts.get(key, []) if start > model.now - limiter.window]
    spent = len(counted) - limiter.limit
    return max(paused, counted[spent] + limiter.window if spent >= 0 else 0)


def _limiters(model: Model, workflow: str) -> dict[str, Limiter]:
    return model.limiters(workflow) or {}


def fair_share(model: Model, workflow: str) -> float:
    """How many slots under the namespace cap a workflow may take: not those of workflows refused for longer."""
    free = model.room_in_namespace()
    if free == math.inf:
        return free
    return max(free - len(refused_for_longer(model, workflow)), 0)


def refused_for_longer(model: Model, workflow: str) -> list[str]:
    """Those that the namespace cap keeps from work, and are to have what is free before the workflow."""
    live = [other for other, _ in live_refusals(model)]
    return live[: live.index(workflow)] if workflow in live else live


def live_refusals(model: Model) -> list[tuple[str, int]]:
    """The workflows that the namespace cap keeps from work that they could do, longest refused first."""
    live = [
        (workflow, since)
        for workflow, (since, seen) in model.refusals.items()
        if model.now - seen <= REFUSAL_LIVES and model.line(workflow) and not model.limits[workflow].paused
    ]
    return sorted(live, key=lambda refusal: (refusal[1], refusal[0]))


def _note_refusal(model: Model, workflow: str, *, refused: bool, served: bool) -> None:
    if refused:
        since, _ = model.refusals.get(workflow, (model.now, model.now))
        model.refusals[workflow] = (model.now if served else since, model.now)
    else:
        model.refusals.pop(workflow, None)


def could_claim(model: Model, workflow: str) -> bool:
    """Whether a worker with a free slot would get a job of the workflow now."""
    limits = model.limits[workflow]
    if model.limits[""].paused or limits.paused or model.limiters(workflow) is None:
        return False
    if limits.cap("concurrency") <= len(model.having("active", workflow=workflow)):
        return False
    return fair_share(model, workflow) > 0 and next_claim(model, workflow)[0] is not None


def _next_instant(model: Model, workflow: str) -> int:
    """When something becomes runnable, or fails, by the clock alone."""
    delayed = [job.instant for job in model.having("delayed", workflow=workflow)]
    unstarted = [job.unless_started for job in model.jobs.values() if job.workflow == workflow and job.unless_started]
    return min([*delayed, *unstarted], default=NEVER)
