"""An instance of plain fields is written and read without a walk through it: nobody can tell from what comes of it."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanner.workflow.serializer import Reader, classes, dumps, encode, loads, register


@dataclass
class Plain:
    text: str
    count: int = 0
    share: float | None = None
    tags: list[str] = field(default_factory=list[str])
    more: dict[str, Any] = field(default_factory=dict[str, Any])


class Bounded(msgspec.Struct, rename="camel"):
    at_least: Annotated[int, msgspec.Meta(ge=1)]
    anything: Any = None


class Positional(msgspec.Struct, array_like=True):
    number: int


@dataclass
class Checked:
    number: float

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("it is negative")


@dataclass
class Elaborate:
    price: Decimal


@dataclass
class Numbered:
    by_number: dict[int, Any]


@dataclass
class Slotted:
    text: str
    inner: Plain | None = None


@dataclass(frozen=True, slots=True)
class Packed:
    text: str
    count: int = 0


@dataclass(frozen=True, kw_only=True)
class Fixed:
    text: str
    anything: Any = None


class Base:
    __slots__ = ("kept",)


@dataclass
class Laid(Base):
    number: Any


@dataclass
class Managed:
    number: Any = None


# what is set goes elsewhere, as it does with a property
setattr(Managed, "number", property(lambda self: self.kept * 2, lambda self, number: self.__dict__.update(kept=number)))  # noqa: B010 - it is a field to the type checkers


CLASSES: tuple[Any, ...] = (
    Plain,
    Bounded,
    Positional,
    Checked,
    Elaborate,
    Numbered,
    Slotted,
    Packed,
    Fixed,
    Laid,
    Managed,
)
NAMES = ("text", "count", "share", "tags", "more", "atLeast", "anything", "number", "price", "by_number", "inner")
numbers = st.integers() | st.floats() | st.sampled_from([0, -1, 2**53, 2**53 + 1, 2**64, 10**30, 1e300, -0.0])
scalars = st.none() | st.booleans() | numbers | st.text(st.characters(codec=None), max_size=5)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
COMPACT = (",", ":")
separators = st.sampled_from([COMPACT, (", ", ": ")])
objects = st.dictionaries(st.sampled_from(NAMES), values)
tails = st.sampled_from(["}", " }", ',"x":1}', '},"meta":{"values":[["class","a:B"]],"v":1}}', "", "}}", ',"json":{}}'])


def came_of(attempt: Callable[[], Any]) -> object:
    """What it gave, by its text, so that a NaN equals itself; or what was raised."""
    try:
        return repr(attempt())
    except Exception as error:  # noqa: BLE001 - whatever it is, both ways must raise the same
        return type(error), str(error)


def assert_same(text: str, cls: Any) -> None:
    """Texts are read in the short way where there is one, bytes are walked through."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    assert came_of(lambda: loads(text, cls)) == came_of(lambda: loads(data, cls))
    assert came_of(lambda: loads(text, cls, convert=False)) == came_of(lambda: loads(data, cls, convert=False))
    for convert in (True, False):
        assert came_of(lambda: Reader(cls, convert=convert).read(text)) == came_of(  # noqa: B023 - called at once
            lambda: loads(data, cls, convert=convert)  # noqa: B023 - called at once
        )


@given(objects | values, st.sampled_from(CLASSES), st.sampled_from(CLASSES), separators)
@example({"text": "", "share": 1}, Plain, Plain, COMPACT)
@example({"price": 1.10}, Elaborate, Elaborate, COMPACT)
@example({"by_number": {"1": "x"}}, Numbered, Numbered, COMPACT)
@example({"atLeast": 0}, Bounded, Bounded, COMPACT)
@example({"number": -1}, Checked, Checked, COMPACT)
@example([1], Positional, Positional, COMPACT)
@example({"number": [1]}, Managed, Managed, COMPACT)
@example({"number": [1]}, Laid, Laid, COMPACT)
def test_what_was_written_is_read_the_same_on_both_ways(fields: Any, cls: Any, named: Any, between: Any) -> None:
    name = f"{named.__module__}:{named.__qualname__}"
    envelope = {"json": fields, "meta": {"values": [["class", name]], "v": 1}}
    assert_same(json.dumps(envelope, separators=between), cls)


@given(st.text(max_size=8), tails, st.sampled_from(CLASSES))
def test_what_is_no_text_of_ours_is_refused_the_same_on_both_ways(inside: str, tail: str, cls: Any) -> None:
    right = f',"meta":{{"values":[["class","{cls.__module__}:{cls.__qualname__}"]],"v":1}}}}'
    for text in (
        f'{{"json":{inside}{right}',
        f'{{"json":{{"text":"a"}}{tail}',
        f'{{"json":{{"text":"a"}}{inside}{right}',
    ):
        assert_same(text, cls)


@dataclass
class Empty:
    pass


@st.composite
def texts_that_look_alike(draw: st.DrawFn, cls: Any) -> list[str]:
    """Most as a class's instances are written, and some that are nearly so."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    right = f',"meta":{{"values":[["class","{name}"]],"v":1}}}}'
    inside = objects.map(lambda fields: json.dumps(fields, separators=COMPACT)) | st.sampled_from(
        [
            "{}",
            "",
            " ",
            "{}{}",
            "{},{}",
            "{}\n{}",
            "\n",
            f'{{}}{right}\n{{"json":{{}}',
            "[]",
            '{"text":"a\nb"}',
            '{"text":"a\\nb"}',
        ]
    )
    head = st.sampled_from(['{"json":'] * 9 + ['{"json": ', "", "["])
    tail = st.sampled_from([right] * 9 + [right.replace(name, "a:B"), "}", "", f"{right}\n"])
    return draw(st.lists(st.tuples(head, inside, tail).map("".join), max_size=4))


@given(st.data(), st.sampled_from([*CLASSES, Empty]), st.booleans())
def test_many_are_read_as_each_by_itself(data: st.DataObject, cls: Any, convert: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    texts = data.draw(texts_that_look_alike(cls))
    each = came_of(lambda: [loads(text.encode(), cls, convert=convert) for text in texts])
    assert came_of(lambda: Reader(cls, convert=convert).read_many(texts)) == each


HEAD = '{"json":'
TAIL = f',"meta":{{"values":[["class","{Empty.__module__}:Empty"]],"v":1}}}}'
OTHER = f',"meta":{{"values":[["class","{Empty.__module__}:Emptz"]],"v":1}}}}'
GOOD = HEAD + "{}" + TAIL


@pytest.mark.parametrize(
    "texts",
    [
        [f"{HEAD}{{}}{{}}{TAIL}", HEAD + TAIL],
        [f"{HEAD}{{}},{{}}{TAIL}", GOOD],
        [f"{HEAD}{{}},{TAIL}", GOOD],
        [GOOD, f'{HEAD}{{"a":[1{TAIL}', f"{HEAD}2]}}{TAIL}"],
        [f'{HEAD}{{"x":[1{TAIL}', f"{HEAD}2]}}{TAIL}", f"{HEAD}{{}},{{}}{TAIL}"],
        [f"{GOOD}\n{GOOD}", f'{HEAD}{{"a":[1', f",2]}}{TAIL}"],
        ['{"JSON":{}' + TAIL, GOOD],
        [GOOD, '{"JSON":{}' + TAIL],
        [HEAD + "{}" + OTHER, GOOD],
        [GOOD, HEAD + "{}" + OTHER],
        [GOOD, '{"json":{}}', GOOD],
        [f"{HEAD}{{}},", "{},", "{}" + TAIL],
    ],
)
def test_what_is_wrong_with_one_text_shows_among_many(texts: list[str]) -> None:
    each = came_of(lambda: [loads(text.encode(), Empty) for text in texts])
    assert came_of(lambda: Reader(Empty).read_many(texts)) == each


@given(values, values, st.sampled_from([Plain, Slotted]))
def test_what_is_written_is_the_same_on_both_ways(first: Any, second: Any, cls: Any) -> None:
    value = cls(first, second)
    # with a hint it is walked through
    assert came_of(lambda: dumps(value)) == came_of(lambda: dumps(value, hint=cls))


class Counted(dict[str, Any]):
    pass


@pytest.mark.parametrize("kind", [OrderedDict, Counted, dict])
@pytest.mark.parametrize("held", [float("nan"), 2**70, {1}, (1, 2), b"x", Empty(), {"a": 1}, "text"], ids=repr)
def test_what_holds_the_fields_of_an_instance_may_be_of_any_kind(kind: Any, held: Any) -> None:
    value = Laid(0)
    value.__dict__ = kind(number=held)
    assert dumps(value) == dumps(value, hint=Laid)


class Own:
    @property
    def __dict__(self) -> Any:  # type: ignore[override] # pyright: ignore[reportIncompatibleVariableOverride] - it is tested
        return {"number": 99}


@dataclass
class Owned(Own):
    number: int


def test_what_a_class_says_its_attributes_are_is_not_asked_for() -> None:
    value = Owned(1)
    assert json.loads(dumps(value))["json"] == {"number": 1}
    assert dumps(value) == dumps(value, hint=Owned)


def test_what_is_registered_while_another_thread_finds_out_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Secret:
        number: int

    asked, go_on, find = threading.Event(), threading.Event(), classes.dump_of

    def find_slowly(kind: Any, cls: Any) -> Callable[[Any], Any]:
        asked.set()
        go_on.wait(30)
        return find(kind, cls)

    monkeypatch.setattr(encode, "dump_of", find_slowly)
    finding = threading.Thread(target=lambda: dumps(Secret(1)))
    finding.start()
    assert asked.wait(30)
    register(Secret, "direct.secret", lambda _: "***", lambda _: Secret(0))
    go_on.set()
    finding.join()
    assert json.loads(dumps(Secret(1)))["json"] == "***"


def test_a_class_that_is_registered_meanwhile_is_written_and_read_by_its_registration() -> None:
    @dataclass
    class Late:
        number: int

    before = dumps(Late(1))
    assert loads(before, Late) == Late(1)
    register(Late, "direct.late", lambda late: str(late.number + 1), lambda text: Late(int(text)))
    written = dumps(Late(1))
    assert json.loads(written) == {"json": "2", "meta": {"values": [["custom", "direct.late"]], "v": 1}}
    assert loads(written, Late) == Late(2)


def test_a_name_that_was_given_to_another_class_means_that_class() -> None:
    @dataclass
    class Old:
        number: int

    text = dumps(Old(1))

    @dataclass
    class New(Old):
        pass

    register(New, f"{Old.__module__}:{Old.__qualname__}")
    assert loads(text) == loads(text, New) == New(1)
    assert_same(text, Old)


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "line\nbreak", "ünï", "</script>", "\x7f\u2028"])
def test_a_name_is_written_so_that_it_can_be_read(name: str) -> None:
    cls: type[Plain] = register(type(name, (Plain,), {}), f"direct.{name}")
    text = dumps(cls("a"))
    assert json.loads(text)["meta"]["values"] == [["class", f"direct.{name}"]]
    assert type(loads(text, cls)) is type(loads(text.encode(), cls)) is type(loads(text)) is cls
