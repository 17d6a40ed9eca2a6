import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..queue.claim import Claim
from ..queue.recording import Recorder
from ..queue.scripts.descending import NewChild, Policy
from .journal import EVENT_TAKEN, ClaimLost

LONGEST_ID: Final = 256
LONGEST_STEM: Final = 200


class ClaimJournal(msgspec.Struct, eq=False):
    """The journal of a claimed job: its checkpoints came with the claim, and are written under its token.

    Attributes:
        claim: The claim.
        recorder: Writes them.
        recorded: Those of earlier attempts by step path.
    """

    claim: Claim
    recorder: Recorder
    recorded: Mapping[str, str]

    async def record(self, path: str, text: str) -> bool:
        """Store a checkpoint. False: the claim is lost, nothing was written."""
        return await self.recorder.record(self.claim, path, text)

    async def take_event(self, name: str, path: str, otherwise: str = "") -> str | None:
        """Take the oldest event of a name as the checkpoint at a path, or write ``otherwise`` there.

        Raises:
            ClaimLost: The claim is lost, nothing was written.
        """
        taken = await self.recorder.take_event(self.claim, name, path, before=EVENT_TAKEN, otherwise=otherwise)
        if taken is None or isinstance(taken, str):
            return taken
        raise ClaimLost

    def child_id(self, path: str) -> str:
        """The id of the child that belongs at a path, the same in each attempt of this life of the job."""
        spec = self.claim.spec
        return child_id(self.claim.id, path, f"#{spec.run}{spec.round or ''}")

    async def start_children(self, barrier: str, children: Sequence[NewChild], *, policy: Policy, most: int) -> bool:
        """Start children that a barrier waits for. False: the claim is lost."""
        return await self.recorder.start_children(self.claim, barrier, policy=policy, most=most, children=children)

    async def reload(self) -> Mapping[str, str]:
        """The checkpoints as they stand now."""
        return await self.recorder.read_steps(self.claim)

    async def progress(self, text: str) -> bool:
        """Say how far the job has come. False: the claim is lost, nothing was said."""
        return await self.recorder.progress(self.claim, text)

    async def log(self, line: str) -> bool:
        """Write a line to the job's log. False: the claim is lost, nothing was written."""
        return await self.recorder.log(self.claim, line)

    def now_ms(self) -> int:
        """Redis' time, in milliseconds since the epoch."""
        return self.claim.now_ms()


def child_id(parent: str, path: str, life: str) -> str:
    """The id of the child that belongs at a path of a parent, in one life of it."""
    readable = f"{parent}/{path}{life}"
    if len(readable) <= LONGEST_ID:
        return readable
    return f"{parent[:LONGEST_STEM]}#{hashlib.blake2b(readable.encode(), digest_size=16).hexdigest()}"
