"""Workers that rate limiters refuse, and how a test knows that they were refused."""

from collections.abc import Iterable
from datetime import timedelta

from lanner.queue import Claim, Namespace, Queue

from .client import Client
from .waiting import wait_until

LONG = timedelta(hours=1)
# an idle worker that is not woken looks again only after this: what relies on it fails these tests
SAFETY = 120


async def done(_: Claim) -> str:
    return ""


def starts_in(entries: Iterable[str]) -> list[int]:
    """The instants of the starts that a limiter's entries tell, each of as many as it adds to those before it."""
    starts: list[int] = []
    for entry in entries:
        instant, before, told = map(int, entry.split())
        starts += [instant] * (told - before)
    return starts


def starts_kept(client: Client, namespace: Namespace, limiter: str) -> int:
    """How many starts a limiter keeps."""
    entries: list[str] = client("LRANGE", f"{namespace.base}:@limiter:{limiter}", 0, -1)
    return len(starts_in(entries))


async def looked_in_vain(queue: Queue, client: Client) -> None:
    """Have a worker look for work again, and wait until it has, from the beginning to the end."""
    for _ in range(2):
        before = calls(queue, client)
        await queue.resume()
        await wait_until(lambda: calls(queue, client) > before)  # noqa: B023 - awaited at once


def calls(queue: Queue, client: Client) -> int:
    """How many numbered calls have been answered in the namespace, as their receipts say."""
    receipts = [key for keys in client.keys(f"{queue.namespace.base}:@receipt:*") for key in keys]
    return sum(int(receipt.split("\n")[0]) for receipt in client.many([("GET", key) for key in receipts]))
