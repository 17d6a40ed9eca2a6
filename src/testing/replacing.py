"""What runs in the place of a step's function, and what is seen of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..errors import InvalidArgumentError
from ..queue.validation import shown
from ..workflow.compensation import UNDER_WAY_PATH
from ..workflow.values import is_async
from .names import names_step

if TYPE_CHECKING:
    from ..workflow.context import Context, SyncContext
    from ..workflow.workflow import Workflow
    from .entry import Attempt

UNDO: Final = UNDER_WAY_PATH + "/"


@dataclass(frozen=True, slots=True)
class _Replacement:
    step: str
    workflow: str | None
    function: Callable[..., Any]


class Replacements:
    """The functions that run instead of those of steps, by what a test calls the steps."""

    def __init__(self) -> None:
        self._all: list[_Replacement] = []

    def add(self, step: str, function: Callable[..., Any], workflow: str | None) -> None:
        """Have a function run instead of a step's, in the jobs of a workflow or (None) of all.

        Raises:
            InvalidArgumentError: It is no function.
        """
        if not callable(function):
            raise InvalidArgumentError(f"step {step!r} is replaced by {shown(function)}, which is no function")
        self._all.append(_Replacement(step, workflow, function))

    def find(self, workflow: str, path: str) -> Callable[..., Any] | None:
        """What runs instead of the step at a path; the last that was given counts."""
        for each in reversed(self._all):
            if each.workflow in (None, workflow) and names_step(each.step, path):
                return each.function
        return None

    def of_child(self, parent: Workflow[Any, Any], path: str) -> Callable[[Any], Any] | None:
        """What runs instead of the workflow that a step starts as a child: the replacement, given the child's input."""
        found = self.find(parent.id, path)
        if found is None:
            return None
        function = found

        async def run(ctx: Context[Any]) -> Any:
            return await function(ctx.input)

        def run_plain(ctx: SyncContext[Any]) -> Any:
            return function(ctx.input)

        return run if is_async(function) else run_plain


class Watcher:
    """Notes which steps of an attempt ran and which were replayed, and has replacements run."""

    def __init__(self, attempt: Attempt, workflow: Workflow[Any, Any], replacements: Replacements) -> None:
        self._attempt = attempt
        self._workflow = workflow
        self._replacements = replacements

    def replays(self, path: str) -> None:
        """A step gives what it gave before."""
        self._attempt.replayed.append(path)

    def runs(self, path: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of a step, or of a compensation, is about to be called."""
        undo = path.startswith(UNDO)
        if undo:
            self._attempt.undone.append(path.removeprefix(UNDO).replace("~1", "/").replace("~0", "~"))
        else:
            self._attempt.ran.append(path)
        found = self._replacements.find(self._workflow.id, path)
        if found is None:
            return function
        if is_async(found) and not undo and not is_async(self._workflow.function):
            raise InvalidArgumentError(
                f"step {path!r} of workflow {self._workflow.id!r}, a plain function, is replaced by an async one: "
                "replace it by a plain one"
            )
        return found
