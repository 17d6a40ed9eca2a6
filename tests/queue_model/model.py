"""The queue's contract in plain Python: what each call does to the jobs, without a thought of how they are stored."""

import math
from collections.abc import Iterable, Sequence

from lanner.queue.outcome import Cancelled, Completed, Continued, Failed, Limited, Outcome, Released, Retry, Suspended
from lanner.queue.scripts.adding import Standing
from lanner.queue.spec import Spec

from .clock import Clock
from .jobs import ENDED, NEVER, Job, Limiter, Limits, Schedule


class Model:
    """A namespace.

    Attributes:
        jobs: By workflow and id.
        starts: When attempts began, by what counts them: a limiter, or a limiter of a group.
        pauses: Until when a limiter is closed for everybody.
        windows: Which job, by nonce and id, stands for others until when, by workflow and key.
        refusals: Workflows that the namespace cap keeps from work: since when, and when they last asked.
    """

    def __init__(self, clock: Clock, workflows: Sequence[str]) -> None:
        self.clock = clock
        self.workflows = list(workflows)
        self.jobs: dict[tuple[str, str], Job] = {}
        self.limits: dict[str, Limits] = {name: Limits() for name in ("", *workflows)}
        self.starts: dict[str, list[int]] = {}
        self.pauses: dict[str, int] = {}
        self.windows: dict[tuple[str, str], tuple[str, str, int]] = {}
        self.refusals: dict[str, tuple[int, int]] = {}
        self.schedules: dict[tuple[str, str], Schedule] = {}
        self.swept: int | None = None
        self._sequence = 0

    @property
    def now(self) -> int:
        """This step's instant."""
        return self.clock.now

    def having(self, *states: str, workflow: str | None = None) -> list[Job]:
        """The jobs in a state."""
        return [job for job in self.jobs.values() if job.state in states and workflow in (None, job.workflow)]

    def holding(self, workflow: str, group: str) -> list[Job]:
        """The jobs that fill a group's cap: those that run, and those that keep it while they wait."""
        return [
            job
            for job in self.jobs.values()
            if (job.workflow, job.spec.group) == (workflow, group) and (job.state == "active" or job.holds)
        ]

    def line(self, workflow: str) -> list[Job]:
        """What could be claimed now as far as groups are concerned, in order: of each group its first."""
        first: dict[str, Job] = {}
        for job in self.having("waiting", workflow=workflow):
            if job.member not in first or job.place < first[job.member].place:
                first[job.member] = job
        cap = self.limits[workflow].cap("group")
        free = [job for job in first.values() if not job.queues_in_group or self.has_room(job, cap)]
        return sorted(free, key=lambda job: job.place)

    def has_room(self, job: Job, cap: float) -> bool:
        """Whether the group of a job may run another."""
        return len(self.holding(job.workflow, job.spec.group)) < cap

    def limiters(self, workflow: str) -> dict[str, Limiter] | None:
        """The limiters of a workflow; None where its list names one that is not there."""
        limiters, chosen = self.limits[""].limiters, self.limits[workflow].chosen
        if chosen is None:
            return limiters
        return {name: limiters[name] for name in chosen} if limiters.keys() >= set(chosen) else None

    # adding

    def add(
        self, workflow: str, job_id: str, spec: Spec, data: str, *, due: int | None, unique: str, dedup: str
    ) -> Standing | None:
        """Add a job, or say which stands in its place."""
        kind, _, rest = dedup.partition(" ")
        window, _, key = rest.partition(" ")
        instead = self._deduplicated(workflow, kind, int(window), key, data) if dedup else None
        if instead is not None:
            return instead
        standing = self.jobs.get((workflow, job_id))
        if standing is not None and (standing.state not in ("completed", "cancelled") or unique == "retained"):
            return Standing(standing.spec.run, standing.state, job_id)
        if dedup:
            self.windows[workflow, f"{kind}:{key}"] = (spec.run, job_id, self.now + int(window))
        if kind == "debounce":
            due = self.now + int(window)
        job = Job(workflow, job_id, spec, data)
        self.jobs[workflow, job_id] = job
        if spec.expires:
            job.unless_started = max(due or 0, self.now) + spec.expires
        if due is not None and due > self.now:
            self.delay(job, due)
        else:
            self._line_up(job)
        return None

    def _deduplicated(self, workflow: str, kind: str, window: int, key: str, data: str) -> Standing | None:
        run, holder, until = self.windows.get((workflow, f"{kind}:{key}"), ("", "", 0))
        if until <= self.now:
            return None
        job = self.jobs.get((workflow, holder))
        if kind == "throttle":
            return Standing(run if job else "", "throttled", holder)
        if job is None or job.spec.run != run or job.state != "delayed" or job.tried or job.started:
            return None
        job.data = data
        self.delay(job, self.now + window)
        if job.spec.expires:
            job.unless_started = job.instant + job.spec.expires
        self.windows[workflow, f"{kind}:{key}"] = (run, holder, self.now + window)
        return Standing(run, "debounced", holder)

    # places

    def _line_up(self, job: Job) -> None:
        """It is runnable: at the place it had, else behind all others of its priority."""
        job.state = "waiting"
        job.awaits = ()
        if job.sequence is None:
            self._sequence += 1
            job.sequence = self._sequence

    def delay(self, job: Job, instant: int) -> None:
        """It waits for an instant."""
        job.state = "delayed"
        job.instant = instant

    def become_due(self, workflow: str) -> None:
        """What is due becomes runnable, in due order."""
        due = [job for job in self.having("delayed", workflow=workflow) if job.instant <= self.now]
        for job in sorted(due, key=lambda job: (job.instant, job.id)):
            self._line_up(job)

    def expire(self, workflow: str) -> None:
        """What was not started in time fails."""
        expired = [
            job
            for job in self.jobs.values()
            if job.workflow == workflow and job.unless_started is not None and job.unless_started <= self.now
        ]
        for job in sorted(expired, key=lambda job: (job.unless_started or 0, job.id)):
            if (workflow, job.id) in self.jobs:
                self._fail(job, "JobExpiredError")

    # ends

    def _end(self, job: Job, state: str, text: str) -> None:
        """Completed or cancelled."""
        if job.spec.result_ttl == 0:
            del self.jobs[job.workflow, job.id]
            return
        job.gone = NEVER if job.spec.result_ttl < 0 else self.now + job.spec.result_ttl
        job.steps, job.events = {}, []
        self._over(job, state, text)

    def _fail(self, job: Job, text: str) -> None:
        """For good. Of the failed jobs as many are kept as this one says."""
        self._sequence += 1
        job.failed = self._sequence
        self._over(job, "failed", text)
        count, age = job.spec.keep_failed
        failed = self.failed(job.workflow)
        dropped: Iterable[Job] = ()
        if 0 <= count < len(failed):
            dropped = failed[: len(failed) - count]
        elif age:
            dropped = [each for each in failed if each.finished <= self.now - age]
        for each in dropped:
            del self.jobs[each.workflow, each.id]

    def _over(self, job: Job, state: str, text: str) -> None:
        job.state, job.text, job.finished = state, text, self.now
        job.token, job.holds, job.awaits, job.unless_started = "", False, (), None

    def failed(self, workflow: str) -> list[Job]:
        """The jobs that failed for good, oldest first."""
        return sorted(self.having("failed", workflow=workflow), key=lambda job: job.failed)

    # outcomes

    def apply(self, workflow: str, job_id: str, token: str, outcome: Outcome) -> bool:  # noqa: C901, PLR0912 - a case for each outcome
        """Apply what an attempt ended in, if the claim is still the token's."""
        job = self.claimed(workflow, job_id, token)
        if job is None:
            return False
        if job.cancel is not None:
            outcome = Cancelled(job.cancel)
        job.token = ""
        # the group of a strict job waits with it
        job.holds = (
            job.spec.strict and job.spec.group != "" and isinstance(outcome, Retry | Suspended | Limited | Released)
        )
        match outcome:
            case Completed(result):
                self._end(job, "completed", result)
            case Cancelled(reason):
                self._end(job, "cancelled", reason)
            case Failed(failure):
                self._fail(job, failure.type)
            case Retry(delay, failure):
                job.failures += 1
                job.stalls, job.started, job.tried, job.text = 0, False, True, failure.type
                if not job.holds:
                    job.sequence = None
                self.delay(job, self.now + delay)
            case Limited(delay, limiter):
                job.stalls, job.started, job.tried = 0, False, True
                if limiter in (self.limiters(workflow) or {}):
                    self.pauses[limiter] = max(self.pauses.get(limiter, 0), self.now + delay)
                    self._line_up(job)
                else:
                    self.delay(job, self.now + delay)
            case Continued(data):
                job.data, job.steps, job.text = data, {}, ""
                job.failures = job.stalls = 0
                job.started, job.tried, job.sequence = False, False, None
                self._line_up(job)
            case Suspended():
                job.stalls = 0
                self._suspend(job, outcome)
            case _:
                self._line_up(job)
        return True

    def _suspend(self, job: Job, outcome: Suspended) -> None:
        # the model's instants are given in place of the server's
        until = outcome.until_ms
        if (until is not None and until <= self.now) or any(name in outcome.events for name, _, _ in job.events):
            self._line_up(job)
            return
        job.awaits = outcome.events
        if until is not None:
            self.delay(job, until)
        else:
            job.state, job.instant = "parked", self.now

    def claimed(self, workflow: str, job_id: str, token: str) -> Job | None:
        """The job that a claim's token holds, if it still does."""
        job = self.jobs.get((workflow, job_id))
        return job if job is not None and token and job.token == token else None

    # what people do to a job

    def cancel(self, workflow: str, job_id: str, reason: str) -> int:
        """Cancel a job wherever it is."""
        job = self.jobs.get((workflow, job_id))
        if job is None:
            return -1
        if job.state in ENDED:
            return int(job.state == "cancelled")
        if job.state == "active":
            job.cancel = reason if job.cancel is None else job.cancel
        else:
            self._end(job, "cancelled", reason)
        return 1

    def remove(self, workflow: str, job_id: str) -> int:
        """Remove a job."""
        return -1 if self.jobs.pop((workflow, job_id), None) is None else 1

    def promote(self, workflow: str, job_id: str) -> int:
        """Have a delayed job run now."""
        job = self.jobs.get((workflow, job_id))
        if job is None:
            return -1
        if job.state != "delayed":
            return 0
        self._line_up(job)
        return 1

    def retry(self, workflow: str, job_id: str) -> int:
        """Have a failed job run again, from its checkpoints."""
        job = self.jobs.get((workflow, job_id))
        if job is None:
            return -1
        if job.state != "failed":
            return 0
        job.failures = job.stalls = 0
        job.tried, job.started, job.cancel, job.sequence = True, False, None, None
        self._line_up(job)
        return 1

    def send_event(self, workflow: str, job_id: str, name: str, sender: str, text: str) -> int:
        """Send an event; a sender's counts once."""
        job = self.jobs.get((workflow, job_id))
        if job is None:
            return -1
        if job.state in ENDED:
            return 0
        if sender not in job.seen:
            job.seen.add(sender)
            job.events.append((name, sender, text))
            if job.state in ("delayed", "parked") and name in job.awaits:
                self._line_up(job)
        return 1

    def take_event(self, job: Job, name: str, path: str, before: str, otherwise: str) -> str | None:
        """Take an event as a checkpoint; asked again for the same one, give the same."""
        recorded = job.steps.get(path)
        if recorded is not None and recorded.startswith(before):
            return recorded.removeprefix(before)
        if recorded is not None and recorded == otherwise:
            return None
        for event in job.events:
            if event[0] == name:
                job.events.remove(event)
                job.steps[path] = before + event[2]
                return event[2]
        if otherwise:
            job.steps[path] = otherwise
        return None

    # time

    def sweep(self, lease: int, interval: int) -> tuple[int, int, int] | None:
        """Take back the claims whose lease is over: recovered, stalled, cancelled. None: it is too early."""
        if self.swept is not None and self.now - self.swept < interval:
            return None
        away = self.swept is not None and self.now - self.swept > max(lease, interval)
        expired = sorted(
            (job for job in self.having("active") if job.deadline <= self.now),
            key=lambda job: (job.deadline, f"{job.workflow}:{job.id}"),
        )
        self.swept = self.now
        if away:
            for job in expired:
                job.deadline = self.now + lease
            return 0, 0, 0
        return self._recover(expired)

    def _recover(self, lost: Iterable[Job]) -> tuple[int, int, int]:
        recovered = stalled = cancelled = 0
        for job in lost:
            job.token = ""
            if job.cancel is not None:
                self._end(job, "cancelled", job.cancel)
                cancelled += 1
                continue
            job.stalls += 1
            if job.stalls > job.spec.max_stalled:
                self._fail(job, "StalledError")
                stalled += 1
            else:
                job.holds = job.spec.strict and job.spec.group != ""
                self._line_up(job)
                recovered += 1
        return recovered, stalled, cancelled

    def pass_time(self) -> None:
        """Time has passed: what had a time to live is gone."""
        for key, job in list(self.jobs.items()):
            if job.state in ENDED and job.gone <= self.now:
                del self.jobs[key]
        self.windows = {key: window for key, window in self.windows.items() if window[2] > self.now}
        self.refusals = {}

    def room_in_namespace(self) -> float:
        """How many more the namespace may run."""
        cap = self.limits[""].cap("concurrency")
        return math.inf if cap == math.inf else cap - len(self.having("active"))
