"""What workers do, and what may happen to them."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lanner.queue.claim import Claim
from lanner.queue.outcome import (
    Cancelled,
    Completed,
    Continued,
    Failed,
    Failure,
    Limited,
    Outcome,
    Released,
    Retry,
    Suspended,
)
from lanner.queue.scripts.claiming import Settlement, Swept, pass_wake, renew_claims, settle, sweep_claims
from lanner.queue.scripts.recording import Checkpoint, append_log, record_steps, take_event

from .claims import Reservation
from .clock import HALF, UNIT
from .jobs import NEVER
from .steps import Steps, nth
from .workers import LANES, Worker

LEASE: Final = 5 * HALF  # no whole units, so that nothing ends just when a lease does
SWEPT_EVERY: Final = UNIT
LOG_LINES: Final = 2
FAILURE: Final = Failure("E", "m")

events = st.sampled_from(["e", "f"])
# what a run suspends until is given as a time from now: no whole units, as a delay from within the step has
_OUTCOMES: list[Outcome] = [
    Completed("u"),
    Completed("v"),
    Retry(0, FAILURE),
    Retry(UNIT, FAILURE),
    Failed(FAILURE),
    Failed(FAILURE),
    Cancelled("own"),
    Continued("w"),
    Suspended(None, ("e",)),
    Suspended(0, ("e",)),
    Suspended(HALF),
    Suspended(3 * HALF, ("e",)),
    Suspended(HALF, ("e", "f")),
    Limited(UNIT),
    Limited(UNIT, "l"),
    Limited(2 * UNIT, "k"),
    Released(),
]
outcomes = st.sampled_from(_OUTCOMES)


class Working(Steps):
    """The rules of workers."""

    crashes = 0
    lines = 0

    @precondition(lambda self: any(not worker.looking for worker in self.workers))
    @rule(n=nth)
    def wake(self, n: int) -> None:
        """A worker takes a marker, if there is one for it: that of instants also while it is busy."""
        self.clock.begin()
        asleep = [worker for worker in self.workers if not worker.looking]
        worker = asleep[n % len(asleep)]
        for kind in ("clock", "wake") if worker.free else ("clock",):
            for workflow in worker.serves:
                if self.driver.command("RPOP", f"{self.driver.base}:{workflow}:{kind}") is not None:
                    worker.looking = True
                    return

    @precondition(lambda self: self._callers() and self.model.jobs)
    @rule(n=nth)
    def ask(self, n: int) -> None:
        """A worker asks for jobs for all of its free slots."""
        callers = self._callers()
        self.settle_with(callers[n % len(callers)], [])

    @precondition(lambda self: not self.pending and self.model.having("waiting", "delayed", "active"))
    @rule(ended=st.lists(outcomes, max_size=3))
    def work(self, ended: list[Outcome]) -> None:
        """Every worker in turn commits an outcome, as far as there are any, and asks."""
        for worker, outcome in zip_longest(self.workers, ended):
            if worker.free or worker.claims:
                self.settle_with(worker, self._ended(worker, 0, [outcome] if outcome else []))
                self.step()

    @precondition(lambda self: self._callers() and self.model.jobs)
    @rule(n=nth, first=nth, outcome=outcomes)
    def serve(self, n: int, first: int, outcome: Outcome) -> None:
        """A worker commits an outcome if it has a job, and asks for others."""
        workers = self._with_claims() or self._callers()
        worker = workers[n % len(workers)]
        self.settle_with(worker, self._ended(worker, first, [outcome]))

    @precondition(lambda self: self._with_claims())
    @rule(n=nth, first=nth, ended=st.lists(outcomes, min_size=1, max_size=3))
    def commit(self, n: int, first: int, ended: list[Outcome]) -> None:
        """A worker commits outcomes, and asks for jobs in place of those that ended."""
        workers = self._with_claims()
        worker = workers[n % len(workers)]
        self.settle_with(worker, self._ended(worker, first, ended))

    @precondition(lambda self: self._callers() and self.model.jobs)
    @rule(
        n=nth,
        first=nth,
        ended=st.lists(outcomes, max_size=3),
        unused=st.sampled_from([0, 0, 0, 1, 3]),
        most=st.integers(1, 3),
        lost=st.booleans(),
    )
    def settle(self, n: int, first: int, ended: list[Outcome], unused: int, most: int, *, lost: bool) -> None:
        """A worker commits outcomes, does not use all slots or asks for few of a workflow; its answer may be lost."""
        callers = self._callers()
        worker = callers[n % len(callers)]
        self.settle_with(worker, self._ended(worker, first, ended), unused=unused, most=most, lost=lost)

    def _callers(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.may_call]

    def _with_claims(self) -> list[Worker]:
        return [worker for worker in self._callers() if worker.claims]

    def _ended(self, worker: Worker, first: int, ended: list[Outcome]) -> list[tuple[Claim, Outcome]]:
        turn = first % max(len(worker.claims), 1)
        return list(zip(worker.claims[turn:] + worker.claims[:turn], ended, strict=False))

    def settle_with(
        self,
        worker: Worker,
        ended: Sequence[tuple[Claim, Outcome]],
        *,
        unused: int = 0,
        most: int = 3,
        lost: bool = False,
    ) -> None:
        """Settle, and compare the answer with the model's."""
        self.clock.begin()
        number = worker.next_number()
        token = f"{worker.id}:{number}"
        total = max(worker.free + len(ended) - unused, 0)
        worker.serves.append(worker.serves.pop(0))
        wants = [(workflow, min(most, total)) for workflow in worker.serves]
        sent = [(claim, _until(outcome, self.at)) for claim, outcome in ended]

        def call() -> Settlement:
            return self.driver.run(
                settle(
                    self.driver, worker=worker.id, number=number, lease=LEASE, total=total, outcomes=sent, wants=wants
                )
            )

        now = self.model.now
        applied = [
            self.model.apply(claim.workflow, claim.id, claim.token, _until(outcome, lambda after: now + after))
            for claim, outcome in ended
        ]
        reservation = Reservation(self.model, token=token, lease=LEASE, total=total, wants=wants)
        answer = call()
        got = [(job.workflow, job.id) for job in reservation.claims]
        self._check_answer(answer, applied, got)
        self._check_caps(reservation)
        for claim, _ in ended:
            worker.let_go(claim)
        if lost:
            worker.asked[number % LANES] = total
            self.pending[worker.id, number % LANES] = self._again(token, call, applied, got)
            return
        self._check_again(answer, reservation)
        self._take(worker, answer, total)
        self.copies.append(call)

    def _again(
        self, token: str, call: Callable[[], Settlement], applied: list[bool], got: list[tuple[str, str]]
    ) -> Callable[[], Settlement]:
        def again() -> Settlement:
            answer = call()
            still = [key for key in got if self.model.claimed(*key, token) is not None]
            self._check_answer(answer, applied, still)
            return answer

        return again

    def _check_answer(self, answer: Settlement, applied: list[bool], got: list[tuple[str, str]]) -> None:
        assert list(answer.applied) == applied
        found = [(claim.workflow, claim.id) for claim in answer.claims]
        assert found == got, f"claimed {found}, not {got}"
        for claim in answer.claims:
            job = self.model.jobs[claim.workflow, claim.id]
            assert (claim.data, claim.failures, claim.spec.run) == (job.data, job.failures, job.spec.run)
            assert dict(claim.steps) == job.steps

    def _check_caps(self, reservation: Reservation) -> None:
        """What was claimed now is within every cap and every budget."""
        model = self.model
        for job in reservation.claims:
            limits = model.limits[job.workflow]
            assert len(model.having("active")) <= model.limits[""].cap("concurrency")
            assert len(model.having("active", workflow=job.workflow)) <= limits.cap("concurrency")
            # a cap that was lowered meanwhile takes from nobody what he has
            if job.spec.group and job in reservation.entering:
                assert len(model.holding(job.workflow, job.spec.group)) <= limits.cap("group")
        for key, starts in model.starts.items():
            limiter = model.limits[""].limiters.get(key.partition(":")[0])
            if limiter is not None and starts[-1] == model.now:
                within = [start for start in starts if start > model.now - limiter.window]
                assert len(within) <= limiter.limit, f"limiter {key} let {within} start"

    def _check_again(self, answer: Settlement, reservation: Reservation) -> None:
        if answer.again_ms is None:
            assert reservation.again == NEVER, f"asks no more, while {reservation.again} is in sight"
            return
        assert answer.again_ms > 0, "asks at once, while nothing has changed"
        if reservation.again != NEVER:
            after = reservation.again // HALF - self.model.now // HALF
            assert round(answer.again_ms / HALF) <= after, f"asks after {answer.again_ms} ms, not after {after} halves"

    def _take(self, worker: Worker, answer: Settlement, total: int) -> None:
        worker.claims += answer.claims
        worker.looking = worker.free > 0 and len(answer.claims) >= total
        after = round((answer.again_ms or 0) / HALF) * HALF
        worker.timer = NEVER if answer.again_ms is None else self.model.now + after

    @precondition(lambda self: self.pending)
    @rule(n=nth)
    def settle_again(self, n: int) -> None:
        """The same call again: nothing changes but who is woken, and what it claimed is answered if it still holds."""
        self.clock.begin()
        name, lane = list(self.pending)[n % len(self.pending)]
        worker = next(worker for worker in self.workers if worker.id == name)
        before = self.driver.read().without_wakes()
        answer = self.pending.pop((name, lane))()
        del worker.asked[lane]
        assert self.driver.read().without_wakes() == before
        worker.claims += answer.claims
        worker.looking = True  # it is told to look again at once

    @precondition(lambda self: self.copies)
    @rule(n=nth)
    def late_copy(self, n: int) -> None:
        """A copy of a call arrives late; nobody waits for its answer, and it changes nothing but who is woken."""
        self.clock.begin()
        before = self.driver.read().without_wakes()
        self.copies[-1 - n % len(self.copies)]()
        assert self.driver.read().without_wakes() == before

    @precondition(lambda self: self.model.jobs)
    @rule(n=nth)
    def renew(self, n: int) -> None:
        """A worker renews its leases, and learns which it has lost."""
        self.clock.begin()
        worker = self.workers[n % len(self.workers)]
        expected = b""
        for claim in worker.claims:
            job = self.job_of(claim)
            expected += b"0" if job is None else b"1" if job.cancel is None else b"2"
            if job is not None:
                job.deadline = self.model.now + LEASE
        assert self.driver.run(renew_claims(self.driver, lease=LEASE, claims=worker.claims)) == expected
        self._lose(worker, [claim for claim in worker.claims if self.job_of(claim) is None])

    def _lose(self, worker: Worker, claims: Sequence[Claim]) -> None:
        for claim in claims:
            assert self.job_of(claim) is None
            worker.let_go(claim)
            self.lost.append(claim)

    @precondition(lambda self: self.model.jobs)
    @rule(n=nth)
    def hear(self, n: int) -> None:
        """A worker reads the news of its running jobs."""
        self.clock.begin()
        worker = self.workers[n % len(self.workers)]
        while (news := self.driver.command("RPOP", f"{self.driver.base}:@ctl:{worker.id}")) is not None:
            what, workflow, job_id, token, _ = news.decode().split("\n", 4)
            told = [
                claim for claim in worker.claims if (claim.workflow, claim.id, claim.token) == (workflow, job_id, token)
            ]
            self._lose(worker, told if what == "lost" else ())

    @precondition(lambda self: any(worker.claims for worker in self.workers))
    @rule(n=nth)
    def crash(self, n: int) -> None:
        """A worker is gone with all that it holds, and another begins; what it knew the others find by their net."""
        self.clock.begin()
        index = n % len(self.workers)
        old = self.workers[index]
        self.crashes += 1
        self.lost += old.claims
        for lane in old.asked:
            del self.pending[old.id, lane]
        self.driver.command("DEL", f"{self.driver.base}:@ctl:{old.id}")
        self.workers[index] = Worker(f"{old.id[0]}{self.crashes}", old.slots, sorted(old.serves))
        self.safety_net()

    @precondition(lambda self: self.model.jobs)
    @rule(n=nth)
    def pass_on(self, n: int) -> None:
        """A worker that stops leaves to others what it may have been woken for, and the instants that it kept."""
        worker = self.workers[n % len(self.workers)]
        if worker.claims or worker.asked:
            return
        self.clock.begin()
        for workflow in worker.serves:
            self.driver.run(pass_wake(self.driver, workflow=workflow, instants=True))
            self.model.refusals.pop(workflow, None)
        worker.looking, worker.timer = False, NEVER

    @precondition(lambda self: self.lost)
    @rule(n=nth, outcome=outcomes)
    def use_a_lost_claim(self, n: int, outcome: Outcome) -> None:
        """Whoever has lost a claim can neither commit it nor record anything for it."""
        self.clock.begin()
        claim = self.lost[n % len(self.lost)]
        if self.job_of(claim) is not None:
            return  # its worker is gone, and nobody has noticed
        self._record(claim, stored=False)
        self.driver.command("DEL", f"{self.driver.base}:@receipt:late/1")
        sent = [(claim, outcome)]
        answer = self.driver.run(
            settle(self.driver, worker="late", number=1, lease=LEASE, total=0, outcomes=sent, wants=[])
        )
        assert list(answer.applied) == [False]
        self.driver.command("DEL", f"{self.driver.base}:@receipt:late/1")

    @precondition(lambda self: any(worker.claims for worker in self.workers))
    @rule(n=nth)
    def record(self, n: int) -> None:
        """A run has done a step, and says so."""
        self.clock.begin()
        claims = [claim for worker in self.workers for claim in worker.claims]
        claim = claims[n % len(claims)]
        job = self.job_of(claim)
        if job is not None:
            job.steps[f"s{n}"] = "1"
            job.stalls = 0
            self.lines += 1
            job.log = [*job.log, f"line {self.lines}"][-LOG_LINES:]
        self._record(claim, step=f"s{n}", stored=job is not None)

    def _record(self, claim: Claim, *, step: str = "s", stored: bool) -> None:
        checkpoint = Checkpoint(claim.workflow, claim.id, claim.token, step, "1")
        assert self.driver.run(record_steps(self.driver, steps=[checkpoint])) == [stored]
        entry = f"line {self.lines}"
        log = append_log(
            self.driver, workflow=claim.workflow, id=claim.id, token=claim.token, entry=entry, most=LOG_LINES
        )
        assert self.driver.run(log) == stored

    @precondition(lambda self: any(worker.claims for worker in self.workers))
    @rule(n=nth, name=events, nothing=st.sampled_from(["", "?none"]), twice=st.booleans())
    def take_event(self, n: int, name: str, nothing: str, *, twice: bool) -> None:
        """A run takes an event as a checkpoint; asked again it gets the same."""
        self.clock.begin()
        claims = [claim for worker in self.workers for claim in worker.claims]
        claim = claims[n % len(claims)]
        job = self.job_of(claim)
        for _ in range(1 + twice):
            expected = False if job is None else self.model.take_event(job, name, f"take {name}", "+", nothing)
            taking = take_event(
                self.driver,
                workflow=claim.workflow,
                id=claim.id,
                token=claim.token,
                name=name,
                path=f"take {name}",
                before="+",
                otherwise=nothing,
            )
            assert self.driver.run(taking) == expected

    @precondition(lambda self: self.model.having("active"))
    @rule(limit=st.sampled_from([1, 200]))
    def sweep(self, limit: int) -> None:
        """Somebody looks for claims whose worker is gone, so many a call."""
        self.clock.begin()
        expected = self.model.sweep(LEASE, SWEPT_EVERY)
        looks: list[Swept] = []
        while not looks or not looks[-1].again_ms:
            looks.append(self.driver.run(sweep_claims(self.driver, lease=LEASE, interval=SWEPT_EVERY, limit=limit)))
            assert len(looks[-1].recovered) + len(looks[-1].stalled) + looks[-1].cancelled <= limit
        recovered, stalled = sum(len(each.recovered) for each in looks), sum(len(each.stalled) for each in looks)
        assert (recovered, stalled, sum(each.cancelled for each in looks)) == (expected or (0, 0, 0))


def _until(outcome: Outcome, at: Callable[[int], int]) -> Outcome:
    """The outcome with an instant in place of a time from now."""
    if isinstance(outcome, Suspended) and outcome.until_ms is not None:
        return msgspec.structs.replace(outcome, until_ms=at(outcome.until_ms))
    return outcome
