"""What parsed JSON is, as types."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

type_of = cast("Callable[[Any], Any]", type)
"""``type``, for values of which nothing is known: comparing its answer narrows nothing."""


def as_object(payload: Any) -> dict[str, Any]:
    """A payload that must be an object.

    Raises:
        TypeError: It is something else.
    """
    if type_of(payload) is not dict:
        raise TypeError(f"an object is needed here, not {shape(payload)}")
    fields: dict[str, Any] = payload
    return fields


def as_list(payload: Any) -> list[Any]:
    """A payload that must be a list.

    Raises:
        TypeError: It is something else.
    """
    if type_of(payload) is not list:
        raise TypeError(f"a list is needed here, not {shape(payload)}")
    items: list[Any] = payload
    return items


def as_text(payload: Any) -> str:
    """A payload that must be a text.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(payload, str):
        raise TypeError(f"a text is needed here, not {shape(payload)}")
    return payload


def shape(payload: Any) -> str:
    """What a payload is, for people."""
    kind = type_of(payload)
    shapes = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return shapes.get(kind, "a number" if kind in (int, float) else with_article(kind.__qualname__))


def with_article(name: str) -> str:
    """A class's name after "a" or "an", for people. One that begins with u is read as URL and UUID are."""
    return f"{'an' if name[:1] in 'aeioAEIO' else 'a'} {name}"
