"""What the ``lanner`` command says and how it ends when it cannot do what it was told."""

from importlib.metadata import version
from pathlib import Path

import pytest

from support.commands import ran

MODULE = """
from lanner import WorkflowNamespace

async def run(ctx):
    return ctx.input

shop = WorkflowNamespace("shop")
shop.create_workflow("order", run=run)
empty = WorkflowNamespace("empty")
text = "shop"
"""

MISUSES = {
    "no name": ("shops", "'shops' does not say where the namespace is: give a module and a name in it"),
    "a file": ("shops.py:shop", "give a module and a name in it, as in 'shop.workflows:ns'"),
    "no module": ("nowhere:shop", "there is no module 'nowhere' in "),
    "no module in a package": ("shops.nowhere:shop", "there is no module 'shops.nowhere' in "),
    "nothing of the name": ("shops:nothing", "module 'shops' has no 'nothing'; it has 'shops:shop', 'shops:empty'"),
    "no namespace": ("shops:text", "'shops:text' is no WorkflowNamespace or Workflow, but of type str; it has"),
    "no workflows": ("shops:empty", "namespace 'empty' has no workflows to work on"),
    "a module that needs another": ("needs:shop", "No module named 'nothing_like_it'"),
    "a module that raises": ("raises:shop", "ZeroDivisionError: division by zero"),
    "a module that is no Python": ("broken:shop", "SyntaxError"),
    "a module that leaves": ("leaves:shop", "SystemExit: no settings"),
    "a package that is beside nothing": (".shops:shop", "give a module and a name in it"),
    "a module that uses us wrongly": ("wrong:shop", "concurrency must be"),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "shops.py").write_text(MODULE)
    (tmp_path / "needs.py").write_text("import nothing_like_it\n")
    (tmp_path / "raises.py").write_text("shop = 1 / 0\n")
    (tmp_path / "broken.py").write_text("def (\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit('no settings')\n")
    (tmp_path / "wrong.py").write_text("import lanner\n\nshop = lanner.WorkflowNamespace('shop', concurrency=-1)\n")
    return tmp_path


@pytest.mark.parametrize(("target", "said"), MISUSES.values(), ids=MISUSES.keys())
def test_a_target_that_cannot_be_used_is_an_error_that_says_why(directory: Path, target: str, said: str) -> None:
    done = ran("worker", target, directory=directory)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("lanner worker: ")
    assert not done.stdout


def test_what_is_used_wrongly_is_said_at_once_and_where(directory: Path) -> None:
    said = ran("worker", "wrong:shop", directory=directory).stderr
    assert said.startswith("lanner worker: module 'wrong' cannot be imported: concurrency must be ")
    assert said.endswith('wrong.py", line 3)\n')


def test_a_traceback_begins_in_the_user_s_module(directory: Path) -> None:
    said = ran("worker", "raises:shop", directory=directory).stderr
    assert said.count("  File ") == 1
    assert 'raises.py", line 1' in said


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--concurrency=0", "concurrency must be an int from 1 to 10000"),
        ("--concurrency=many", "invalid int value: 'many'"),
        ("--processes=0", "must be 1 or more"),
        ("--lease=nan", "lease"),
        ("--grace=-1", "grace"),
        ("--log-level=loud", "invalid choice: 'loud'"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(directory: Path, argument: str, said: str) -> None:
    done = ran("worker", "shops:shop", argument, directory=directory)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_redis_that_cannot_be_reached_is_a_failure_that_a_supervisor_may_try_again(directory: Path) -> None:
    done = ran("worker", "shops:shop", directory=directory, redis_url="redis://127.0.0.1:1/0")
    assert done.returncode == 1
    assert "namespace 'shop' on redis://127.0.0.1:1/0" in done.stderr
    assert "lanner worker: connecting to Redis at redis://" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_start_up_lines_show_no_password(directory: Path) -> None:
    done = ran("worker", "shops:shop", directory=directory, redis_url="redis://ada:secret@127.0.0.1:1/0")
    assert "on redis://127.0.0.1:1/0" in done.stderr
    assert "secret" not in done.stderr


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    assert ran("--version", directory=tmp_path).stdout == f"lanner {version('lanner')}\n"


def test_help_tells_the_exit_codes(tmp_path: Path) -> None:
    done = ran("worker", "--help", directory=tmp_path)
    assert done.returncode == 0
    assert "exit codes: 0 stopped as told" in done.stdout


def test_without_a_command_it_tells_how_it_is_used(tmp_path: Path) -> None:
    done = ran(directory=tmp_path)
    assert done.returncode == 2
    assert "usage: lanner" in done.stderr
