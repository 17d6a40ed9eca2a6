"""What producers and operators do, and the clock."""

from collections.abc import Callable
from typing import Final

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lanner.queue.listing import page_of_jobs
from lanner.queue.outcome import Completed
from lanner.queue.scripts.adding import NewJob, Standing, add_jobs
from lanner.queue.scripts.controlling import (
    cancel_job,
    promote_job,
    remove_job,
    remove_jobs,
    retry_job,
    retry_jobs,
    set_paused,
)
from lanner.queue.scripts.listing import count_groups, count_jobs
from lanner.queue.scripts.recording import send_event
from lanner.queue.scripts.scheduling import (
    DueSchedule,
    Overlap,
    due_schedules,
    fire_schedule,
    pause_schedule,
    remove_schedule,
    set_schedule,
)
from lanner.queue.spec import Spec

from .clock import HALF, UNIT
from .jobs import ENDED, NEVER, Schedule
from .steps import WORKFLOWS, A, B, Steps, ids, nth, specs, texts, workflows
from .working import Working, events

PAGE: Final = 200
MANY: Final = 5
STATES: Final = ("waiting", "delayed", "parked", "active", *ENDED)

units = st.sampled_from([1, 1, 1, 2, 3])
# instants are at half units, so that none is that of a duration which begins within the same step
additions = st.tuples(
    ids,
    specs,
    texts,
    st.sampled_from(["", "", "", "+0", "+2", "+4", "3"]),
    st.sampled_from(["live", "live", "retained"]),
    st.sampled_from(["", "", "", "throttle", "debounce"]),
)


class Producing(Steps):
    """The rules of producers."""

    calls = 0

    @rule(workflow=workflows, jobs=st.lists(additions, min_size=1, max_size=4))
    def add(self, workflow: str, jobs: list[tuple[str, Spec, str, str, str, str]]) -> None:
        """Add jobs."""
        self._add(workflow, jobs)

    @precondition(lambda self: len(self.model.jobs) < MANY)
    @rule(
        workflow=workflows,
        jobs=st.lists(specs, min_size=3, max_size=6),
        whens=st.lists(st.sampled_from(["", "", "+2"]), min_size=6, max_size=6),
    )
    def add_many(self, workflow: str, jobs: list[Spec], whens: list[str]) -> None:
        """Add jobs whose ids are new."""
        first = self.calls * MANY
        self._add(
            workflow,
            [
                (f"n{first + n}", spec, "u", when, "live", "")
                for n, (spec, when) in enumerate(zip(jobs, whens, strict=False))
            ],
        )

    @rule(workflow=workflows, jobs=st.lists(additions, min_size=1, max_size=4))
    def add_twice(self, workflow: str, jobs: list[tuple[str, Spec, str, str, str, str]]) -> None:
        """Add jobs; the answer is lost, and the call is made once more."""
        call, expected = self._add(workflow, jobs)
        self.step()
        assert call() == expected

    def _add(
        self, workflow: str, jobs: list[tuple[str, Spec, str, str, str, str]]
    ) -> tuple[Callable[[], list[Standing | None]], list[Standing | None]]:
        self.clock.begin()
        sent: list[NewJob] = []
        self.model.become_due(workflow)
        expected: list[Standing | None] = []
        for job_id, plain, data, when, unique, kind in jobs:
            spec = self.new_life(plain)
            dedup = f"{kind} {UNIT} key" if kind else ""
            after = HALF * int(when or 0)
            at = "" if not when else f"+{after}" if when[0] == "+" else str(self.at(after))
            sent.append(NewJob(workflow, job_id, spec.run, spec.rest(), data, at, unique, dedup=dedup))
            due = self.model.now + after if when else None
            expected.append(self.model.add(workflow, job_id, spec, data, due=due, unique=unique, dedup=dedup))
        self.calls += 1
        number = self.calls

        def call() -> list[Standing | None]:
            return self.driver.run(add_jobs(self.driver, producer="P", number=number, jobs=sent))

        assert call() == expected
        self.copies.append(call)
        return call, expected

    @precondition(lambda self: self.model.jobs)
    @rule(n=nth, name=events, sender=st.sampled_from(["s", "t"]), text=texts)
    def send_event(self, n: int, name: str, sender: str, text: str) -> None:
        """Send an event."""
        self.clock.begin()
        workflow, job_id = self.some_job(n)
        expected = self.model.send_event(workflow, job_id, name, sender, text)
        sending = send_event(self.driver, workflow=workflow, id=job_id, name=name, sender=sender, text=text)
        assert self.driver.run(sending) == expected


class Operating(Steps):
    """The rules of operators."""

    @precondition(lambda self: self.model.jobs)
    @rule(n=nth, stale=st.sampled_from([False, False, False, True]))
    def cancel(self, n: int, *, stale: bool) -> None:
        """Cancel a job; the handle of an earlier life cancels nothing."""
        self.clock.begin()
        workflow, job_id = self.some_job(n)
        expected = -1 if stale else self.model.cancel(workflow, job_id, "why")
        run = "earlier" if stale else ""
        cancelling = cancel_job(self.driver, workflow=workflow, id=job_id, run=run, reason="why")
        assert self.driver.run(cancelling) == expected

    @precondition(lambda self: self.model.jobs)
    @rule(n=nth)
    def remove(self, n: int) -> None:
        """Remove a job."""
        self.clock.begin()
        workflow, job_id = self.some_job(n)
        expected = self.model.remove(workflow, job_id)
        assert self.driver.run(remove_job(self.driver, workflow=workflow, id=job_id)) == expected

    @precondition(lambda self: self.model.having("delayed"))
    @rule(n=nth)
    def promote(self, n: int) -> None:
        """Have a delayed job run now."""
        self.clock.begin()
        workflow, job_id = self.some_job(n, "delayed")
        expected = self.model.promote(workflow, job_id)
        assert self.driver.run(promote_job(self.driver, workflow=workflow, id=job_id)) == expected

    @precondition(lambda self: self.model.having("failed"))
    @rule(n=nth)
    def retry(self, n: int) -> None:
        """Have a failed job run again."""
        self.clock.begin()
        workflow, job_id = self.some_job(n, "failed")
        expected = self.model.retry(workflow, job_id)
        assert self.driver.run(retry_job(self.driver, workflow=workflow, id=job_id)) == expected

    @precondition(lambda self: self.model.having("failed"))
    @rule(workflow=workflows, limit=st.sampled_from([1, PAGE]))
    def retry_all(self, workflow: str, limit: int) -> None:
        """Have failed jobs run again, the oldest first."""
        self.clock.begin()
        failed = self.model.failed(workflow)[:limit]
        for job in failed:
            self.model.retry(workflow, job.id)
        assert self.driver.run(retry_jobs(self.driver, workflow=workflow, limit=limit)) == len(failed)

    @precondition(lambda self: len(self.model.jobs) > MANY)
    @rule(workflow=workflows, state=st.sampled_from(STATES), age=st.sampled_from([0, UNIT]))
    def remove_all(self, workflow: str, state: str, age: int) -> None:
        """Remove the jobs of a state; of those that have ended only the old ones."""
        self.clock.begin()
        for job in self.model.having(state, workflow=workflow):
            if not age or state not in ENDED or job.finished <= self.model.now - age:
                self.model.remove(workflow, job.id)
        self.driver.run(remove_jobs(self.driver, workflow=workflow, state=state, age=age, skip=0, limit=PAGE))

    @precondition(lambda self: self.model.jobs)
    @rule(workflow=workflows)
    def look(self, workflow: str) -> None:
        """Count and list the jobs by state."""
        sizes = self.driver.run(count_jobs(self.driver, workflow=workflow))
        page = self.driver.run(count_groups(self.driver, workflow=workflow, cursor=0))
        for state in STATES:
            expected = {job.id for job in self.model.having(state, workflow=workflow)}
            listed = self.driver.run(page_of_jobs(self.driver, workflow, state, 0, PAGE))
            forgotten = set(listed) - expected
            assert len(listed) == len(set(listed))
            assert expected <= set(listed)
            assert not forgotten or (
                state in ENDED and not forgotten & {key[1] for key in self.model.jobs if key[0] == workflow}
            )
            counted = sizes.ready - page.standing + page.jobs if state == "waiting" else getattr(sizes, state)
            assert counted == len(expected), f"{counted} {state} jobs are counted, not {len(expected)}"

    @precondition(lambda self: self.model.jobs)
    @rule(
        where=st.sampled_from(["", *WORKFLOWS]),
        what=st.sampled_from(["concurrency", "group"]),
        level=st.sampled_from(["declared", "override"]),
        cap=st.sampled_from(["none", "none", "none", "unset", "unset", 1, 2, 3, "x"]),
    )
    def limit(self, where: str, what: str, level: str, cap: int | str) -> None:
        """Change a cap; one that cannot be read lets nothing through."""
        self.clock.begin()
        if cap == "x" or not where:
            what = "concurrency"
        self.store_limits(where, level, {what: cap})

    @precondition(lambda self: self.model.jobs)
    @rule(
        shared=st.sampled_from([None, 1, 2, 3]),
        by_group=st.sampled_from([None, 1, 2]),
        workflow=workflows,
        names=st.sampled_from([None, None, None, (), ("l",), ("k",)]),
    )
    def declare_limiters(
        self, shared: int | None, by_group: int | None, workflow: str, names: tuple[str, ...] | None
    ) -> None:
        """Change the namespace's limiters, and which of them hold for a workflow."""
        self.clock.begin()
        self.store_limiters({"l": shared, "k": by_group})
        self.choose_limiters(workflow, names)

    @precondition(lambda self: self.model.jobs)
    @rule(where=st.sampled_from(["", *WORKFLOWS]))
    def pause(self, where: str) -> None:
        """Pause a workflow or the namespace, or have everything go on."""
        self.clock.begin()
        paused = [name for name, limits in self.model.limits.items() if limits.paused]
        for name in paused or [where]:
            self.model.limits[name].paused = not paused
            self.driver.run(set_paused(self.driver, workflow=name, paused=not paused))


class Scheduling(Steps):
    """The rules of schedules."""

    fired = 0

    @rule(
        workflow=workflows,
        name=st.sampled_from(["n", "m:1"]),
        timing=st.sampled_from(["daily", "hourly"]),
        overlap=st.sampled_from(["skip", "allow", "cancel"]),
        after=st.sampled_from([None, UNIT, 2 * UNIT]),
        spec=specs,
    )
    def set_schedule(
        self, *, workflow: str, name: str, timing: str, overlap: Overlap, after: int | None, spec: Spec
    ) -> None:
        """Create or change a schedule."""
        self.clock.begin()
        before = self.model.schedules.get((workflow, name))
        due = NEVER if after is None else self.model.now + after
        schedule = Schedule(timing, "scheduled", self.new_life(spec), overlap, due)
        if before is not None:
            schedule.paused, schedule.last_job = before.paused, before.last_job
            schedule.fires, schedule.skipped = before.fires, before.skipped
            if before.timing == timing:
                schedule.due = before.due
            elif before.paused:
                schedule.due = NEVER
        self.model.schedules[workflow, name] = schedule
        setting = set_schedule(
            self.driver,
            workflow=workflow,
            schedule=name,
            timing=timing,
            cadence=timing,
            data=schedule.data,
            spec=msgspec.json.encode(schedule.spec).decode(),
            overlap=overlap,
            armed=1,
            due=None if after is None else self.at(after),
        )
        assert self.driver.run(setting) == (before is None)

    @precondition(lambda self: self.model.schedules)
    @rule(n=nth, paused=st.booleans())
    def pause_schedule(self, n: int, *, paused: bool) -> None:
        """Pause a schedule, or have it go on."""
        self.clock.begin()
        workflow, name = list(self.model.schedules)[n % len(self.model.schedules)]
        schedule = self.model.schedules[workflow, name]
        if paused:
            schedule.due = NEVER
        elif schedule.paused:
            schedule.due = self.model.now + UNIT
        schedule.paused = paused
        pausing = pause_schedule(
            self.driver, workflow=workflow, schedule=name, paused=paused, armed=1, due=self.at(UNIT)
        )
        assert self.driver.run(pausing)

    @precondition(lambda self: self.model.schedules)
    @rule(n=nth)
    def remove_schedule(self, n: int) -> None:
        """Remove a schedule."""
        self.clock.begin()
        workflow, name = list(self.model.schedules)[n % len(self.model.schedules)]
        del self.model.schedules[workflow, name]
        assert self.driver.run(remove_schedule(self.driver, workflow=workflow, schedule=name))

    @precondition(lambda self: self.model.schedules)
    @rule(times=st.integers(0, 2), again=st.sampled_from([None, UNIT]))
    def fire(self, times: int, again: int | None) -> None:
        """Two workers find the same schedules due, and each fires them: one comes first."""
        self.clock.begin()
        now = self.model.now
        _, wait, found = self.driver.run(due_schedules(self.driver, limit=PAGE, workflows=WORKFLOWS))
        due = {key for key, schedule in self.model.schedules.items() if schedule.due <= now}
        assert {(schedule.workflow, schedule.id) for schedule in found} == due
        later = any(now < schedule.due < NEVER for schedule in self.model.schedules.values())
        assert (wait is not None) == later
        for schedule in found:
            self._fire(schedule, times, again)

    def _fire(self, found: DueSchedule, times: int, again: int | None) -> None:
        schedule = self.model.schedules[found.workflow, found.id]
        jobs: list[tuple[str, str, str]] = []
        new: list[tuple[str, Spec]] = []
        for _ in range(times):
            self.fired += 1
            spec = self.new_life(schedule.spec)
            new.append((f"f{self.fired}", spec))
            jobs.append((new[-1][0], msgspec.json.encode(spec).decode(), found.data))
        schedule.due = NEVER if again is None else self.model.now + again
        expected = self._fired(found.workflow, schedule, new)
        for each in (expected, -1):
            firing = fire_schedule(
                self.driver,
                workflow=found.workflow,
                schedule=found.id,
                found=found.due,
                armed=1,
                due=None if again is None else self.at(again),
                fired=1,
                overlap=found.overlap,
                jobs=jobs,
            )
            assert self.driver.run(firing) == each

    def _fired(self, workflow: str, schedule: Schedule, new: list[tuple[str, Spec]]) -> int:
        if not new:
            return 0
        schedule.fires += 1
        last = self.model.jobs.get((workflow, schedule.last_job or ""))
        if last is not None and last.state not in ENDED:
            if schedule.overlap == "skip":
                schedule.skipped += 1
                return 0
            if schedule.overlap == "cancel":
                self.model.cancel(workflow, last.id, "the schedule fired again")
        for job_id, spec in new:
            self.model.add(workflow, job_id, spec, schedule.data, due=None, unique="live", dedup="")
            schedule.last_job = job_id
        return len(new)


class QueueMachine(Working, Producing, Operating, Scheduling):
    """All of it, in any order, and the time that passes between."""

    @precondition(lambda self: not self.pending and (self.model.jobs or self.model.schedules))
    @rule(passed=units)
    def pass_time(self, passed: int) -> None:
        """So much that every call is over, that copies of it are lost, and that who sleeps has looked by itself."""
        self.clock.begin()
        self.driver.pass_time(passed * UNIT)
        self.clock.pass_time(passed * UNIT)
        self.model.pass_time()
        self.copies = []
        self.safety_net()

    @precondition(lambda self: not self.pending and len(self.model.jobs) > MANY)
    @rule()
    def drain(self) -> None:
        """Everything is let through to its end: nothing is left that has no owner."""
        self.clock.begin()
        self.store_limiters({"l": None, "k": None})
        for where in ("", A, B):
            self.model.limits[where].paused = False
            self.driver.run(set_paused(self.driver, workflow=where, paused=False))
            self.store_limits(where, "override", {"concurrency": "none"})
        for workflow in WORKFLOWS:
            self.choose_limiters(workflow, None)
            self.store_limits(workflow, "override", {"group": "none"})
        for job in self.model.having("parked"):
            self.model.cancel(job.workflow, job.id, "drained")
            self.driver.run(cancel_job(self.driver, workflow=job.workflow, id=job.id, run="", reason="drained"))
        for _ in range(100):
            self.step()
            self.pass_time(1)
            self.step()
            self.sweep(PAGE)
            for worker in self.workers:
                self.step()
                self.settle_with(worker, [(claim, Completed("drained")) for claim in worker.claims])
            if not self.model.having("waiting", "delayed", "active"):
                return
        raise AssertionError("there is no end to it")
