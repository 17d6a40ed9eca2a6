"""One run: a server, the contestants' processes, and rounds in which they take turns."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from .contestants import PEERS_ON_REDIS, Contestant, Player, UnavailableError
from .servers import Server

FIRST_JOBS = 300
GROWTH = 8
MOST_JOBS = 200_000
FEW = 4


@dataclass(frozen=True)
class Settings:
    """How thorough a run is.

    Attributes:
        quick: Whether it is to end within five minutes.
        rounds: How often everybody takes a turn.
        own_rounds: The same where few are measured, Lanner beside itself or the machine: in turns of half the time.
        long_rounds: The same where a turn takes longer, and does not differ much from the next.
        short_rounds: The same where a turn is short: a machine that wakes up slower for a while does so for all.
        aside_rounds: The same where no goal is about those who are measured.
        seconds: How long a turn is to take, about.
        only: The ids of the measures that are wanted; empty: all.
    """

    quick: bool
    rounds: int
    own_rounds: int
    long_rounds: int
    short_rounds: int
    aside_rounds: int
    seconds: float
    only: frozenset[str]

    def wants(self, *measures: str) -> bool:
        """Whether one of the measures is wanted."""
        return not self.only or not self.only.isdisjoint(measures)


@dataclass
class Measure:
    """What was measured of each contestant, in each round.

    Attributes:
        id: What it is called on the command line, and in the JSON.
        title: What it is called in the table.
        unit: Of its figures.
        lower_is_better: Whether it is; None: it only says something about another measure.
        rounds: A figure for each round.
        pooled: Every single thing that was measured, of all rounds, where there is more than one in a round.
        share: The quantile that counts of those.
        missing: Why a contestant was not measured.
        notes: What is said about a contestant.
    """

    id: str
    title: str
    unit: str
    lower_is_better: bool | None = False
    rounds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    pooled: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    share: float = 0.5
    missing: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[str, str] = field(default_factory=dict[str, str])

    def value(self, name: str) -> float | None:
        """What counts of a contestant, if it was measured: the quantile of all rounds together, or their median."""
        if single := self.pooled.get(name):
            return quantile(single, self.share)
        rounds = self.rounds.get(name)
        return statistics.median(rounds) if rounds else None

    def ratio(self, name: str, other: str) -> float | None:
        """How many times the other's a contestant's figure is: the median of the rounds, in which both are neighbours.

        Of what is pooled, the quantiles of all rounds are compared.
        """
        mine, others = self.rounds.get(name, []), self.rounds.get(other, [])
        if self.pooled or len(mine) != len(others) or not mine:
            value, against = self.value(name), self.value(other)
            return value / against if value is not None and against else None
        return statistics.median(a / b for a, b in zip(mine, others, strict=True))

    def pool(self, name: str, single: Sequence[float]) -> float:
        """Keep what was measured in a round; its quantile."""
        self.pooled.setdefault(name, []).extend(single)
        return quantile(single, self.share)

    def lose(self, name: str, why: str) -> None:
        """A contestant is left out."""
        self.missing[name] = why
        self.rounds.pop(name, None)
        self.pooled.pop(name, None)

    def fastest_peer(self, *, except_for: str = "") -> tuple[str, float] | None:
        """The best of the peers."""
        names = [each.name for each in PEERS_ON_REDIS if each.name != except_for]
        found = [(name, value) for name in names if (value := self.value(name)) is not None]
        best = min if self.lower_is_better else max
        return best(found, key=lambda each: each[1]) if found else None


Turn = Callable[[Player], Awaitable[float]]


class Bench:
    """Measures contestants on one server."""

    def __init__(
        self,
        server: Server,
        settings: Settings,
        unavailable: dict[str, str],
        measures: dict[str, Measure] | None = None,
    ) -> None:
        self.server = server
        self.settings = settings
        self.measures = {} if measures is None else measures
        self.unavailable = unavailable
        self._players: dict[tuple[str, int], Player] = {}
        self._rates: dict[tuple[str, str], float] = {}
        self._seconds = settings.seconds

    def measure(self, id: str, title: str, unit: str, *, lower_is_better: bool | None = False) -> Measure:
        """A measure by its id, made when first asked for."""
        if id not in self.measures:
            self.measures[id] = Measure(id, title, unit, lower_is_better)
        return self.measures[id]

    async def player(self, contestant: Contestant, number: int = 0) -> Player:
        """A contestant's process; its first, or another one.

        Raises:
            UnavailableError: It cannot be had.
        """
        if why := self.unavailable.get(contestant.name):
            raise UnavailableError(f"cannot be installed: {why}")
        key = (contestant.name, number)
        if key not in self._players:
            self._players[key] = await Player.start(contestant, self.server.url)
        return self._players[key]

    async def drop(self, contestant: Contestant) -> None:
        """End a contestant's processes; new ones start when they are needed."""
        for key in [key for key in self._players if key[0] == contestant.name]:
            await self._players.pop(key).stop()

    async def close(self) -> None:
        """End all processes."""
        for player in self._players.values():
            await player.stop()
        self._players.clear()

    async def alternate(
        self, measure: Measure, turns: Sequence[tuple[str, Contestant, Turn]], *, rounds: int | None = None
    ) -> None:
        """Have contestants take turns, each round begun by another, and keep what their turns gave.

        A turn is given by the name that it counts for, the contestant and what it does. One that fails is left out from
        then on, and why is kept.
        """
        few = rounds is None and len(turns) <= FEW
        count = rounds or (self.settings.own_rounds if few else self.settings.rounds)
        self._seconds = self.settings.seconds / 2 if few else self.settings.seconds
        for number in range(count):
            at = number % len(turns)
            for name, contestant, turn in (*turns[at:], *turns[:at]):
                if name in measure.missing:
                    continue
                try:
                    self.server.flush()
                    value = await turn(await self.player(contestant))
                except UnavailableError as error:
                    measure.lose(name, str(error))
                    await self.drop(contestant)
                else:
                    measure.rounds.setdefault(name, []).append(value)
        said = ", ".join(f"{name} {measure.value(name):,.4g}" for name in measure.rounds)
        lost = "".join(f"; {name}: {why}" for name, why in measure.missing.items())
        print(f"{time.strftime('%X')} {measure.id} ({measure.unit}): {said}{lost}", flush=True)

    async def paced(self, what: str, player: Player, turn: Callable[[int], Awaitable[float]]) -> float:
        """Jobs a second of a turn that takes about as long as it is to.

        ``turn`` is given how many jobs, and gives the seconds that they took. The first time it is also a warm-up.
        """
        key = (what, player.contestant.name)
        seconds = self._seconds
        if key not in self._rates:
            jobs, took = FIRST_JOBS, 0.0
            while took < seconds / 3 and jobs < MOST_JOBS:
                took = await turn(jobs)
                self._rates[key] = jobs / took
                jobs = int(min(jobs * GROWTH, self._rates[key] * seconds))
        jobs = int(min(max(self._rates[key] * seconds, FIRST_JOBS), MOST_JOBS))
        took = await turn(jobs)
        self._rates[key] = jobs / took
        return jobs / took


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of them is not above."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
