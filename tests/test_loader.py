"""The Lua: how it is put together, where its errors say they are, and that its Python side agrees with it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanner.errors import LannerError
from lanner.queue import Namespace
from lanner.queue.calling import ScriptError
from lanner.queue.scripts import loader
from lanner.queue.scripts.controlling import remove_job
from lanner.queue.scripts.loader import ScriptSourceError, load
from support.jobs import Look
from support.servers import Server

QUEUE = Path(loader.__file__).parent.parent
LUA = QUEUE / "lua"
SCRIPTS = sorted(path.stem for path in LUA.glob("*.lua"))
INCLUDES = sorted(path.stem for path in (LUA / "includes").glob("*.lua"))
FILES = [*SCRIPTS, *(f"includes/{name}" for name in INCLUDES)]


def text_of(file: str) -> str:
    return (LUA / f"{file}.lua").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of scripts that the loader reads instead of ours."""
    (tmp_path / "includes").mkdir()
    monkeypatch.setattr(loader, "_folder", lambda: tmp_path)
    load.cache_clear()
    yield tmp_path
    load.cache_clear()


def write(folder: Path, **files: str) -> None:
    """Write scripts, and includes where the name begins with ``of_``."""
    for name, text in files.items():
        place = folder / "includes" if name.startswith("of_") else folder
        (place / f"{name}.lua").write_text(text)


def test_includes_come_first_and_once_and_depth_first(folder: Path) -> None:
    write(
        folder,
        script="--- @include of_b\n--- @include of_a\nreturn a() + b()",
        of_a="--- @include of_c\nlocal function a() return c() end",
        of_b="--- @include of_a\n--- @include of_c\nlocal function b() return c() end",
        of_c="local function c() return 1 end",
    )
    assert load("script").text.splitlines() == [
        "local function c() return 1 end",
        "local function a() return c() end",
        "local function b() return c() end",
        "return a() + b()",
    ]


def test_a_script_that_begins_before_its_last_includes_makes_them_only_if_it_comes_so_far(folder: Path) -> None:
    write(
        folder,
        script="--- @include of_a\nif ofA() then return 1 end\n--- @include of_b\n--- @include of_d when needed\n"
        "return ofA() + ofB() + ofD()",
        of_a="--- @include of_c\nlocal function ofA() return ofC() end",
        of_b="--- @include of_c\nlocal function ofB() return ofC() end",
        of_c="local function ofC() return 1 end",
        of_d="local function ofD() return 1 end",
    )
    assert load("script").text.splitlines() == [
        "local function ofC() return 1 end",
        "local function ofA() return ofC() end",
        "if ofA() then return 1 end",
        "local whenNeeded",
        "local function ofB() return ofC() end",
        "do local made whenNeeded = function() if made then return made end",
        "local function ofD() return 1 end",
        "made = { ofD = ofD } return made end end",
        "return ofA() + ofB() + whenNeeded().ofD()",
    ]


def test_what_comes_before_the_last_includes_has_none_for_when_they_are_needed(folder: Path) -> None:
    write(
        folder,
        script="--- @include of_a\nif ofA() then return 1 end\n--- @include of_b\nreturn ofB()",
        of_a="--- @include of_b when needed\nlocal function ofA() return ofB() end",
        of_b="local function ofB() return 1 end",
    )
    with pytest.raises(ScriptSourceError, match="of_a"):
        load("script")


def test_what_is_included_when_needed_is_made_at_its_first_call_and_once(folder: Path) -> None:
    write(
        folder,
        script="--- @include of_a\n--- @include of_b when needed\nreturn ofA() + ofB()",
        of_a="--- @include of_c when needed\n--- @include of_d\nlocal function ofA() return ofC() + ofD() end",
        of_b="--- @include of_c\n--- @include of_d when needed\nlocal function ofB() return ofC() + ofD() end",
        of_c="local function ofC() return 1 end",
        of_d="local function ofD() return 2 end",
    )
    script = load("script")
    assert script.text.splitlines() == [
        "local whenNeeded",
        "local function ofD() return 2 end",
        "local function ofA() return whenNeeded().ofC() + ofD() end",
        "do local made whenNeeded = function() if made then return made end",
        "local function ofC() return 1 end",
        "local function ofB() return ofC() + ofD() end",
        "made = { ofC = ofC, ofB = ofB } return made end end",
        "return ofA() + whenNeeded().ofB()",
    ]
    assert script.locate("at user_script:6: no") == "script: at includes/of_b.lua:3: no"
    assert script.locate("at user_script:8: no") == "script: at script.lua:3: no"


def test_a_constant_stands_before_what_needs_it(folder: Path) -> None:
    write(
        folder,
        script="--- @include of_a when needed\n--- @include of_b\nreturn ofA() + OF_B",
        of_a="--- @include of_b\n--- @include of_c\nlocal function ofA() return OF_B + OF_C end",
        of_b="local OF_B = 1",
        of_c="local OF_C = 2",
    )
    assert load("script").text.splitlines() == [
        "local whenNeeded",
        "local OF_B = 1",
        "do local made whenNeeded = function() if made then return made end",
        "local OF_C = 2",
        "local function ofA() return OF_B + OF_C end",
        "made = { ofA = ofA } return made end end",
        "return whenNeeded().ofA() + OF_B",
    ]


def test_an_include_of_itself_is_an_error_that_names_the_way(folder: Path) -> None:
    write(
        folder,
        script="--- @include of_a\nreturn 1",
        of_a="--- @include of_b\n",
        of_b="--- @include of_a\n",
    )
    with pytest.raises(ScriptSourceError, match=r"cycle.*of_a -> .*of_b -> .*of_a"):
        load("script")


def test_a_missing_file_is_an_error_that_names_who_wants_it(folder: Path) -> None:
    write(folder, script="--- @include of_a\nreturn 1", of_a="--- @include of_nothing\n")
    with pytest.raises(ScriptSourceError, match=r"there is no includes/of_nothing\.lua, included by .*of_a"):
        load("script")
    with pytest.raises(ScriptSourceError, match=r"there is no nothing\.lua"):
        load("nothing")


def test_a_place_in_an_error_is_that_of_the_file(folder: Path) -> None:
    write(
        folder,
        script="-- a comment\n--- @include of_a\n\nlocal x = 1\nreturn a(x)",
        of_a="--- Says why.\n\nlocal function a(x)\n  return x\nend",
    )
    script = load("script")
    placed = [script.locate(f"at user_script:{line}: no") for line in range(1, 6)]
    assert placed == [
        "script: at includes/of_a.lua:3: no",
        "script: at includes/of_a.lua:4: no",
        "script: at includes/of_a.lua:5: no",
        "script: at script.lua:4: no",
        "script: at script.lua:5: no",
    ]
    assert script.locate("at user_script:99: no") == "script: at user_script:99: no"


async def test_an_error_of_the_server_names_file_and_line_of_ours(namespace: Namespace, look: Look) -> None:
    queue = namespace.queue("q")
    await queue.add("x", id="a")
    look("DEL", "q:ready")
    look("SET", "q:ready", "not what it was")
    call = (await namespace.runtime()).call
    with pytest.raises(ScriptError, match=r"^remove_job: .*WRONGTYPE") as raised:
        await remove_job(call, workflow="q", id="a")
    assert isinstance(raised.value, LannerError)
    [(name, line)] = re.findall(r"(includes/\w+)\.lua:(\d+)", str(raised.value))
    assert "redis.call('ZREM'" in (LUA / f"{name}.lua").read_text().splitlines()[int(line) - 1]
    for key in ("q:ready", "q:j:a", "q:pc"):
        look("DEL", key)


async def test_the_server_takes_every_script(server: Server) -> None:
    with server.client() as client:
        for name in SCRIPTS:
            assert client("SCRIPT", "LOAD", load(name).text) == load(name).sha


def wrappers() -> dict[str, tuple[str, list[str], list[str]]]:
    """By script: its wrapper's name, the names of its parameters, and those that are sent, in order."""
    found: dict[str, tuple[str, list[str], list[str]]] = {}
    for path in sorted((QUEUE / "scripts").glob("*.py")):
        for function in ast.parse(path.read_text()).body:
            if not isinstance(function, ast.AsyncFunctionDef):
                continue
            parameters = [each.arg for each in function.args.kwonlyargs]
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "call":
                    script = node.args[0] if node.args else None
                    if not isinstance(script, ast.Constant):
                        continue
                    sent = [name for each in node.args[1:] for name in names_in(each, parameters, function)]
                    found[str(script.value)] = (function.name, parameters, sent)
    return found


def names_in(sent: ast.expr, parameters: list[str], function: ast.AsyncFunctionDef) -> list[str]:
    """Which parameters make up an argument; of a list, those that it begins with."""
    names = [node.id for node in ast.walk(sent) if isinstance(node, ast.Name)]
    if isinstance(sent, ast.Starred) and (listed := [name for name in names if name not in parameters]):
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == listed[0]:
                elements = node.value.elts if isinstance(node.value, ast.List) else []
                names = [each.id for one in elements for each in ast.walk(one) if isinstance(each, ast.Name)]
    return list(dict.fromkeys(name for name in names if name in parameters))


def arguments_of(script: str) -> list[str]:
    """The names of a script's arguments, as its head comment has them."""
    [line] = re.findall(r"^--- args: (.*)$", text_of(script), re.MULTILINE)
    flat = line
    while "(" in flat:
        flat = re.sub(r"\([^()]*\)", "", flat)
    return [part.split()[0].strip("*:") for part in re.split(r"[,;]", flat) if part.strip(" *")]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_wrapper_has_the_arguments_that_its_script_states(script: str) -> None:
    name, parameters, sent = wrappers()[script]
    stated = arguments_of(script)
    assert name == script
    assert parameters == stated
    assert sent == stated[: len(sent)]


def test_every_script_has_a_wrapper_and_every_wrapper_a_script() -> None:
    assert sorted(wrappers()) == SCRIPTS


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def code_of(file: str) -> str:
    """A file's text without its comments."""
    return "\n".join(line for line in text_of(file).splitlines() if not line.lstrip().startswith("--"))


def included_by(file: str) -> list[str]:
    return re.findall(r"^--- @include (\w+)(?: when needed)?$", text_of(file), re.MULTILINE)


def defined_by(name: str) -> str:
    """What an include is for: a function, or a constant."""
    code = code_of(f"includes/{name}")
    functions = re.findall(r"^local function (\w+)", code, re.MULTILINE)
    return functions[-1] if functions else code.split()[1]


@pytest.mark.parametrize("name", INCLUDES)
def test_an_include_ends_with_the_function_or_is_the_constant_that_it_is_named_after(name: str) -> None:
    assert defined_by(name) in {camel(name), name.upper()}


@pytest.mark.parametrize("file", FILES)
def test_a_file_includes_what_it_calls_and_calls_what_it_includes(file: str) -> None:
    known = {defined_by(name): name for name in INCLUDES if f"includes/{name}" != file}
    own = re.findall(r"^local ([A-Z_]+) =", code_of(file), re.MULTILINE)
    words = re.findall(r"\b\w+(?=\()|\b[A-Z_]+\b", code_of(file))
    called = {known[each] for each in words if each in known and each not in own}
    blocks = re.findall(r"(?:^--- @include .*\n)+", text_of(file), re.MULTILINE)
    assert [sorted(block.splitlines()) for block in blocks] == [block.splitlines() for block in blocks]
    assert sorted(included_by(file)) == sorted(called)


def test_every_include_is_used() -> None:
    assert sorted({name for file in FILES for name in included_by(file)}) == INCLUDES


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_head_comment_states_keys_arguments_and_answer(script: str) -> None:
    text = text_of(script)
    assert text.startswith("--- ")
    for part in ("keys: base", "args: ", "returns: "):
        assert f"\n--- {part}" in text
