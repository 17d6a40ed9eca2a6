"""What is built from the project is what a user needs, whole and without a warning."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"
BUILT_FROM = (
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "noxfile.py",
    "src",
    "tests",
    "benchmarks",
)
NO_CACHES = shutil.ignore_patterns("__pycache__", ".peers")

# the command itself; what pytest imports; what is imported where OpenTelemetry is used
NOT_TO_IMPORT = {
    "lanner.__main__",
    "lanner.testing.pytest_plugin",
    "lanner.workflow.metrics",
    "lanner.workflow.tracing",
}

IMPORTS = """
import queue
import lanner, lanner.queue, lanner.workflow
assert queue.Queue(1).maxsize == 1 and "lanner" not in queue.__file__, queue.__file__
assert "site-packages" in lanner.__file__, lanner.__file__
"""

IMPORT_EACH = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


class Built(NamedTuple):
    wheel: Path
    sdist: Path
    said: str


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The source distribution, and the wheel built from it, by the build backend that this environment has."""
    project, out = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("dist")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, project / name, ignore=NO_CACHES)
        else:
            shutil.copy(ROOT / name, project)
    peer = project / "benchmarks" / ".peers" / "one"  # what a run of the benchmarks leaves behind
    peer.mkdir(parents=True)
    (peer / "installed.py").touch()
    build = ("-W", "error", "-m", "build", "--no-isolation", "--outdir", out, project)
    said = _run(sys.executable, *build)
    return Built(next(out.glob("*.whl")), next(out.glob("*.tar.gz")), said)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment in which nothing but the wheel was installed."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    _run(python, "-m", "pip", "install", "--disable-pip-version-check", built.wheel)
    return python


def _run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What the command prints, in an environment without settings for Python itself. It must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        command, cwd=cwd, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def _source_files(pattern: str) -> set[str]:
    return {f"lanner/{path.relative_to(SOURCES).as_posix()}" for path in SOURCES.rglob(pattern)}


def test_the_build_warns_of_nothing(built: Built) -> None:
    assert [line for line in built.said.splitlines() if "warn" in line.lower()] == []


def test_every_source_is_in_the_wheel_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == _source_files("*.py") | _source_files("*.lua") | {"lanner/py.typed"}
    assert any(name.startswith("lanner/queue/lua/includes/") and name.endswith(".lua") for name in files)


def test_the_source_distribution_has_the_benchmarks_and_none_of_the_peers(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        files = {name.partition("/")[2] for name in sdist.getnames()}
    adapters = {path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmarks" / "peers").glob("*_peer.*")}
    assert adapters | {"benchmarks/goals.py", "benchmarks/measures/scripts.py", "benchmarks/requirements.txt"} <= files
    assert not [name for name in files if name.startswith("benchmarks/.peers")]


def test_the_source_distribution_has_the_tests_and_the_lua(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        files = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "noxfile.py", "tests/conftest.py", "tests/support/servers.py"} <= files
    assert {path.relative_to(ROOT).as_posix() for path in SOURCES.rglob("*.lua")} <= files


def test_every_package_directory_is_listed_for_the_build() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    holding = {path.parent for pattern in ("*.py", "*.lua") for path in SOURCES.rglob(pattern)}
    assert sorted(listed) == sorted(".".join(("lanner", *path.relative_to(SOURCES).parts)) for path in holding)


@pytest.mark.parametrize("place", [ROOT, Path("/")], ids=["the project", "elsewhere"])
def test_it_imports_beside_the_standard_library_s_queue(installed: Path, place: Path) -> None:
    _run(installed, "-W", "error", "-c", IMPORTS, cwd=place)


def test_every_module_imports_without_the_extras(installed: Path) -> None:
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in _source_files("*.py")}
    _run(installed, "-W", "error", "-c", IMPORT_EACH, *sorted(modules - NOT_TO_IMPORT))
