from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from .job import SyncJob
from .pending import SyncPending
from .portal import portal
from .worker import SyncWorker

if TYPE_CHECKING:
    from ..queue.limits import Limits
    from ..queue.presence import WorkerInfo
    from ..workflow.flow import Flow
    from ..workflow.namespace import WorkflowNamespace
    from ..workflow.worker import WorkerSettings

OutputT = TypeVar("OutputT")


class SyncNamespace:
    """A namespace whose calls block: those of ``WorkflowNamespace``, from any thread without an event loop.

    Attributes:
        id: Its id.
        namespace: The namespace itself.
    """

    def __init__(self, namespace: WorkflowNamespace) -> None:
        self.id: Final = namespace.id
        self.namespace: Final = namespace

    def __repr__(self) -> str:
        return f"<SyncNamespace {self.id!r}>"

    def run_flow(self, root: Flow[Any, OutputT]) -> SyncJob[OutputT]:
        """Enqueue a tree of jobs in one call. See ``WorkflowNamespace.run_flow``."""
        return SyncJob(portal.call(lambda: self.namespace.run_flow(root)))

    def pending(self) -> SyncPending:
        """Collect runs during a transaction, and send them when it has committed. See ``SyncPending``."""
        return SyncPending(self.namespace.pending())

    def worker(self, *, concurrency: int = 10, **settings: Unpack[WorkerSettings]) -> SyncWorker:
        """A worker of all workflows created so far, for ``with``. See ``SyncWorker``."""
        return SyncWorker(self.namespace.worker(concurrency=concurrency, **settings))

    def set_limits(self, *, concurrency: int | None) -> None:
        """Set how many jobs of the whole namespace may run at once, for every process, from now on. None: no cap."""
        portal.call(lambda: self.namespace.set_limits(concurrency=concurrency))

    def limits(self) -> Limits:
        """The namespace's cap, and whether it is paused, as they stand for every process."""
        return portal.call(self.namespace.limits)

    def workers(self) -> list[WorkerInfo]:
        """The workers that live, then the last 50 that have gone."""
        return portal.call(self.namespace.workers)

    def pause(self) -> None:
        """Start nothing of the namespace from now on; what runs goes on."""
        portal.call(self.namespace.pause)

    def resume(self) -> None:
        """Start jobs again after ``pause``."""
        portal.call(self.namespace.resume)

    def close(self) -> None:
        """Stop the workers that run here, fail pending waits, close the connections. At exit it happens by itself."""
        portal.call(self.namespace.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
