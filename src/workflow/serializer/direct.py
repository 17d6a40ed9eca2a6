"""The texts of one instance whose fields are plain JSON, which are the commonest, without a walk through them."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from .classes import DATACLASSES, STRUCTS, kind_of, manages_fields
from .registry import own_name, until_registered

HEAD: Final = '{"json":'
_START: Final = len(HEAD)
# nobody who writes a text can know it
_BETWEEN: Final = int.from_bytes(os.urandom(6))
_COMMAS: Final = f",{_BETWEEN},"
NOTHING: Final = object()
_PLAIN_TYPES: Final = (inspect.AnyType, inspect.BoolType, inspect.FloatType, inspect.IntType, inspect.NoneType)
_set_attribute: Final = object.__setattr__
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_Decoders = tuple[()] | tuple[Callable[[str], Any]] | tuple[Callable[[str], Any], Callable[[str], list[Any]]]


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
        tail, stop, decode, _ = _reader_of(cls, typed)
        if decode is None or not text.startswith(HEAD) or not text.endswith(tail):
            return NOTHING
        # what stands between is one whole value, or it is refused
        return decode(text[_START:stop])
    except Exception:  # noqa: BLE001 - it is raised again, with its place, on the walk
        return NOTHING


def read_many(texts: Sequence[str], cls: Any, *, typed: bool) -> list[Any] | None:
    """What ``read`` gives for each of many texts, in a list; None where it gives NOTHING for any, or may."""
    try:
        tail, stop, _, decode_all = _reader_of(cls, typed)
        count, joined, between = len(texts), "\n".join(texts), f"{tail}\n{HEAD}"
        if decode_all is None or joined.count("\n") != count - 1:
            return None
        inner = joined.replace(between, _COMMAS)
        # each text but the first begins like that, and each but the last ends so
        if len(joined) - len(inner) != (count - 1) * (len(between) - len(_COMMAS)):
            return None
        if not inner.startswith(HEAD) or not inner.endswith(tail):
            return None
        found = decode_all(f"[{inner[_START:stop]}]")
        # what one text lacks another might have too much of, were it not for what stands between
        return found[::2] if found[1::2] == [_BETWEEN] * (count - 1) and len(found) == 2 * count - 1 else None
    except Exception:  # noqa: BLE001 - as above
        return None


class _Reader(NamedTuple):
    """What the texts of a class's instances end with, where that begins, and what reads their fields, if anything."""

    tail: str
    stop: int
    decode: Callable[[str], Any] | None = None
    decode_all: Callable[[str], list[Any]] | None = None


@until_registered
def _reader_of(cls: Any, typed: bool) -> _Reader:  # noqa: FBT001 - a key of the cache
    name = own_name(cls)
    if name is None:
        return _Reader("", 0)
    tail = tail_of("class", name)
    return _Reader(tail, -len(tail), *(_decoders_of(cls) if typed else _restorers_of(cls)))


def _restorers_of(cls: Any) -> _Decoders:
    """What makes an instance of a class again from the JSON of its fields, or a list of it."""
    kind = kind_of(cls)
    if kind is None or kind.form != "class":
        return ()
    if kind is DATACLASSES and not manages_fields(cls):
        # msgspec sets the fields of another class of the same layout, which has no types to validate and no code to run
        names = [(field.name, Any) for field in dataclasses.fields(cls)]
        double: Any = dataclasses.make_dataclass("Double", names, init=False)
        try:
            _set_attribute(object.__new__(double), "__class__", cls)
        except TypeError:
            pass  # it has slots, or a base of another layout
        else:
            return _transmuting(double, cls)
    return (lambda text: kind.restore(cls, _decode(text), trusted=True),)


def _transmuting(double: Any, cls: Any) -> _Decoders:
    decode, decode_all = msgspec.json.Decoder(double).decode, _decoder_of_all(double)

    def restore(text: str) -> Any:
        instance = decode(text)
        instance.__class__ = cls
        return instance

    def restore_all(text: str) -> list[Any]:
        instances = decode_all(text)
        for instance in instances[::2]:
            instance.__class__ = cls
        return instances

    return restore, restore_all


def _decoders_of(cls: Any) -> _Decoders:
    """What reads a class right from JSON as ``schema.convert`` would from what JSON holds, or a list of it."""
    if kind_of(cls) not in (DATACLASSES, STRUCTS):
        return ()
    try:
        described = inspect.type_info(cls)
    except Exception:  # noqa: BLE001 - annotations are expressions of the user's, which may raise anything
        return ()
    if isinstance(described, inspect.StructType) and described.array_like:
        return ()  # JSON has these as lists, and we as objects of fields
    fields = described.fields if isinstance(described, inspect.DataclassType | inspect.StructType) else ()
    if not all(_is_plain(field.type) for field in fields):
        return ()
    return msgspec.json.Decoder(cls).decode, _decoder_of_all(cls)


def _decoder_of_all(cls: Any) -> Callable[[str], list[Any]]:
    """What reads a list of it, with a number between two."""
    many: Any = list
    return msgspec.json.Decoder(many[cls | int]).decode


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
