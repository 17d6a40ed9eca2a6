"""Whatever a text says, reading it runs nothing, crashes nothing, and ends with a value or a SerializationError."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanner.errors import SerializationError
from lanner.workflow.serializer import dumps, loads, register

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    ran.clear()
    yield
    assert not ran


def annotated(payload: Any, values: Any = None, equalities: Any = None, version: Any = 1) -> str:
    meta = {"values": values, "referentialEqualities": equalities, "v": version}
    return json.dumps({"json": payload, "meta": {key: part for key, part in meta.items() if part is not None}})


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "os.system",
        "subprocess:Popen",
        "builtins:eval",
        "builtins:object",
        "this:anything",
        "antigravity:fly",
        "pathlib:Path",
        "collections:OrderedDict",
        ":",
        "",
        "a" * 100_000,
        ".." * 1000 + ":x",
        "__main__:__builtins__",
        "sys:modules",
    ],
    ids=lambda name: name[:30],
)
@pytest.mark.parametrize("form", ["class", "custom"])
def test_a_name_of_something_that_is_no_data_class_is_refused(name: str, form: str) -> None:
    before = set(sys.modules)
    for payload in ({"a": 1}, ["ls"], "ls"):
        with pytest.raises(SerializationError, match=r"^\$: it cannot be read as .*: no such class is known"):
            loads(annotated(payload, [[form, name]]))
    assert set(sys.modules) == before


def test_a_class_of_a_module_that_is_not_imported_is_refused_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "never_imported.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Order:\n    a: int\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(SerializationError, match="no such class is known in this process: import its module"):
        loads(annotated({"a": 1}, [["class", "never_imported:Order"]]))
    assert "never_imported" not in sys.modules


class LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        ran.append(name)
        raise AttributeError(name)


def test_no_module_is_asked_for_what_it_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lazy_module", LazyModule("lazy_module"))
    with pytest.raises(SerializationError, match="no such class"):
        loads(annotated({"a": 1}, [["class", "lazy_module:Order.Line"]]))


def make() -> list[str]:
    ran.append("factory")
    return []


@dataclass
class Loud:
    path: str = ""
    made: list[str] = field(default_factory=make)

    def __init__(self) -> None:
        ran.append("init")

    def __post_init__(self) -> None:
        ran.append("post_init")

    def __setattr__(self, name: str, value: object) -> None:
        ran.append(f"set {name}")


@dataclass
class Finalized:
    path: str

    def __del__(self) -> None:
        ran.append("del")


class LoudStruct(msgspec.Struct):
    path: str

    def __init_subclass__(cls) -> None:
        ran.append("init_subclass")

    def __post_init__(self) -> None:
        ran.append("post_init")


# their definition runs some of it
ran.clear()


def test_a_class_that_only_the_text_names_runs_none_of_its_code() -> None:
    read = loads(annotated({"path": "/etc", "made": [], "__class__": "x", "other": 1}, [["class", f"{__name__}:Loud"]]))
    assert vars(read) == {"path": "/etc", "made": []}


@pytest.mark.parametrize(
    ("cls", "what"),
    [
        (Loud, "the field 'made' of Loud is missing"),
        (Finalized, "has a __del__ method: register"),
        (LoudStruct, "has both __post_init__ and __init_subclass__"),
    ],
)
def test_a_class_that_cannot_be_restored_without_its_code_is_refused(cls: type, what: str) -> None:
    with pytest.raises(SerializationError, match=what):
        loads(annotated({"path": "/etc"}, [["class", f"{__name__}:{cls.__qualname__}"]]))


@pytest.mark.parametrize(
    "opening", ['{"json":', '{"json":1,"meta":{"values":', '{"json":{"a":1},"meta":{"referentialEqualities":']
)
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}"), ('["set",', "]")])
def test_a_hundred_thousand_levels_are_refused(opening: str, begin: str, end: str) -> None:
    text = opening + begin * 100_000 + "1" + end * 100_000 + "}" * opening.count("{")
    with pytest.raises(SerializationError, match="nested too deep"):
        loads(text)


@pytest.mark.parametrize("depth", [100, 300, 600, 900])
def test_annotations_nested_as_deep_as_json_goes_are_refused(depth: int) -> None:
    # a list is read as a tuple at each level, and a number in the innermost
    note = '[["custom","tuple"],{"0":' * depth + '[["custom","tuple"]]' + "}]" * depth
    text = '{"json":' + "[" * depth + "1" + "]" * depth + ',"meta":{"v":1,"values":' + note + "}}"
    with pytest.raises(SerializationError, match=r"a list is needed here, not a number|nested too deep"):
        loads(text)


@pytest.mark.parametrize(
    ("payload", "equalities"),
    [
        ({"a": {"b": None}}, {"a": ["a.b"]}),
        ({"a": {"b": None}, "c": {"d": None}}, {"a": ["c.d"], "c": ["a.b"]}),
        ({"a": {"x": {"b": None}}, "c": {"d": {"e": None}}}, {"a": ["c.d.e"], "c.d": ["a.x.b"]}),
        ({"a": 1, "b": 2}, {"a": ["b"], "b": ["a"]}),
        ({"a": 1}, {"a": ["a"]}),
        ({"a": None}, [["a"]]),
        ({"a": None, "b": 1, "c": 1}, [["a"], {"b": ["c"]}]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("values", [None, {"a": [["custom", "tuple"]]}], ids=["plain", "annotated"])
def test_a_value_that_holds_itself_is_refused(payload: Any, equalities: Any, values: Any) -> None:
    with pytest.raises(SerializationError, match="holds itself"):
        loads(annotated(payload, values, equalities))


def test_a_chain_of_shared_references_is_followed_or_refused() -> None:
    payload = {f"a{number}": [number] for number in range(30_000)}
    forwards = {f"a{number}": [f"a{number + 1}"] for number in range(29_999)}
    assert loads(annotated(payload, None, forwards))["a29999"] == [0]
    backwards = {f"a{number + 1}": [f"a{number}"] for number in range(29_999)}
    with pytest.raises(SerializationError, match="nested too deep"):
        loads(annotated(payload, None, backwards))


def test_shared_references_that_stand_for_billions_of_values_are_refused() -> None:
    payload: dict[str, Any] = {"a0": ["lol"] * 10}
    equalities: dict[str, list[str]] = {}
    for level in range(1, 60):
        payload[f"a{level}"] = [None] * 10
        equalities[f"a{level - 1}"] = [f"a{level}.{index}" for index in range(10)]
    with pytest.raises(SerializationError, match="stand for too many values"):
        loads(annotated(payload, None, equalities))


def test_many_shared_references_are_fine() -> None:
    payload = {"shared": {"a": [1, 2, 3]}, "places": [None] * 50_000}
    value = loads(annotated(payload, None, {"shared": [f"places.{index}" for index in range(50_000)]}))
    assert all(place is value["shared"] for place in value["places"])


@pytest.mark.parametrize(
    "path",
    [
        "b",
        "a.b",
        "a.0.0",
        "a.-1",
        "a.1",
        "a.01",
        "a.1e0",
        "a.x",
        "a.",
        ".a",
        "",
        "a.\u0661",
        "a." + "9" * 1000,
        "a.0" * 1000,
        "..",
        "a\\",
        "\\a",
    ],
    ids=lambda path: path[:20],
)
def test_a_path_to_nowhere_is_refused(path: str) -> None:
    for text in (
        annotated({"a": ["1"]}, {path: ["bigint"]}),
        annotated({"a": ["1"]}, {"a": ["set", {path: ["bigint"]}]}),
        annotated({"a": ["1"]}, None, {path: ["a"]}),
        annotated({"a": ["1"]}, None, {"a": [path]}),
    ):
        with pytest.raises(SerializationError, match="the meta of the text cannot be read"):
            loads(text)


@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype", "__class__", "__dict__", "__init__"])
def test_keys_that_mean_something_elsewhere_are_data(key: str) -> None:
    assert loads(annotated({key: {key: ["1"]}}, {f"{key}.{key}.0": ["bigint"]})) == {key: {key: [1]}}
    assert loads(dumps({key: {1}})) == {key: {1}}


@pytest.mark.parametrize(
    "values",
    [
        1,
        "set",
        [],
        [1],
        [None],
        [[]],
        [[1]],
        [["custom"]],
        [["custom", 1]],
        [["custom", "tuple", "x"]],
        [["a", "b", "c", "d"]],
        ["nope"],
        [["nope", "x"]],
        [["symbol", "x"]],
        [["typed-array", "DataView"]],
        ["set", 1],
        ["set", [1]],
        ["set", {}, {}],
        ["set", {"0": 1}],
        [{"set": 1}],
        {"0": 1},
        {"0": {"x": 1}},
        {"0": ["set"], "0.0": ["set"]},
        True,
        ["set", {"0": ["set"]}],
    ],
    ids=repr,
)
def test_annotations_of_the_wrong_form_are_refused(values: Any) -> None:
    with pytest.raises(SerializationError, match=r"^\$"):
        loads(annotated([{"a": 1}], values))


@pytest.mark.parametrize(
    "meta",
    [
        1,
        "x",
        [],
        True,
        {"v": 2},
        {"v": "1"},
        {"v": True},
        {"v": -1},
        {"v": 1.0},
        {"referentialEqualities": 1},
        {"referentialEqualities": {"0": 1}},
        {"referentialEqualities": {"0": [1]}},
    ],
    ids=repr,
)
def test_a_meta_of_the_wrong_form_is_refused(meta: Any) -> None:
    with pytest.raises(SerializationError, match="the meta of the text cannot be read"):
        loads(json.dumps({"json": [1], "meta": meta}))


CUSTOM = [
    *(
        "tuple",
        "frozenset",
        "bytes",
        "bytearray",
        "Decimal",
        "UUID",
        "date",
        "time",
        "datetime",
        "timedelta",
        "complex",
    ),
    *("Path", "PurePosixPath", "PureWindowsPath", "Pattern", "OrderedDict", "Counter", "deque"),
]
KINDS: list[Any] = [
    *("undefined", "bigint", "Date", "Error", "regexp", "set", "map", "number", "URL"),
    *(["custom", name] for name in CUSTOM),
    *(["typed-array", name] for name in ("Uint8Array", "Float64Array", "BigInt64Array")),
    *([form, f"{__name__}:Loud"] for form in ("class", "custom")),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@given(JSON, st.sampled_from(KINDS))
def test_any_payload_is_read_or_refused_under_any_annotation(payload: Any, kind: Any) -> None:
    try:
        loads(annotated({"a": payload}, {"a": [kind]}))
    except SerializationError as error:
        assert str(error).startswith("$.a: it cannot be read as ")  # noqa: PT017 - reading may also succeed


@given(JSON, JSON, JSON)
def test_any_meta_is_read_or_refused(payload: Any, values: Any, equalities: Any) -> None:
    try:
        loads(annotated(payload, values, equalities))
    except SerializationError as error:
        assert str(error).startswith("$")  # noqa: PT017 - reading may also succeed


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    with pytest.raises(SerializationError, match="this is not a serialized value"):
        loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "1",
        "{}",
        '{"meta":{"values":["undefined"]}}',
        '{"json":1}x',
        b"\xff",
        '{"json":NaN}',
        '{"json":1e999}',
        "{'json':1}",
        '{"json":"\ud800"}',
        '{"json":["\\ud800",NaN]}',
        '["\\ud800"]',
        '{"x":"\\ud800"}',
        '{"json":' + "1" * 100_000 + "}",
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_what_is_no_serialized_value_is_refused(text: str | bytes) -> None:
    with pytest.raises(SerializationError, match="this is not a serialized value"):
        loads(text)


UNREADABLE: list[tuple[Any, Any]] = [
    ("/" + "(" * 100_000 + "/", "regexp"),
    ("/a{1,99999999999}/", "regexp"),
    ("/a/é", "regexp"),
    (["a", 128], ["custom", "Pattern"]),
    ("1" * 100_000, "bigint"),
    ("0x10", "bigint"),
    (" 1", "bigint"),
    ("1_0", "bigint"),
    ("2026-01-01T00:00:00[../../etc/passwd]", ["custom", "datetime"]),
    ("2026-01-01T00:00:00[Europe]", ["custom", "datetime"]),
    ("2026-01-01T00:00:00[Europe/Nowhere]", ["custom", "datetime"]),
    ("2026-01-01T00:00:00[os.path/join]", ["custom", "datetime"]),
    ("+012345-01-01T00:00:00.000Z", "Date"),
    ("2026-01-01T00:00:00.000", "Date"),
    ("not a url", "URL"),
    ([1, 256], ["typed-array", "Uint8Array"]),
    (["x"], ["typed-array", "Float64Array"]),
    ([[1], "x"], ["custom", "deque"]),
    ([[]], ["custom", "deque"]),
    ([1, 2, 3], ["custom", "complex"]),
    ([["a", 1], ["a", 2]], ["custom", "OrderedDict"]),
    (5, ["custom", "bytes"]),
    ("é", ["custom", "bytes"]),
]


@pytest.mark.parametrize(
    ("payload", "annotation"),
    UNREADABLE,
    ids=lambda part: repr(part)[:40],
)
def test_a_payload_that_is_none_of_its_type_is_refused(payload: Any, annotation: Any) -> None:
    with pytest.raises(SerializationError, match=r"^\$: (it cannot be read as|it is nested too deep)"):
        loads(annotated(payload, [annotation]))


class Failing:
    pass


def _fail(_: object) -> Any:
    raise RuntimeError("broken")


register(Failing, "failing", lambda _: 1, _fail)


def test_a_decode_that_fails_is_told_with_its_place() -> None:
    with pytest.raises(SerializationError, match=r"^\$\.a\[0\]: it cannot be read as 'failing': RuntimeError: broken"):
        loads(dumps({"a": [Failing()]}))


def test_a_text_with_very_many_annotations_is_read() -> None:
    value = {"numbers": list(range(2**53, 2**53 + 50_000)), "sets": [{number} for number in range(50_000)]}
    assert loads(dumps(value)) == value


@pytest.mark.parametrize("version", ["true", "1.0", "2", '"1"'])
def test_a_version_that_is_not_known_is_refused_also_of_a_class_alone(version: str) -> None:
    text = f'{{"json":{{}},"meta":{{"values":[["class","builtins:object"]],"v":{version}}}}}'
    with pytest.raises(SerializationError, match=r"version .* is not known here"):
        loads(text, dict[str, str])
