"""Every Python type that is supported comes back as it was: same type, same value, however it is nested."""

import collections
import enum
import json
import math
import pathlib
import re
from array import array
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.errors import SerializationError
from lanner.workflow.serializer import UNDEFINED, URL, RecordedError, Uint8Array, dumps, loads
from support.shapes import shape

T = TypeVar("T")
constructed: list[object] = []


class Color(enum.Enum):
    RED = "red"
    CRIMSON = "red"  # noqa: PIE796 - an alias is what is tested
    MIXED = (1, object())


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    HELLO = "hello"


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


class Mode(enum.IntFlag):
    A = 1
    B = 4


class Point(NamedTuple):
    x: Any
    y: Any = 0


Pair = collections.namedtuple("Pair", ["left", "right"])  # noqa: PYI024  # pyright: ignore[reportUntypedNamedTuple]  # it is supported


@dataclass
class Order:
    number: Any
    lines: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        constructed.append(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    inside: Any
    computed: Any = field(init=False, default=1)


@dataclass
class WithInitVar:
    seed: InitVar[int]
    value: int = field(init=False)

    def __post_init__(self, seed: int) -> None:
        self.value = seed * 2


class Struct(msgspec.Struct):
    inside: Any
    maybe: Any | msgspec.UnsetType = msgspec.UNSET


class Renamed(msgspec.Struct, frozen=True, rename="camel", tag=True, kw_only=True):
    some_field: Any
    other_field: Any = 1

    def __post_init__(self) -> None:
        constructed.append(self)


class Box(msgspec.Struct, Generic[T]):
    content: T


@attrs.define
class Attrs:
    inside: Any
    _private: Any = 0

    def __attrs_post_init__(self) -> None:
        constructed.append(self)


@attrs.frozen
class Positive:
    number: int = attrs.field(validator=attrs.validators.gt(0))


@attrs.define
class Growing:
    old: int
    new: list[Any] = attrs.field(factory=list[Any])
    newer: int = 5


@attrs.define
class Derived:
    old: int
    doubled: int = attrs.field(default=attrs.Factory(lambda self: self.old * 2, takes_self=True))


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    inside: Any
    aliased: Any = pydantic.Field(default=None, alias="wireName")
    _secret: int = pydantic.PrivateAttr(default=7)

    @pydantic.model_validator(mode="after")
    def remember(self) -> "Model":
        constructed.append(self)
        return self

    def secret(self) -> int:
        return self._secret


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    a: int


class Root(pydantic.RootModel[list[int]]):
    pass


class Outer:
    class Inner(msgspec.Struct):
        a: int


ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Etc/GMT+5"]).map(ZoneInfo)
OFFSETS = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
TIME_ZONES = st.none() | st.just(UTC) | OFFSETS | ZONES


def folded(moment: Any, fold: int) -> Any:
    return moment.replace(fold=fold)


FOLDS = st.sampled_from([0, 1])
DATETIMES: st.SearchStrategy[datetime] = st.builds(folded, st.datetimes(timezones=TIME_ZONES), FOLDS)
TIMES: st.SearchStrategy[time] = st.builds(folded, st.times(timezones=TIME_ZONES), FOLDS)
HASHABLE: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(st.characters(), max_size=10)
        | st.binary(max_size=10)
        | st.decimals(allow_nan=False)
        | st.uuids()
        | st.dates()
        | st.timedeltas()
        | st.complex_numbers(allow_nan=False)
        | DATETIMES
        | TIMES
        | st.sampled_from([*Color, *Level, *Word, *Permission, Permission(0), Permission(3), Mode(0), Mode(5)])
        | st.sampled_from(
            [URL("https://a.b/c?d"), URL("urn:x"), pathlib.Path("/a/b"), pathlib.PureWindowsPath("c:\\d")]
        )
        | st.sampled_from([re.compile("a.b"), re.compile(b"x", re.DOTALL), re.compile("(?x) a", re.MULTILINE)])
        | st.tuples(HASHABLE)
        | st.tuples(HASHABLE, HASHABLE)
        | st.frozensets(HASHABLE, max_size=3)
        | st.builds(Point, HASHABLE, HASHABLE)
        | st.builds(Frozen, inside=HASHABLE)
    )
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    HASHABLE
    | st.just(UNDEFINED)
    | st.binary(max_size=10).map(bytearray)
    | st.binary(max_size=10).map(Uint8Array)
    | st.lists(st.floats(width=32), max_size=3).map(lambda items: array("f", items))
    | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(lambda items: array("q", items))
    | st.just(RecordedError("E", "m", "t")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.tuples(inner, inner)
        | st.sets(HASHABLE, max_size=3)
        | st.lists(inner, max_size=3).map(lambda items: collections.deque(items, maxlen=5))
        | st.lists(st.tuples(st.text(max_size=3), inner), max_size=3).map(collections.OrderedDict)
        | st.lists(HASHABLE, max_size=3).map(collections.Counter)
        | st.builds(Order, inner, st.lists(inner, max_size=2))
        | st.builds(Struct, inner, inner)
        | st.builds(Renamed, some_field=inner, other_field=inner)
        | st.builds(Box[Any], inner)
        | st.builds(Attrs, inner, inner)
        | st.builds(Model, inside=inner, wireName=inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    text = dumps(value)
    assert shape(loads(text)) == shape(value)
    assert shape(loads(text.encode())) == shape(value)
    # the types of what it is made of are all that a hint adds
    hint = value.__class__
    assert shape(loads(text, hint, convert=False)) == shape(value)


@given(DATETIMES)
def test_an_aware_datetime_is_the_same_instant(moment: datetime) -> None:
    read = loads(dumps(moment))
    assert read.isoformat() == moment.isoformat()
    assert read.utcoffset() == moment.utcoffset()


def test_both_passes_of_a_repeated_hour_stay_apart() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    second = first.replace(fold=1)
    text = dumps([first, second])
    assert json.loads(text)["json"] == [
        "2026-10-25T02:30:00.000+02:00[Europe/Berlin]",
        "2026-10-25T02:30:00.000+01:00[Europe/Berlin][_fold=1]",
    ]
    assert [moment.astimezone(UTC).hour for moment in loads(text)] == [0, 1]


def test_a_not_a_number_stays_one_wherever_it_is() -> None:
    read = loads(dumps([math.nan, {math.nan: math.nan}, (math.nan,), {math.nan, float("nan")}, Decimal("sNaN")]))
    assert math.isnan(read[0])
    assert [(math.isnan(key), math.isnan(item)) for key, item in read[1].items()] == [(True, True)]
    assert math.isnan(read[2][0])
    assert len(read[3]) == 2
    assert read[4].is_snan()


ANNOTATED: list[tuple[Any, Any]] = [
    ((1,), ["custom", "tuple"]),
    (frozenset({1}), ["custom", "frozenset"]),
    (b"x", ["custom", "bytes"]),
    (bytearray(b"x"), ["custom", "bytearray"]),
    (Decimal("1.10"), ["custom", "Decimal"]),
    (UUID(int=1), ["custom", "UUID"]),
    (date(2026, 1, 1), ["custom", "date"]),
    (time(1), ["custom", "time"]),
    (timedelta(1), ["custom", "timedelta"]),
    (1j, ["custom", "complex"]),
    (datetime(2026, 1, 1), ["custom", "datetime"]),  # noqa: DTZ001 - a naive one is what is tested
    (datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")), ["custom", "datetime"]),
    (datetime(2026, 1, 1, tzinfo=UTC), "Date"),
    (pathlib.Path("a"), ["custom", "Path"]),
    (collections.OrderedDict(), ["custom", "OrderedDict"]),
    (collections.Counter("a"), ["custom", "Counter"]),
    (collections.deque(), ["custom", "deque"]),
    (Order(1), ["class", f"{__name__}:Order"]),
    (Renamed(some_field=1), ["class", f"{__name__}:Renamed"]),
    (Attrs(1), ["class", f"{__name__}:Attrs"]),
    (Model(inside=1), ["class", f"{__name__}:Model"]),
    (Point(1), ["class", f"{__name__}:Point"]),
    (Outer.Inner(1), ["class", f"{__name__}:Outer.Inner"]),
    (Color.RED, ["custom", f"{__name__}:Color"]),
    (Permission.READ, ["custom", f"{__name__}:Permission"]),
    ({1: 2}, "map"),
    ({1}, "set"),
    (2**53 + 1, "bigint"),
    (KeyError(1), "Error"),
]


@pytest.mark.parametrize(
    ("value", "annotation"),
    ANNOTATED,
    ids=repr,
)
def test_a_type_is_annotated_as_documented(value: Any, annotation: Any) -> None:
    text = dumps(value)
    assert json.loads(text)["meta"] == {"values": [annotation], "v": 1}
    if not isinstance(value, BaseException):
        assert shape(loads(text)) == shape(value)


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        (Order(1, [2]), {"number": 1, "lines": [2]}),
        (Renamed(some_field=1), {"someField": 1, "otherField": 1}),
        (Model(inside=1, wireName=2), {"inside": 1, "aliased": 2}),
        (Open.model_validate({"a": 1, "b": 2}), {"a": 1, "b": 2}),
        (Root([1, 2]), {"root": [1, 2]}),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Color.CRIMSON, "RED"),
        (Permission.READ | Permission.WRITE, 3),
        (timedelta(days=-1, microseconds=1), "-PT86399.999999S"),
    ],
    ids=repr,
)
def test_a_value_is_readable_in_its_text(value: Any, payload: Any) -> None:
    assert json.loads(dumps(value))["json"] == payload
    assert loads(dumps(value)) == value


def test_restoring_runs_neither_constructors_nor_validation() -> None:
    text = dumps([Order(1), Renamed(some_field=1), Attrs(1), Model(inside=1), WithInitVar(3), Positive(1)])
    constructed.clear()
    text = text.replace('"number":1', '"number":-1', 1).replace('{"number":1}', '{"number":-1}')
    *_, with_init_var, positive = loads(text)
    assert not constructed
    assert (with_init_var.value, positive.number) == (6, -1)


def test_the_fields_that_a_class_has_lost_or_gained_since_do_no_harm() -> None:
    text = json.dumps(
        {
            "json": [{"number": 1, "gone": 2}, {"someField": 1}, {"inside": 1}, {"inside": 1}, {"x": 1}],
            "meta": {
                "values": {
                    str(index): [["class", f"{__name__}:{cls.__qualname__}"]]
                    for index, cls in enumerate([Order, Renamed, Attrs, Model, Point])
                },
                "v": 1,
            },
        }
    )
    order, renamed, attributes, model, point = loads(text)
    assert order == Order(1)
    assert renamed == Renamed(some_field=1)
    assert attributes == Attrs(1)
    assert model == Model(inside=1)
    assert point == Point(1)


def test_a_restored_model_is_whole() -> None:
    model = loads(dumps(Model(inside=(1,), wireName="x")))
    assert model.model_dump() == {"inside": (1,), "aliased": "x"}
    assert model.model_copy(update={"inside": 2}).inside == 2
    assert model.secret() == 7
    opened = loads(dumps(Open.model_validate({"a": 1, "b": 2})))
    assert opened.model_extra == {"b": 2}
    assert opened.b == 2


def test_a_restored_struct_with_post_init_is_of_its_own_class() -> None:
    read = loads(dumps(Renamed(some_field=1)))
    assert type(read) is Renamed
    assert msgspec.json.encode(read) == msgspec.json.encode(Renamed(some_field=1))
    with pytest.raises(AttributeError):
        setattr(read, "some_field", 2)  # noqa: B010 - what type checkers refuse is tried


def annotated(payload: Any, cls: type, form: str = "class") -> str:
    return json.dumps({"json": payload, "meta": {"values": [[form, f"{__name__}:{cls.__qualname__}"]], "v": 1}})


def test_a_field_that_has_been_added_gets_its_default() -> None:
    assert loads(annotated({"old": 1}, Growing)) == Growing(1)
    assert loads(annotated({"old": 1}, Growing)).new is not loads(annotated({"old": 1}, Growing)).new


@pytest.mark.parametrize(
    ("payload", "cls", "form", "what"),
    [
        ({}, Growing, "class", "the field 'old' of Growing is missing in what was stored: give it a default"),
        ({"old": 1}, Derived, "class", "the field 'doubled' of Derived is missing"),
        ([1], Growing, "class", "an object is needed here, not a list"),
        ("GREEN", Color, "custom", "Color has no member 'GREEN'"),
        (1, Color, "custom", "Color has no member 1"),
        ("1", Permission, "custom", "a Permission is read from an integer, not from a text"),
        (True, Permission, "custom", "a Permission is read from an integer, not from true or false"),
        (8, Permission, "custom", "8"),
        ("RED", Color, "class", "it is annotated as class, which is not for such classes"),
        ({"old": 1}, Growing, "custom", "it is annotated as custom, which is not for such classes"),
    ],
)
def test_what_is_no_state_of_a_class_is_refused(payload: Any, cls: type, form: str, what: str) -> None:
    with pytest.raises(SerializationError, match=what):
        loads(annotated(payload, cls, form))


class Anonymous(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value: object) -> "Anonymous":
        made: Any = object.__new__(cls)
        made._name_, made._value_ = "made up", value
        return cast("Anonymous", made)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (Anonymous(2), "is no named member of its enum"),
        (array("B", [1]), "an array of typecode 'B' has no counterpart: use one of b, h, H, .*, or bytes"),
        (array("l", [1]), "an array of typecode 'l' has no counterpart"),
    ],
    ids=str,
)
def test_what_could_not_be_read_back_is_not_written(value: Any, what: str) -> None:
    with pytest.raises(SerializationError, match=what):
        dumps(value)
