"""Jobs and workers in words, for a terminal."""

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, Final

import msgspec

from ..queue.job import Record
from ..queue.outcome import Failure
from ..queue.presence import WorkerInfo
from ..workflow.codec import CODED
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
    line = " ".join(text.split())
    return line if len(line) <= MOST_OF_A_LINE else line[: MOST_OF_A_LINE - 4] + " ..."


def printable(text: str) -> str:
    """A text that does nothing to a terminal but stand there."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )


def name_of(workflow: str, job_id: str) -> str:
    """What a job is called on the command line."""
    return shlex.quote(f"{workflow}/{job_id}")


def describe_failure(failure: Failure) -> str:
    """What it was, in one line."""
    return f"{failure.type}: {one_line(_note(failure.message))}"


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
        ("attempt", _attempt(record)),
        ("created", instant(record.created)),
        ("started", instant(record.started)),
        ("finished", instant(record.finished)),
        ("input", _value(record.data)),
    ]
    for what, text in (("progress", record.progress), ("output", record.result)):
        if text is not None:
            facts.append((what, _value(text)))
    if record.due is not None:
        facts.append(("due", instant(record.due)))
    if record.awaits:
        facts.append(("awaits", ", ".join(map(repr, record.awaits))))
    if record.reason is not None:
        facts.append(("reason", _note(record.reason) or "none was given"))
    if record.failure is not None:
        facts.append(("failure", describe_failure(record.failure)))
    parts = [name + "\n" + textwrap.indent(table(facts), INDENT)]
    for title, text in (
        ("steps", table([*_steps(record.steps)]) if record.steps else ""),
        ("children", "\n".join(_below(tree, ""))),
        ("log", "\n".join(map(_note, log))),
        ("traceback", _note(record.failure.traceback).rstrip() if record.failure else ""),
    ):
        if text:
            parts.append(f"{title}\n{textwrap.indent(text, INDENT)}")
    return "\n\n".join(parts)


def _attempt(record: Record) -> str:
    most = record.spec.max_attempts
    return f"{record.attempt} of {most}" + ", and those of its compensations" * (record.attempt > most)


def _below(tree: Tree, indent: str) -> Iterator[str]:
    """What a job has started, a line each."""
    for child in tree.children:
        path = f" ({child.path})" if child.path else ""
        yield f"{indent}{name_of(child.workflow, child.id)}{path}: {child.state}"
        yield from _below(child, indent + INDENT)


def _steps(recorded: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each checkpoint: its path, how far it is, and with what."""
    for path, text in recorded.items():
        if path == REGISTERED_PATH:
            yield "compensations", f"{text} registered", ""
        elif path == UNDER_WAY_PATH:
            yield "compensations", "under way", ""
        elif path.startswith(UNDER_WAY_PATH + "/"):
            _, _, trouble = text.partition(":")
            yield path.removeprefix(UNDER_WAY_PATH), "given up" if trouble else "undone", one_line(_note(trouble))
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
        return f"{kind} failed", describe_failure(Failure.loads(rest))
    if state == PENDING and kind is Kind.CHILD:
        return f"{rest} children", "started"
    if state == PENDING:
        return f"{kind} until", instant(datetime.fromtimestamp(int(rest) / 1000, UTC))
    return f"{kind} {ELSE[state]}", _value(rest)


def _note(text: str) -> str:
    """A text for people; one that a codec has written is one that this namespace has not."""
    return "(written with a codec, which this namespace has not)" if text.startswith(CODED) else text


def _value(text: str) -> str:
    """A value without what only the serializer needs to know, where there is nothing of that."""
    try:
        found: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return f"{text} (this is no JSON: has the namespace the codec that it was written with?)"
    if isinstance(found, dict) and found.keys() == {"json"}:
        return msgspec.json.encode(found["json"]).decode()
    return text
