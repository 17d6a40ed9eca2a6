"""Values to text."""

import inspect
import json
import math
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from io import IOBase
from typing import Any, cast

import msgspec

from ...errors import SerializationError
from .classes import dump_of, kind_of
from .direct import HEAD, tail_of
from .foreign import RecordedError
from .paths import MapKey, Segment, escape, render
from .registry import class_name, own_name, registration_of, resolve, until_registered
from .shapes import type_of, with_article
from .transforms import DESCRIBE, MAX_INT, Annotation, Described, base_of, describe_error, number_text

MAX_DEPTH = 300
"""How many containers may be nested.

Annotations nest twice as deep as what they are about, and what is read is bounded by Python's stack (1000 frames, some
of them used already), which must not be found out when it is read.
"""

# the third part of an annotation whose value stands in a list of its own; JavaScript looks at the first two
BOXED = "boxed"

_TEXT = frozenset({str})
_UNTOUCHED = frozenset({str, bool, type(None)})
_JSON_TYPES = frozenset({dict, list, str, int, float, bool, type(None)})

_encode = msgspec.json.Encoder().encode


def dumps(value: Any, hint: Mapping[str, type] | None) -> str:
    """A value as text; see the package."""
    text = None
    if type_of(value) in _JSON_TYPES:
        text = _plain_text(value)
    elif hint is None:
        text = _instance_text(value)
    return _Writer(hint).dumps(value) if text is None else text


def _plain_text(value: Any) -> str | None:
    """The text of plain JSON; None: what else it is, and where, is to be found."""
    try:
        text = _encode(value)
        # only now: what could be encoded holds itself nowhere
        whole = type_of(value) is dict or type_of(value) is list
        plain = is_plain(value, MAX_DEPTH - 1) if whole else is_plain([value])
    except (TypeError, ValueError, RecursionError):
        return None
    return f"{HEAD}{text.decode()}}}" if plain else None


def _instance_text(value: Any) -> str | None:
    """The text of an instance whose fields are plain JSON, which needs no walk through them."""
    try:
        dump, tail = _writer_of(type_of(value))
        if dump is None:
            return None
        fields = dump(value)
        text = _encode(fields)
        return f"{HEAD}{text.decode()}{tail}" if is_plain(fields, MAX_DEPTH - 1) else None
    except Exception:  # noqa: BLE001 - it is raised again, with its place, on the walk
        return None


@until_registered
def _writer_of(cls: Any) -> tuple[Callable[[Any], Any] | None, str]:
    """What gives the fields of a class's instances, and what their texts end with behind these."""
    kind, name = kind_of(cls), own_name(cls)
    if name is None or kind is None or kind.form != "class" or cls in DESCRIBE:
        return None, ""
    return dump_of(kind, cls), tail_of(kind.form, name)


# the hot path: one loop without calls, the commonest types first, and constants that the compiler folds
def is_plain(container: Any, depth: int = MAX_DEPTH) -> bool:  # noqa: C901 - see above
    """Whether what is in a list or a dict is no more than JSON says: no other types, no numbers that lose something.

    Args:
        container: It holds itself nowhere.
        depth: How many levels it may have.
    """
    items = container
    if type_of(container) is dict:
        for key in container:
            if type_of(key) is not str:
                return False
        items = container.values()
    for item in items:
        kind = type_of(item)
        if kind is str:
            continue
        if kind is int:
            if not -(2**53) <= item <= 2**53:
                return False
        elif kind is dict or kind is list:
            if not depth or not is_plain(item, depth - 1):
                return False
        elif kind is float:
            if (item and item - item != 0.0) or (not item and math.copysign(1.0, item) < 0.0):
                return False
        elif kind is not bool and item is not None:
            return False
    return True


def _has_text_keys(value: dict[Any, Any]) -> bool:
    return _TEXT.issuperset(map(type, value))


def _is_exact(number: float) -> bool:
    """Whether JSON has digits for a float that JavaScript reads as the same."""
    return number - number == 0 if number else math.copysign(1, number) > 0


class _Writer:
    """Writes one value."""

    def __init__(self, hint: Mapping[str, type] | None) -> None:
        self._hint = hint
        self._path: list[Segment] = []
        self._open: set[int] = set()

    def dumps(self, value: Any) -> str:
        notes: dict[str, Any] = {}
        try:
            payload, note = self._walk(value, notes, "")
            envelope: dict[str, Any] = {"json": payload}
            if note or notes:
                envelope["meta"] = {"values": note or notes, "v": 1}
            return _text(envelope)
        except RecursionError:
            raise self._error(f"it is nested too deep (more than {MAX_DEPTH} levels, or a deep stack)") from None

    def _walk(self, value: Any, notes: dict[str, Any], prefix: str) -> tuple[Any, list[Any] | None]:
        """What the text holds of a value, and its annotation.

        Args:
            value: The value.
            notes: Gets the annotations of what is inside an unannotated value, by their paths.
            prefix: Where in the text the inside of the value is, below what ``notes`` belong to.
        """
        # one frame a level: the depth that can be written is bounded by Python's stack
        annotation, payload = self._describe(value)
        kind = type_of(payload)
        if kind is not list and kind is not dict:
            return payload, None if annotation is None else [annotation]
        if id(value) in self._open:
            raise self._error("it is a container that holds itself")
        if len(self._path) > MAX_DEPTH:
            raise self._error(f"it is nested too deep (more than {MAX_DEPTH} levels)")
        self._open.add(id(value))
        inner = notes
        if annotation is not None:
            inner, prefix = {}, ""
        filled: Any = [None] * len(payload) if kind is list else {}
        for key, item in _items(payload):
            if type_of(item) in _UNTOUCHED:
                filled[key] = item
                continue
            self._path.append(MapKey(item[0]) if annotation == "map" else key)
            place = prefix + (escape(key) if isinstance(key, str) else str(key))
            filled[key], note = self._walk(item, inner, place + ".")
            if note is not None:
                inner[place] = note
            self._path.pop()
        self._open.discard(id(value))
        if annotation is None:
            return filled, None
        return filled, [annotation, inner] if inner else [annotation]

    def _describe(self, value: Any) -> tuple[Annotation | None, Any]:
        """A value's annotation, and what the text holds of it, whose inside is not walked yet."""
        cls = type_of(value)
        if cls in _UNTOUCHED or cls is list:
            return None, value
        if cls is int:
            if -MAX_INT <= value <= MAX_INT:
                return None, value
        elif cls is float:
            return (None, value) if _is_exact(value) else ("number", number_text(value))
        elif cls is dict and _has_text_keys(value):
            return None, value
        try:
            return self._describe_instance(value, cls)
        except RecursionError:
            raise
        except Exception as error:
            why = str(error) if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {error}"
            raise self._error(f"{with_article(_name(cls))} cannot be serialized: {why}") from error

    def _describe_instance(self, value: Any, cls: type) -> Described:
        if cls is int:
            return "bigint", str(value)
        describe = DESCRIBE.get(cls)
        if describe is not None:
            return describe(value)
        registration = registration_of(cls)
        if registration is not None and registration.encode is not None:
            return _boxed(["custom", registration.name], registration.encode(value))
        if isinstance(value, BaseException):
            return describe_error(RecordedError.of(value))
        kind = kind_of(cls)
        if kind is None:
            raise TypeError(_refusal(value, cls))
        name = class_name(cls) if registration is None else registration.name
        if self._hint is not None:
            resolve(name, self._hint)
        return [kind.form, name], kind.dump(value)

    def _error(self, why: str) -> SerializationError:
        return SerializationError(f"{render(self._path)}: {why}")


def _items(payload: Any) -> Iterable[tuple[int | str, Any]]:
    """What is inside a list or an object, by index or key."""
    if type_of(payload) is list:
        return enumerate(cast("list[Any]", payload))
    return cast("dict[str, Any]", payload).items()


def _boxed(annotation: list[str], payload: Any) -> Described:
    """A registered class's payload. One that needs an annotation itself is put into a list, to be inside."""
    kind = type_of(payload)
    if kind is tuple:
        return annotation, list(payload)
    if payload is None or kind in (str, bool, list) or (kind is dict and _has_text_keys(payload)):
        return annotation, payload
    return [*annotation, BOXED], [payload]


def _name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _refusal(value: Any, cls: type) -> str:
    """What to do instead of writing a value."""
    if isinstance(value, type):
        return f"it is the class {_name(value)} itself; give an instance, or its name"
    if inspect.isawaitable(value):
        return "await it first"
    if inspect.isroutine(value):
        return f"it is {value.__qualname__}; give what it returns, or its name"
    base = base_of(cls)
    if base is not None:
        return f"convert it to {_name(base)}, or register() the class"
    if isinstance(value, (Iterable, AsyncIterable)) and not isinstance(value, IOBase):
        return "make a list of it first"
    return "give plain data, or register() the class with encode= and decode="


def _text(envelope: dict[str, Any]) -> str:
    try:
        return _encode(envelope).decode()
    except UnicodeEncodeError:
        # a lone surrogate, as in a file name that is not UTF-8, has no UTF-8 either: it is escaped
        return json.dumps(envelope, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
