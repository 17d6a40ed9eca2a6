import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..calling import Caller, pairs_of
from ..claim import Claim
from ..outcome import Cancelled, Completed, Continued, Failed, Limited, Outcome, Retry, Suspended
from ..spec import Spec
from ..wire import Argument

_SPEC = msgspec.json.Decoder(Spec)
LOST, CROWDED = b"02"


class Settlement(msgspec.Struct, frozen=True):
    """What a claiming call came back with.

    ``applied`` has an entry an outcome: False where the claim was lost; ``crowded`` are the places of those that older
    failed jobs made room for. ``again_ms`` is when there may be more to claim: 0 at once, None nothing in sight. A
    claim in ``unread`` has checkpoints that were too many to send along.
    """

    applied: Sequence[bool]
    crowded: Sequence[int]
    claims: Sequence[Claim]
    unread: Sequence[Claim]
    again_ms: int | None


async def settle(
    call: Caller,
    *,
    worker: str,
    number: int,
    lease: int,
    total: int,
    outcomes: Sequence[tuple[Claim, Outcome]],
    wants: Sequence[tuple[str, int]],
) -> Settlement:
    """Commit outcomes and claim up to ``total`` jobs, with at most so many of each workflow in ``wants``."""
    runs, packed = _pack(outcomes)
    arguments: list[Argument] = [worker, number, lease, total, runs, *packed]
    for workflow, most in wants:
        arguments += (workflow, most)
    now, statuses, again, *found = await call("settle", *arguments)
    token, claimed_at = f"{worker}:{number}", time.monotonic()
    claims: list[Claim] = []
    unread: list[Claim] = []
    fields: Iterator[Any] = iter(found)
    workflow, first = "", True
    for field in fields:
        if type(field) is int:
            workflow, first = wants[abs(field) - 1][0], field > 0
            job_id: bytes = next(fields)
        else:
            job_id = field
        claim = Claim(
            workflow=workflow,
            id=job_id.decode(),
            token=token,
            # who has written what is no text has written it past us: the job fails for what it reads
            data=next(fields).decode(errors="backslashreplace"),
            spec=_SPEC.decode(next(fields)),
            failures=0 if first else int(next(fields)),
            first=first,
            redis_ms=now,
            claimed_at=claimed_at,
        )
        claims.append(claim)
        if not first:
            steps = next(fields)
            if steps is None:
                unread.append(claim)
            else:
                claim.steps = pairs_of(steps)
    applied = [status != LOST for status in statuses]
    crowded = [place for place, status in enumerate(statuses) if status == CROWDED] if CROWDED in statuses else ()
    return Settlement(applied, crowded, claims, unread, None if again < 0 else again)


def _pack(outcomes: Sequence[tuple[Claim, Outcome]]) -> tuple[int, list[Argument]]:
    """How many runs of like outcomes of different jobs there are, and what is sent of them."""
    packed: list[Argument] = []
    runs: list[tuple[tuple[Argument, ...], list[Argument]]] = []
    alike: tuple[Argument, ...] | None = None
    jobs: list[Argument] = []
    ids: set[str] = set()
    for claim, outcome in outcomes:
        # most are, and to match them takes longer
        kind, text, amount = ("completed", outcome.result, "") if type(outcome) is Completed else _pack_one(outcome)
        job_id = claim.id
        head: tuple[Argument, ...] = (kind, claim.workflow, claim.token, amount)
        if head != alike or job_id in ids:
            alike, jobs = head, []
            runs.append((head, jobs))
            ids.clear()
        ids.add(job_id)
        jobs += (job_id, text, claim.spec.run)
    for head, jobs in runs:
        packed += (*head, len(jobs) // 3, *jobs)
    return len(runs), packed


def _pack_one(outcome: Outcome) -> tuple[str, str, Argument]:  # noqa: PLR0911 - one for each outcome
    match outcome:
        case Retry(delay_ms, failure):
            return "retry", failure.dumps(), delay_ms
        case Failed(failure, undo):
            return "failed", failure.dumps(), undo or ""
        case Cancelled(reason, undo):
            return "cancelled", reason, undo or ""
        case Continued(data):
            return "continued", data, ""
        case Suspended(until_ms, events):
            return "suspended", "\n".join(events), "" if until_ms is None else until_ms
        case Limited(delay_ms, limiter):
            return "limited", limiter, delay_ms
        case _:
            return "released", "", ""


async def renew_claims(call: Caller, *, lease: int, claims: Sequence[Claim]) -> bytes:
    """Renew leases. A digit a claim: 1 renewed, 0 lost, 2 renewed and to be cancelled."""
    arguments: list[Argument] = [lease]
    for claim in claims:
        arguments += (claim.workflow, claim.id, claim.token)
    answer: bytes = await call("renew_claims", *arguments)
    return answer


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep returned to the queues (``workflow:id`` each), and when the next is due (0 ms: there is more)."""

    recovered: list[str]
    stalled: list[str]
    cancelled: int
    again_ms: int


async def sweep_claims(call: Caller, *, lease: int, interval: int, limit: int) -> Swept:
    """Return claims whose lease has run out."""
    recovered, stalled, cancelled, again_ms = await call("sweep_claims", lease, interval, limit)
    return Swept([each.decode() for each in recovered], [each.decode() for each in stalled], cancelled, again_ms)


async def pass_wake(call: Caller, *, workflow: str, instants: bool) -> None:
    """Pass on a wake-up that this worker cannot use, and (when it stops) the instants that it kept."""
    await call("pass_wake", workflow, int(instants))


async def nudge_worker(call: Caller, *, worker: str) -> None:
    """Have a worker's blocking pop end."""
    await call("nudge_worker", worker)
