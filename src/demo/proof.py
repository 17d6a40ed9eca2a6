"""Whether what was promised has been kept, judged from what was seen."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..queue.listing import Counts
from .ledger import Effect
from .order import PICKUP, Delivery

LABEL: Final = "label printed"
ONCE: Final = ("stock reserved", "card charged", "parcel handed over", "customer told")
# the ledger's clock is this machine's, the wait's is that of Redis, in whole milliseconds
CLOCKS_DIFFER: Final = 0.1
FINISHED_BEFORE: Final = ("reserve stock", "charge", "wait for the courier")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was seen.

    Attributes:
        effects: What was done to the world, in order.
        first: The process that was killed.
        second: The process that took over.
        first_exit: How the first ended, a signal as its negative number.
        second_exit: How the second ended.
        asleep: The state of the order's job while the order waited.
        slots_asleep: How many jobs of the order's workflow held a slot then.
        checkpoints: The steps that Redis held as finished when the first process was killed.
        attempt: Which attempt at the job it was after that.
        delivery: What the job gave.
        left: The jobs of the workflow by state, in the end.
    """

    effects: Sequence[Effect]
    first: int
    second: int
    first_exit: int
    second_exit: int
    asleep: str
    slots_asleep: int
    checkpoints: Sequence[str]
    attempt: int
    delivery: Delivery
    left: Counts

    def done(self, what: str) -> list[Effect]:
        """The effects of a kind."""
        return [effect for effect in self.effects if effect.what == what]

    def processes(self, what: str) -> list[int]:
        """Which processes had the effects of a kind."""
        return [effect.process for effect in self.done(what)]


@dataclass(frozen=True)
class Check:
    """A promise, and whether it was kept."""

    promise: str
    kept: bool


def judge(seen: Evidence) -> list[Check]:
    """Check every promise against what was seen."""
    return [
        Check(f"process {seen.first} was killed by SIGKILL in the middle of 'ship'", _was_cut(seen)),
        Check(f"process {seen.second} took over and brought the order to its end", _was_taken_over(seen)),
        Check(
            "the finished steps 'reserve stock' and 'charge' did not run again: their results came from Redis",
            _was_replayed(seen),
        ),
        Check(
            "each of these happened once: " + ", ".join(ONCE), all(len(seen.processes(effect)) == 1 for effect in ONCE)
        ),
        Check(
            f"the order waited {PICKUP.total_seconds():g} s as a record in Redis: no slot was held, and the only slot "
            "of the worker ran another job meanwhile",
            _wait_held_nothing(seen),
        ),
        Check("the crash used up no attempt, and no job is left over", _nothing_is_left(seen)),
    ]


def _was_cut(seen: Evidence) -> bool:
    return (
        seen.first_exit == -signal.SIGKILL
        and seen.processes(LABEL)[:1] == [seen.first]
        and seen.first not in seen.processes("parcel handed over")
        and "ship" not in seen.checkpoints
    )


def _was_taken_over(seen: Evidence) -> bool:
    tracking = [effect.detail.rpartition(" ")[2] for effect in seen.done("parcel handed over")]
    return (
        seen.processes(LABEL)[1:] == [seen.second]
        and seen.processes("parcel handed over") == seen.processes("customer told") == [seen.second]
        and tracking == [seen.delivery.tracking]
        and seen.second_exit == 0
    )


def _was_replayed(seen: Evidence) -> bool:
    ran = {effect.process for effect in seen.effects if effect.step in FINISHED_BEFORE}
    reserved = [effect.detail.rpartition(" ")[2] for effect in seen.done("stock reserved")]
    charged = [effect.detail.rpartition(" ")[2] for effect in seen.done("card charged")]
    return (
        ran == {seen.first}
        and set(FINISHED_BEFORE) <= set(seen.checkpoints)
        and (reserved, charged) == ([seen.delivery.reservation], [seen.delivery.payment])
    )


def _wait_held_nothing(seen: Evidence) -> bool:
    charged, counted, begun = (seen.done(what)[:1] for what in ("card charged", "stock counted", LABEL))
    if not (charged and counted and begun):
        return False
    return (
        seen.asleep == "delayed"
        and seen.slots_asleep == 0
        and begun[0].seconds_since(charged[0]) >= PICKUP.total_seconds() - CLOCKS_DIFFER
        and counted[0].process == seen.first
        and list(seen.effects).index(charged[0])
        < list(seen.effects).index(counted[0])
        < list(seen.effects).index(begun[0])
    )


def _nothing_is_left(seen: Evidence) -> bool:
    left = seen.left
    return seen.attempt == 1 and not any((left.waiting, left.delayed, left.parked, left.active, left.failed))
