from typing import Protocol


class Rng(Protocol):
    """A source of randomness: the ``random`` module, or a ``random.Random``."""

    def random(self) -> float:
        """A number from 0 up to, and without, 1."""
        ...


def backoff_delay_ms(failures: int, backoff: tuple[float, float, float], rng: Rng) -> int:
    """The delay before the next attempt: exponential, with full jitter (from nothing to the whole of it).

    Args:
        failures: Attempts that have failed, the one that just ended included: from 1.
        backoff: The first delay in milliseconds, the factor that each further failure multiplies it by, and the
            longest delay in milliseconds.
        rng: Where the jitter comes from.

    Example:
        >>> 0 <= backoff_delay_ms(3, (500, 2.0, 30_000), random) <= 2_000
        True
    """
    first, factor, longest = backoff
    if first <= 0:
        return 0
    try:
        ceiling = min(first * factor ** (failures - 1), longest)
    except OverflowError:
        ceiling = longest
    return int(rng.random() * ceiling)
