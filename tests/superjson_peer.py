"""The TypeScript library superjson itself reads what Lanner writes, and Lanner what it writes.

This is not among the tests that always run, since it needs Node (20 or later) and the npm package:

    pytest tests/superjson_peer.py

The package is installed into a temporary directory, or taken from the directory that ``LANNER_NODE_MODULES`` names.
Where either is missing, the tests fail.
"""

import json
import math
import os
import re
import subprocess
from array import array
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanner.workflow.serializer import (
    UNDEFINED,
    URL,
    BigInt,
    Map,
    RecordedError,
    Uint8Array,
    dumps,
    loads,
    register,
)
from support.shapes import shape

DATA = Path(__file__).parent / "data"
CASES: dict[str, str] = {
    case["name"]: case["text"]
    for case in json.loads((DATA / "superjson_cases.json").read_text(encoding="utf-8"))["cases"]
}
VERSION = "2.2.7"

Peer = Callable[..., str]


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given_directory = os.environ.get("LANNER_NODE_MODULES")
    if given_directory:
        return Path(given_directory).resolve()
    directory = tmp_path_factory.mktemp("npm")
    install = [
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(directory),
        f"superjson@{VERSION}",
    ]
    subprocess.run(install, check=True, timeout=120)
    return directory / "node_modules"


@pytest.fixture(scope="session")
def peer(node_modules: Path) -> Iterator[Peer]:
    command = ["node", str(DATA / "superjson_peer.mjs"), str(node_modules)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to_peer, from_peer = process.stdin, process.stdout

        def ask(question: str, **parts: Any) -> str:
            to_peer.write(json.dumps({"ask": question, **parts}) + "\n")
            to_peer.flush()
            answer = json.loads(from_peer.readline())
            assert "error" not in answer, answer["error"]
            return str(answer["answer"])

        yield ask
        to_peer.close()


class Money(msgspec.Struct):
    amount: Any
    currency: str


register(Money, "peer.Money")


@pytest.mark.parametrize("name", CASES)
def test_what_superjson_wrote_and_lanner_wrote_again_is_the_same_to_superjson(peer: Peer, name: str) -> None:
    rewritten = dumps(loads(CASES[name]))
    assert peer("shapeOfText", text=rewritten) == peer("shapeOfText", text=CASES[name])


MOMENT = datetime(2026, 3, 29, 1, 30, 0, 123_456, tzinfo=UTC)

VALUES: list[tuple[Any, str]] = [
    ({"a": [1, 1.5, "x", None, True]}, "{a: [1, 1.5, 'x', null, true]}"),
    (MOMENT, "new Date('2026-03-29T01:30:00.123Z')"),
    (MOMENT.astimezone(timezone(timedelta(hours=-11, minutes=-30))), "new Date('2026-03-29T01:30:00.123Z')"),
    (datetime(1, 1, 1, tzinfo=UTC), "new Date('0001-01-01T00:00:00Z')"),
    ({MOMENT: {1, "a"}}, "new Map([[new Date('2026-03-29T01:30:00.123Z'), new Set([1, 'a'])]])"),
    ({"a.b": {"c\\d": {2**53 + 1}}}, "{'a.b': {'c\\\\d': new Set([9007199254740993n])}}"),
    ([2**53, -(2**53), 2**53 + 1, BigInt(5)], "[9007199254740992, -9007199254740992, 9007199254740993n, 5n]"),
    ([math.nan, math.inf, -math.inf, -0.0], "[NaN, Infinity, -Infinity, -0]"),
    ({"u": UNDEFINED}, "{u: undefined}"),
    ([re.compile("a.b", re.IGNORECASE | re.DOTALL), re.compile("a/b"), re.compile("")], "[/a.b/is, /a\\/b/, /(?:)/]"),
    (URL("https://example.com/"), "new URL('https://example.com')"),
    (Map(a=1), "new Map([['a', 1]])"),
    (Uint8Array(b"\x00\xff"), "new Uint8Array([0, 255])"),
    (array("d", [math.nan, -0.0, 1.5]), "new Float64Array([NaN, -0, 1.5])"),
    (array("q", [-(2**63)]), "new BigInt64Array([-9223372036854775808n])"),
    ([RecordedError("TypeError", "m", "at x")], "[Object.assign(new TypeError('m'), {stack: 'at x'})]"),
    (["\ud800", "é\u2028"], "['\\ud800', 'é\\u2028']"),
    (Money({1}, "EUR"), "new Money(new Set([1]), 'EUR')"),
    (
        datetime(2026, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        "Object.assign(new Date('2026-01-01T00:00:00Z'), {zone: 'Europe/Berlin'})",
    ),
]


@pytest.mark.parametrize(("value", "expression"), VALUES, ids=[expression for _, expression in VALUES])
def test_superjson_reads_what_lanner_wrote(peer: Peer, value: Any, expression: str) -> None:
    assert peer("shapeOfText", text=dumps(value)) == peer("shapeOfExpression", expression=expression)


def test_an_exception_is_an_error_with_its_traceback_as_its_stack(peer: Peer) -> None:
    try:
        raise KeyError("lost")
    except KeyError as error:
        text = dumps({"failure": error})
    told = peer("shapeOfText", text=text)
    assert 'Error(["KeyError","\'lost\'","Traceback (most recent call last):' in told


SHARED = "(() => { const shared = new Set([{}.x, 1n]); return {a: shared, b: [shared, new Map([[1, shared]])]}; })()"


@pytest.mark.parametrize("dedupe", [False, True])
def test_an_object_that_superjson_found_twice_is_one_object(peer: Peer, *, dedupe: bool) -> None:
    value = loads(peer("write", expression=SHARED, dedupe=dedupe))
    assert value == {"a": {UNDEFINED, 1}, "b": [{UNDEFINED, 1}, {1: {UNDEFINED, 1}}]}
    assert value["a"] is value["b"][0] is value["b"][1][1]


def test_an_instance_of_a_class_that_both_know_goes_both_ways(peer: Peer) -> None:
    text = peer("write", expression="[new Money(5n, 'EUR')]")
    assert loads(text) == [Money(5, "EUR")]
    assert peer("shapeOfText", text=dumps(loads(text))) == peer("shapeOfText", text=text)


KEYS = st.text(max_size=5).filter(lambda key: key not in ("__proto__", "constructor", "prototype"))
MILLISECONDS = st.datetimes(timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    # above, JavaScript writes the shortest digits of an integer, which is another one
    | st.floats(-(2**53), 2**53)
    | st.text(max_size=5)
    | MILLISECONDS
    | st.sampled_from([UNDEFINED, URL("https://a.b/c?d#e"), re.compile("a.b", re.MULTILINE)])
)
BOTH: st.SearchStrategy[Any] = st.recursive(
    SCALARS
    | st.binary(max_size=5).map(Uint8Array)
    | st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3).map(lambda items: array("i", items)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.dictionaries(SCALARS, inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4).map(Map)
        | st.sets(SCALARS, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BOTH)
def test_whatever_both_have_goes_there_and_back(peer: Peer, value: Any) -> None:
    read = loads(peer("rewrite", text=dumps(value)))
    assert read == value
    # once in JavaScript's types (1.0 is 1 there), nothing changes any more
    assert shape(loads(peer("rewrite", text=dumps(read)))) == shape(read)
