"""Reads a namespace as it is stored, for the checks of what is left in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from support.client import Client

GONE = -2  # PTTL's answer for a key that is not there any more
RECORD = "[^:]+:j:"
VALUES = ("state", "spec", "parent")


def state_in(record: Mapping[str, str], *, claimed: bool) -> str | None:
    """The state of a job: a record without one leaves that to a claim, if there is any. None for what is no record."""
    if (state := record.get("state")) is not None:
        return state.partition(" ")[0]
    return ("active" if claimed else "waiting") if "spec" in record else None


@dataclass(frozen=True)
class Key:
    """A key as it was found.

    Attributes:
        expires: Whether it has a TTL.
        members: Members of a zset with their scores, members of a set, fields of a hash; else nothing.
        values: Of a job's record, what some of its fields hold; of the slots of groups, how many are
            taken; of ``running``, how many jobs are.
    """

    expires: bool
    members: Mapping[str, float] = field(default_factory=dict[str, float])
    values: Mapping[str, str] = field(default_factory=dict[str, str])


NOTHING = Key(expires=False)


@dataclass(frozen=True)
class Stored:
    """A namespace as it was found.

    Attributes:
        keys: Its keys, by what follows the base.
        places: By workflow and job, every structure that the job is in.
        now: The server's time in milliseconds.
    """

    keys: Mapping[str, Key]
    places: Mapping[tuple[str, str], list[str]]
    now: float

    def members(self, name: str) -> Mapping[str, float]:
        """The members of a key; none if there is no such key."""
        return self.keys.get(name, NOTHING).members

    def job(self, workflow: str, job: str) -> Key | None:
        """A job's record."""
        return self.keys.get(f"{workflow}:j:{job}")


def read(client: Client, base: str) -> Stored:
    """Read all keys below the base: TTL, and members where there are any."""
    seconds, micros = client("TIME")
    keys: dict[str, Key] = {}
    for names in client.keys(f"{base}:*"):
        kinds = client.many([("TYPE", name) for name in names])
        ttls = client.many([("PTTL", name) for name in names])
        answers = client.many([_members_of(name, kind) for name, kind in zip(names, kinds, strict=True)])
        for name, kind, ttl, answer in zip(names, kinds, ttls, answers, strict=True):
            if ttl != GONE:
                keys[name.removeprefix(f"{base}:")] = Key(expires=ttl >= 0, members=_members(kind, answer))
    records = [name for name in keys if re.match(RECORD, name)]
    values = client.many([("HMGET", f"{base}:{name}", *VALUES) for name in records])
    for name, found in zip(records, values, strict=True):
        held = {field: value for field, value in zip(VALUES, found, strict=True) if value is not None}
        keys[name] = replace(keys[name], values=held)
    for name in [name for name in keys if name.endswith(":ga") or name == "running"]:
        keys[name] = replace(keys[name], values=client("HGETALL", f"{base}:{name}"))
    return Stored(keys, places_of(keys), seconds * 1000 + micros / 1000)


def _members_of(name: str, kind: str) -> tuple[str | float, ...]:
    match kind:
        case "zset":
            return ("ZRANGE", name, 0, -1, "WITHSCORES")
        case "set":
            return ("SMEMBERS", name)
        case "hash":
            return ("HKEYS", name)
        case _:
            return ("EXISTS", name)


def _members(kind: str, answer: Any) -> Mapping[str, float]:
    match kind:
        case "zset":
            return dict(answer)
        case "set" | "hash":
            return dict.fromkeys(answer, 0.0)
        case _:
            return {}


def expired(claim: str) -> str:
    """A claim as it is when its worker has been silent for a lease."""
    mark_and_token, instant, _, rest = claim.split(" ", 3)
    return f"{mark_and_token} {instant} {1:013d} {rest}"


def places_of(keys: Mapping[str, Key]) -> Mapping[tuple[str, str], list[str]]:
    """By workflow and job, every structure that the job is in."""
    places: dict[tuple[str, str], list[str]] = {}
    for name, key in keys.items():
        workflow, _, kind = name.partition(":")
        if kind == "ready":
            jobs = [member.removeprefix("j:") for member in key.members if member.startswith("j:")]
        elif re.fullmatch("active|delayed|parked|completed|failed|cancelled|g:.+", kind, re.DOTALL):
            jobs = list(key.members)
        else:
            continue
        for job in jobs:
            places.setdefault((workflow, job), []).append(kind)
    return places
