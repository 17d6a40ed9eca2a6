"""Servers that belong together, a master and a replica with a Sentinel or a cluster: of a program, not of Docker."""

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pytest
import redis

from lanner.embedded import find_server
from lanner.errors import EmbeddedServerError
from support.client import Client
from support.servers import STARTS_WITHIN, WHAT_TO_INSTALL, ProcessServer

ServerT = TypeVar("ServerT", bound=ProcessServer)
SERVICE: Final = "the-master"
SLOTS: Final = 16384
# nobody is to be declared dead but by a test
NEVER_MS: Final = 600_000
REPLICATES: Final = ("--repl-diskless-sync-delay", "0", "--replica-serve-stale-data", "yes")
CLUSTERED: Final = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(NEVER_MS), *REPLICATES)


class SentinelServer(ProcessServer):
    """A Sentinel that watches one master, and does nothing about it unless it is told."""

    def __init__(self, program: Path, master: ProcessServer, password: str) -> None:
        self._master = master
        self._password = password
        super().__init__(program)

    @property
    def authority(self) -> str:
        """Its address in a URL."""
        return f"{self.host}:{self.port}"

    def arguments(self, directory: Path) -> Sequence[str]:
        """A file that it may write to as well."""
        # its client is asked by password, over TCP
        self.url = f"redis://:{self._password}@{self.authority}/0"
        lines = (
            f"bind {self.host}",
            f"port {self.port}",
            f"dir {directory}",
            f"logfile {directory}/log",
            f"requirepass {self._password}",
            f"sentinel monitor {SERVICE} {self._master.host} {self._master.port} 1",
            f"sentinel down-after-milliseconds {SERVICE} {NEVER_MS}",
            f"sentinel failover-timeout {SERVICE} {NEVER_MS}",
        )
        file = directory / "sentinel.conf"
        file.write_text("\n".join(lines))
        return (str(file), "--sentinel")


@dataclass(frozen=True)
class Watched:
    """A master and a replica of it, which a Sentinel watches."""

    master: ProcessServer
    replica: ProcessServer
    sentinel: SentinelServer
    password: str

    @property
    def url(self) -> str:
        """The form of ``redis=`` for it."""
        return f"redis+sentinel://{self.sentinel.authority}/{SERVICE}?sentinel_password={self.password}"

    def replicated(self) -> None:
        """Wait until the replica has all that the master has."""
        _replicated(self.master, "written")

    def demoted(self) -> None:
        """Wait until the old master has been told, which takes a few seconds for which it takes what is written."""
        _demoted(self.master)

    def fail_over(self) -> None:
        """Have the replica become the master, be the old one there or not, and wait until the Sentinel says so."""
        with self.sentinel.client() as client:
            port = str(self.replica.port)
            # it has to have heard of the replica lately
            _wait_until(lambda: _is_done(client, "SENTINEL", "FAILOVER", SERVICE))
            _wait_until(lambda: client("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1] == port)


@contextlib.contextmanager
def open_watched() -> Generator[Watched]:
    """A master, its replica, and a Sentinel for the block."""
    program, password = _program(), "of-the-sentinel"
    with ExitStack() as stack:
        master = _opened(stack, ProcessServer(program, *REPLICATES))
        replica = _opened(stack, ProcessServer(program, *REPLICATES, "--replicaof", master.host, str(master.port)))
        with replica.client() as client:
            _wait_until(partial(_says, client, "replication", "master_link_status", "up"))
        sentinel = _opened(stack, SentinelServer(program, master, password))
        with sentinel.client() as client:
            _wait_until(lambda: len(client("SENTINEL", "REPLICAS", SERVICE)) == 1)
        yield Watched(master, replica, sentinel, password)


@dataclass(frozen=True)
class Cluster:
    """Masters that share the slots, and a replica of the first."""

    masters: Sequence[ProcessServer]
    replica: ProcessServer

    @property
    def url(self) -> str:
        """The form of ``redis=`` for it; it names one node."""
        return f"redis+cluster://{self.masters[-1].host}:{self.masters[-1].port}"

    def slot_of(self, key: str) -> int:
        """The slot that a key has."""
        with self.masters[0].client() as client:
            return int(client("CLUSTER", "KEYSLOT", key))

    def master_of(self, key: str) -> ProcessServer:
        """Who has a key's slot, as long as none has been moved."""
        return self.masters[self.slot_of(key) * len(self.masters) // SLOTS]

    def replicated(self, key: str) -> None:
        """Wait until the replica has all that the first master has; the key is in a slot of that one."""
        _replicated(self.masters[0], key)

    def demoted(self) -> None:
        """Wait until the old master has heard of it."""
        _demoted(self.masters[0])

    def fail_over(self) -> None:
        """Have the replica take the place of the first master, be that one there or not."""
        with self.replica.client() as client:
            client("CLUSTER", "FAILOVER", "TAKEOVER")
            _wait_until(partial(_says, client, "replication", "role", "master"))
        address = f"{self.replica.host}:{self.replica.port}"
        for server in self.masters[1:]:
            with server.client() as client:
                _wait_until(partial(_has_slots, client, address))

    @contextlib.contextmanager
    def moving(self, slot: int, source: ProcessServer, target: ProcessServer) -> Generator[None]:
        """Begin to move a slot, with half of its keys; the rest goes, and the slot with it, when the block is left."""
        with source.client() as old, target.client() as new:
            ids = {id(client): client("CLUSTER", "MYID") for client in (old, new)}
            new("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[id(old)])
            old("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[id(new)])

            def move(most: int) -> int:
                names = old("CLUSTER", "GETKEYSINSLOT", slot, most)
                if names:
                    old("MIGRATE", target.host, target.port, "", 0, 10_000, "KEYS", *names)
                return len(names)

            move(int(old("CLUSTER", "COUNTKEYSINSLOT", slot)) // 2)
            yield
            while move(100):
                pass
            for client in (new, old):
                client("CLUSTER", "SETSLOT", slot, "NODE", ids[id(new)])


@contextlib.contextmanager
def open_cluster() -> Generator[Cluster]:
    """Three masters and a replica of the first for the block."""
    program = _program()
    with ExitStack() as stack:
        servers = [_opened(stack, ProcessServer(program, *CLUSTERED)) for _ in range(4)]
        clients = [stack.enter_context(server.client()) for server in servers]
        *masters, replica = servers
        for epoch, client in enumerate(clients, 1):
            client("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for server in servers[1:]:
            clients[0]("CLUSTER", "MEET", server.host, server.port)
        for index, client in enumerate(clients[: len(masters)]):
            first, end = (
                SLOTS * part // len(masters) + (SLOTS * part % len(masters) > 0) for part in (index, index + 1)
            )
            client("CLUSTER", "ADDSLOTS", *range(first, end))
        for client in clients:
            _wait_until(partial(_says, client, "cluster", "cluster_known_nodes", str(len(servers))))
        clients[-1]("CLUSTER", "REPLICATE", clients[0]("CLUSTER", "MYID"))
        _wait_until(partial(_says, clients[-1], "replication", "master_link_status", "up"))
        for client in clients:
            _wait_until(partial(_says, client, "cluster", "cluster_state", "ok"))
        yield Cluster(masters, replica)


def _program() -> Path:
    try:
        return find_server().path
    except EmbeddedServerError as error:
        pytest.fail(f"{WHAT_TO_INSTALL}\n\nThese tests need a program, Docker does not do: {error}", pytrace=False)


def _opened(stack: ExitStack, server: ServerT) -> ServerT:
    stack.callback(server.close)
    return server


def _replicated(master: ProcessServer, key: str) -> None:
    with master.client() as client:
        # what is waited for is what this connection has written
        client("SET", key, "", "PX", 1)
        assert client("WAIT", 1, int(STARTS_WITHIN * 1000)) == 1


def _demoted(master: ProcessServer) -> None:
    with master.client() as client:
        _wait_until(partial(_says, client, "replication", "role", "slave"))


def _says(client: Client, about: str, field: str, value: str) -> bool:
    """What a server says of a cluster, or of replication."""
    if about == "cluster":
        return f"{field}:{value}" in str(client("CLUSTER", "INFO")).split()
    return str(client("INFO", about).get(field)) == value


def _is_done(client: Client, *command: str) -> bool:
    try:
        client(*command)
    except redis.ResponseError:
        return False
    return True


def _has_slots(client: Client, address: str) -> bool:
    """Whether a node of a cluster, by another's word, is a master with slots."""
    # id, address, flags, its master, ping, pong, epoch, link, and slots if it has any
    *_, flags, _, _, _, _, _, slots = next(
        [*line.split(), ""][:9] for line in str(client("CLUSTER", "NODES")).splitlines() if address in line
    )
    return "master" in flags and slots != ""


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not is_so():
        assert time.monotonic() < deadline, "servers that belong together did not find together in time"
        time.sleep(0.02)
