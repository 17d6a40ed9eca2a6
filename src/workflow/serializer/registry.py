"""Which classes may be written and restored, and under which names."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast

from ...errors import InvalidArgumentError
from .classes import kind_of
from .transforms import BUILT_IN, RESTORE

T = TypeVar("T")
P = ParamSpec("P")

_LONGEST_NAME = 500


@dataclass(frozen=True, slots=True)
class Registration:
    """What was registered for a class."""

    cls: type
    name: str
    encode: Callable[[Any], Any] | None
    decode: Callable[[Any], Any] | None


_by_class: dict[type, Registration] = {}
_by_name: dict[str, Registration] = {}
_generation = [0]
_forget: list[Callable[[], None]] = []


def until_registered(function: Callable[P, T]) -> Callable[P, T]:
    """Remember the answers of a function about classes, until one is registered."""

    @lru_cache(maxsize=1024)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> T:
        # what another thread has registered meanwhile may not be in the answer, and would never be
        while True:
            known = _generation[0]
            answer = function(*args, **kwargs)
            if _generation[0] == known:
                return answer

    _forget.append(remembered.cache_clear)
    return cast("Callable[P, T]", remembered)


def register(
    cls: type[T],
    name: str | None = None,
    encode: Callable[[T], Any] | None = None,
    decode: Callable[[Any], T] | None = None,
) -> type[T]:
    """Make a class one that is written and restored, in this process.

    Register it in the module that defines it, so that every process that imports the class knows it. Instances of
    subclasses are not covered. A class may be registered under several names: all are read, the last one is written,
    so that texts that were written before a class was renamed can still be read.

    Args:
        cls: The class.
        name: Its name in the text; by default ``module:qualname``. JavaScript's ``registerClass`` (a class with fields)
            or ``registerCustom`` (any other) takes the same name.
        encode: Makes a value that can be serialized out of an instance. Not needed for dataclasses, NamedTuples,
            enums, msgspec Structs, attrs classes and pydantic models.
        decode: Makes an instance of what ``encode`` gave, a tuple coming back as a list. Given with ``encode`` or not
            at all.

    Returns:
        The class, so that ``register`` can be used as a decorator.

    Raises:
        InvalidArgumentError: The class cannot be registered like this, or the name is taken.

    Example:
        >>> class Money:
        ...     def __init__(self, amount: int, currency: str) -> None:
        ...         self.amount, self.currency = amount, currency
        >>> _ = register(Money, "shop.money", lambda m: (m.amount, m.currency), lambda fields: Money(*fields))
        >>> loads(dumps(Money(5, "EUR"))).currency
        'EUR'
    """
    _check(cls, encode, decode)
    name = _checked_name(class_name(cls) if name is None else name)
    taken = _by_name.get(name)
    # a module that is loaded again defines its classes again
    if taken is not None and class_name(taken.cls) != class_name(cls):
        raise InvalidArgumentError(f"name={name!r} is taken: it was registered for {class_name(taken.cls)}")
    registration = Registration(cls, name, encode, decode)
    _by_class[cls] = registration
    _by_name[name] = registration
    _generation[0] += 1
    for forget in _forget:
        forget()
    return cls


def _checked_name(name: object) -> str:
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name not in RESTORE:
        return name
    raise InvalidArgumentError(
        f"name={name!r} cannot name a class: give a text of 1 to {_LONGEST_NAME} characters that is not the name of a "
        "built-in type"
    )


def _check(cls: object, encode: object, decode: object) -> None:
    if not isinstance(cls, type):
        raise InvalidArgumentError(f"cls={cls!r} is not a class")
    if cls in BUILT_IN:
        raise InvalidArgumentError(f"{cls.__name__} is built in and cannot be registered")
    for which, function in (("encode", encode), ("decode", decode)):
        if function is not None and not callable(function):
            raise InvalidArgumentError(f"{which}={function!r} is not a function")
    if (encode is None) != (decode is None):
        raise InvalidArgumentError(f"{cls.__qualname__}: give both encode= and decode=, or neither")
    if encode is None and kind_of(cls) is None:
        raise InvalidArgumentError(
            f"{cls.__qualname__} is no dataclass, NamedTuple, enum, Struct, attrs class or pydantic model: "
            "give encode= and decode="
        )


def registration_of(cls: type) -> Registration | None:
    """What was registered for a class."""
    return _by_class.get(cls)


def _main_name() -> str | None:
    """The importable name of the module that runs as ``__main__``, if it was started by name."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec.name if spec is not None else None


def class_name(cls: type) -> str:
    """What the text calls a class that was not given a name: ``module:qualname``."""
    module = cls.__module__
    return f"{(_main_name() or module) if module == '__main__' else module}:{cls.__qualname__}"


def own_name(cls: type) -> str | None:
    """The name that a class of fields is written under, if it means this class and no other.

    None for a class with functions of its own that write and read it.
    """
    registration = _by_class.get(cls)
    if registration is not None and registration.encode is not None:
        return None
    name = class_name(cls) if registration is None else registration.name
    named = _by_name.get(name)
    return name if named is None or named.cls is cls else None


def resolve(name: str, hinted: Mapping[str, type]) -> tuple[type, bool]:
    """The class of a name, and whether this process vouches for it (it is registered, or named by a type hint).

    Nothing is imported, and no code of a module or class is run by the search.

    Args:
        name: What the text says.
        hinted: The classes that the type hint names, by name.

    Raises:
        ValueError: There is none.
    """
    registration = _by_name.get(name)
    if registration is not None:
        return registration.cls, True
    cls = hinted.get(name) or _hinted_elsewhere(name, hinted)
    if cls is not None:
        return cls, True
    cls = _imported(name)
    if cls is None:
        raise ValueError(
            "no such class is known in this process: import its module before this is read, give the class as a type, "
            "or, if it was renamed, lanner.workflow.serializer.register(the class, under this name)"
        )
    return cls, cls in _by_class


def _hinted_elsewhere(name: str, hinted: Mapping[str, type]) -> type | None:
    """A hinted class that one of two processes has run as a script, where its module is called ``__main__``."""
    module, _, qualname = name.partition(":")
    for hinted_name, cls in hinted.items():
        hinted_module, _, hinted_qualname = hinted_name.partition(":")
        if qualname == hinted_qualname and "__main__" in (module, hinted_module):
            return cls
    return None


def _imported(name: str) -> type | None:
    module_name, _, qualname = name.partition(":")
    module = sys.modules.get(module_name)
    if module is None and module_name == _main_name():
        module = sys.modules.get("__main__")
    if not isinstance(module, ModuleType):
        return None
    # plain attribute access could load a lazy module, or run a __getattr__
    found: Any = None
    namespace: Mapping[str, Any] = ModuleType.__getattribute__(module, "__dict__")
    for part in qualname.split("."):
        found = namespace.get(part)
        if not isinstance(found, type):
            return None
        namespace = found.__dict__
    cls: type = found
    # a name that only refers to another module's class is not where that class is defined
    if cls.__qualname__ != qualname or cls.__module__ not in (module_name, "__main__") or kind_of(cls) is None:
        return None
    return cls
