"""What a workflow's function says of itself."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

from ..errors import InvalidArgumentError


def check_definition(function: object, non_retryable: Sequence[object]) -> None:
    """Refuse what no workflow can be made of.

    Raises:
        InvalidArgumentError: The function cannot be called, or a type of errors is none.
    """
    if not callable(function):
        raise InvalidArgumentError(f"run= must be a function that takes a context, not {function!r}")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise InvalidArgumentError(f"run= must not yield: {function!r} is a generator; return the output")
    if not _takes_a_context(function):
        raise InvalidArgumentError(f"run= must be a function of one argument, the context: {function!r} is not")
    for kind in non_retryable:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise InvalidArgumentError(f"non_retryable must hold exception classes, not {kind!r}")


def _takes_a_context(function: Callable[..., object]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # of some callables nothing is known
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def types_of(function: Any) -> tuple[Any, Any]:
    """The types of the input and of the progress, as the function's context parameter says them; Any if it does not."""
    try:
        hints = get_type_hints(function)
        parameter = next(iter(inspect.signature(function).parameters), None)
    except Exception:  # noqa: BLE001 - annotations are expressions of the user's, which may raise anything
        return Any, Any
    said = () if parameter is None else get_args(hints.get(parameter))
    known = [Any if isinstance(each, TypeVar) else each for each in said]
    input_type, progress_type, *_ = *known, Any, Any
    return input_type, progress_type
