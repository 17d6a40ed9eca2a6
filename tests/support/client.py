from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

COUNT = 1000


class Client:
    """A blocking client for looking at what is stored: ``client("HGETALL", key)``, texts as ``str``."""

    def __init__(self, url: str) -> None:
        # redis-py's own types are incomplete; nothing of them goes further than this
        connection: Any = redis.Redis
        self._redis = connection.from_url(
            url,
            protocol=3,
            decode_responses=True,
            encoding_errors="surrogateescape",
            retry=Retry(NoBackoff(), 0),
        )

    def __call__(self, *command: str | float) -> Any:
        """The answer to one command."""
        return self._redis.execute_command(*command)

    def many(self, commands: Iterable[Sequence[str | float]]) -> list[Any]:
        """The answers to several commands, sent together."""
        pipe = self._redis.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return list(pipe.execute())

    def keys(self, pattern: str) -> Iterator[list[str]]:
        """The names of all keys that match, in lists of bounded length. A name may come twice, as SCAN has it."""
        cursor = "0"
        while True:
            cursor, names = self("SCAN", cursor, "MATCH", pattern, "COUNT", COUNT)
            yield names
            if int(cursor) == 0:
                return

    def close(self) -> None:
        """Close its connection."""
        self._redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
