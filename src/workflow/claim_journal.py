from collections.abc import Mapping

from ..queue.claim import Claim
from ..queue.recording import Recorder
from .journal import EVENT_TAKEN, ClaimLost


class ClaimJournal:
    """The journal of a claimed job: its checkpoints came with the claim, and are written under its token."""

    __slots__ = ("_claim", "_recorder")

    def __init__(self, claim: Claim, recorder: Recorder) -> None:
        self._claim = claim
        self._recorder = recorder

    @property
    def recorded(self) -> Mapping[str, str]:
        """Checkpoints of earlier attempts by step path."""
        return self._claim.steps

    async def record(self, path: str, text: str) -> bool:
        """Store a checkpoint. False: the claim is lost, nothing was written."""
        return await self._recorder.record(self._claim, path, text)

    async def take_event(self, name: str, path: str, otherwise: str = "") -> str | None:
        """Take the oldest event of a name as the checkpoint at a path, or write ``otherwise`` there.

        Raises:
            ClaimLost: The claim is lost, nothing was written.
        """
        taken = await self._recorder.take_event(self._claim, name, path, before=EVENT_TAKEN, otherwise=otherwise)
        if taken is None or isinstance(taken, str):
            return taken
        raise ClaimLost

    async def progress(self, text: str) -> bool:
        """Say how far the job has come. False: the claim is lost, nothing was said."""
        return await self._recorder.progress(self._claim, text)

    async def log(self, line: str) -> bool:
        """Write a line to the job's log. False: the claim is lost, nothing was written."""
        return await self._recorder.log(self._claim, line)

    def now_ms(self) -> int:
        """Redis' time, in milliseconds since the epoch."""
        return self._claim.now_ms()
