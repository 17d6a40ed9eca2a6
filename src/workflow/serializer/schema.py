"""Types that the caller asks for: which classes they name, and how values are made to fit them."""

import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import PurePath
from typing import Any, TypeVar, cast

import msgspec

from ...errors import InvalidArgumentError, SerializationError
from .classes import NAMED_TUPLES, PYDANTIC, kind_of
from .foreign import UNDEFINED, URL
from .registry import class_name, registration_of

F = TypeVar("F", bound=Callable[..., Any])

_FAILURE = re.compile(r"(?P<why>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_SHOWN_PROBLEMS = 5


def _cached(function: F) -> F:
    """Cache what is computed of a type, unless the type cannot be hashed."""
    cached = lru_cache(maxsize=512)(function)

    def call(hint: Any) -> Any:
        try:
            return cached(hint)
        except TypeError:
            # it cannot be hashed, or this raises the same again
            return function(hint)

    return cast("F", call)


@_cached
def named_classes(hint: Any) -> Mapping[str, type]:
    """The classes that a type names, itself and inside, by their names in a text."""
    found: dict[str, type] = {}
    seen: set[int] = set()
    waiting: list[Any] = [hint]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        waiting.extend(_parts(part))
        if isinstance(part, type) and (kind_of(part) is not None or registration_of(part) is not None):
            registration = registration_of(part)
            found[class_name(part)] = part
            if registration is not None:
                found[registration.name] = part
    return found


def _parts(hint: Any) -> Iterator[Any]:
    """The types that a type is made of."""
    if isinstance(hint, TypeVar):
        yield from (hint.__bound__, *hint.__constraints__)
    elif isinstance(hint, typing.NewType):
        yield hint.__supertype__
    elif type(hint).__name__ == "TypeAliasType":
        yield hint.__value__
    elif (origin := typing.get_origin(hint)) is typing.Literal:
        yield from map(type, typing.get_args(hint))
    elif origin is not None:
        yield from (origin, *typing.get_args(hint))
    elif isinstance(hint, type) and hint.__module__ != "builtins":
        try:
            yield from typing.get_type_hints(hint, include_extras=True).values()
        except Exception:  # noqa: BLE001 - annotations are expressions of the user's; those that fail name no class
            return


def convert(value: Any, hint: Any, place: str = "$") -> Any:
    """A value as an instance of a type.

    Args:
        value: The value; what is an instance already stays as it is.
        hint: The type.
        place: Where the value stands, for the error.

    Raises:
        SerializationError: The value does not fit.
        InvalidArgumentError: It is no type that values can be converted to.
    """
    if hint is Any or hint is object:
        return value
    adapted = _adapt(hint)
    try:
        return msgspec.convert(value, adapted, dec_hook=_convert_custom)
    except msgspec.ValidationError as error:
        raise _misfit(error, hint, place) from error
    except RecursionError:
        raise SerializationError(f"{place}: it is nested too deep to become {_shown(hint)}") from None


class _MisfitError(ValueError):
    """What is inside a type of ours does not fit. It gets its place from msgspec on its way up."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__(problems)
        self.problems = problems


def _misfit(error: msgspec.ValidationError, hint: Any, place: str) -> SerializationError:
    match = _FAILURE.fullmatch(str(error))
    why, where = (match["why"], match["path"] or "") if match else (str(error), "")
    if match and match["key"]:
        why = f"a key: {why}"
    cause = error.__cause__
    problems = cause.problems if isinstance(cause, _MisfitError) else [("", why)]
    told = "; ".join(f"{place}{where}{inner}: {problem}" for inner, problem in problems[:_SHOWN_PROBLEMS])
    more = len(problems) - _SHOWN_PROBLEMS
    return SerializationError(told + (f"; and {more} more" if more > 0 else "") + f" (it does not fit {_shown(hint)})")


def _shown(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) and typing.get_origin(hint) is None else str(hint)


def restore_validated(cls: Any, fields: dict[str, Any], place: str) -> Any:
    """An instance of a class that a type names, validated as that class does it.

    Raises:
        SerializationError: What was stored does not fit the class.
    """
    kind = kind_of(cls)
    fields = {key: item for key, item in fields.items() if item is not UNDEFINED}
    if kind is PYDANTIC:
        return convert(_by_alias(cls, fields), cls, place)
    if kind is NAMED_TUPLES:
        # msgspec takes these by position: up to the first that is missing
        names: list[str] = list(takewhile(fields.__contains__, cls._fields))
        return convert([fields[name] for name in names], cls, place)
    return convert(fields, cls, place)


def _by_alias(cls: Any, fields: dict[str, Any]) -> Any:
    """A model's fields by the names that its validation takes."""
    if getattr(cls, "__pydantic_root_model__", False):
        return fields.get("root")
    config = cls.model_config
    if config.get("populate_by_name") or config.get("validate_by_name"):
        return fields
    aliases: dict[str, str] = {}
    for name, field in cls.model_fields.items():
        # one alias, or several to choose from
        choices = getattr(field.validation_alias, "choices", [field.validation_alias])
        aliases[name] = next((choice for choice in choices if isinstance(choice, str)), name)
    return {aliases.get(name, name): item for name, item in fields.items()}


def _convert_custom(hint: Any, value: Any) -> Any:
    """An instance of a type that msgspec knows nothing of."""
    cls = typing.get_origin(hint) or hint
    if isinstance(cls, _OneOfType):
        return _convert_union(cls.arms, value)
    if isinstance(value, cls):
        return value
    registration = registration_of(cls)
    if registration is not None and registration.decode is not None:
        return registration.decode(value)
    if kind_of(cls) is PYDANTIC:
        return _validate_model(cls, value)
    if isinstance(value, str) and issubclass(cls, URL | PurePath):
        return cls(value)
    raise ValueError(f"expected {_shown(hint)}, got {type(value).__name__}")


def _validate_model(cls: Any, value: Any) -> Any:
    try:
        return cls.model_validate(value)
    except sys.modules["pydantic"].ValidationError as error:
        problems = [
            ("".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]), problem["msg"])
            for problem in error.errors(include_url=False)
        ]
        raise _MisfitError(problems) from error


class _OneOfType(type):
    """The type of unions that msgspec does not support; it takes what we made of a value as an instance."""

    arms: tuple[Any, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def _convert_union(arms: tuple[Any, ...], value: Any) -> Any:
    for arm in arms:
        if type(value) is (typing.get_origin(arm) or arm):
            return convert(value, arm)
    problems: list[tuple[str, str]] = []
    for arm in arms:
        try:
            return convert(value, arm)
        except SerializationError as error:
            problems.append(("", f"not {_shown(arm)}: {error}"))
    raise _MisfitError(problems)


def _unsupported(hint: Any) -> str | None:
    """Why msgspec cannot convert to a type, if it cannot."""
    try:
        msgspec.convert(None, hint)
    except msgspec.ValidationError:
        return None
    except (TypeError, NameError, AttributeError) as error:
        return str(error)
    return None


@_cached
def _adapt(hint: Any) -> Any:
    """A type that msgspec can convert to, for one that it may not support.

    Raises:
        InvalidArgumentError: There is none.
    """
    if type(hint).__name__ == "TypeAliasType":
        return _adapt(hint.__value__)
    why = _unsupported(hint)
    if why is None:
        return hint
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        arms = {"arms": tuple(arguments), "__doc__": str(hint)}
        for arm in arguments:
            _adapt(arm)
        return _OneOfType(str(hint), (), arms)
    if origin is typing.Annotated:
        return typing.Annotated[_adapt(arguments[0]), *arguments[1:]]
    if origin is not None and arguments:
        adapted = origin[tuple(argument if argument is ... else _adapt(argument) for argument in arguments)]
        if _unsupported(adapted) is None:
            return adapted
    raise InvalidArgumentError(f"values cannot be converted to the type {_shown(hint)}: {why}")
