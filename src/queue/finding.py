"""The server that has a namespace's keys, found anew for each connection: one server, a master, a node of a cluster."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

from redis.asyncio.connection import AbstractConnection, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import AskError, MovedError, RedisError
from redis.exceptions import ConnectionError as NoConnectionError

Address = tuple[str, int]
# what a Sentinel or a node, of several, may take to answer
ASKED_FOR: Final = 2.0
# a node sends on to another that has the slot; that one may know better still, while the cluster changes
HOPS: Final = 5


@dataclasses.dataclass(frozen=True)
class Way:
    """How connections are made.

    Attributes:
        made: redis-py's class of them.
        settings: What that is made with, without an address where it is not known beforehand.
    """

    made: type[AbstractConnection]
    settings: Mapping[str, Any]

    @property
    def scheme(self) -> str:
        """``redis`` or ``rediss``."""
        return "rediss" if issubclass(self.made, SSLConnection) else "redis"

    async def open(self, address: Address | None = None) -> AbstractConnection:
        """Open a connection, to an address of its own or to the one of the settings."""
        settings: dict[str, Any] = dict(self.settings)
        if address is not None:
            settings["host"], settings["port"] = address
        connection = self.made(**settings)
        try:
            await connection.connect()  # type: ignore[no-untyped-call] # redis-py leaves it untyped
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection


class Place(Protocol):
    """Where a namespace is."""

    async def open(self, key: str) -> AbstractConnection:
        """Open a connection to the server that has the key.

        Raises:
            RedisError: It cannot be found, or not be reached.
            OSError: It cannot be reached.
        """
        ...


class OneServer:
    """A server at an address that never changes."""

    def __init__(self, way: Way) -> None:
        self._way = way

    def __str__(self) -> str:
        settings = self._way.settings
        if "path" in settings:
            return f"unix://{settings['path']}"
        host, port = settings.get("host", "localhost"), settings.get("port", 6379)
        return f"{self._way.scheme}://{host}:{port}/{settings.get('db', 0)}"

    async def open(self, key: str) -> AbstractConnection:
        """Open a connection."""
        del key
        return await self._way.open()


class SentinelMaster:
    """The master that Sentinels name.

    See https://redis.io/docs/latest/develop/reference/sentinel-clients/.
    """

    def __init__(self, way: Way, service: str, sentinels: Sequence[Address], asking: Mapping[str, Any]) -> None:
        """Ask the ``sentinels``, over connections with the settings ``asking``, for the master of a ``service``."""
        self._way = way
        self._service = service
        self._sentinels = list(sentinels)
        once = {"socket_timeout": ASKED_FOR, "socket_connect_timeout": ASKED_FOR, "retry": Retry(NoBackoff(), 0)}
        self._asking = {**once, **asking}

    def __str__(self) -> str:
        db = self._way.settings.get("db", 0)
        return f"{self._way.scheme}+sentinel://{_listed(self._sentinels)}/{self._service}/{db}"

    async def open(self, key: str) -> AbstractConnection:
        """Open a connection to the master of the moment."""
        del key
        return await self._way.open(await self._master())

    async def _master(self) -> Address:
        # connections belong to their event loop, of which there may be several
        manager: Any = Sentinel(self._sentinels, sentinel_kwargs=self._asking)  # type: ignore[no-untyped-call]
        failed: list[str] = []
        try:
            for address, sentinel in zip(self._sentinels, manager.sentinels, strict=True):
                try:
                    masters: dict[str, Any] = await sentinel.sentinel_masters()
                except (RedisError, OSError) as error:
                    failed.append(f"{_listed([address])}: {_not_asked(error)}")
                    continue
                state = masters.get(self._service)
                if state and manager.check_master_state(state, self._service):
                    return state["ip"], state["port"]
                known = ", ".join(map(repr, masters)) or "none"
                failed.append(f"{_listed([address])}: {'its master is down' if state else f'its masters are {known}'}")
        finally:
            for client in manager.sentinels:
                await client.aclose()
        raise NoConnectionError(f"no Sentinel names a master {self._service!r} that is up ({'; '.join(failed)})")


class ClusterNode:
    """The node of a cluster that has a key's slot: whoever is asked for the key sends on to it.

    See "Redirection and resharding" in https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
    """

    def __init__(self, way: Way, nodes: Sequence[Address]) -> None:
        """Ask ``nodes``, and those that they have sent on to, of which one has to be there."""
        self._way = way
        self._named = list(nodes)
        self._known = list(nodes)

    def __str__(self) -> str:
        return f"{self._way.scheme}+cluster://{_listed(self._named)}"

    async def open(self, key: str) -> AbstractConnection:
        """Open a connection to the node that does not send on."""
        failed: list[str] = []
        for first in tuple(self._known):
            address = first
            try:
                for _ in range(HOPS):
                    connection, moved = await self._ask(address, key)
                    if connection is not None:
                        self._prefer(address)
                        return connection
                    address = moved
                failed.append(f"{_listed([first])}: sends on and on")
            except (RedisError, OSError) as error:
                failed.append(f"{_listed([address])}: {str(error) or type(error).__name__}")
        raise NoConnectionError(f"no node of the cluster has the slot of {key!r} ({'; '.join(failed)})")

    async def _ask(self, address: Address, key: str) -> tuple[AbstractConnection | None, Address]:
        """A connection to a node, if that has the key's slot; else who has it, by its word."""
        # one that hangs is not to take the time of the others
        async with asyncio.timeout(ASKED_FOR):
            connection = await self._way.open(address)
            try:
                await connection.send_command("EXISTS", key)
                await connection.read_response()
            except MovedError as moved:
                await connection.disconnect(nowait=True)
                host, port = cast("Address", moved.node_addr)  # pyright: ignore[reportUnknownMemberType] - as above
                # without a host: that of the one who says so
                return None, (host or address[0], port)
            except AskError as asked:
                await connection.disconnect(nowait=True)
                to = cast("Address", asked.node_addr)  # pyright: ignore[reportUnknownMemberType] - as above
                raise NoConnectionError(f"the slot is being moved to {_listed([to])}") from asked
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
        return connection, address

    def _prefer(self, address: Address) -> None:
        self._known = [address, *(known for known in self._known if known != address)]


def _not_asked(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"it is no Sentinel ({text.strip()})" if text.startswith("unknown command") else text


def _listed(addresses: Sequence[Address]) -> str:
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses)
