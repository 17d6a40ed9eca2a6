"""Reads the project's documents: their code blocks, and where their links lead.

How the Python of a document is run is decided here, so that none is left out: a block that calls ``asyncio.run`` is a
program of its own; all others of the document together are one program, from top to bottom, in which ``await`` may
stand outside of a function. Either way a traceback names the document and its line.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

PROGRAM = "asyncio.run("
RUNS_WITHIN = 120  # seconds; one that waits for ever is wrong in a document, unless it is a shell command there

RUN = """
import ast, asyncio, inspect, sys
code = compile(sys.stdin.read(), sys.argv[1], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
main = vars(sys.modules["__main__"])
if code.co_flags & inspect.CO_COROUTINE:
    asyncio.run(eval(code, main))
else:
    exec(code, main)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        line: The number of its first line in the document.
        info: What follows the opening fence.
        text: What stands between the fences.
    """

    line: int
    info: str
    text: str


@dataclass(frozen=True)
class Program:
    """Python of a document, with blank lines between so that its lines have the document's numbers."""

    document: Path
    text: str

    def run(self, directory: Path, redis_url: str) -> str:
        """What it prints, run in the directory, with the server as its default. It must succeed, without a warning."""
        environment = {
            **os.environ,
            "LANNER_REDIS_URL": redis_url,
            # a server that it embeds is in the directory as well
            "HOME": str(directory),
            "XDG_DATA_HOME": str(directory),
            "XDG_RUNTIME_DIR": str(directory),
        }
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", RUN, self.document],
            cwd=directory,
            env=environment,
            input=self.text,
            timeout=RUNS_WITHIN,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert ran.returncode == 0, ran.stdout
        return ran.stdout


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a document."""
    blocks: list[Block] = []
    opened: tuple[int, str, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if opened is None:
            if fence := re.match(r"(```+|~~~+)\s*(.*?)\s*$", line):
                opened, lines = (number + 1, fence[1], fence[2]), []
        elif line.strip() == opened[1]:
            blocks.append(Block(opened[0], opened[2], "\n".join(lines)))
            opened = None
        else:
            lines.append(line)
    if opened is not None:
        raise ValueError(f"the block at line {opened[0]} is never closed")
    return blocks


def prose_of(text: str) -> str:
    """The document without its fenced blocks."""
    lines = text.splitlines()
    for block in blocks_of(text):
        for number in range(block.line - 2, block.line + block.text.count("\n") + 1):
            lines[number] = ""
    return "\n".join(lines)


def programs_of(document: Path) -> list[Program]:
    """Every Python block of the document, in the programs that they make up."""
    python = [block for block in blocks_of(document.read_text()) if block.info == "python"]
    alone = [[block] for block in python if PROGRAM in block.text]
    together = [block for block in python if PROGRAM not in block.text]
    return [Program(document, _in_place(blocks)) for blocks in (*alone, together) if blocks]


def anchors_of(text: str) -> set[str]:
    """The names by which the document's headings can be linked to."""
    titles = re.findall(r"^#+\s+(.*?)\s*#*$", prose_of(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links_of(text: str) -> Iterator[str]:
    """Where the document's links lead."""
    for inline, defined in re.findall(
        r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)", prose_of(text), re.MULTILINE
    ):
        yield inline or defined


def _in_place(blocks: list[Block]) -> str:
    text = ""
    for block in blocks:
        text += "\n" * (block.line - 1 - text.count("\n")) + block.text + "\n"
    return text
