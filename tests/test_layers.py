"""Which part of the package may know which other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lanner

SOURCE = Path(lanner.__file__).parent
# what a part may import of the others; an import inside a function is made by who needs it only
MAY_IMPORT = {"queue": {"errors", "embedded"}, "embedded": {"errors"}, "workflow": {"errors", "queue"}}
LAZILY = {("queue", "embedded")}


def imports_of(path: Path, part: str) -> Iterator[tuple[str, bool]]:
    """Other parts of the package that a module imports, and whether it does so when it is imported itself."""
    tree = ast.parse(path.read_text())
    up = len(path.relative_to(SOURCE / part).parts) + 1
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level >= up:
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            for name in names:
                yield name, node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            absolute = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            assert not [name for name in absolute if name.split(".")[0] == "lanner"], path


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_knows_only_what_is_below_it(part: str) -> None:
    for path in sorted((SOURCE / part).rglob("*.py")):
        for name, at_once in imports_of(path, part):
            assert name in MAY_IMPORT[part], f"{path.relative_to(SOURCE)} imports {name}"
            assert not (at_once and (part, name) in LAZILY), f"{path.relative_to(SOURCE)} imports {name} at once"


def test_errors_import_nothing_of_the_package() -> None:
    tree = ast.parse((SOURCE / "errors.py").read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
