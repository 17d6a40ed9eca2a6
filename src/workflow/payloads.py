"""What a workflow takes and gives, as values and as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic

from typing_extensions import TypeVar

from ..errors import SerializationError
from . import serializer
from .definition import types_of
from .values import Serializer, result_hint

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
ProgressT = TypeVar("ProgressT", default=Any)


class Payloads(Generic[InputT, OutputT, ProgressT]):
    """The inputs, outputs and progress of one workflow.

    Attributes:
        serializer: How they are written.
        progress_type: What ``ctx.progress`` takes.
    """

    def __init__(
        self, workflow: str, function: Callable[[Any], Any], serializer: Serializer, *, schema: Any, progress: Any
    ) -> None:
        """Of a workflow's id, and its function, whose annotations count where ``schema`` or ``progress`` are None."""
        self._workflow = workflow
        self.serializer: Final = serializer
        input_type, progress_type = types_of(function)
        self._input_type = input_type if schema is None else schema
        self._inputs = serializer.Reader(self._input_type, convert=True)
        self._outputs = serializer.Reader(result_hint(function), convert=False)
        self.progress_type: Final[Any] = progress_type if progress is None else progress

    def write_input(self, value: InputT) -> str:
        """The text of an input, which was read again as a worker will.

        Raises:
            SerializationError: It cannot be stored, or does not fit the workflow's schema.
        """
        try:
            text = self.serializer.dumps(value)
        except SerializationError as error:
            raise SerializationError(f"workflow {self._workflow!r}: the input cannot be stored: {error}") from error
        if self._input_type is not Any:
            self.read_input(text)
        return text

    def fit_input(self, value: InputT) -> InputT:
        """An input as its run will be given it.

        Raises:
            SerializationError: It does not fit the workflow's schema.
        """
        if self._input_type is Any:
            return value
        try:
            fitting: InputT = serializer.convert(value, self._input_type)
        except SerializationError as error:
            raise self._misfit(error) from error
        return fitting

    def read_input(self, text: str) -> InputT:
        """A job's input from its text.

        Raises:
            SerializationError: It does not fit the workflow's schema.
        """
        try:
            value: InputT = self._inputs.read(text)
        except SerializationError as error:
            raise self._misfit(error) from error
        return value

    def _misfit(self, error: SerializationError) -> SerializationError:
        return SerializationError(f"workflow {self._workflow!r}: the input does not fit its schema: {error}")

    def read_output(self, text: str) -> OutputT:
        """A job's output from its result, as the function returned it: it is not converted to what its annotation says.

        Raises:
            SerializationError: It cannot be read.
        """
        try:
            value: OutputT = self._outputs.read(text)
        except SerializationError as error:
            raise self._unreadable(error) from error
        return value

    def read_outputs(self, texts: Sequence[str]) -> list[OutputT]:
        """The outputs of jobs, as ``read_output`` gives them.

        Raises:
            SerializationError: One cannot be read.
        """
        try:
            values: list[OutputT] = self._outputs.read_many(texts)
        except SerializationError as error:
            raise self._unreadable(error) from error
        return values

    def _unreadable(self, error: SerializationError) -> SerializationError:
        return SerializationError(f"workflow {self._workflow!r}: the output cannot be read: {error}")

    def read_progress(self, text: str) -> ProgressT:
        """What a run has said of how far it is.

        Raises:
            SerializationError: It is not of the workflow's progress type.
        """
        try:
            value: ProgressT = self.serializer.loads(text, self.progress_type, convert=True)
        except SerializationError as error:
            raise SerializationError(
                f"workflow {self._workflow!r}: the progress is not of its type: {error}"
            ) from error
        return value
