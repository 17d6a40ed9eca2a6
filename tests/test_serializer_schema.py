"""What is asked for by type is validated, becomes that type, and is refused with the place where it does not fit."""

import enum
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from typing_extensions import TypeAliasType

from lanner.errors import InvalidArgumentError, SerializationError
from lanner.workflow.serializer import UNDEFINED, URL, convert, dumps, loads, register
from lanner.workflow.serializer.registry import resolve

T = TypeVar("T")
UserId = NewType("UserId", int)


class Color(enum.Enum):
    RED = "red"


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


class User(msgspec.Struct):
    name: str
    tags: list[str] = []
    age: Annotated[int, msgspec.Meta(ge=0)] | None = None


@dataclass
class Signup:
    user: User
    since: datetime
    colors: set[Color] = field(default_factory=set[Color])


@attrs.define
class Positive:
    number: int = attrs.field(validator=attrs.validators.gt(0))


class Address(pydantic.BaseModel):
    street: str
    zip_code: int = pydantic.Field(alias="zip")


class Person(pydantic.BaseModel):
    name: str
    addresses: list[Address] = []


class Numbers(pydantic.RootModel[list[int]]):
    pass


class Row(TypedDict):
    id: int
    note: str


class Point(NamedTuple):
    x: int
    y: int = 0


class Box(msgspec.Struct, Generic[T]):
    content: T


@dataclass
class Cat:
    lives: int


@dataclass
class Dog:
    name: str


class Circle(msgspec.Struct, tag=True):
    radius: float


class Square(msgspec.Struct, tag=True):
    side: float


class Allowed(msgspec.Struct):
    what: Permission


MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
ADA = User("ada", ["x"], 36)


def plain(value: Any) -> str:
    return json.dumps({"json": value})


@pytest.mark.parametrize(
    ("payload", "hint", "value"),
    [
        ({"name": "ada", "tags": ["x"], "age": 36}, User, ADA),
        (
            {"user": {"name": "ada"}, "since": "2026-01-01T00:00:00Z", "colors": ["red"]},
            Signup,
            Signup(User("ada"), MOMENT, {Color.RED}),
        ),
        ([{"number": 1}], list[Positive], [Positive(1)]),
        (
            {"name": "ada", "addresses": [{"street": "s", "zip": 1}]},
            Person,
            Person(name="ada", addresses=[Address(street="s", zip=1)]),
        ),
        ([{"street": "s", "zip": "1"}], list[Address], [Address(street="s", zip=1)]),
        ({"a": None}, dict[str, Address | None], {"a": None}),
        ([1], Numbers, Numbers([1])),
        ({"id": 1, "note": "n"}, Row, {"id": 1, "note": "n"}),
        ([1, 2], Point, Point(1, 2)),
        ({"content": [1]}, Box[list[int]], Box([1])),
        ({"type": "Square", "side": 2}, Circle | Square, Square(2.0)),
        ([1, 2], tuple[int, int], (1, 2)),
        ([1, 2], set[int], {1, 2}),
        ([1, 2], frozenset[UserId], frozenset({1, 2})),
        ([1], Sequence[int], [1]),
        ({"a": 1}, Mapping[str, int], {"a": 1}),
        ("eA==", bytes, b"x"),
        ("1.50", Decimal, Decimal("1.50")),
        ("2026-01-01", date, date(2026, 1, 1)),
        ("P1D", timedelta, timedelta(days=1)),
        ("00000000-0000-0000-0000-000000000001", UUID, UUID(int=1)),
        ("red", Color, Color.RED),
        (3, Permission, Permission.READ | Permission.WRITE),
        ("a/b", Path, Path("a/b")),
        ("https://a.b", URL, URL("https://a.b")),
        (1, float, 1.0),
        ("x", Literal["x", "y"], "x"),
        (5, int | str, 5),
        ("5", int | str, "5"),
        (None, None, None),
        ({"any": ["thing"]}, Any, {"any": ["thing"]}),
        ({"any": ["thing"]}, object, {"any": ["thing"]}),
        ({"name": "rex"}, Cat | Dog, Dog("rex")),
        ([{"lives": 9}, {"name": "rex"}, None, 5], list[Cat | Dog | int | None], [Cat(9), Dog("rex"), None, 5]),
        (
            {"a": [{"street": "s", "zip": 1}, "x"]},
            dict[str, list[Address | str]],
            {"a": [Address(street="s", zip=1), "x"]},
        ),
        ({"lives": 9}, Annotated[Cat | Dog, "a pet"], Cat(9)),
    ],
    ids=lambda part: str(part)[:40],
)
def test_plain_json_becomes_what_the_type_says(payload: Any, hint: Any, value: Any) -> None:
    read = loads(plain(payload), hint)
    assert (type(read), read) == (type(value), value)
    assert convert(payload, hint) == value
    # what was written by us with its types becomes the same
    again = loads(dumps(value), hint)
    assert (type(again), again) == (type(value), value)


MISFITS: list[tuple[Any, Any, str]] = [
    ({"name": "ada", "tags": ["x", 5]}, User, "$.tags[1]: Expected `str`, got `int` (it does not fit User)"),
    ({"name": "ada", "age": -1}, User, "$.age: Expected `int` >= 0 (it does not fit User)"),
    ({"tags": []}, User, "$: Object missing required field `name` (it does not fit User)"),
    (
        {"user": {"name": 1}, "since": "x"},
        Signup,
        "$.user.name: Expected `str`, got `int` (it does not fit Signup)",
    ),
    ([{"number": -1}], list[Positive], "$[0]: 'number' must be > 0: -1"),
    ({"a": "1"}, dict[str, int], "$[...]: Expected `int`, got `str`"),
    ({"a": 1}, dict[int, int], "$: a key: Expected `int`, got `str`"),
    ("1", int, "$: Expected `int`, got `str` (it does not fit int)"),
    (True, int, "$: Expected `int`, got `bool`"),
    (1.5, int, "$: Expected `int`, got `float`"),
    ("blue", Color, "$: Invalid enum value 'blue'"),
    ("x", date, "$: Invalid RFC3339"),
    ("x", complex, "$: expected complex, got str"),
    ("not a url", list[URL], "$: Expected `array`"),
    (["not a url"], list[URL], "$[0]: 'not a url' is not an absolute URL"),
    (
        {"name": "a", "addresses": [{"street": 1, "zip": 1}, {}]},
        Person,
        "$.addresses[0].street: Input should be a valid string; $.addresses[1].street: Field required; $.",
    ),
    ([{"street": "s"}], list[Address], "$[0].zip: Field required"),
    ({"who": {"name": 5}}, dict[str, Person], "$[...].name: Input should be a valid string"),
    ([{"addresses": [{}] * 10}], list[Person], "; and 16 more"),
    (
        {"meows": True},
        Cat | Dog,
        "$: not Cat: $: Object missing required field `lives` (it does not fit Cat); $: not Dog: ",
    ),
]


@pytest.mark.parametrize(
    ("payload", "hint", "message"),
    MISFITS,
    ids=lambda part: str(part)[:40],
)
def test_what_does_not_fit_is_refused_with_its_place(payload: Any, hint: Any, message: str) -> None:
    with pytest.raises(SerializationError, match="^" + ".*".join(map(re.escape, message.split("; and ")))):
        loads(plain(payload), hint)
    with pytest.raises(SerializationError, match=re.escape(message)):
        convert(payload, hint)


def name_of(cls: type) -> str:
    return f"{__name__}:{cls.__qualname__}"


def written(payload: Any, cls: type, path: str = "a") -> str:
    return json.dumps({"json": payload, "meta": {"values": {path: [["class", name_of(cls)]]}, "v": 1}})


@pytest.mark.parametrize(
    ("payload", "cls", "message"),
    [
        ({"name": 1}, User, r"\$\.a\.name: Expected `str`"),
        ({"name": "a", "tags": [1]}, User, r"\$\.a\.tags\[0\]: Expected `str`"),
        ({"number": -1}, Positive, r"\$\.a: 'number' must be > 0"),
        ({"street": "s", "zip_code": "x"}, Address, r"\$\.a\.zip: Input should be a valid integer"),
        ({"root": ["x"]}, Numbers, r"\$\.a\[0\]: Input should be a valid integer"),
        ({"x": "1"}, Point, r"\$\.a\[0\]: Expected `int`"),
        ([1], User, r"\$\.a: .*an object is needed here, not a list"),
    ],
)
def test_an_instance_that_was_stored_is_validated_too(payload: Any, cls: type, message: str) -> None:
    with pytest.raises(SerializationError, match=f"^{message}"):
        loads(written({"a": payload}, cls), dict[str, cls])  # type: ignore[valid-type]  # a type that is computed


def test_an_instance_of_a_model_is_read_by_its_fields_names() -> None:
    text = dumps({"a": Address(street="s", zip=1)})
    assert '"zip_code":1' in text
    assert loads(text, dict[str, Address]) == {"a": Address(street="s", zip=1)}


class Choosing(pydantic.BaseModel):
    first: int = pydantic.Field(validation_alias=pydantic.AliasChoices("one", "uno"))
    second: int = pydantic.Field(default=0, validation_alias="two")


class ByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)

    first: int = pydantic.Field(alias="one")


def test_a_model_with_any_aliases_is_read_again() -> None:
    for value in (Choosing(one=1, two=2), ByName(one=1)):  # type: ignore[call-arg]  # the aliases are the names
        assert loads(dumps(value), type(value)) == value


def test_a_wrong_class_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"^\$: Expected `object`, got `Positive` \(it does not fit User\)"):
        loads(dumps(Positive(1)), User)
    with pytest.raises(SerializationError, match=r"^\$\[0\]: .*Address"):
        loads(dumps([Person(name="a")]), list[Address])


class Employee(Person):
    boss: str


class Admin(User, kw_only=True):
    level: int


def test_a_subclass_of_a_model_is_validated_and_kept() -> None:
    read = loads(dumps({"a": Employee(name="ada", boss="eve")}), dict[str, Person])
    assert read == {"a": Employee(name="ada", boss="eve")}
    with pytest.raises(SerializationError, match=r"^\$\.a\.boss: Input should be a valid string"):
        loads(written({"a": {"name": "ada", "boss": 1}}, Employee), dict[str, Person])


def test_a_subclass_of_another_class_is_refused_as_msgspec_refuses_it() -> None:
    with pytest.raises(SerializationError, match=r"^\$: Expected `object`, got `Admin` \(it does not fit User\)"):
        loads(dumps(Admin("ada", level=1)), User)


def test_a_class_that_only_a_hint_names_is_restored() -> None:
    @dataclass
    class Local:
        inside: Any

    class LocalEnum(enum.Enum):
        A = 1

    text = dumps({"x": [Local(LocalEnum.A)]})
    with pytest.raises(SerializationError, match="no such class is known"):
        loads(text)
    hint = dict[str, list[Local | LocalEnum]]
    other: Any = list[tuple[Local, LocalEnum]]
    assert loads(text, hint) == loads(text, hint, convert=False) == {"x": [Local(LocalEnum.A)]}
    assert loads(text, other, convert=False) == {"x": [Local(LocalEnum.A)]}


def test_a_hint_that_only_names_classes_changes_and_checks_nothing() -> None:
    for value, hint in (((1, 2), list[int]), (1, float), ("x", int), ({1}, "unknown"), (Cat(1), Cat | Dog | complex)):
        read = loads(dumps(value), hint, convert=False)
        assert (type(read), read) == (type(value), value)


def test_a_class_of_a_program_is_known_where_the_program_is_imported() -> None:
    text = dumps(ADA).replace(name_of(User), "__main__:User")
    assert loads(text, User) == ADA
    assert resolve("app:User", {"__main__:User": User}) == (User, True)


def test_a_program_that_was_started_by_its_name_writes_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec("app.signup", None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    made = make_dataclass("Made", [("name", str)], namespace={"__module__": "__main__"})
    made.__module__ = "__main__"
    main.Made = made  # type: ignore[attr-defined]  # as if it were defined there
    text = dumps(made("ada"))
    assert json.loads(text)["meta"]["values"] == [["class", "app.signup:Made"]]
    assert loads(text) == loads(text, made) == made("ada")


def test_undefined_is_a_missing_field_of_a_type() -> None:
    text = dumps({"name": "ada", "age": UNDEFINED, "tags": ["a"]})
    assert loads(text, User) == User("ada", ["a"])
    assert loads(text, Person) == Person(name="ada")
    assert loads(dumps([UNDEFINED, 1]), list[int | None]) == [None, 1]
    assert loads(dumps(UNDEFINED), None) is None
    with pytest.raises(SerializationError, match="missing required field `name`"):
        loads(dumps({"name": UNDEFINED}), User)


def test_flags_are_read_inside_a_type() -> None:
    assert loads(dumps(Allowed(Permission.READ)), Allowed) == Allowed(Permission.READ)
    assert loads(dumps({"what": Permission.WRITE}), Allowed) == Allowed(Permission.WRITE)


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


register(Celsius, "celsius", lambda value: value.degrees, Celsius)


def test_a_registered_class_is_made_of_plain_json_and_of_its_own_text() -> None:
    assert loads(plain([36.6]), list[Celsius])[0].degrees == 36.6
    assert loads(dumps({"t": Celsius(1.5)}), dict[str, Celsius])["t"].degrees == 1.5


@pytest.mark.parametrize(
    "hint",
    ["a text", list["Unknown"], 5, NotImplemented],  # type: ignore[name-defined]  # noqa: F821 - it is unknown
    ids=repr,
)
def test_what_is_no_type_is_refused_as_an_argument(hint: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="values cannot be converted to the type"):
        loads(plain([1]), hint)


def test_a_class_that_cannot_be_converted_to_is_refused_as_an_argument() -> None:
    @dataclass
    class Untagged:
        pet: Cat | Dog

    with pytest.raises(InvalidArgumentError, match=r"Untagged: Type unions may not contain more than one dataclass"):
        loads(plain({"pet": {"lives": 1}}), Untagged)


def test_aliases_of_types_are_seen_through() -> None:
    @dataclass
    class Local:
        inside: int

    # type checkers want both of these at the top of a module, where the class is not
    make_alias: Any = TypeAliasType
    make_variable: Any = TypeVar
    pets: Any = make_alias("Pets", list[Local | Cat])
    assert loads(dumps([Local(1)]), pets) == [Local(1)]
    assert loads(dumps([Local(1)]), make_variable("Bound", bound=Local), convert=False) == [Local(1)]


def test_a_type_that_cannot_be_hashed_is_a_type() -> None:
    hint: Any = Annotated[Cat | Dog, {"not": "hashable"}]
    assert loads(plain({"name": "rex"}), hint) == Dog("rex")
    assert loads(dumps(Dog("rex")), hint) == Dog("rex")


class Unresolved:
    inside: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - it is nowhere


def test_a_hint_whose_annotations_cannot_be_resolved_names_itself_only() -> None:
    read = loads(dumps({"a": Cat(1)}), dict[str, Unresolved | Cat], convert=False)
    assert read == {"a": Cat(1)}


def test_deep_data_does_not_exhaust_the_stack_of_a_recursive_type() -> None:
    text = '{"json":' + '{"next":' * 900 + "null" + "}" * 900 + "}"
    try:
        loads(text, Link)
    except SerializationError as error:
        assert "nested too deep" in str(error)  # noqa: PT017 - where the stack ends depends on who runs the test


class Link(msgspec.Struct):
    next: "Link | None"
