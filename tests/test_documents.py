"""What the documents show works: their Python runs, their commands and links exist."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.documents import DOCUMENTS, ROOT, anchors_of, blocks_of, links_of, programs_of
from support.servers import PrivateServer

SHELLS = ("sh", "console")
OTHERS = ("", "text", "json", "lua", "toml", "yaml", "ini", "mermaid")
KNOWN_COMMANDS = {"git", "cd", "docker", "redis-cli", "pre-commit", "pytest", "xargs"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_python_of_a_document_runs(document: Path, own_server: PrivateServer, tmp_path: Path) -> None:
    for program in programs_of(document):
        program.run(tmp_path, own_server.url)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_block_is_of_a_kind_that_is_checked_here(document: Path) -> None:
    unknown = {block.info for block in blocks_of(document.read_text())} - {"python", *SHELLS, *OTHERS}
    assert not unknown, f"say how to check blocks marked {unknown}, or mark them otherwise"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_commands_that_a_document_shows_exist(document: Path) -> None:
    shown = [block for block in blocks_of(document.read_text()) if block.info in SHELLS]
    wrong = [
        f"{document.name}:{number}: {complaint}"
        for block in shown
        for number, line in enumerate(block.text.splitlines(), block.line)
        for command in _commands_in(line, prompted=block.info == "console")
        if (complaint := _wrong_with(command))
    ]
    assert wrong == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_links_between_documents_resolve(document: Path) -> None:
    broken = [link for link in links_of(document.read_text()) if not _resolves(document, link)]
    assert broken == []


def _commands_in(line: str, *, prompted: bool) -> list[list[str]]:
    """The commands of a line, as words. In a console block only what follows a ``$`` is one."""
    if prompted:
        if not line.startswith("$ "):
            return []
        line = line.removeprefix("$ ")
    commands = [shlex.split(command, comments=True) for command in re.split(r"&&|\|\||[;|]|&$", line)]
    # settings of the environment may stand in front
    return [command for words in commands if (command := [word for word in words if not re.match(r"[A-Z_]+=", word)])]


def _wrong_with(command: list[str]) -> str | None:
    match command:
        case ["nox", *arguments]:
            named = {word for word in arguments[: _end_of_options(arguments)] if not word.startswith("-")}
            missing = named - _nox_sessions()
            return f"nox has no session {', '.join(sorted(missing))}" if missing else None
        case ["pip", "install", *what]:
            extras = {extra for word in what for named in re.findall(r"\[(.*)\]", word) for extra in named.split(",")}
            missing = extras - _extras()
            return f"there is no extra {', '.join(sorted(missing))}" if missing else None
        case ["lanner", subcommand, *_]:
            asked = [str(Path(sys.executable).parent / "lanner"), subcommand, "--help"]
            ran = subprocess.run(asked, check=False, capture_output=True)
            return f"lanner has no command {subcommand}" if ran.returncode else None
        case ["python" | "python3", script, *_] if script.endswith(".py"):
            return None if (ROOT / script).exists() else f"there is no {script}"
        case [program, *_]:
            return None if program in KNOWN_COMMANDS else f"say how to check {program!r} in this test"
        case _:
            return None


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)


def _nox_sessions() -> set[str]:
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    return {
        definition.name
        for definition in tree.body
        if isinstance(definition, ast.FunctionDef)
        and any("nox.session" in ast.unparse(decorator) for decorator in definition.decorator_list)
    }


def _extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def _resolves(document: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True  # somewhere else; no test of ours depends on that
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors_of(target.read_text())
