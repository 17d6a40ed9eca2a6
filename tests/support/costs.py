"""What a call costs the server, counted in commands."""

from collections.abc import Awaitable, Callable
from typing import Any

from support.client import Client


async def executed(client: Client, call: Callable[[], Awaitable[Any]]) -> tuple[Any, dict[str, int]]:
    """The answer of a call, and which commands it had the server execute, how often each."""
    before = _calls(client)
    answer = await call()
    after = _calls(client)
    counts = {name: calls - before.get(name, 0) for name, calls in after.items()}
    return answer, {name: calls for name, calls in counts.items() if calls and name != "info"}


def _calls(client: Client) -> dict[str, int]:
    stats: dict[str, dict[str, Any]] = client("INFO", "commandstats")
    return {name.removeprefix("cmdstat_"): int(of_command["calls"]) for name, of_command in stats.items()}
