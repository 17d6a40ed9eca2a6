"""The same calls without ``await``: for Django, Flask and scripts.

``sync`` gives a workflow, a namespace or a job whose calls block. They can be made in any thread; one event loop in the
background of the process makes them all, so that the module that workers import serves a plain web application, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from typing_extensions import TypeVar

from ..errors import InvalidArgumentError
from ..workflow.job import Job
from ..workflow.namespace import WorkflowNamespace
from ..workflow.workflow import Workflow
from .job import SyncJob
from .namespace import SyncNamespace
from .pending import SyncPending
from .worker import SyncWorker
from .workflow import SyncWorkflow

__all__ = ["SyncJob", "SyncNamespace", "SyncPending", "SyncWorker", "SyncWorkflow", "sync"]

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
ProgressT = TypeVar("ProgressT", default=Any)
_BLOCKING: Sequence[tuple[type[object], Callable[[Any], object]]] = (
    (Workflow, SyncWorkflow),
    (WorkflowNamespace, SyncNamespace),
    (Job, SyncJob),
)


@overload
def sync(what: Workflow[InputT, OutputT, ProgressT], /) -> SyncWorkflow[InputT, OutputT, ProgressT]: ...
@overload
def sync(what: WorkflowNamespace, /) -> SyncNamespace: ...
@overload
def sync(what: Job[OutputT, ProgressT], /) -> SyncJob[OutputT, ProgressT]: ...
def sync(what: Any, /) -> Any:
    """A workflow, a namespace or a job whose calls block.

    Args:
        what: A ``Workflow``, a ``WorkflowNamespace`` or a ``Job``.

    Raises:
        InvalidArgumentError: It is none of these.

    Example:
        >>> job = sync(signup).run(Signup("ada@example.org"))
        >>> engagement = job.wait(timeout=30)
    """
    for kind, blocking in _BLOCKING:
        if isinstance(what, kind):
            return blocking(what)
    raise InvalidArgumentError(f"sync takes a Workflow, a WorkflowNamespace or a Job, not {what!r}")
