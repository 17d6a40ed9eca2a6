"""The world outside of the shop: what was really done to it, one line of a file for each thing."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

VARIABLE: Final = "LANNER_DEMO_LEDGER"
_CLOCK: Final = "%H:%M:%S.%f"


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that was done.

    Attributes:
        at: When, as the time of day.
        process: The process that did it.
        step: The step in which it did.
        what: What was done, of a kind.
        detail: To what.
    """

    at: str
    process: int
    step: str
    what: str
    detail: str

    @classmethod
    def of(cls, line: str) -> Self:
        """Read a line of the file."""
        at, process, step, what, detail = line.split("\t")
        return cls(at, int(process.removeprefix("pid ")), step, what, detail)

    def seconds_since(self, earlier: "Effect") -> float:
        """How much later it was done."""
        passed = datetime.strptime(self.at, _CLOCK) - datetime.strptime(earlier.at, _CLOCK)  # noqa: DTZ007 - times of day
        return (passed % timedelta(days=1)).total_seconds()


def happen(step: str, what: str, detail: str) -> None:
    """Do something to the world."""
    now = datetime.now().strftime(_CLOCK)[:-3]  # noqa: DTZ005 - for a person to read, on this machine
    line = f"{now}\tpid {os.getpid()}\t{step}\t{what}\t{detail}\n"
    # one write: lines of several processes do not mix, and none is lost with its process
    ledger = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, line.encode())
    finally:
        os.close(ledger)


def read(ledger: Path) -> Sequence[Effect]:
    """Everything that was done so far."""
    if not ledger.exists():
        return []
    whole, _, _ = ledger.read_text().rpartition("\n")
    return [Effect.of(line) for line in whole.splitlines()]
