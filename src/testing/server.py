from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import redis

from ..workflow.namespace import WorkflowNamespace

MOST_AT_ONCE: Final = 1000


class RealServer:
    """A Redis for tests, on which each test has keys of its own that are deleted after it.

    Attributes:
        url: Where it is.
    """

    def __init__(self, url: str) -> None:
        self.url: Final = url

    @contextmanager
    def namespace(self, **settings: Any) -> Generator[WorkflowNamespace]:
        """A namespace that nobody else has, for the block.

        Args:
            **settings: As ``WorkflowNamespace`` takes them.

        Example:
            >>> with server.namespace(concurrency=5) as ns:
            ...     signup = ns.create_workflow("signup", run=onboard)
        """
        namespace = WorkflowNamespace(f"test-{secrets.token_hex(8)}", redis=self.url, **settings)
        try:
            yield namespace
        finally:
            self._delete(namespace.queues.base)

    @contextmanager
    def isolate(self, namespace: WorkflowNamespace) -> Generator[WorkflowNamespace]:
        """Have a namespace that exists, and its workflows, be on this server for the block, with keys of its own.

        Example:
            >>> from shop import ns, signup
            >>> with server.isolate(ns):
            ...     async with signup.worker():
            ...         assert await signup.execute(Signup("ada@example.org"), timeout=30)
        """
        with namespace.queues.elsewhere(self.url, prefix=f"test-{secrets.token_hex(8)}"):
            try:
                yield namespace
            finally:
                self._delete(namespace.queues.base)

    def _delete(self, base: str) -> None:
        with redis.Redis.from_url(self.url) as client:  # pyright: ignore[reportUnknownMemberType] - redis-py's kwargs
            found = client.scan_iter(match=f"{base}*", count=MOST_AT_ONCE)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - as above
            names: list[bytes] = list(found)  # pyright: ignore[reportUnknownArgumentType] - as above
            for first in range(0, len(names), MOST_AT_ONCE):
                client.unlink(*names[first : first + MOST_AT_ONCE])
