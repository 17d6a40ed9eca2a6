"""Kinds of classes whose instances are written as fields, and made again from these without running their code."""

import dataclasses
import enum
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import GetSetDescriptorType
from typing import Any, Protocol, cast, get_origin

import msgspec

from .shapes import as_object, shape, type_of, with_article

# what a class may add to these cannot be put back without its constructor
_BUILTIN_BASES = (str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, BaseException)
_HARMLESS_FACTORIES = (list, dict, set, tuple, frozenset)


class Kind(Protocol):
    """How the instances of one kind of class are written and made again."""

    form: str
    """``class`` where the text holds an object of fields, ``custom`` where it holds something else."""

    def dump(self, value: Any) -> Any:
        """What the text holds; what is inside is not serialized yet."""
        ...

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:
        """An instance of what the text held, as it was when it was written.

        Neither constructor nor validation run: the text may not decide that they do. ``trusted`` classes (registered,
        or named by a type hint) may compute defaults for fields that have been added to them since.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """A field, by its name in the text and in the class, with what a missing one becomes."""

    wire: str
    name: str
    default: Any = msgspec.NODEFAULT
    factory: Any = None


def _values(cls: type, fields: Iterable[Field], payload: Any, *, trusted: bool) -> dict[str, Any]:
    """The values of a class's fields; what the class does not know is dropped."""
    given = as_object(payload)
    values: dict[str, Any] = {}
    for field in fields:
        if field.wire in given:
            values[field.name] = given[field.wire]
        elif field.default is not msgspec.NODEFAULT:
            values[field.name] = field.default
        elif field.factory is not None and (trusted or _is_harmless(field.factory)):
            values[field.name] = field.factory()
        else:
            raise ValueError(
                f"the field {field.name!r} of {cls.__qualname__} is missing in what was stored"
                + (": give the new field a default" if trusted else ": give it a default, or register() the class")
            )
    return values


def _is_harmless(factory: Any) -> bool:
    """Whether a default factory does no more than make an empty container."""
    return (get_origin(factory) or factory) in _HARMLESS_FACTORIES


def _check_untrusted(cls: type) -> None:
    """Refuse a class whose finalizer would run on an instance that only the text asked for."""
    if has_attribute(cls, "__del__"):
        raise ValueError(f"{cls.__qualname__} has a __del__ method: register() it, or give it as a type")


def has_attribute(cls: type, name: str) -> bool:
    """Whether a class or a base of it defines a name, without running what looking it up may run."""
    return any(name in base.__dict__ for base in cls.__mro__)


class _Dataclasses:
    """Classes of ``dataclasses``."""

    form = "class"

    def dump(self, value: Any) -> dict[str, Any]:
        return {name: getattr(value, name) for name in _dataclass_names(type_of(value))}

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:
        if not trusted:
            _check_untrusted(cls)
        names = _dataclass_names(cls)
        if type_of(payload) is not dict or tuple(payload) != names:
            payload = _values(cls, _dataclass_fields(cls), payload, trusted=trusted)
        instance = object.__new__(cls)
        for name in names:
            object.__setattr__(instance, name, payload[name])
        return instance


@lru_cache(maxsize=1024)
def _dataclass_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


@lru_cache(maxsize=1024)
def _dataclass_fields(cls: Any) -> tuple[Field, ...]:
    """A dataclass's fields, which are searched for anew at each question."""
    missing = dataclasses.MISSING
    return tuple(
        Field(
            field.name,
            field.name,
            msgspec.NODEFAULT if field.default is missing else field.default,
            None if field.default_factory is missing else field.default_factory,
        )
        for field in dataclasses.fields(cls)
    )


class _Attrs:
    """attrs classes."""

    form = "class"

    def dump(self, value: Any) -> dict[str, Any]:
        return {field.name: getattr(value, field.name) for field in type_of(value).__attrs_attrs__}

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:
        if not trusted:
            _check_untrusted(cls)
        instance = object.__new__(cls)
        for name, value in _values(cls, self._fields(cls), payload, trusted=trusted).items():
            object.__setattr__(instance, name, value)
        return instance

    def _fields(self, cls: Any) -> Iterator[Field]:
        nothing = sys.modules["attr"].NOTHING
        for field in cls.__attrs_attrs__:
            if hasattr(field.default, "factory"):
                # a factory that takes the instance needs one that is complete
                yield Field(field.name, field.name, factory=None if field.default.takes_self else field.default.factory)
            else:
                default = msgspec.NODEFAULT if field.default is nothing else field.default
                yield Field(field.name, field.name, default)


class _Structs:
    """msgspec ``Struct``s."""

    form = "class"

    def dump(self, value: Any) -> dict[str, Any]:
        cls = type_of(value)
        names = zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)
        return {wire: getattr(value, name) for wire, name in names}

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:
        if not trusted:
            _check_untrusted(cls)
        values = _values(cls, _struct_fields(cls), payload, trusted=trusted)
        if not has_attribute(cls, "__post_init__"):
            return cls(**values)
        instance = _without_post_init(cls)(**values)
        msgspec.structs.force_setattr(instance, "__class__", cls)
        return instance


@lru_cache(maxsize=256)
def _struct_fields(cls: Any) -> tuple[Field, ...]:
    """A Struct's fields, which msgspec computes anew for each question."""
    return tuple(
        Field(
            field.encode_name,
            field.name,
            field.default,
            None if field.default_factory is msgspec.NODEFAULT else field.default_factory,
        )
        for field in msgspec.structs.fields(cls)
    )


def _do_nothing(_: object) -> None:
    """Stand in for a ``__post_init__``."""


@lru_cache(maxsize=256)
def _without_post_init(cls: Any) -> Any:
    """A subclass of a Struct, of the same layout, whose construction runs nothing: Structs have no other way to it."""
    if any("__init_subclass__" in base.__dict__ for base in cls.__mro__ if base not in msgspec.Struct.__mro__):
        raise ValueError(
            f"{cls.__qualname__} has both __post_init__ and __init_subclass__, so that it cannot be restored without "
            "running its code: give it as a type, or register() it with encode= and decode="
        )
    return type(cls)(cls.__name__, (cls,), {"__post_init__": _do_nothing, "__module__": cls.__module__})


class _PydanticModels:
    """pydantic models, of version 2. Their private attributes are not written."""

    form = "class"

    def dump(self, value: Any) -> dict[str, Any]:
        state = value.__dict__
        fields = {name: state[name] for name in type_of(value).model_fields if name in state}
        return {**(value.__pydantic_extra__ or {}), **fields}

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:
        if not trusted:
            _check_untrusted(cls)
        values = _values(cls, self._fields(cls), payload, trusted=trusted)
        allows_extra = cls.model_config.get("extra") == "allow"
        private = {
            name: attribute.get_default()
            for name, attribute in cls.__private_attributes__.items()
            if attribute.default_factory is None and type(attribute.default).__name__ != "PydanticUndefinedType"
        }
        instance = object.__new__(cls)
        state: dict[str, Any] = {"__dict__": values, "__pydantic_fields_set__": {n for n in values if n in payload}}
        # a root model has neither, and would take them for fields
        if not getattr(cls, "__pydantic_root_model__", False):
            state["__pydantic_extra__"] = (
                {k: v for k, v in payload.items() if k not in values} if allows_extra else None
            )
            state["__pydantic_private__"] = private or None
        for name, value in state.items():
            object.__setattr__(instance, name, value)
        return instance

    def _fields(self, cls: Any) -> Iterator[Field]:
        for name, field in cls.model_fields.items():
            undefined = field.is_required() or field.default_factory is not None
            yield Field(name, name, msgspec.NODEFAULT if undefined else field.get_default(), field.default_factory)


class _NamedTuples:
    """NamedTuples and ``collections.namedtuple``s."""

    form = "class"

    def dump(self, value: Any) -> dict[str, Any]:
        return dict(zip(value._fields, value, strict=True))

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:
        if not trusted:
            _check_untrusted(cls)
        defaults = cls._field_defaults
        fields = (Field(name, name, defaults.get(name, msgspec.NODEFAULT)) for name in cls._fields)
        values: Iterable[Any] = _values(cls, fields, payload, trusted=trusted).values()
        return cast("Any", tuple).__new__(cls, values)


class _Enums:
    """Enums, by the name of their member: it is what stays when values are numbered anew."""

    form = "custom"

    def dump(self, value: Any) -> str:
        name: object = value._name_
        if not isinstance(name, str) or type_of(value).__members__.get(name) is not value:
            raise ValueError(f"{value!r} is no named member of its enum")
        return name

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:  # noqa: ARG002 - members exist already
        member = cls.__members__.get(payload) if isinstance(payload, str) else None
        if member is None:
            raise ValueError(f"{cls.__qualname__} has no member {payload!r}"[:300])
        return member


class _Flags:
    """Flags, by their number, since they can be combined."""

    form = "custom"

    def dump(self, value: Any) -> int:
        number = value._value_
        if not isinstance(number, int):
            raise TypeError(f"the value of {value!r} is no integer")
        return int(number)

    def restore(self, cls: Any, payload: Any, *, trusted: bool) -> Any:  # noqa: ARG002 - nothing of the class runs
        if type(payload) is not int:
            raise ValueError(f"{with_article(cls.__qualname__)} is read from an integer, not from {shape(payload)}")
        return cls(payload)


DATACLASSES: Kind = _Dataclasses()
STRUCTS: Kind = _Structs()
PYDANTIC: Kind = _PydanticModels()
NAMED_TUPLES: Kind = _NamedTuples()
FLAGS: Kind = _Flags()

# the first that applies
_KINDS: tuple[tuple[Callable[[type], bool], Kind | None], ...] = (
    (lambda cls: issubclass(cls, enum.Flag), FLAGS),
    (lambda cls: issubclass(cls, enum.Enum), _Enums()),
    (lambda cls: has_attribute(cls, "_fields") and issubclass(cls, tuple), NAMED_TUPLES),
    (lambda cls: issubclass(cls, msgspec.Struct), STRUCTS),
    (lambda cls: issubclass(cls, _BUILTIN_BASES), None),
    (lambda cls: has_attribute(cls, "__pydantic_validator__") and has_attribute(cls, "model_validate"), PYDANTIC),
    (lambda cls: has_attribute(cls, "__attrs_attrs__"), _Attrs()),
    (lambda cls: has_attribute(cls, "__dataclass_fields__"), DATACLASSES),
)


def manages_fields(cls: Any) -> bool:
    """Whether a dataclass has something of its own, a property or a slot say, that keeps what a field is set to."""
    return any(
        has_attribute(type_of(base.__dict__.get(name)), "__set__")
        for name in _dataclass_names(cls)
        for base in cls.__mro__
    )


def _has_own_ways(cls: Any) -> bool:
    """Whether it is up to a class what its instances' attributes are."""
    plain = (GetSetDescriptorType, type(None))
    return cls.__getattribute__ is not object.__getattribute__ or not all(
        isinstance(base.__dict__.get("__dict__"), plain) for base in cls.__mro__
    )


def dump_of(kind: Kind, cls: Any) -> Callable[[Any], Any]:
    """What dumps the instances of one class; what it gives may be the instance's own, and is not to be changed."""
    if kind is not DATACLASSES or manages_fields(cls) or _has_own_ways(cls):
        return kind.dump
    names = _dataclass_names(cls)

    def dump(value: Any) -> Any:
        fields = value.__dict__
        return fields if type_of(fields) is dict and tuple(fields) == names else kind.dump(value)

    return dump


@lru_cache(maxsize=1024)
def kind_of(cls: type) -> Kind | None:
    """How the instances of a class are written, or None when it is no such class.

    attrs and pydantic are never imported for this: who has an instance has done so.
    """
    return next((kind for applies, kind in _KINDS if applies(cls)), None)
