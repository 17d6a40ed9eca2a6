"""Jobs and workers in words, for a terminal."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, Final

import msgspec

from ..queue.job import Record
from ..queue.outcome import Failure
from ..queue.presence import WorkerInfo
from ..workflow.compensation import REGISTERED_PATH, UNDER_WAY_PATH
from ..workflow.journal import CANCELLED, DONE, EXPIRED, FAILED, PENDING, UNFIT, Kind
from ..workflow.tree import Tree

MOST_OF_A_LINE: Final = 120
INDENT: Final = "  "
ELSE: Final = {EXPIRED: "did not come in time", CANCELLED: "cancelled", UNFIT: "could not be read"}


def table(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """Rows with their columns below each other; all but the first one are of numbers, or none is."""
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    lines = (
        INDENT.join(
            cell.rjust(width) if numbers and place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def instant(when: datetime | None) -> str:
    """An instant, in UTC."""
    return "-" if when is None else when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def one_line(text: str) -> str:
    """The beginning of a text, in one line."""
    return textwrap.shorten(text, MOST_OF_A_LINE, placeholder=" ...")


def describe_workers(workers: Sequence[WorkerInfo]) -> str:
    """Workers that live."""
    rows = [
        (
            f"{worker.about.host}:{worker.about.pid}",
            f"{worker.about.slots} slots for {', '.join(worker.about.workflows)}",
            f"runs {len(worker.about.jobs)}" + ", stopping" * worker.about.stopping,
            f"seen {instant(worker.seen)}",
        )
        for worker in workers
    ]
    return table(rows)


def describe_job(name: str, record: Record, log: Sequence[str], tree: Tree) -> str:
    """Everything that is known of a job."""
    facts = [
        ("state", record.state),
        ("attempt", f"{record.attempt} of {record.spec.max_attempts}"),
        ("created", instant(record.created)),
        ("started", instant(record.started)),
        ("finished", instant(record.finished)),
        ("input", _value(record.data)),
    ]
    for what, text in (("progress", record.progress), ("output", record.result)):
        if text is not None:
            facts.append((what, _value(text)))
    if record.reason is not None:
        facts.append(("reason", record.reason or "none was given"))
    if record.failure is not None:
        facts.append(("failure", f"{record.failure.type}: {one_line(record.failure.message)}"))
    parts = [name + "\n" + textwrap.indent(table(facts), INDENT)]
    for title, text in (
        ("steps", table([*_steps(record.steps)]) if record.steps else ""),
        ("children", str(tree) if tree.children else ""),
        ("log", "\n".join(log)),
        ("traceback", record.failure.traceback.rstrip() if record.failure else ""),
    ):
        if text:
            parts.append(f"{title}\n{textwrap.indent(text, INDENT)}")
    return "\n\n".join(parts)


def _steps(recorded: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each checkpoint: its path, how far it is, and with what."""
    for path, text in recorded.items():
        if path == REGISTERED_PATH:
            yield "compensations", f"{text} registered", ""
        elif path == UNDER_WAY_PATH:
            yield "compensations", "under way", ""
        elif path.startswith(UNDER_WAY_PATH + "/"):
            _, _, trouble = text.partition(":")
            yield path.removeprefix(UNDER_WAY_PATH), "given up" if trouble else "undone", one_line(trouble)
        else:
            yield path, *_checkpoint(text)


def _checkpoint(text: str) -> tuple[str, str]:
    kind = next((each for each in Kind if text.startswith(each)), None)
    if kind is None:
        return "", text
    state, rest = text[len(kind) : len(kind) + 1], text[len(kind) + 1 :]
    if state == DONE:
        return f"{kind} done", _value(rest)
    if state == FAILED:
        failure = Failure.loads(rest)
        return f"{kind} failed", f"{failure.type}: {one_line(failure.message)}"
    if state == PENDING and kind is Kind.CHILD:
        return f"{rest} children", "started"
    if state == PENDING:
        return f"{kind} until", instant(datetime.fromtimestamp(int(rest) / 1000, UTC))
    return f"{kind} {ELSE[state]}", _value(rest)


def _value(text: str) -> str:
    """A value without what only the serializer needs to know, where there is nothing of that."""
    try:
        found: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if isinstance(found, dict) and found.keys() == {"json"}:
        return msgspec.json.encode(found["json"]).decode()
    return text
