"""What a run keeps between attempts, and how a checkpoint is written.

A checkpoint is one text: its kind, its state, then what the state carries, as it was given:

- ``do:<value>``, ``event:<value>``, ``child:<value>``: done, with the value's text
- ``do!<failure>``, ``child!<failure>``: failed for good, with the failure's record
- ``child~<reason>``: cancelled or removed
- ``child@<count>``: so many children were started
- ``wait@<instant>``, ``event@<instant>``: begun, and over at the instant (milliseconds since the epoch)
- ``event-``: no event came in time
- ``event?<value>``: an event came that could not be read; later attempts wait for another one, or can read it
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from ..errors import StepError
from ..queue.scripts.descending import NewChild, Policy


class ClaimLost(Exception):  # noqa: N818 - a signal between the journal and the run, which users never see
    """The claim is not ours any more: nothing was written."""


class Journal(Protocol):
    """Where a run's checkpoints are kept.

    A failing call raises; a call that is cancelled may have been executed.
    """

    @property
    def recorded(self) -> Mapping[str, str]:
        """Checkpoints of earlier attempts by step path, loaded with the claim."""
        ...

    async def record(self, path: str, text: str) -> bool:
        """Store a checkpoint, over one that is there. False: the claim is lost, nothing was written."""
        ...

    async def take_event(self, name: str, path: str, otherwise: str = "") -> str | None:
        """Take the oldest event of a name and write ``EVENT_TAKEN`` and its text as the checkpoint, in one.

        When there is none, write ``otherwise`` as the checkpoint instead (in the same call, so that no event can
        come between), or nothing if it is empty, and return None. A call that is made again for a path whose event was
        taken, its answer lost or not awaited, gives that event again and takes none.

        Returns:
            The event's text.

        Raises:
            ClaimLost: The claim is lost, nothing was written.
        """
        ...

    def child_id(self, path: str) -> str:
        """The id of the child that belongs at a path, the same in each attempt of this life of the job."""
        ...

    async def start_children(self, barrier: str, children: Sequence[NewChild], *, policy: Policy, most: int) -> bool:
        """Start children that a barrier waits for; those started before stay as they are. False: the claim is lost."""
        ...

    async def reload(self) -> Mapping[str, str]:
        """The checkpoints as they stand now; children write theirs."""
        ...

    async def progress(self, text: str) -> bool:
        """Say how far the job has come. False: the claim is lost, nothing was said."""
        ...

    async def log(self, line: str) -> bool:
        """Write a line to the job's log. False: the claim is lost, nothing was written."""
        ...

    def now_ms(self) -> int:
        """Redis' time, in milliseconds since the epoch."""
        ...


class Kind(StrEnum):
    """What a name in a run stands for. A scope has no checkpoint."""

    DO = "do"
    WAIT = "wait"
    EVENT = "event"
    CHILD = "child"
    SCOPE = "scope"


DONE: Final = ":"
FAILED: Final = "!"
PENDING: Final = "@"
EXPIRED: Final = "-"
CANCELLED: Final = "~"
UNFIT: Final = "?"

EVENT_TAKEN: Final = Kind.EVENT + DONE
EVENT_EXPIRED: Final = Kind.EVENT + EXPIRED
EVENT_UNFIT: Final = Kind.EVENT + UNFIT
CHILD_DONE: Final = Kind.CHILD + DONE
CHILD_STARTED: Final = Kind.CHILD + PENDING


def pending(kind: Kind, until_ms: int) -> str:
    """The checkpoint of a step that is over at an instant."""
    return f"{kind.value}{PENDING}{until_ms}"


def read_checkpoint(text: str, kind: Kind, path: str) -> tuple[str, str]:
    """A checkpoint's state and what it carries.

    Raises:
        StepError: It is of another kind.
    """
    if text.startswith(kind):
        split = len(kind) + 1
        return text[split - 1 : split], text[split:]
    found = next((each.value for each in Kind if text.startswith(each)), "unknown")
    raise StepError(
        f"step {path!r} is a {kind.value!r} step now and was a {found!r} step when it was recorded in an earlier "
        f"attempt: give the new step a new name"
    )
