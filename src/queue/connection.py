"""Where Redis is, and how connections to it are made: without client retries, so that every re-send is ours."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import redis.asyncio
from redis.asyncio.connection import AbstractConnection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ..errors import InvalidArgumentError
from .link import Link

if TYPE_CHECKING:
    from ..embedded import EmbeddedHandle

NOT_NAMED: Final = " at the default address, as neither redis= nor LANNER_REDIS_URL names one ('embedded' starts one)"
DEFAULT_URL: Final = "redis://localhost:6379/0"
CALL_TIMEOUT: Final = 10.0
SHORTEST_SOCKET_TIMEOUT: Final = 5.0
_SCHEMES: Final = ("redis://", "rediss://", "unix://")
# what redis-py's pools add to the settings of their connections for purposes of their own
_OF_POOLS: Final = ("maint_notifications", "oss_cluster", "orig_", "himport")


class Connector:
    """Makes connections to one Redis, each with the same settings and without client retries."""

    def __init__(self, where: str | redis.asyncio.Redis | None) -> None:
        """Make sense of ``redis=``: a URL, ``"embedded"`` or ``"embedded:PATH"``, a client, or None (the environment).

        A client's settings are used for connections of our own; the client itself is neither used nor closed.

        Raises:
            InvalidArgumentError: It is none of these, or a client's settings do not fit; the text names the setting.
        """
        self.remark = ""
        if where is None and not (where := os.environ.get("LANNER_REDIS_URL")):
            where, self.remark = DEFAULT_URL, NOT_NAMED
        self._embedded: str | None = None
        self._opening = threading.Lock()
        self._handle: EmbeddedHandle | None = None
        self._pool: ConnectionPool | None = None
        # a Sentinel's connections find it by their client's own pool, which they do not keep
        self._given = where
        if isinstance(where, redis.asyncio.Redis):
            self._pool = _fitting(where.connection_pool, "the client")
        elif not isinstance(where, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise InvalidArgumentError(
                "redis= must be a URL, 'embedded', 'embedded:PATH' or a redis.asyncio.Redis client, "
                f"not {type(where).__module__}.{type(where).__qualname__}"
            )
        elif where == "embedded" or where.startswith("embedded:"):
            self._embedded = where
        else:
            self._pool = _pool_of(where)

    def __str__(self) -> str:
        """Where it is, for logs: without user and password."""
        if self._pool is None:
            return str(self._embedded)
        settings = self._pool.connection_kwargs
        if "connection_pool" in settings:
            service, database = settings["connection_pool"].service_name, settings.get("db", 0)
            return f"the master {service!r} of a Sentinel, database {database}"
        if "path" in settings:
            return f"unix://{settings['path']}"
        scheme = "rediss" if issubclass(self._pool.connection_class, SSLConnection) else "redis"
        return f"{scheme}://{settings.get('host', 'localhost')}:{settings.get('port', 6379)}/{settings.get('db', 0)}"

    async def prepare(self) -> None:
        """Have the embedded server run, where that is asked for.

        Raises:
            EmbeddedServerError: It cannot be found or started.
        """
        if self._embedded is not None and self._pool is None:
            await anyio.to_thread.run_sync(self._open_embedded, self._embedded)

    def _open_embedded(self, where: str) -> None:
        from ..embedded import open_embedded  # noqa: PLC0415 - only who asks for a server of his own loads its code

        with self._opening:
            if self._pool is None:
                self._handle = open_embedded(where)
                self._pool = _pool_of(self._handle.url)

    def connection(self) -> AbstractConnection:
        """A connection that is not open yet. ``prepare`` must have been awaited."""
        assert self._pool is not None, "prepare() comes first"  # noqa: S101 - a mistake of ours, not of a user
        connection: AbstractConnection = self._pool.connection_class(**self._pool.connection_kwargs)
        return connection

    def link(self, *, timeout: float = CALL_TIMEOUT, patient: bool = False) -> Link:
        """A link of its own; an answer may take ``timeout`` seconds. What a ``patient`` one sends gathers first."""
        return Link(self.connection, timeout=timeout, patient=patient)

    def close(self) -> None:
        """Let go of the embedded server."""
        if self._handle is not None:
            self._handle.close()
            self._handle = self._pool = None


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


def _pool_of(url: str) -> ConnectionPool:
    if not url.startswith(_SCHEMES):
        raise InvalidArgumentError(
            f"redis={url!r} is not understood: it must begin with redis://, rediss:// or unix://, or be 'embedded' or "
            "'embedded:PATH'"
        )
    try:
        pool: ConnectionPool = ConnectionPool.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    except ValueError as error:
        raise InvalidArgumentError(f"redis={url!r} is not a Redis URL: {error}") from error
    return _fitting(pool, "the URL")


def _fitting(pool: ConnectionPool, whose: str) -> ConnectionPool:
    """A pool that connects as the given one does, but without what would get in our way.

    Raises:
        InvalidArgumentError: What was asked for gets in our way; the text names the setting.
    """
    given = pool.connection_kwargs
    if given.get("decode_responses"):
        raise InvalidArgumentError(f"redis=: {whose} has decode_responses=True; Lanner needs the bytes, leave it out")
    timeout = given.get("socket_timeout")
    if timeout is not None and timeout < SHORTEST_SOCKET_TIMEOUT:
        raise InvalidArgumentError(
            f"redis=: {whose} has socket_timeout={timeout:g}; an idle worker waits for longer than that, "
            f"use {SHORTEST_SOCKET_TIMEOUT:g} s at least, or None"
        )
    kept = {name: value for name, value in given.items() if not name.startswith(_OF_POOLS)}
    return ConnectionPool(connection_class=pool.connection_class, **{**kept, **_settings()})
