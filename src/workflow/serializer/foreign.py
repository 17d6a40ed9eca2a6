"""The values that the text format knows and Python has no type of its own for."""

import traceback
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

from msgspec import UNSET

__all__ = ["UNDEFINED", "URL", "BigInt", "Map", "RecordedError", "Uint8Array", "Uint8ClampedArray"]

K = TypeVar("K")
V = TypeVar("V")

UNDEFINED: Final = UNSET
"""JavaScript's ``undefined``. It is ``msgspec.UNSET``, so it is falsy and fits fields of type ``T | UnsetType``."""


class URL(str):
    """An absolute URL: a string that JavaScript reads as a ``URL``.

    Args:
        value: The URL, with its scheme.

    Raises:
        ValueError: It has no scheme.

    Example:
        >>> URL("https://example.com/a?b=c")
        URL('https://example.com/a?b=c')
    """

    __slots__ = ()

    def __new__(cls, value: str) -> Self:  # noqa: D102 - the class documents its construction
        if not urlsplit(value).scheme:
            raise ValueError(f"{value!r} is not an absolute URL: it has no scheme such as https:")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"URL({str.__repr__(self)})"


class BigInt(int):
    """An integer that is written as a JavaScript ``bigint``, although a JavaScript number could hold it.

    It is what a ``bigint`` within 2**53 is read as; a larger one is read as an ``int``, which is written as a
    ``bigint`` anyway.

    Example:
        >>> BigInt(5) == 5
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"BigInt({int.__repr__(self)})"


class Map(dict[K, V]):
    """A dict that is written as a JavaScript ``Map``, although all its keys are strings.

    It is what a ``Map`` with string keys (or none) is read as; any other ``Map`` is read as a ``dict``, which is
    written as a ``Map`` anyway.

    Example:
        >>> Map({"a": 1}) == {"a": 1}
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Map({dict(self)!r})"


class Uint8Array(bytes):
    """Bytes that are written as a JavaScript ``Uint8Array``: a list of numbers, 2.7 times the size of plain ``bytes``.

    Example:
        >>> Uint8Array(b"ab") == b"ab"
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({bytes.__repr__(self)})"


class Uint8ClampedArray(Uint8Array):
    """Bytes that are written as a JavaScript ``Uint8ClampedArray``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RecordedError:
    """An exception as data: what every exception is read back as. It is never constructed again.

    Attributes:
        name: The name of the exception's class.
        message: Its text.
        traceback: The traceback where it was raised, as text; empty when it was never raised.
        cause: The ``cause`` of a JavaScript ``Error``; ``UNDEFINED`` without one. (A Python traceback tells its own.)

    Example:
        >>> RecordedError.of(KeyError("k")).name
        'KeyError'
    """

    name: str
    message: str
    traceback: str = ""
    cause: Any = UNDEFINED

    @classmethod
    def of(cls, error: BaseException) -> "RecordedError":
        """The record of an exception."""
        try:
            message = str(error)
        except Exception as why:  # noqa: BLE001 - a broken __str__ must not hide the failure that is being recorded
            message = f"<its text cannot be had: {type(why).__name__} in __str__>"
        lines = traceback.format_exception(error) if error.__traceback__ is not None else []
        return cls(type(error).__name__, message, "".join(lines))

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"
