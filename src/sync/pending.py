from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from .job import SyncJob
from .portal import portal
from .workflow import SyncWorkflow

if TYPE_CHECKING:
    from ..queue.options import Duration
    from ..workflow.options import RunOptions
    from ..workflow.pending import Pending
    from ..workflow.workflow import Workflow

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class SyncPending:
    """Runs that are sent when a transaction has committed: a ``Pending`` whose ``send`` blocks.

    Example:
        >>> with sync(ns).pending() as pending, session.begin():
        ...     session.add(order)
        ...     pending.run(ship, Shipment(order.id))
    """

    def __init__(self, pending: Pending) -> None:
        self._pending: Final = pending

    def __repr__(self) -> str:
        return repr(self._pending)

    def __len__(self) -> int:
        return len(self._pending)

    def run(
        self,
        workflow: Workflow[InputT, OutputT] | SyncWorkflow[InputT, OutputT],
        input: InputT,
        /,
        **options: Unpack[RunOptions],
    ) -> SyncJob[OutputT]:
        """Have a workflow run once the runs are sent. Everything is checked now. See ``Pending.run``."""
        return SyncJob(self._pending.run(_plain(workflow), input, **options))

    def run_in(
        self,
        workflow: Workflow[InputT, OutputT] | SyncWorkflow[InputT, OutputT],
        input: InputT,
        delay: Duration,
        /,
        **options: Unpack[RunOptions],
    ) -> SyncJob[OutputT]:
        """Have a workflow run after a delay, which begins when it is sent. See ``Pending.run``."""
        return SyncJob(self._pending.run_in(_plain(workflow), input, delay, **options))

    def run_at(
        self,
        workflow: Workflow[InputT, OutputT] | SyncWorkflow[InputT, OutputT],
        input: InputT,
        instant: datetime,
        /,
        **options: Unpack[RunOptions],
    ) -> SyncJob[OutputT]:
        """Have a workflow run at an instant. See ``Pending.run``."""
        return SyncJob(self._pending.run_at(_plain(workflow), input, instant, **options))

    def discard(self) -> None:
        """Forget the runs: the transaction was rolled back."""
        self._pending.discard()

    def send(self) -> list[SyncJob[Any]]:
        """Send the runs, when the transaction has committed. See ``Pending.send``.

        Example:
            >>> transaction.on_commit(pending.send)
        """
        return [SyncJob(job) for job in portal.call(self._pending.send)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.send()
        else:
            self.discard()


def _plain(workflow: Workflow[InputT, OutputT] | SyncWorkflow[InputT, OutputT]) -> Workflow[InputT, OutputT]:
    return workflow.workflow if isinstance(workflow, SyncWorkflow) else workflow
