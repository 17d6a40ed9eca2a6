"""Where Redis is, and how connections to it are made: without client retries, so that every re-send is ours."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import anyio.to_thread
import redis.asyncio
from redis.asyncio.connection import AbstractConnection, Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff

from ..errors import InvalidArgumentError
from .finding import Address, ClusterNode, OneServer, Place, SentinelMaster, Way
from .link import Link

if TYPE_CHECKING:
    from ..embedded import EmbeddedHandle

Client = redis.asyncio.Redis | redis.asyncio.RedisCluster
NOT_NAMED: Final = " at the default address, as neither redis= nor LANNER_REDIS_URL names one ('embedded' starts one)"
DEFAULT_URL: Final = "redis://localhost:6379/0"
CALL_TIMEOUT: Final = 10.0
SHORTEST_SOCKET_TIMEOUT: Final = 5.0
_SCHEMES: Final = ("redis://", "rediss://", "unix://")
_SEVERAL: Final = re.compile(r"(rediss?)\+(sentinel|cluster)://([^@/?]*@)?([^/?]*)(?:/([^?]*))?(?:\?(.*))?")
_DATABASE: Final = re.compile(r"(/[0-9]*/?)?")
_PORTS: Final = {"sentinel": 26379, "cluster": 6379}
# how Sentinels themselves are asked, where they have users of their own
_OF_SENTINELS: Final = ("sentinel_username", "sentinel_password")
# what redis-py's pools and clients add to the settings of their connections for purposes of their own
_OF_POOLS: Final = ("maint_notifications", "oss_cluster", "orig_", "himport", "connection_class", "connection_pool")
_OF_CLUSTERS: Final = ("max_connections", "response_callbacks")


class Connector:
    """Makes connections to the Redis of one namespace, each with the same settings and without client retries."""

    def __init__(self, where: str | Client | None, base: str) -> None:
        """Make sense of ``redis=``: a URL, ``"embedded"`` or ``"embedded:PATH"``, a client, or None (the environment).

        A client's settings are used for connections of our own; the client itself is neither used nor closed. All
        keys of the namespace begin with ``base``, by which the node of a cluster is found.

        Raises:
            InvalidArgumentError: It is none of these, or a client's settings do not fit; the text names the setting.
        """
        self.remark = ""
        if where is None and not (where := os.environ.get("LANNER_REDIS_URL")):
            where, self.remark = DEFAULT_URL, NOT_NAMED
        self._base = base
        self._embedded: str | None = None
        self._opening = threading.Lock()
        self._handle: EmbeddedHandle | None = None
        self._place: Place | None = None
        if isinstance(where, Client):
            self._place = _place_of_client(where)
        elif not isinstance(where, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise InvalidArgumentError(
                "redis= must be a URL, 'embedded', 'embedded:PATH' or a redis.asyncio.Redis or RedisCluster client, "
                f"not {type(where).__module__}.{type(where).__qualname__}"
            )
        elif where == "embedded" or where.startswith("embedded:"):
            self._embedded = where
        else:
            self._place = _place_of_url(where)

    def __str__(self) -> str:
        """Where it is, for logs: without user and password."""
        return str(self._place or self._embedded)

    async def prepare(self) -> None:
        """Have the embedded server run, where that is asked for.

        Raises:
            EmbeddedServerError: It cannot be found or started.
        """
        if self._embedded is not None and self._place is None:
            await anyio.to_thread.run_sync(self._open_embedded, self._embedded)

    def _open_embedded(self, where: str) -> None:
        from ..embedded import open_embedded  # noqa: PLC0415 - only who asks for a server of his own loads its code

        with self._opening:
            if self._place is None:
                self._handle = open_embedded(where)
                self._place = _place_of_url(self._handle.url)

    async def connect(self) -> AbstractConnection:
        """Open a connection. ``prepare`` must have been awaited.

        Raises:
            RedisError: There is none to be had.
            OSError: There is none to be had.
        """
        assert self._place is not None, "prepare() comes first"  # noqa: S101 - a mistake of ours, not of a user
        return await self._place.open(self._base)

    def link(self, *, timeout: float = CALL_TIMEOUT, patient: bool = False) -> Link:
        """A link of its own; an answer may take ``timeout`` seconds. What a ``patient`` one sends gathers first."""
        return Link(self.connect, timeout=timeout, patient=patient)

    def close(self) -> None:
        """Let go of the embedded server."""
        if self._handle is not None:
            self._handle.close()
            self._handle = self._place = None


def _settings() -> dict[str, Any]:
    return {
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "socket_timeout": None,
        "socket_connect_timeout": 5.0,
        "health_check_interval": 0,
        "decode_responses": False,
        "protocol": 2,
    }


def _place_of_url(url: str) -> Place:
    several = _SEVERAL.fullmatch(url)
    if several is not None:
        scheme, kind, user, hosts, path, query = several.groups("")
        addresses = [_address(host, kind, url) for host in hosts.split(",")]
        options = dict(parse_qsl(query))
        asking = {name.removeprefix("sentinel_"): options.pop(name) for name in _OF_SENTINELS if name in options}
        service, _, database = unquote(path).partition("/")
        if kind == "sentinel" and not service:
            raise InvalidArgumentError(
                f"redis={_shown(url)!r} names no master: end it as .../mymaster or .../mymaster/0"
            )
        if kind == "cluster" and path not in {"", "0"}:
            raise InvalidArgumentError(
                f"redis={_shown(url)!r} names a database; a cluster has none but 0, leave it out"
            )
        way = _way_of_url(f"{scheme}://{user}localhost/{database}?{urlencode(options)}", url)
        if kind == "cluster":
            return ClusterNode(_anywhere(way), addresses)
        tls = {name: value for name, value in way.settings.items() if name.startswith("ssl_")}
        return SentinelMaster(
            _anywhere(way), service, addresses, {**asking, **({"ssl": True, **tls} if scheme == "rediss" else {})}
        )
    if not url.startswith(_SCHEMES):
        raise InvalidArgumentError(
            f"redis={_shown(url)!r} is not understood: it must begin with redis://, rediss://, unix://, "
            "redis+sentinel:// or redis+cluster:// (rediss+... for TLS), or be 'embedded' or 'embedded:PATH'"
        )
    return OneServer(_way_of_url(url, url))


def _address(host: str, kind: str, url: str) -> Address:
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidArgumentError(f"redis={_shown(url)!r}: {host!r} is no address: {error}") from error
    if not name:
        raise InvalidArgumentError(
            f"redis={_shown(url)!r}: an address is missing; write HOST:PORT, with commas between several"
        )
    return name, port or _PORTS[kind]


def _way_of_url(url: str, given: str) -> Way:
    try:
        pool: ConnectionPool = ConnectionPool.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    except ValueError as error:
        raise InvalidArgumentError(f"redis={_shown(given)!r} is not a Redis URL: {error}") from error
    # redis-py silently takes database 0 where it cannot read the number
    if not url.startswith("unix:") and not _DATABASE.fullmatch(unquote(urlsplit(url).path)):
        raise InvalidArgumentError(
            f"redis={_shown(given)!r}: its database is no number; end it as .../0 (and write a / in a password as %2F)"
        )
    return _fitting(pool.connection_class, pool.connection_kwargs, "the URL")


def _place_of_client(client: Client) -> Place:
    if isinstance(client, redis.asyncio.RedisCluster):
        settings = client.get_connection_kwargs()
        made = cast("type[AbstractConnection]", settings["connection_class"])
        nodes = [(node.host, int(node.port)) for node in client.nodes_manager.startup_nodes.values()]
        of_connections = {name: value for name, value in settings.items() if name not in _OF_CLUSTERS}
        return ClusterNode(_anywhere(_fitting(made, of_connections, "the client")), nodes)
    pool = client.connection_pool
    if not isinstance(pool, SentinelConnectionPool):
        return OneServer(_fitting(pool.connection_class, pool.connection_kwargs, "the client"))
    sentinel = cast("Any", pool)  # redis-py leaves it untyped
    if not sentinel.is_master:
        raise InvalidArgumentError(
            "redis=: the client reads from replicas; Lanner writes, use Sentinel.master_for(...)"
        )
    found = [each.connection_pool.connection_kwargs for each in sentinel.sentinel_manager.sentinels]
    made = SSLConnection if issubclass(pool.connection_class, SSLConnection) else Connection
    return SentinelMaster(
        _anywhere(_fitting(made, pool.connection_kwargs, "the client")),
        sentinel.service_name,
        [(each["host"], int(each["port"])) for each in found],
        sentinel.sentinel_manager.sentinel_kwargs,
    )


def _shown(url: str) -> str:
    """A URL for an error, without its passwords."""
    return re.sub(r"(?<=//).*(?=@)|(?<=password=)[^&]*", "***", url)


def _anywhere(way: Way) -> Way:
    return Way(way.made, {name: value for name, value in way.settings.items() if name not in {"host", "port"}})


def _fitting(made: type[AbstractConnection], given: Mapping[str, Any], whose: str) -> Way:
    """To connect as the given settings say, but without what would get in our way.

    Raises:
        InvalidArgumentError: What was asked for gets in our way, or is no setting; the text names it.
    """
    if given.get("decode_responses"):
        raise InvalidArgumentError(f"redis=: {whose} has decode_responses=True; Lanner needs the bytes, leave it out")
    timeout = given.get("socket_timeout")
    if timeout is not None and timeout < SHORTEST_SOCKET_TIMEOUT:
        raise InvalidArgumentError(
            f"redis=: {whose} has socket_timeout={timeout:g}; an idle worker waits for longer than that, "
            f"use {SHORTEST_SOCKET_TIMEOUT:g} s at least, or None"
        )
    kept = {name: value for name, value in given.items() if not name.startswith(_OF_POOLS)}
    way = Way(made, {**kept, **_settings()})
    try:
        made(**way.settings)
    except TypeError as error:
        raise InvalidArgumentError(f"redis=: {whose} has a setting that redis-py does not know: {error}") from error
    return way
