"""What all runs of one workflow have in common."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .calls import QUIET
from .codec import PLAIN, Notes
from .values import Serializer, is_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..queue.backoff import Rng
    from .interceptor import Interceptor
    from .threads import Threads

IN_PLACE_MS: Final = 1000


@dataclass(slots=True, kw_only=True)
class Program:
    """A workflow's function, and what its runs are to do.

    Attributes:
        function: The workflow's function, async or plain.
        workflow: The workflow's id.
        serializer: How values are written.
        threads: Where plain functions run.
        notes: How texts are written that people read.
        progress_type: What its progress must be.
        namespace: What the workflows that it starts as children must be of; None: anything.
        non_retryable: Error types that are for good, as ``NonRetryableError`` is.
        end_timeout: How long, in seconds, a run that was ended may clean up.
        rng: Where the backoff's jitter comes from.
        interceptor: Sees the steps' functions, and may put others in their place.
        in_place_ms: A wait of no more milliseconds than this does not end the run.
        quiet: For how long, in seconds, waits must have been all that is left before the run ends for them.
        is_async: Whether the function gives a coroutine.
    """

    function: Callable[[Any], Any]
    workflow: str
    serializer: Serializer
    threads: Threads
    notes: Notes = PLAIN
    progress_type: Any = Any
    namespace: object = None
    non_retryable: tuple[type[BaseException], ...] = ()
    end_timeout: float = 10.0
    rng: Rng = random
    interceptor: Interceptor | None = None
    in_place_ms: int = IN_PLACE_MS
    quiet: float = QUIET
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_async = is_async(self.function)
