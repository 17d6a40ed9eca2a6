"""The built-in types: how each is annotated, what the text holds of it, and how it is read back."""

import base64
import math
import re
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID

import msgspec

from .foreign import UNDEFINED, URL, BigInt, Map, RecordedError, Uint8Array, Uint8ClampedArray
from .instants import is_date, read, read_date, text_of
from .regexp import pattern_of, regexp_literal
from .shapes import as_list, as_object, as_text

Annotation = str | list[str]
Described = tuple[Annotation, Any]

# the integers that JavaScript's numbers hold exactly
MAX_INT = 2**53
_INTEGER = re.compile(r"-?[0-9]+")


def _custom(name: str, payload: Callable[[Any], Any]) -> Callable[[Any], Described]:
    return lambda value: (["custom", name], payload(value))


def _rows(value: dict[Any, Any]) -> list[Any]:
    return [[key, item] for key, item in value.items()]


def _describe_datetime(value: datetime) -> Described:
    return "Date" if is_date(value) else ["custom", "datetime"], text_of(value)


def describe_error(value: RecordedError) -> Described:
    """An error's annotation and what the text holds of it."""
    payload: dict[str, Any] = {"name": value.name, "message": value.message}
    if value.traceback:
        payload["stack"] = value.traceback
    if value.cause is not UNDEFINED:
        payload["cause"] = value.cause
    return "Error", payload


def _describe_pattern(value: "re.Pattern[Any]") -> Described:
    literal = regexp_literal(value)
    if literal is not None:
        return "regexp", literal
    return ["custom", "Pattern"], [value.pattern, int(value.flags & ~re.DEBUG)]


def number_text(value: float) -> str:
    """What the text holds of a number that JSON has no digits for."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0"


_ARRAYS = {
    "b": "Int8Array",
    "h": "Int16Array",
    "H": "Uint16Array",
    "i": "Int32Array",
    "I": "Uint32Array",
    "f": "Float32Array",
    "d": "Float64Array",
    "q": "BigInt64Array",
    "Q": "BigUint64Array",
}
_TYPECODES = {name: typecode for typecode, name in _ARRAYS.items()}
_SPECIAL_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0": -0.0}


def _describe_array(value: "array[Any]") -> Described:
    code = value.typecode
    if code not in _ARRAYS:
        raise ValueError(f"an array of typecode {code!r} has no counterpart: use one of {', '.join(_ARRAYS)}, or bytes")
    items: list[Any] = value.tolist()
    if code in "qQ":
        items = [str(item) for item in items]
    elif code in "fd":
        # what JSON has no digits for has no annotation of its own in here
        items = [
            item if math.isfinite(item) and (item or math.copysign(1, item) > 0) else number_text(item)
            for item in items
        ]
    return ["typed-array", _ARRAYS[code]], items


def _read_typed_array(name: str, payload: Any) -> Any:
    """A JavaScript typed array: bytes where it is one of bytes, else an ``array.array``."""
    items = as_list(payload)
    if name in ("Uint8Array", "Uint8ClampedArray"):
        return (Uint8Array if name == "Uint8Array" else Uint8ClampedArray)(items)
    typecode = _TYPECODES.get(name)
    if typecode is None:
        raise ValueError(f"{name[:80]!r} is no typed array that is known here")
    if typecode in "qQ":
        return array(typecode, [_bigint(item) for item in items])
    if typecode in "fd":
        items = [_SPECIAL_NUMBERS[item] if isinstance(item, str) else item for item in items]
    return array(typecode, items)


DESCRIBE: dict[type, Callable[[Any], Described]] = {
    type(UNDEFINED): lambda _: ("undefined", None),
    datetime: _describe_datetime,
    set: lambda value: ("set", list(value)),
    # rows are lists, not tuples, so that they are walked like any other list
    dict: lambda value: ("map", _rows(value)),
    Map: lambda value: ("map", _rows(value)),
    BigInt: lambda value: ("bigint", int.__repr__(value)),
    URL: lambda value: ("URL", str.__str__(value)),
    RecordedError: describe_error,
    re.Pattern: _describe_pattern,
    Uint8Array: lambda value: (["typed-array", "Uint8Array"], list(value)),
    Uint8ClampedArray: lambda value: (["typed-array", "Uint8ClampedArray"], list(value)),
    array: _describe_array,
    tuple: _custom("tuple", list),
    frozenset: _custom("frozenset", list),
    bytes: _custom("bytes", lambda value: base64.b64encode(value).decode()),
    bytearray: _custom("bytearray", lambda value: base64.b64encode(value).decode()),
    Decimal: _custom("Decimal", str),
    UUID: _custom("UUID", str),
    date: _custom("date", date.isoformat),
    time: _custom("time", text_of),
    timedelta: _custom("timedelta", msgspec.to_builtins),
    complex: _custom("complex", lambda value: [value.real, value.imag]),
    PosixPath: _custom("Path", str),
    WindowsPath: _custom("Path", str),
    PurePosixPath: _custom("PurePosixPath", str),
    PureWindowsPath: _custom("PureWindowsPath", str),
    OrderedDict: _custom("OrderedDict", _rows),
    Counter: _custom("Counter", _rows),
    deque: _custom("deque", lambda value: [list(value), value.maxlen]),
}
"""By exact type: the annotation, and what the text holds, whose inside is not serialized yet."""


BUILT_IN = frozenset({*DESCRIBE, str, int, float, bool, list, type(None)})


def base_of(cls: type) -> type | None:
    """The built-in type that a class extends."""
    return next((base for base in cls.__mro__[1:] if base in BUILT_IN), None)


def _pairs(payload: Any) -> list[Any]:
    rows = as_list(payload)
    if not all(len(as_list(row)) == 2 for row in rows):  # noqa: PLR2004 - key and value
        raise TypeError("a list of pairs is needed here")
    return rows


def _bigint(payload: Any) -> int:
    text = as_text(payload)
    if not _INTEGER.fullmatch(text):
        raise ValueError("it is no integer")
    return int(text)


def _read_bigint(payload: Any) -> int:
    value = _bigint(payload)
    return BigInt(value) if -MAX_INT <= value <= MAX_INT else value


def _complete(collection: Any, items: list[Any]) -> Any:
    """A collection of hashed items, unless some of them have been lost: 1 and true differ in JavaScript only."""
    if len(collection) != len(items):
        raise ValueError("some of its items are different in JavaScript, but equal in Python")
    return collection


def _mapping(payload: Any) -> dict[Any, Any]:
    rows = _pairs(payload)
    value: dict[Any, Any] = _complete({key: item for key, item in rows}, rows)  # noqa: C416 - rows are lists
    return value


def _read_map(payload: Any) -> dict[Any, Any]:
    value = _mapping(payload)
    return Map(value) if all(type(key) is str for key in value) else value


def _read_number(payload: Any) -> float:
    text = as_text(payload)
    # a NaN of its own: a set holds two of them, as it did
    return float("nan") if text == "NaN" else _SPECIAL_NUMBERS[text]


def _read_error(payload: Any) -> RecordedError:
    fields = as_object(payload)
    name, message, stack = (fields.get(field, default) for field, default in _ERROR_TEXTS)
    return RecordedError(as_text(name), as_text(message), as_text(stack), fields.get("cause", UNDEFINED))


_ERROR_TEXTS = (("name", "Error"), ("message", ""), ("stack", ""))


def _read_bytes(payload: Any) -> bytes:
    return base64.b64decode(as_text(payload), validate=True)


def _read_complex(payload: Any) -> complex:
    real, imag = as_list(payload)
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise TypeError("it is read from two numbers")
    return complex(real, imag)


def _read_pattern(payload: Any) -> "re.Pattern[Any]":
    pattern, flags = as_list(payload)
    if type(pattern) not in (str, bytes) or type(flags) is not int or flags & re.DEBUG:
        raise TypeError("it is read from a pattern and its flags")
    return re.compile(pattern, flags)


def _read_deque(payload: Any) -> "deque[Any]":
    items, maxlen = as_list(payload)
    return deque(as_list(items), maxlen)


READ: dict[str, Callable[[Any], Any]] = {
    "undefined": lambda _: UNDEFINED,
    "bigint": _read_bigint,
    "Date": lambda payload: read_date(as_text(payload)),
    "Error": _read_error,
    "regexp": lambda payload: pattern_of(as_text(payload)),
    "set": lambda payload: _complete(set(as_list(payload)), payload),
    "map": _read_map,
    "number": _read_number,
    "URL": lambda payload: URL(as_text(payload)),
}
"""JavaScript's types, by annotation."""

RESTORE: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda payload: tuple(as_list(payload)),
    "frozenset": lambda payload: _complete(frozenset(as_list(payload)), payload),
    "bytes": _read_bytes,
    "bytearray": lambda payload: bytearray(_read_bytes(payload)),
    "Decimal": lambda payload: Decimal(as_text(payload)),
    "UUID": lambda payload: UUID(as_text(payload)),
    "date": lambda payload: date.fromisoformat(as_text(payload)),
    "time": lambda payload: read(time, as_text(payload)),
    "datetime": lambda payload: read(datetime, as_text(payload)),
    "timedelta": lambda payload: msgspec.convert(as_text(payload), timedelta),
    "complex": _read_complex,
    "Path": lambda payload: Path(as_text(payload)),
    "PurePosixPath": lambda payload: PurePosixPath(as_text(payload)),
    "PureWindowsPath": lambda payload: PureWindowsPath(as_text(payload)),
    "Pattern": _read_pattern,
    "OrderedDict": lambda payload: OrderedDict(_mapping(payload)),
    "Counter": lambda payload: Counter(_mapping(payload)),
    "deque": _read_deque,
}
"""Python's own types, by the name of their custom annotation."""


def read_builtin(annotation: list[Any], payload: Any) -> Any:
    """A value of a built-in type.

    Raises:
        Exception: Whatever its parser raises on what it cannot read.
    """
    match annotation:
        case [str(name)] if name in READ:
            return READ[name](payload)
        case ["custom", str(name)] if name in RESTORE:
            return RESTORE[name](payload)
        case ["typed-array", str(name)]:
            return _read_typed_array(name, payload)
        case _:
            raise ValueError("this annotation is not known here")
