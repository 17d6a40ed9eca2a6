"""The texts of one instance whose fields are plain JSON, which are the commonest, without a walk through them."""

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import inspect

from .classes import DATACLASSES, STRUCTS, kind_of, manages_fields
from .registry import own_name, until_registered

HEAD: Final = '{"json":'
NOTHING: Final = object()
_PLAIN_TYPES: Final = (inspect.AnyType, inspect.BoolType, inspect.FloatType, inspect.IntType, inspect.NoneType)
_set_attribute: Final = object.__setattr__
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def tail_of(form: str, name: str) -> str:
    """What the text of an instance ends with, behind its fields.

    Raises:
        UnicodeEncodeError: UTF-8 cannot write the name.
    """
    return f',"meta":{{"values":[{_encode([form, name]).decode()}],"v":1}}}}'


def read(text: str, cls: Any, typed: bool) -> Any:  # noqa: FBT001 - by position, which is the hot path's
    """The instance of a class that was asked for, if a text holds one and says it in the shortest way; else NOTHING.

    What the class, or the text, takes beyond that, and what is wrong with either, is for the walk to find out.

    Args:
        text: The text.
        cls: What was asked for.
        typed: Whether the fields are validated, or those of the class as they were written.
    """
    try:
        tail, decode = _reader_of(cls, typed)
        if decode is None or not text.startswith(HEAD) or not text.endswith(tail):
            return NOTHING
        # what stands between is one whole value, or it is refused
        return decode(text[len(HEAD) : -len(tail)])
    except Exception:  # noqa: BLE001 - it is raised again, with its place, on the walk
        return NOTHING


@until_registered
def _reader_of(cls: Any, typed: bool) -> tuple[str, Callable[[str], Any] | None]:  # noqa: FBT001 - a key of the cache
    """What the texts of a class's instances end with, and what reads their fields."""
    name = own_name(cls)
    if name is None:
        return "", None
    return tail_of("class", name), _decoder_of(cls) if typed else _restorer_of(cls)


def _restorer_of(cls: Any) -> Callable[[str], Any] | None:
    """What makes an instance of a class again from the JSON of its fields."""
    kind = kind_of(cls)
    if kind is None or kind.form != "class":
        return None
    if kind is DATACLASSES and not manages_fields(cls):
        # msgspec sets the fields of another class of the same layout, which has no types to validate and no code to run
        names = [(field.name, Any) for field in dataclasses.fields(cls)]
        double: Any = dataclasses.make_dataclass("Double", names, init=False)
        try:
            _set_attribute(object.__new__(double), "__class__", cls)
        except TypeError:
            pass  # it has slots, or a base of another layout
        else:
            return _transmuting(msgspec.json.Decoder(double).decode, cls)
    return lambda text: kind.restore(cls, _decode(text), trusted=True)


def _transmuting(decode: Callable[[str], object], cls: Any) -> Callable[[str], Any]:
    def restore(text: str) -> Any:
        instance = decode(text)
        _set_attribute(instance, "__class__", cls)
        return instance

    return restore


def _decoder_of(cls: Any) -> Callable[[str], Any] | None:
    """What reads a class right from JSON as ``schema.convert`` would from what JSON holds."""
    if kind_of(cls) not in (DATACLASSES, STRUCTS):
        return None
    try:
        described = inspect.type_info(cls)
    except Exception:  # noqa: BLE001 - annotations are expressions of the user's, which may raise anything
        return None
    if isinstance(described, inspect.StructType) and described.array_like:
        return None  # JSON has these as lists, and we as objects of fields
    fields = described.fields if isinstance(described, inspect.DataclassType | inspect.StructType) else ()
    if not all(_is_plain(field.type) for field in fields):
        return None
    return msgspec.json.Decoder(cls).decode


def _is_plain(described: inspect.Type) -> bool:
    """Whether JSON's values are of a type as they are, with nothing that is read differently from a text."""
    match described:
        case inspect.StrType():
            return True
        case inspect.ListType(item_type=item):
            return _is_plain(item)
        case inspect.DictType(key_type=inspect.StrType(), value_type=item):
            return _is_plain(item)
        case inspect.UnionType(types=types):
            return all(map(_is_plain, types))
        case _:
            return isinstance(described, _PLAIN_TYPES)
