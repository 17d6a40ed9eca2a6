"""Texts of the TypeScript library superjson 2 are read to the right values, and written again as they were."""

import json
import math
import re
from array import array
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lanner.errors import SerializationError
from lanner.workflow.serializer import (
    UNDEFINED,
    URL,
    BigInt,
    Map,
    RecordedError,
    Uint8Array,
    Uint8ClampedArray,
    dumps,
    loads,
)
from support.shapes import shape

CASES: dict[str, str] = {
    case["name"]: case["text"]
    for case in json.loads((Path(__file__).parent / "data" / "superjson_cases.json").read_text(encoding="utf-8"))[
        "cases"
    ]
}
MOMENT = datetime(2026, 3, 29, 1, 30, 0, 123_000, tzinfo=UTC)

VALUES: dict[str, Any] = {
    "plain object": {"a": 1, "b": "x", "c": [True, None, 1.5]},
    "null": None,
    "string": 'héllo \u2028 "q"',
    "int": 42,
    "float": 0.1,
    "undefined root": UNDEFINED,
    "undefined in object": {"a": UNDEFINED, "b": 1},
    "undefined in array": [1, UNDEFINED, 3],
    "date root": MOMENT,
    "date nested": {"user": {"created": MOMENT, "name": "x"}},
    "dates in array": [MOMENT, MOMENT],
    "set of ints": {1, 2, 3},
    "set nested": {"tags": {"a", "b"}},
    "set of dates": {MOMENT},
    "map": Map({"a": 1, "b": 2}),
    "map int keys": {1: "one", 2: "two"},
    "map with date value": Map({"k": MOMENT}),
    "map nested": {"m": Map({"x": Map({"y": 1})})},
    "bigint": 12345678901234567890,
    "bigint list": [BigInt(1), BigInt(2)],
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "minus zero": -0.0,
    "regexp": re.compile("ab+c", re.IGNORECASE),
    "regexp nested": {"r": re.compile(r"x\/y")},
    "error": RecordedError("Error", "boom"),
    "error nested": {"e": RecordedError("TypeError", "bad type")},
    "url": URL("https://example.com/a?b=c#d"),
    "key with dot": {"a.b": MOMENT},
    "numeric-looking keys": {"0": MOMENT, "10": {1}},
    "same object twice": {"x": {"a": 1}, "y": {"a": 1}},
    "uint8array": Uint8Array([1, 2, 255]),
    "invalid date": None,
    "empty set": set[Any](),
    "empty map": Map[str, Any](),
    "empty object": {},
    "empty array": [],
}


def test_every_case_has_its_value() -> None:
    assert CASES.keys() == VALUES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_text_of_superjson_is_read(name: str) -> None:
    assert shape(loads(CASES[name])) == shape(VALUES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_text_of_superjson_is_read_from_bytes(name: str) -> None:
    assert shape(loads(CASES[name].encode())) == shape(VALUES[name])


@pytest.mark.parametrize("name", CASES)
def test_what_was_read_is_written_as_superjson_wrote_it(name: str) -> None:
    written, original = (json.loads(text) for text in (dumps(loads(CASES[name])), CASES[name]))
    # the one difference: which values are one object is read, and not written
    original.get("meta", {}).pop("referentialEqualities", None)
    if original.get("meta") == {"v": 1}:
        del original["meta"]
    if name == "set nested":
        written["json"]["tags"].sort()
    assert written == original


def test_objects_that_are_one_in_javascript_are_one_object() -> None:
    value = loads(CASES["same object twice"])
    assert value["x"] is value["y"]


def annotated(payload: Any, values: Any = None, equalities: Any = None, **meta: Any) -> str:
    parts = {"values": values, "referentialEqualities": equalities, "v": 1, **meta}
    return json.dumps({"json": payload, "meta": {key: part for key, part in parts.items() if part is not None}})


def test_objects_are_one_where_the_text_holds_null_for_the_second() -> None:
    text = annotated({"x": {"a": ["1"]}, "y": {"z": None}, "w": None}, {"x.a.0": ["bigint"]}, {"x.a": ["y.z", "w"]})
    value = loads(text)
    assert value == {"x": {"a": [1]}, "y": {"z": [1]}, "w": [1]}
    assert value["x"]["a"] is value["y"]["z"] is value["w"]


def test_an_object_is_one_when_it_comes_after_the_place_that_shares_it() -> None:
    value = loads(annotated({"y": None, "x": ["1"]}, {"x": ["set", {"0": ["bigint"]}]}, {"x": ["y"]}))
    assert value == {"y": {1}, "x": {1}}
    assert value["x"] is value["y"]


def test_objects_inside_maps_and_tuples_are_one() -> None:
    text = annotated([[["k", {"a": 1}]], [None]], {"0": ["map"], "1": [["custom", "tuple"]]}, {"0.0.1": ["1.0"]})
    mapped, (alone,) = loads(text)
    assert mapped == {"k": {"a": 1}}
    assert mapped["k"] is alone


@pytest.mark.parametrize("key", ["a.b", "a\\b", "a\\.b", "", ".", "\\", "..\\\\"])
def test_keys_of_any_letters_are_found(key: str) -> None:
    value = {key: {key: MOMENT}}
    assert loads(dumps(value)) == value


def test_a_path_of_a_text_without_a_version_keeps_its_backslashes() -> None:
    text = annotated({"a\\b": "2026-03-29T01:30:00.123Z", "c.d": []}, {"a\\b": ["Date"], "c\\.d": ["set"]})
    legacy = json.loads(text)
    del legacy["meta"]["v"]
    assert loads(json.dumps(legacy)) == {"a\\b": MOMENT, "c.d": set()}
    with pytest.raises(SerializationError, match="backslash"):
        loads(text)


@pytest.mark.parametrize(
    ("literal", "matching", "other"),
    [
        ("/ab+c/gi", "xABBC", "ac"),
        ("/^b/m", "a\nb", "ab"),
        ("/a.b/s", "a\nb", "ab"),
        ("/(?<year>\\d{4})-\\k<year>/u", "2026-2026", "2026-2027"),
        ("/x\\/y/", "x/y", "xy"),
        ("/(?<!a)b/", "cb", "ab"),
        ("//", "", None),
    ],
)
def test_a_regular_expression_matches_and_is_written_with_all_its_flags(
    literal: str, matching: str, other: str | None
) -> None:
    text = annotated(literal, ["regexp"])
    pattern = loads(text)
    assert pattern.search(matching)
    assert other is None or not pattern.search(other)
    assert json.loads(dumps(pattern)) == json.loads(text)


def test_regular_expressions_that_differ_in_their_flags_only_stay_apart() -> None:
    written = [dumps(loads(annotated(literal, ["regexp"]))) for literal in ("/a/g", "/a/", "/a/y", "/a/g")]
    assert [json.loads(text)["json"] for text in written] == ["/a/g", "/a/", "/a/y", "/a/g"]
    assert json.loads(dumps(re.compile("a")))["json"] == "/a/"


@pytest.mark.parametrize(
    "pattern", ["(?P<year>a)", "(?#x)a", r"\Aa", r"a\Z", "a++", "(?i:a)", "(a)?(?(1)b|c)", "(?>a)"]
)
def test_a_pattern_that_javascript_would_misread_is_custom(pattern: str) -> None:
    compiled = re.compile(pattern)
    text = dumps(compiled)
    assert json.loads(text)["meta"]["values"] == [["custom", "Pattern"]]
    assert loads(text) == compiled


@pytest.mark.parametrize(
    ("name", "items", "value"),
    [
        ("Int8Array", [-1, 2], array("b", [-1, 2])),
        ("Uint16Array", [1, 65_535], array("H", [1, 65_535])),
        ("Int32Array", [-(2**31)], array("i", [-(2**31)])),
        ("Float32Array", [0.5, "Infinity"], array("f", [0.5, math.inf])),
        ("Float64Array", [0.1, "-Infinity", "-0"], array("d", [0.1, -math.inf, -0.0])),
        ("BigInt64Array", ["-9223372036854775808"], array("q", [-(2**63)])),
        ("BigUint64Array", ["18446744073709551615"], array("Q", [2**64 - 1])),
        ("Uint8ClampedArray", [0, 255], Uint8ClampedArray([0, 255])),
    ],
)
def test_typed_arrays_are_read_and_written(name: str, items: list[Any], value: Any) -> None:
    text = annotated(items, [["typed-array", name]])
    read = loads(text)
    assert (type(read), read) == (type(value), value)
    assert json.loads(dumps(read)) == json.loads(text)


def test_not_a_number_survives_in_a_typed_array() -> None:
    text = annotated(["NaN", 1.5], [["typed-array", "Float64Array"]])
    assert math.isnan(loads(text)[0])
    assert json.loads(dumps(loads(text))) == json.loads(text)


def test_an_error_keeps_its_stack_and_its_cause() -> None:
    inner = {"name": "Error", "message": "inner"}
    text = annotated(
        {"name": "RangeError", "message": "outer", "stack": "at line 1", "cause": inner},
        ["Error", {"cause": ["Error"]}],
    )
    error = loads(text)
    assert error == RecordedError("RangeError", "outer", "at line 1", RecordedError("Error", "inner"))
    assert json.loads(dumps(error)) == json.loads(text)


def test_half_of_a_surrogate_pair_is_read_and_written() -> None:
    for text in ('{"json":["\\ud800","\\u00e9"]}', b'{"json":["\\ud800","\\u00e9"]}'):
        assert loads(text) == ["\ud800", "é"]
    assert loads(dumps({"\udfff": {"\ud800"}})) == {"\udfff": {"\ud800"}}
    assert dumps("\ud800").isascii()


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        ("2026-03-29T01:30:00Z", "2026-03-29T01:30:00.000Z"),
        ("2026-03-29T01:30:00.123456Z", "2026-03-29T01:30:00.123456Z"),
        ("2026-03-29T03:30:00.5+02:00", "2026-03-29T03:30:00.500+02:00"),
        ("0001-01-01T00:00:00-11:30", "0001-01-01T00:00:00.000-11:30"),
    ],
)
def test_a_datetime_with_an_offset_is_a_date(moment: str, written: str) -> None:
    text = dumps(datetime.fromisoformat(moment))
    assert json.loads(text) == {"json": written, "meta": {"values": ["Date"], "v": 1}}
    assert loads(text).isoformat() == datetime.fromisoformat(moment).isoformat()


def test_items_that_are_equal_only_in_python_are_not_lost_silently() -> None:
    for payload, annotation in (([1, True], "set"), ([[1, "a"], [True, "b"]], "map")):
        with pytest.raises(SerializationError, match="different in JavaScript"):
            loads(annotated(payload, [annotation]))


def test_a_set_of_objects_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"^\$\.s: it cannot be read as 'set': unhashable"):
        loads(annotated({"s": [{"a": 1}]}, {"s": ["set"]}))


@pytest.mark.parametrize("make", [dumps, annotated], ids=["plain", "meta without values"])
def test_a_meta_that_says_nothing_changes_nothing(make: Callable[[Any], str]) -> None:
    assert loads(make({"a": [1, {"b": None}]})) == {"a": [1, {"b": None}]}
