"""What is written, how plain data is written, and what is refused with its place."""

import asyncio
import collections
import enum
import inspect
import json
import math
import os
import socket
import struct
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.errors import InvalidArgumentError, SerializationError
from lanner.workflow import serializer
from lanner.workflow.serializer import RecordedError, dumps, loads, register

# a time zone file without a name: UTC
ZONE = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0"

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False).filter(
        lambda number: math.copysign(1, number) > 0 or number != 0
    )
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@given(PLAIN)
def test_plain_data_is_written_by_msgspec_alone(value: Any) -> None:
    text = dumps(value)
    assert text == '{"json":' + msgspec.json.encode(value).decode() + "}"
    assert repr(loads(text)) == repr(value)


def itself(value: Any) -> Any:
    return value


def in_list(value: Any) -> Any:
    return [value]


def in_tuple(value: Any) -> Any:
    return (value,)


def in_dict(value: Any) -> Any:
    return {"a": value}


class StrEnum(enum.StrEnum):
    A = "a"


class IntEnum(enum.IntEnum):
    ONE = 1


class Struct(msgspec.Struct):
    a: int = 1


@dataclass
class Data:
    a: int = 1


DISGUISED: list[Any] = [
    (1, 2),
    {1},
    frozenset({1}),
    b"x",
    bytearray(b"x"),
    datetime(2026, 1, 1),  # noqa: DTZ001 - a naive one is what is tested
    timedelta(1),
    StrEnum.A,
    IntEnum.ONE,
    Struct(),
    Data(),
    {1: 2},
    {StrEnum.A: 1},
    {IntEnum.ONE: 1},
    collections.OrderedDict(a=1),
    collections.Counter(a=1),
    math.nan,
    math.inf,
    -0.0,
    2**53 + 1,
    -(2**53) - 1,
    2**63,
]


# all of these look like plain data once msgspec has written them
@pytest.mark.parametrize(
    "value",
    DISGUISED,
    ids=repr,
)
@pytest.mark.parametrize("place", [itself, in_list, in_dict])
def test_nothing_else_passes_for_plain_data(value: Any, place: Callable[[Any], Any]) -> None:
    text = dumps(place(value))
    assert "meta" in json.loads(text)
    read = loads(text)
    assert repr(read) == repr(place(value))


def test_numbers_at_the_limits_of_javascript_are_plain() -> None:
    assert dumps([2**53, -(2**53), 0.0, 1.5, sys.float_info.max]).count("meta") == 0


@dataclass
class Node:
    name: str
    next: Any = None


async def _coroutine() -> None:
    """Do nothing."""


def _generate() -> Iterator[int]:
    yield 1


async def _generate_slowly() -> AsyncIterator[int]:
    yield 1


class _Text(str):
    __slots__ = ()


def _loop() -> Any:
    ring: list[Any] = []
    ring.append({"self": (ring,)})
    return ring


def _nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


REFUSED: list[tuple[Any, str]] = [
    (lambda: 1, r"a function cannot be serialized: it is <lambda>; give what it returns"),
    (os.getpid, "give what it returns"),
    (_generate(), "a generator cannot be serialized: make a list of it first"),
    (_generate_slowly(), "an async_generator cannot be serialized: make a list of it first"),
    (range(3), "make a list of it first"),
    ({}.keys(), "make a list of it first"),
    (int, "it is the class int itself; give an instance"),
    (threading.Lock(), "register.. the class with encode= and decode="),
    (os, "a module cannot be serialized"),
    (object(), "an object cannot be serialized"),
    (_Text("x"), "convert it to str, or register"),
    (collections.defaultdict(list), "convert it to dict, or register"),
    (2**100_000, "4300 digits"),
    (_loop(), "holds itself"),
    (_nested(100_000, in_list), "nested too deep"),
    (_nested(100_000, in_tuple), "nested too deep"),
    (_nested(100_000, lambda value: Node("x", value)), "nested too deep"),
]


@pytest.mark.parametrize(
    ("value", "what"),
    REFUSED,
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_cannot_be_written_is_refused_with_its_place_and_what_to_do(value: Any, what: str) -> None:
    with pytest.raises(SerializationError, match=rf"^\$\.user\.tags\[3\].*{what}"):
        dumps({"user": {"tags": [1, 2, 3, value]}})


def test_an_open_socket_is_refused() -> None:
    with (
        socket.socket() as opened,
        pytest.raises(SerializationError, match=r"^\$: a socket\.socket cannot be serialized"),
    ):
        dumps(opened)


def test_a_coroutine_is_refused_with_the_advice_to_await_it() -> None:
    coroutine = _coroutine()
    with pytest.raises(SerializationError, match="await it first"):
        dumps(coroutine)
    coroutine.close()


async def test_a_future_is_refused_with_the_advice_to_await_it() -> None:
    with pytest.raises(SerializationError, match="await it first"):
        dumps(asyncio.get_running_loop().create_future())


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a b": [object()]}, r'\$\["a b"\]\[0\]:'),
        ({(1, 2): {"a": object()}}, r"\$\[\(1, 2\)\]\.a:"),
        ({1: {2: object()}}, r"\$\[1\]\[2\]:"),
        ({(1, len): 1}, r"\$\[.*\] \(the key\)\[1\]:"),
        (Node("a", Node("b", (0, object()))), r"\$\.next\.next\[1\]:"),
        ([{"x" * 10_000: object()}], r"\$\[0\]\.x{100}…:"),
        (
            _nested(40, lambda value: [value]) and _nested(40, lambda value: [value if value != 1 else object()]),
            r"\$(\[0\]){6} … \(28 more\) … (\[0\]){6}:",
        ),
    ],
)
def test_a_place_is_told_as_one_would_write_it(value: Any, place: str) -> None:
    with pytest.raises(SerializationError, match=f"^{place}"):
        dumps(value)


def test_what_refers_to_itself_is_refused_where_it_does() -> None:
    node = Node("a")
    node.next = {"back": [node]}
    with pytest.raises(SerializationError, match=r"^\$\.next\.back\[0\]: it is a container that holds itself"):
        dumps(node)


def test_one_object_in_two_places_is_no_cycle() -> None:
    shared = {"a": (1,)}
    assert loads(dumps([shared, shared, {"again": shared}])) == [shared, shared, {"again": shared}]


@pytest.mark.parametrize("wrap", [in_list, in_tuple, in_dict])
def test_three_hundred_levels_are_written_and_read(wrap: Callable[[Any], Any]) -> None:
    value = _nested(300, wrap)
    assert repr(loads(dumps(value))) == repr(value)


def test_a_stack_that_is_used_up_is_an_error_with_a_reason() -> None:
    def deeper(frames: int) -> str:
        return deeper(frames - 1) if frames else dumps(_nested(250, in_tuple))

    used = len(inspect.stack(0))
    with pytest.raises(SerializationError, match=r"^\$.*nested too deep \(more than 300 levels, or a deep stack\)"):
        deeper(sys.getrecursionlimit() - used - 150)


def test_a_text_of_five_megabytes_is_written_and_read() -> None:
    value = {"text": "é" * 2_500_000, "again": ("x" * 5_000_000,)}
    assert loads(dumps(value)) == value


class _Zone(tzinfo):
    def tzname(self, _: datetime | None, /) -> str:
        return "somewhere"

    def dst(self, _: datetime | None, /) -> None:
        return None

    def utcoffset(self, when: datetime | None, /) -> timedelta | None:
        return None if when is None else timedelta(hours=1)


@pytest.mark.parametrize(
    ("zone", "what"),
    [
        (_Zone(), r"_Zone: use zoneinfo\.ZoneInfo or datetime\.timezone"),
        (timezone(timedelta(microseconds=1)), "no offset of whole seconds"),
        (ZoneInfo.from_file(BytesIO(ZONE)), "no name that could be read back"),
    ],
    ids=["a class of one's own", "a fraction of a second", "a file"],
)
def test_a_time_zone_that_could_not_be_read_back_is_refused(zone: tzinfo, what: str) -> None:
    with pytest.raises(SerializationError, match=what):
        dumps(datetime(2026, 1, 1, tzinfo=zone))


class NeedsArguments(Exception):  # noqa: N818 - named after what it does
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


class Unprintable(Exception):  # noqa: N818 - named after what it is
    def __str__(self) -> str:
        raise AttributeError("nothing to say")


def test_an_exception_becomes_a_record_and_is_never_constructed_again() -> None:
    try:
        raise NeedsArguments(7, "no luck")
    except NeedsArguments as error:
        told = "".join(traceback.format_exception(error))
        text = dumps({"errors": [error]})
    assert loads(text) == {"errors": [RecordedError("NeedsArguments", "7: no luck", told)]}
    assert "test_an_exception_becomes_a_record" in told
    assert json.loads(text)["meta"]["values"] == {"errors.0": ["Error"]}


def test_a_record_of_an_error_is_written_as_the_error_was() -> None:
    text = dumps(ExceptionGroup("several", [NeedsArguments(1, "a"), KeyError("b")]))
    assert dumps(loads(text)) == text


def test_an_exception_that_cannot_be_printed_is_recorded_all_the_same() -> None:
    assert loads(dumps(Unprintable())).message == "<its text cannot be had: AttributeError in __str__>"


class Money:
    def __init__(self, amount: int, currency: str) -> None:
        self.amount = amount
        self.currency = currency

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and (self.amount, self.currency) == (other.amount, other.currency)

    def __hash__(self) -> int:
        return hash((self.amount, self.currency))

    def __repr__(self) -> str:
        return f"Money({self.amount}, {self.currency!r})"


register(Money, "money", lambda money: (money.amount, money.currency), lambda fields: Money(*fields))


class Boxed:
    def __init__(self, inside: Any) -> None:
        self.inside = inside


register(Boxed, None, lambda boxed: boxed.inside, Boxed)


def test_a_registered_class_is_written_and_read_anywhere() -> None:
    value = {"prices": {Money(1, "EUR"), Money(2, "USD")}, "best": [Money(2**60, "JPY")]}
    text = dumps(value)
    assert loads(text) == value
    assert json.loads(text)["meta"]["values"]["best.0"] == [["custom", "money"], {"0": ["bigint"]}]


@pytest.mark.parametrize(
    "inside",
    [
        1,
        1.5,
        "x",
        None,
        True,
        [1, (2,)],
        {"a": (1,)},
        {1: 2},
        {1, 2},
        datetime(2026, 1, 1),  # noqa: DTZ001 - a naive one is fine here
        2**70,
        Money(1, "a"),
        math.inf,
    ],
    ids=repr,
)
def test_a_registered_class_may_be_written_as_anything_that_can_be(inside: Any) -> None:
    read = loads(dumps([Boxed(inside)]))[0]
    assert type(read) is Boxed
    assert (type(read.inside), read.inside) == (type(inside), inside)


class Broken:
    pass


def _fail(_: object) -> Any:
    raise KeyError("lost")


register(Broken, None, _fail, _fail)


def test_an_encode_that_fails_is_told_with_its_place() -> None:
    with pytest.raises(SerializationError, match=r"^\$\[0\]: a .*Broken cannot be serialized: KeyError: 'lost'"):
        dumps([Broken()])


class Shop(msgspec.Struct):
    name: str


def test_a_class_with_several_names_is_read_by_all_and_written_by_the_last() -> None:
    register(Shop, "shop.v1")
    old = dumps(Shop("a"))
    register(Shop, "shop.v2")
    assert json.loads(dumps(Shop("a")))["meta"]["values"] == [["class", "shop.v2"]]
    assert loads(old) == loads(dumps(Shop("a"))) == Shop("a")


def test_register_can_be_used_as_a_decorator() -> None:
    @register
    @dataclass
    class Local:
        a: int

    assert loads(dumps(Local(1))) == Local(1)


class Other:
    pass


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((Other,), "give encode= and decode="),
        ((Other, "other", repr), "both encode= and decode="),
        ((Other, "", repr, repr), "name=''"),
        ((Other, "tuple", repr, repr), "name='tuple'"),
        ((Other, "x" * 501, repr, repr), "1 to 500 characters"),
        ((Other, 5, repr, repr), "name=5"),
        ((Other, "other", 5, repr), "encode=5 is not a function"),
        ((Other, "money", repr, repr), "was registered for .*Money"),
        ((dict, "dict", repr, repr), "dict is built in"),
        ((1, "one", repr, repr), "cls=1 is not a class"),
    ],
)
def test_a_bad_registration_says_what_is_wrong(arguments: Any, what: str) -> None:
    with pytest.raises(InvalidArgumentError, match=what):
        register(*arguments)


def test_a_class_that_could_not_be_read_again_is_refused_when_its_hint_is_known() -> None:
    class Local(msgspec.Struct):
        a: int = 1

    assert loads(dumps([Local()], hint=list[Local]), list[Local]) == [Local()]
    with pytest.raises(SerializationError, match=r"^\$\[0\]: .*Local cannot be serialized: no such class is known"):
        dumps([Local()], hint=list[int])
    with pytest.raises(SerializationError, match=r"^\$\[0\]: it cannot be read as .*Local': no such class is known"):
        loads(dumps([Local()]))


def test_everything_that_is_documented_can_be_imported() -> None:
    assert all(hasattr(serializer, name) for name in serializer.__all__)
