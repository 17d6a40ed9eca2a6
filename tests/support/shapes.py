"""Values with all their types, to compare them by: 1, 1.0 and True differ, NaN and NaN do not."""

import collections
import dataclasses
import re
from array import array
from collections.abc import Callable
from datetime import datetime, time
from typing import Any

import attrs
import msgspec
import pydantic


def shape(value: Any) -> Any:
    """A value with the types of everything in it. Two shapes are equal when nothing at all has changed."""
    describe = next((describe for kinds, describe in _SHAPES if isinstance(value, kinds)), _itself)
    return type(value), describe(value)


def _itself(value: Any) -> Any:
    return value


def _items(value: Any) -> Any:
    return [shape(item) for item in value]


def _fields(value: Any, names: Any) -> Any:
    return [(name, shape(getattr(value, name))) for name in names]


def _instance(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return _fields(value, [field.name for field in dataclasses.fields(value)])
    cls: Any = value.__class__
    if attrs.has(cls):
        return _fields(value, [field.name for field in attrs.fields(cls)])
    return value


_SHAPES: list[tuple[tuple[type, ...], Callable[[Any], Any]]] = [
    ((float, complex), repr),
    ((datetime, time), lambda value: (value.replace(tzinfo=None), value.fold, repr(value.tzinfo))),
    ((re.Pattern,), lambda value: (value.pattern, value.flags)),
    ((collections.Counter,), lambda value: sorted(repr(shape(item)) for item in value.items())),
    ((dict,), lambda value: [(shape(key), shape(item)) for key, item in value.items()]),
    ((set, frozenset), lambda value: sorted(repr(shape(item)) for item in value)),
    ((collections.deque,), lambda value: (value.maxlen, _items(value))),
    ((list, tuple), _items),
    ((array,), lambda value: (value.typecode, [repr(item) for item in value])),
    ((msgspec.Struct,), lambda value: _fields(value, value.__struct_fields__)),
    ((pydantic.BaseModel,), lambda value: (shape(value.__dict__), shape(value.__pydantic_private__))),
    ((object,), _instance),
]
