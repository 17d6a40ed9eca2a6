"""Text to values."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

import msgspec

from ...errors import SerializationError
from .classes import FLAGS, kind_of
from .encode import BOXED
from .foreign import UNDEFINED
from .paths import Segment, render, split
from .registry import registration_of, resolve
from .schema import restore_validated
from .shapes import as_list, as_object, as_text, type_of
from .transforms import RESTORE, read_builtin

# how many values the shared references of a text may add to those that are written in it
_MAX_SHARED = 1_000_000

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _Envelope(msgspec.Struct):
    json: Any
    meta: Any = None


_decode = msgspec.json.Decoder(_Envelope).decode


def loads(text: str | bytes, hinted: Mapping[str, type], *, typed: bool) -> Any:
    """The value of a text.

    Args:
        text: The text.
        hinted: The classes that the caller names.
        typed: What these classes are read from is validated, and ``undefined`` is a missing field.
    """
    try:
        envelope = _parse(text)
        if envelope.meta is None:
            return envelope.json
        if (name := _class_alone(envelope.meta)) is not None:
            validated = tuple(hinted.values()) if typed else ()
            return _restore("class", name, envelope.json, hinted=hinted, validated=validated, place=_at_the_top)
        return _Reader(envelope, hinted, typed=typed).read()
    except RecursionError:
        raise SerializationError("$: it is nested too deep to be read") from None


def _parse(text: str | bytes) -> _Envelope:
    try:
        return _decode(text)
    except msgspec.MsgspecError as error:
        why = str(error)
    except UnicodeEncodeError:
        why = "it holds a lone surrogate that is not escaped"
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if _SURROGATE.search(text):
        # JavaScript's strings may hold lone surrogates, and so may Python's; msgspec refuses them
        try:
            found = json.loads(text, parse_constant=_refuse_constant)
        except ValueError as error:
            why = str(error)
        else:
            if isinstance(found, dict) and "json" in found:
                fields = as_object(found)
                return _Envelope(fields["json"], fields.get("meta"))
    raise SerializationError(f'$: this is not a serialized value, as in {{"json": 1}}: {why}')


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _class_alone(meta: Any) -> str | None:
    """The name of the class that the whole value is an instance of, if that is all that a text's meta says."""
    # at each value that is read: matching the same as a pattern takes three times as long
    if type_of(meta) is not dict or len(meta) != 2:  # noqa: PLR2004 - values and version
        return None
    version, values = meta.get("v"), meta.get("values")
    # what equals 1 without being an integer is no version
    if type_of(version) is not int or version != 1 or type_of(values) is not list or len(values) != 1:
        return None
    [annotation] = values
    if type_of(annotation) is not list or len(annotation) != 2 or annotation[0] != "class":  # noqa: PLR2004 - kind, name
        return None
    name = annotation[1]
    return name if isinstance(name, str) and name not in RESTORE else None


def _at_the_top() -> str:
    """The place of the whole value, for people."""
    return "$"


class _Node:
    """A place that the annotations speak of."""

    __slots__ = ("added", "alias", "annotation", "children", "done", "entered", "key", "parent", "raw", "value")

    def __init__(self, raw: Any, parent: "_Node | None", key: str | int) -> None:
        self.raw = raw
        self.parent = parent
        self.key = key
        self.children: dict[str | int, _Node] = {}
        self.annotation: list[Any] | None = None
        self.alias: _Node | None = None
        self.entered = False
        self.done = False
        self.value: Any = None
        self.added = 0

    def place(self) -> str:
        """Where it is, for people."""
        segments: list[Segment] = []
        node = self
        while node.parent is not None:
            segments.append(node.key)
            node = node.parent
        return render(reversed(segments))

    def child(self, segment: str) -> "_Node | None":
        """The place of a segment below this one, or None when there is none."""
        key: str | int = segment
        raw = self.raw
        if isinstance(raw, list):
            # an index as it is written, of a list that fits into memory
            if not segment.isascii() or not segment.isdecimal() or len(segment) > 12:  # noqa: PLR2004 - digits
                return None
            key = int(segment)
            if str(key) != segment or key >= len(as_list(raw)):
                return None
        elif not isinstance(raw, dict) or segment not in raw:
            return None
        node = self.children.get(key)
        if node is None:
            # the key fits the kind of container
            container: Any = self.raw
            node = self.children[key] = _Node(container[key], self, key)
        return node


class _Reader:
    """Reads one annotated text: finds all annotated places first, then fills them from the inside out."""

    def __init__(self, envelope: _Envelope, hinted: Mapping[str, type], *, typed: bool) -> None:
        self._meta = envelope.meta
        self._root = _Node(envelope.json, None, "")
        self._hinted = hinted
        self._validated = tuple(hinted.values()) if typed else ()
        self._typed = typed
        self._legacy = True
        self._sizes: dict[int, int] = {}

    def read(self) -> Any:
        try:
            meta = as_object(self._meta)
            version = meta.get("v", 0)
            if type(version) is not int or not 0 <= version <= 1:
                raise ValueError(f"version {version!r} is not known here")
            self._legacy = version < 1
            if meta.get("values") is not None:
                self._annotate(meta["values"])
            if meta.get("referentialEqualities") is not None:
                self._link(meta["referentialEqualities"])
        except (TypeError, ValueError) as error:
            raise SerializationError(f"$: the meta of the text cannot be read: {str(error)[:300]}") from error
        return self._fill(self._root)

    def _at(self, base: _Node, path: Any) -> _Node:
        """The place of a path below another."""
        node = base
        for segment in split(as_text(path), legacy=self._legacy):
            child = node.child(segment)
            if child is None:
                raise ValueError(f"it annotates {segment[:100]!r} in {node.place()}, where there is no such thing")
            node = child
        return node

    def _annotate(self, values: Any) -> None:
        waiting: list[tuple[_Node, Any]] = [(self._root, values)]
        while waiting:
            node, note = waiting.pop()
            if isinstance(note, list):
                kind, *inside = as_list(note)
                if node.annotation is not None or len(inside) > 1:
                    raise ValueError(f"{node.place()} has more than one type")
                node.annotation = [kind] if isinstance(kind, str) else [as_text(part) for part in as_list(kind)]
                note = inside[0] if inside else None
            if note is None:
                continue
            waiting.extend((self._at(node, path), inner) for path, inner in as_object(note).items())

    def _link(self, references: Any) -> None:
        """Make the places that are one object in JavaScript one object here."""
        if isinstance(references, list):
            raise TypeError("the value holds itself")
        for path, others in as_object(references).items():
            shared = self._at(self._root, path)
            for other in as_list(others):
                node = self._at(self._root, other)
                if node.alias is not None:
                    raise ValueError(f"{node.place()} is to be two things")
                node.alias = shared
        self._measure(self._root.raw)

    def _measure(self, raw: Any) -> int:
        """How many values are in each container."""
        container: Any = raw
        if isinstance(raw, dict):
            container = as_object(raw).values()
        elif not isinstance(raw, list):
            return 1
        size = 1 + sum(map(self._measure, container))
        self._sizes[id(cast("object", raw))] = size
        return size

    def _fill(self, node: _Node) -> Any:
        """The value at a place. One frame a level, for Python's stack."""
        if node.done:
            return node.value
        if node.entered:
            raise SerializationError(f"{node.place()}: it holds itself, which cannot be read")
        node.entered = True
        if node.alias is not None:
            node.value = self._fill(node.alias)
            node.added = node.alias.added
            if node.alias.alias is None:
                node.added += self._sizes.get(id(node.alias.raw), 1)
        else:
            raw = node.raw
            for key, child in node.children.items():
                value = self._fill(child)
                node.added += child.added
                if value is UNDEFINED and self._typed:
                    self._leave_out(raw, key)
                else:
                    raw[key] = value
            node.value = raw if node.annotation is None else self._transform(node, node.annotation, raw)
        if node.added > _MAX_SHARED:
            raise SerializationError(f"{node.place()}: its shared references stand for too many values")
        node.done = True
        return node.value

    def _leave_out(self, raw: Any, key: str | int) -> None:
        """What JavaScript makes of undefined where it must be JSON."""
        if isinstance(raw, dict):
            del raw[key]
        else:
            raw[key] = None

    def _transform(self, node: _Node, annotation: list[Any], payload: Any) -> Any:
        match annotation:
            case ["custom" | "class" as form, str(name), *boxed] if name not in RESTORE and boxed in ([], [BOXED]):
                inside = payload[0] if boxed and payload else payload
                return _restore(form, name, inside, hinted=self._hinted, validated=self._validated, place=node.place)
            case _:
                try:
                    return read_builtin(annotation, payload)
                except Exception as error:
                    raise _failure(node.place, annotation, error) from error


def _restore(
    form: str,
    name: str,
    payload: Any,
    *,
    hinted: Mapping[str, type],
    validated: tuple[type, ...],
    place: Callable[[], str],
) -> Any:
    """An instance of the class of a name; ``validated`` classes, and those derived from them, are read as new ones."""
    try:
        cls, trusted = resolve(name, hinted)
        registration = registration_of(cls)
        if registration is not None and registration.decode is not None:
            return registration.decode(payload)
        kind = kind_of(cls)
        if kind is None or kind.form != form:
            raise ValueError(f"it is annotated as {form}, which is not for such classes")
        as_new = bool(validated) and issubclass(cls, validated)
        if as_new and kind is FLAGS:
            # what is made to fit a type takes flags as their numbers only
            return payload
        if not as_new or form != "class":
            return kind.restore(cls, payload, trusted=trusted)
        fields = as_object(payload)
    except Exception as error:
        raise _failure(place, [name], error) from error
    return restore_validated(cls, fields, place())


def _failure(place: Callable[[], str], annotation: list[Any], error: Exception) -> SerializationError:
    """What to say of whatever the parsers of the built-in types, or of a registered class, have raised."""
    if isinstance(error, RecursionError):
        raise error
    why = str(error) if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {error}"
    return SerializationError(f"{place()}: it cannot be read as {str(annotation[-1:])[1:-1][:200]}: {why[:500]}")
