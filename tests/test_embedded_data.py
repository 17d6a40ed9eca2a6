import fcntl
import json
import os
from pathlib import Path

import pytest

from lanner.embedded import find_server, open_embedded, temporary_server
from lanner.embedded.release import Release
from lanner.errors import EmbeddedServerError, InvalidArgumentError
from support.client import Client


def write_something(directory: Path) -> None:
    with open_embedded(f"embedded:{directory}") as server, Client(server.url) as client:
        client("SET", "written", "yes")
    wait_until_stopped(directory)


def wait_until_stopped(directory: Path) -> None:
    """Wait for the lock that the server holds."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (("valkey", (8, 1, 4)), ("valkey", (8, 1, 9))),
        (("valkey", (8, 0, 0)), ("valkey", (8, 1, 0))),
        (("valkey", (9, 0, 0)), ("valkey", (7, 2, 0))),
        (("valkey", (8, 1, 0)), ("redis", (7, 2, 4))),
        (("valkey", (7, 2, 0)), ("redis", (6, 2, 0))),
        (("redis", (7, 2, 0)), ("valkey", (8, 1, 0))),
        (("redis", (8, 0, 0)), ("redis", (7, 4, 0))),
        (("redis", (7, 4, 0)), ("redis", (8, 4, 0))),
    ],
)
def test_servers_that_read_what_the_other_wrote(
    reader: tuple[str, tuple[int, int, int]], writer: tuple[str, tuple[int, int, int]]
) -> None:
    assert Release(*reader).reads(Release(*writer))


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (("redis", (7, 0, 15)), ("valkey", (8, 1, 0))),
        (("redis", (6, 2, 0)), ("redis", (7, 0, 0))),
        (("redis", (7, 2, 0)), ("redis", (7, 4, 0))),
        (("redis", (8, 8, 0)), ("valkey", (9, 0, 0))),
        (("valkey", (8, 1, 0)), ("redis", (7, 4, 0))),
        (("valkey", (9, 0, 0)), ("redis", (8, 0, 0))),
        (("valkey", (8, 1, 0)), ("valkey", (9, 0, 0))),
    ],
)
def test_servers_that_cannot_read_what_the_other_wrote(
    reader: tuple[str, tuple[int, int, int]], writer: tuple[str, tuple[int, int, int]]
) -> None:
    assert not Release(*reader).reads(Release(*writer))


def test_a_directory_remembers_the_server_that_wrote_it(tmp_path: Path) -> None:
    write_something(tmp_path)
    server = find_server()
    assert json.loads((tmp_path / "written-by.json").read_text()) == [server.kind, list(server.version)]


def test_a_directory_that_another_kind_of_server_wrote_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    write_something(tmp_path)
    memory = tmp_path / "written-by.json"
    truth = memory.read_text()
    memory.write_text(json.dumps(["redis" if find_server().kind == "valkey" else "valkey", [99, 0, 0]]))
    with pytest.raises(EmbeddedServerError) as refused:
        open_embedded(f"embedded:{tmp_path}")
    for part in (str(tmp_path), "was written by", "99.0.0", str(find_server().path), "cannot read it", "embedded:PATH"):
        assert part in str(refused.value)
    memory.write_text(truth)
    with open_embedded(f"embedded:{tmp_path}") as server, Client(server.url) as client:
        assert client("GET", "written") == "yes"


def test_what_the_server_says_about_data_that_it_cannot_load_is_in_the_error(tmp_path: Path) -> None:
    write_something(tmp_path)
    for base in tmp_path.glob("appendonlydir/*.base.*"):
        base.write_bytes(b"REDIS0099")
    with pytest.raises(EmbeddedServerError) as refused:
        open_embedded(f"embedded:{tmp_path}")
    for part in ("did not start", "RDB format version", str(tmp_path / "server.log")):
        assert part in str(refused.value)


def test_a_long_and_unusual_path_is_as_good_as_any(tmp_path: Path) -> None:
    directory = tmp_path / ("long " * 20) / 'it\'s "quoted" and ünusual'
    write_something(directory)
    with open_embedded(f"embedded:{directory}") as server, Client(server.url) as client:
        assert server.directory == directory
        assert client("GET", "written") == "yes"


def test_the_server_is_private_durable_and_never_drops_a_key(tmp_path: Path) -> None:
    with open_embedded(f"embedded:{tmp_path}") as server, Client(server.url) as client:
        settings = client("CONFIG", "GET", "*")
        socket = Path(settings["unixsocket"])
        assert server.url == f"unix://{socket}"
        assert socket.stat().st_mode & 0o077 == 0
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        assert settings["port"] == "0"
        assert settings.get("tls-port", "0") == "0"
        assert (settings["appendonly"], settings["appendfsync"], settings["save"]) == ("yes", "everysec", "")
        assert settings["maxmemory-policy"] == "noeviction"
    wait_until_stopped(tmp_path)


def test_the_directory_is_the_users_own_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with open_embedded() as server:
        assert server.directory == tmp_path / "data" / "lanner"
        assert server.directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setattr("sys.platform", "linux")
    with open_embedded("embedded") as server:
        assert server.directory == tmp_path / "home" / ".local" / "share" / "lanner"
    with open_embedded("embedded:~/mine") as server:
        assert server.directory == tmp_path / "home" / "mine"


@pytest.mark.parametrize("spec", ["embedded:", "embeded", "redis://localhost", "embedded:\0"])
def test_what_is_no_embedded_server_is_refused(spec: str) -> None:
    with pytest.raises(InvalidArgumentError, match="'embedded:PATH'"):
        open_embedded(spec)


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedServerError, match=r"file.* cannot be used"):
        open_embedded(f"embedded:{tmp_path / 'file'}")


def test_an_unusual_locale_of_the_user_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    write_something(tmp_path)


def test_a_temporary_server_takes_its_directory_with_it() -> None:
    with temporary_server() as server, Client(server.url) as client:
        client("SET", "written", "yes")
        assert server.directory.is_dir()
        socket = Path(client("CONFIG", "GET", "unixsocket")["unixsocket"])
    assert not server.directory.exists()
    assert not socket.parent.exists()


def test_a_handle_may_be_closed_twice(tmp_path: Path) -> None:
    server = open_embedded(f"embedded:{tmp_path}")
    server.close()
    server.close()
    assert "closed" in repr(server)
    wait_until_stopped(tmp_path)
