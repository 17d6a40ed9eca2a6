"""Values to text and back, with errors that name the workflow, the job and the step."""

import inspect
from collections.abc import Sequence
from types import FunctionType
from typing import Any, Protocol, get_type_hints

import msgspec

from ..errors import SerializationError, StepError
from ..queue.outcome import Failure
from ..queue.validation import shown
from .codec import PLAIN, Notes


class Reader(Protocol):
    """Reads the texts of one type."""

    def read(self, text: str, /) -> Any:
        """The value of a text."""
        ...

    def read_many(self, texts: Sequence[str], /) -> list[Any]:
        """The values of texts."""
        ...


class Serializer(Protocol):
    """How values are written. The package's own serializer module is one."""

    def dumps(self, value: Any, /) -> str:
        """A value as text."""
        ...

    def loads(self, text: str, type: Any, /, *, convert: bool) -> Any:
        """A value from text, as a type; or as it was written, if ``type`` shall only name classes."""
        ...

    def Reader(self, type: Any, /, *, convert: bool) -> Reader:  # noqa: N802 - of the package's own it is a class
        """What reads the texts of one type."""
        ...


class Values(msgspec.Struct, eq=False):
    """The values of one job.

    Attributes:
        serializer: How they are written.
        workflow: The id of its workflow.
        job_id: The job's id.
        notes: How the texts are written that people read.
    """

    serializer: Serializer
    workflow: str
    job_id: str
    notes: Notes = PLAIN

    def dump(self, value: Any, what: str, path: str = "") -> str:
        """A value as text. ``what`` it is, and the step's path, are for the error.

        Raises:
            SerializationError: It cannot be written.
        """
        try:
            return self.serializer.dumps(value)
        except Exception as error:
            raise self.unwritten(error, what, path) from error

    def unwritten(self, error: Exception, what: str, path: str = "") -> SerializationError:
        """What is said of a value that could not be written; ``error`` is its cause."""
        unwritten = self._error(error, what, path, "cannot be stored")
        unwritten.__cause__ = error
        return unwritten

    def check(self, text: str, type: Any, what: str) -> None:
        """Refuse the text of a value that is not of a type.

        Raises:
            SerializationError: It is not.
        """
        try:
            self.serializer.loads(text, type, convert=True)
        except Exception as error:
            raise self._error(error, what, "", "is not of its type") from error

    def dump_failure(self, error: BaseException) -> str:
        """A failure as text."""
        return self.notes.write_failure(Failure.of(error)).dumps()

    def load_failure(self, text: str) -> Failure:
        """A failure from text."""
        return Failure.loads(text).with_texts(self.notes.read)

    def load(self, text: str, type: Any, what: str, path: str) -> Any:
        """A value from text, as a type.

        Raises:
            SerializationError: It cannot be read, or is not of this type.
        """
        return self._load(text, type, what, path, convert=True)

    def load_again(self, text: str, hint: Any, what: str, path: str) -> Any:
        """A value from the text that ``dump`` made of it, as it was; ``hint`` names classes that it may be made of.

        Raises:
            SerializationError: It cannot be read.
        """
        return self._load(text, hint, what, path, convert=False)

    def _load(self, text: str, hint: Any, what: str, path: str, *, convert: bool) -> Any:
        try:
            return self.serializer.loads(text, hint, convert=convert)
        except Exception as error:
            raise self._error(error, what, path, "cannot be read") from error

    def _error(self, error: Exception, what: str, path: str, trouble: str) -> SerializationError:
        where = f"workflow {self.workflow!r}, job {self.job_id!r}" + (f", step {path!r}" if path else "")
        # a serializer's own error says where and what to do; of anything else the type belongs to the story
        why = str(error) if isinstance(error, SerializationError) else f"{type(error).__name__}: {error}"
        return SerializationError(f"{where}: {what} {trouble}: {why}")


def is_async(function: Any) -> bool:
    """Whether a call of it gives a coroutine, as far as one can see without calling it."""
    if isinstance(function, FunctionType) and function.__code__.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def check_function(function: Any, path: str) -> None:
    """Refuse what cannot be called as a step's function.

    Raises:
        StepError: It is none.
    """
    if callable(function):
        return
    if inspect.iscoroutine(function):
        function.close()
        raise StepError(
            f"step {path!r} was given a coroutine: give the function and its arguments instead, as in "
            f"do(name, {function.__name__}, ...), so that a replay need not call it"
        )
    raise StepError(f"step {path!r} was given {shown(function)}, which is no function")


def result_hint(function: Any) -> Any:
    """The type that a function says it returns; ``Any`` when it says none, or none that can be resolved."""
    function = inspect.unwrap(getattr(function, "func", function))
    try:
        return get_type_hints(function).get("return", Any)
    except Exception:  # noqa: BLE001 - annotations are expressions of the user's, which may raise anything
        return Any
