"""Namespaces in which the same calls are served in different ways, and what those leave."""

import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lanner.queue.scripts.loader import load
from support.client import Client

Pieces = Sequence[tuple[str, str]]

# each takes short cuts out, and must be found in a script
LONG_WAYS: Final[dict[str, Pieces]] = {
    "no whole call": (
        ("local simply = settleSimply()", "local simply"),
        ("local simply = addSimply()", "local simply"),
    ),
    "nothing": (
        ("local simply = settleSimply()", "local simply"),
        ("local simply = addSimply()", "local simply"),
        ("local simple, like = instant == '' and", "local simple, like = false and"),
        ("if kind == 'completed' then\n    complete", "if false then\n    complete"),
        ("if kind == 'completed' and spec.result_ttl > 0 and", "if false and"),
        ("if namespace.limiters or", "if true or namespace.limiters or"),
        ('if not spec or options and string.find(spec, \'"expires"', 'if true or string.find(spec, \'"expires"'),
        ("assumeNoLimits(base, wants)\nlocal", "local"),
        ("== 0 then return false, false end", "< 0 then return false, false end"),
    ),
}
# time passes when a story says so, and what is pushed stays where it can be compared
WATCHED: Final[Pieces] = (
    ("redis.call('TIME')", "{ redis.call('GET', KEYS[1] .. ':now'), '0' }"),
    ("'PUBLISH'", "'RPUSH'"),
    # what expires does so by the clock of the server
    ("call('PEXPIREAT', job, till)", "call('PEXPIRE', job, RESULT_TTL)"),
    ("call('PEXPIREAT', jobs .. id, till)", "call('PEXPIRE', jobs .. id, RESULT_TTL)"),
)
SAID: Final = 3  # fields of what is pushed about a job, behind what happened and its workflow
MINUTE: Final = 60_000
DUMP: Final = """
local found = {}
for _, name in ipairs(redis.call('KEYS', ARGV[1] .. ':*')) do
  local kind, content = redis.call('TYPE', name).ok, nil
  if kind == 'hash' then content = redis.call('HGETALL', name)
  elseif kind == 'zset' then content = redis.call('ZRANGE', name, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then content = redis.call('SMEMBERS', name)
  elseif kind == 'list' then content = redis.call('LRANGE', name, 0, -1)
  elseif kind == 'stream' then
    content = {}
    for _, entry in ipairs(redis.call('XRANGE', name, '-', '+')) do
      content[#content + 1] = table.concat(entry[2], ' ')
    end
  else content = { redis.call('GET', name) } end
  found[#found + 1] = { string.sub(name, #ARGV[1] + 1), kind, content, redis.call('PTTL', name) }
end
return found
"""
ERASE: Final = "for _, name in ipairs(redis.call('KEYS', ARGV[1] .. ':*')) do redis.call('DEL', name) end"


class Way:
    """A namespace, and the scripts that serve it; an attribute is the script's name on the server."""

    def __init__(self, client: Client, base: str, pieces: Pieces) -> None:
        self.client = client
        self.base = base
        texts = [load(name).text for name in ("settle", "add_jobs", "add_flow", "start_children")]
        for piece, instead in (*WATCHED, *pieces):
            assert any(piece in text for text in texts), f"there is no such piece any more: {piece}"
            texts = [text.replace(piece, instead) for text in texts]
        self.settle, self.add, self.add_flow, self.start = (client("SCRIPT", "LOAD", text) for text in texts)
        client("HSET", f"{base}:meta", "version", "1")  # as whoever connects finds it, or writes it

    def stored(self) -> dict[str, Any]:
        """Everything by its name, and for how many minutes yet."""
        dumped: list[tuple[str, str, list[str], int]] = self.client("EVAL", DUMP, 0, self.base)
        found = {name: (_ordered(name, kind, content), math.ceil(ttl / MINUTE)) for name, kind, content, ttl in dumped}
        for name, (content, _) in found.items():
            if ":j:" in name and " " in content.get("state", ""):
                content["state"], content["finished"], content["started"] = content["state"].split()
            if name.endswith(":active") and name != ":active":
                _complete_records(found, name.removesuffix("active"), content)
        return found

    def erase(self) -> None:
        """Leave nothing."""
        self.client("EVAL", ERASE, 0, self.base)


def _ordered(name: str, kind: str, content: list[str]) -> Any:
    match kind:
        case "hash" if name.endswith(":active"):
            # token, instant, deadline and place of each claim; the rest says which way its end takes
            return {id: claim[1:].split()[:4] for id, claim in zip(content[::2], content[1::2], strict=True)}
        case "hash":
            return dict(zip(content[::2], content[1::2], strict=True))
        case "set":
            return sorted(content)
        case "list" if "@waiting" in name:
            # one message may tell of the ends of several jobs, and be sent behind those of others
            return sorted(said for message in content for said in _said(message))
        case _:
            return content


def _complete_records(found: dict[str, Any], workflow: str, claims: dict[str, list[str]]) -> None:
    """What a record leaves to the claim of its job."""
    for id, (_, instant, *_) in claims.items():
        if record := found.get(f"{workflow}j:{id}"):
            record[0].setdefault("state", "active")
            record[0].setdefault("started", instant)


def _said(message: str) -> list[list[str]]:
    """What a message says of each job."""
    what, workflow, *said = msgspec.msgpack.decode(message.encode(errors="surrogateescape"), type=list[str])
    return [[what, workflow, *said[i : i + SAID]] for i in range(0, len(said), SAID)]
