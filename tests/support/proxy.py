"""A proxy between clients and a server that loses answers, stalls and refuses, when a test asks for it.

It knows RESP as far as it must: where a request or an answer ends, so that an answer can be told from those before it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto

from support.servers import Server

LONGEST_LINE = 64 * 1024 * 1024  # an inline frame has no length of its own; nothing in a test is longer
PUSH = b">"


@dataclass(eq=False)
class _Cut:
    needle: bytes
    every: int
    seen: int = 0


class _Fate(Enum):
    """What becomes of an answer."""

    PASSES = auto()
    IS_HELD = auto()
    IS_LOST = auto()


@dataclass(eq=False)
class _Link:
    """One client's connection, and the one to the server made for it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    fates: deque["_Fate"] = field(default_factory=deque["_Fate"])
    subscribes: bool = False
    is_silent: bool = False

    def cut(self) -> None:
        self.client.transport.abort()
        self.server.transport.abort()


class Proxy:
    """Where clients connect instead of the server. Made by ``open_proxy``."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._listener: asyncio.Server | None = None
        self._port = 0
        self._links: set[_Link] = set()
        self._cuts: list[_Cut] = []
        self._swallows: list[bytes] = []
        self._requests: list[bytes] = []
        self._flows = asyncio.Event()
        self._flows.set()
        self._held: list[bytes] = []
        self._released = asyncio.Event()
        self.lost_requests = 0
        self.lost_answers = 0
        self.held_answers = 0

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"redis://127.0.0.1:{self._port}/0"

    def requests_with(self, needle: str) -> int:
        """How many requests have passed that contain the text: a script's sha, a command, an argument."""
        return sum(needle.encode() in request for request in self._requests)

    def lose_answers(self, needle: str, *, every: int = 1) -> None:
        """Cut the connection instead of passing on the answer of every nth request that contains the text.

        The server has executed the request by then. Answers before it on the connection are passed on.
        """
        self._cuts.append(_Cut(needle.encode(), every))

    def lose_no_answers(self) -> None:
        """End every ``lose_answers``."""
        self._cuts.clear()

    def lose_request(self, needle: str) -> None:
        """Cut the connection instead of passing on the next request that contains the text: it is never executed."""
        self._swallows.append(needle.encode())

    def hold_answers(self, needle: str) -> None:
        """Keep back the answers of requests that contain the text, and what comes after them, until ``flow``.

        ``held_answers`` says of how many.
        """
        self._held.append(needle.encode())
        self._released.clear()

    def cut(self) -> None:
        """Cut all connections; new ones are accepted."""
        for link in list(self._links):
            link.cut()

    def silence(self) -> None:
        """Pass nothing on any more over the connections that there are, which stay open; new ones are as ever.

        As a network does that has forgotten them.
        """
        for link in self._links:
            link.is_silent = True

    def stall(self) -> None:
        """Pass nothing on, in either direction, until ``flow``; connections stay and new ones are accepted."""
        self._flows.clear()

    def flow(self) -> None:
        """End ``stall`` and ``hold_answers``; what was held up is passed on."""
        self._flows.set()
        self._held.clear()
        self._released.set()

    async def refuse(self) -> None:
        """Cut all connections and refuse new ones, until ``accept``."""
        if self._listener is not None:
            self._listener.close()
            self.cut()
            await self._listener.wait_closed()
            self._listener = None

    async def accept(self) -> None:
        """Accept connections, at the same address as before."""
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=LONGEST_LINE)
            self._port = self._listener.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, to_server = await asyncio.open_connection(
                self._server.host, self._server.port, limit=LONGEST_LINE
            )
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, to_server)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_requests(reader, link))
                both.create_task(self._pass_answers(upstream, link))
        finally:
            self._links.discard(link)

    async def _pass_requests(self, reader: asyncio.StreamReader, link: _Link) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                request = await _read_frame(reader)
                if link.is_silent:
                    continue
                await self._flows.wait()
                if any(needle in request for needle in self._swallows):
                    self._swallows = [needle for needle in self._swallows if needle not in request]
                    self.lost_requests += 1
                    break
                self._requests.append(request)
                if b"SUBSCRIBE\r\n" in request:
                    link.subscribes = True
                link.fates.append(self._fate_of_answer(request))
                link.server.write(request)
                await link.server.drain()
        link.cut()

    async def _pass_answers(self, reader: asyncio.StreamReader, link: _Link) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                answer = await _read_frame(reader)
                if link.is_silent:
                    continue
                await self._flows.wait()
                # what is pushed answers no request, nor can it be told from an answer where RESP 2 subscribes
                solicited = not answer.startswith(PUSH) and not link.subscribes
                fate = link.fates.popleft() if solicited and link.fates else _Fate.PASSES
                if fate is _Fate.IS_LOST:
                    self.lost_answers += 1
                    break
                if fate is _Fate.IS_HELD:
                    self.held_answers += 1
                    await self._released.wait()
                link.client.write(answer)
                await link.client.drain()
        link.cut()

    def _fate_of_answer(self, request: bytes) -> _Fate:
        lost = False
        for cut in self._cuts:
            if cut.needle in request:
                cut.seen += 1
                lost = lost or cut.seen % cut.every == 0
        if lost:
            return _Fate.IS_LOST
        return _Fate.IS_HELD if any(needle in request for needle in self._held) else _Fate.PASSES


@asynccontextmanager
async def open_proxy(server: Server) -> AsyncGenerator[Proxy]:
    """A proxy in front of the server for the block: ``async with open_proxy(server) as proxy``."""
    proxy = Proxy(server)
    await proxy.accept()
    try:
        yield proxy
    finally:
        proxy.flow()
        await proxy.refuse()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    """One whole RESP value, 2 or 3; requests are arrays of bulk strings."""
    line = await reader.readuntil(b"\r\n")
    kind, size = line[:1], line[1:-2]
    if kind in b"$=!":
        return line if size == b"-1" else line + await reader.readexactly(int(size) + 2)
    if kind in b"*~>%|":
        values = max(int(size), 0) * (2 if kind in b"%|" else 1)
        # an attribute stands in front of the value that it belongs to
        parts = [await _read_frame(reader) for _ in range(values + (kind == b"|"))]
        return line + b"".join(parts)
    return line
