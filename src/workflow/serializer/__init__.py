"""Values to JSON text and back, in the format of the TypeScript library superjson 2.

Plain JSON data is ``{"json": …}``. Anything else is annotated in ``meta``, so that JavaScript reads what both languages
have (dates, sets, maps, big integers, NaN and infinities, regular expressions, URLs, errors), and Python reads its own
types as what they were. See ``docs/serialization.md``.

A class is restored only if it is registered, named by a type hint, or already defined in an imported module. Nothing
is imported or constructed because a text says so.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast, overload

from . import decode as _decode
from . import direct as _direct
from . import encode as _encode
from .foreign import UNDEFINED, URL, BigInt, Map, RecordedError, Uint8Array, Uint8ClampedArray
from .registry import register
from .schema import convert as _convert
from .schema import named_classes
from .shapes import type_of

__all__ = [
    "UNDEFINED",
    "URL",
    "BigInt",
    "Map",
    "Reader",
    "RecordedError",
    "Uint8Array",
    "Uint8ClampedArray",
    "convert",
    "dumps",
    "loads",
    "register",
]

T = TypeVar("T")
_NO_HINT: Any = object()
_is_class = cast("Callable[[Any], bool]", inspect.isclass)


def dumps(value: Any, *, hint: Any = _NO_HINT) -> str:
    """A value as text.

    Args:
        value: Plain JSON data, Python's other built-in types, exceptions, instances of dataclasses, NamedTuples, enums,
            Structs, attrs classes, pydantic models and registered classes, and containers of all these.
        hint: The type that ``loads`` will be given. With it, a class that ``loads`` could not restore (one that is
            defined inside a function and not named by the type) is refused now instead of then.

    Returns:
        JSON text, without line breaks.

    Raises:
        SerializationError: Something in it cannot be written. The text names its place, as in ``$.user.tags[3]``.

    Example:
        >>> dumps({"tags": {"a"}})
        '{"json":{"tags":["a"]},"meta":{"values":{"tags":["set"]},"v":1}}'
    """
    return _encode.dumps(value, None if hint is _NO_HINT else named_classes(hint))


@overload
def loads(text: str | bytes, type: type[T], *, convert: bool = True) -> T: ...
@overload
def loads(text: str | bytes, type: Any = ..., *, convert: bool = True) -> Any: ...
def loads(text: str | bytes, type: Any = Any, *, convert: bool = True) -> Any:
    """The value of a text.

    Args:
        text: What ``dumps``, or superjson, wrote.
        type: The type that the value must have: any that msgspec converts to, a pydantic model, or a generic or union
            of these. The value is validated, and what was written as plain JSON becomes what the type says.
        convert: False: ``type`` only names classes that may be restored; the value stays what was written. It is for
            texts of our own whose types are known to be right.

    Returns:
        The value.

    Raises:
        SerializationError: The text is none, names a class that is not known here, or does not fit ``type``. The text
            of the error names the place, as in ``$.user.tags[3]``.
        InvalidArgumentError: ``type`` is no type that values can be converted to.

    Example:
        >>> loads('{"json":{"tags":["a"]},"meta":{"values":{"tags":["set"]},"v":1}}')
        {'tags': {'a'}}
        >>> loads('{"json":{"tags":["a"]}}', dict[str, set[str]])
        {'tags': {'a'}}
    """
    typed = convert and type is not Any
    if isinstance(text, str) and _is_class(type):
        found = _direct.read(text, type, typed)
        if found is not _direct.NOTHING:
            return found
    value = _decode.loads(text, named_classes(type), typed=typed)
    if not typed or type_of(value) is type:
        return value
    return _convert(None if value is UNDEFINED else value, type)


class Reader:
    """Reads the texts of one type, as ``loads`` does with the same arguments.

    Example:
        >>> reader = Reader(dict[str, set[str]])
        >>> reader.read('{"json":{"tags":["a"]}}')
        {'tags': {'a'}}
        >>> reader.read_many(['{"json":{"tags":["a"]}}', '{"json":{}}'])
        [{'tags': {'a'}}, {}]
    """

    def __init__(self, type: Any, *, convert: bool = True) -> None:
        self._type = type
        self._convert = convert
        self._typed = convert and type is not Any
        self._is_class = _is_class(type)

    def read(self, text: str) -> Any:
        """The value of a text."""
        if self._is_class:
            found = _direct.read(text, self._type, self._typed)
            if found is not _direct.NOTHING:
                return found
        return loads(text, self._type, convert=self._convert)

    def read_many(self, texts: Sequence[str]) -> list[Any]:
        """The values of texts, in a fraction of the time where all say in the shortest way what their class takes."""
        if self._is_class and len(texts) > 1:
            found = _direct.read_many(texts, self._type, typed=self._typed)
            if found is not None:
                return found
        return [self.read(text) for text in texts]


@overload
def convert(value: Any, type: type[T]) -> T: ...
@overload
def convert(value: Any, type: Any) -> Any: ...
def convert(value: Any, type: Any) -> Any:
    """A value as an instance of a type: what ``loads`` does with a type, for a value that was not written yet.

    Args:
        value: The value. What is an instance already stays as it is.
        type: The type, as for ``loads``.

    Returns:
        The instance.

    Raises:
        SerializationError: The value does not fit. The text names the place, as in ``$.user.tags[3]``.
        InvalidArgumentError: ``type`` is no type that values can be converted to.

    Example:
        >>> convert(["a", "b"], set[str]) == {"a", "b"}
        True
    """
    return _convert(value, type)
