"""Sends the queue's scripts one after the other, reads all that a namespace holds, and lets its time pass."""

import hashlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from unittest.mock import Mock

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, ResponseError
from redis.retry import Retry

from lanner.queue.calling import Caller, ScriptError
from lanner.queue.scripts.loader import load
from lanner.queue.wire import Argument
from support.stored import Key, Stored, places_of

Answer = TypeVar("Answer")

READ = """
local held, base = {}, KEYS[1] .. ':'
for _, name in ipairs(redis.call('KEYS', base .. '*')) do
  local kind, holds = redis.call('TYPE', name).ok, nil
  if kind == 'zset' then holds = redis.call('ZRANGE', name, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then holds = redis.call('SMEMBERS', name)
  elseif kind == 'hash' then holds = redis.call('HGETALL', name)
  elseif kind == 'list' then holds = redis.call('LRANGE', name, 0, -1)
  else holds = { redis.call('GET', name) } end
  held[#held + 1] = { string.sub(name, #base + 1), kind, redis.call('PTTL', name), holds }
end
local time = redis.call('TIME')
return { time[1] * 1000 + math.floor(time[2] / 1000), held }
"""

# markers and news are left alone: who waits for them looks by itself long before they expire
LATER = """
local base, passed = KEYS[1] .. ':', tonumber(ARGV[1])
-- by what is left, a server that stands still meanwhile would give some of it twice; Redis 6.2 knows nothing else
local function expiryOf(name)
  local expiry = redis.pcall('PEXPIRETIME', name)
  if type(expiry) == 'number' then return expiry end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + redis.call('PTTL', name)
end
local by_time = {
  delayed = true, parked = true, throttled = true, expiring = true, due = true, completed = true, cancelled = true,
  failed = true, capped = true, seen = true, workers = true,
}
local function earlier(text)
  return (string.gsub(string.format('%.3f', tonumber(text) - passed), '%.000$', ''))
end
for _, name in ipairs(redis.call('KEYS', base .. '*')) do
  local own, kind = string.sub(name, #base + 1), redis.call('TYPE', name).ok
  if kind == 'zset' and by_time[string.match(own, '[^:]*$')] and not string.match(own, ':.*:') then
    local held = redis.call('ZRANGE', name, 0, -1, 'WITHSCORES')
    for i = 1, #held, 2 do
      if held[i + 1] ~= 'inf' then redis.call('ZADD', name, earlier(held[i + 1]), held[i]) end
    end
  elseif kind == 'hash' and string.match(own, '^[^:]*:active$') then
    local claims = redis.call('HGETALL', name)
    for i = 1, #claims, 2 do
      local head, deadline, rest = string.match(claims[i + 1], '^(%S+ %S+ )(%S+)(.*)$')
      redis.call('HSET', name, claims[i], head .. earlier(deadline) .. rest)
    end
  elseif kind == 'list' and string.match(own, '^@limiter:') then
    for i, starts in ipairs(redis.call('LRANGE', name, 0, -1)) do
      redis.call('LSET', name, i - 1, (string.gsub(starts, '^%d+', earlier)))
    end
  elseif own == 'swept' or string.match(own, '^@limiter%-pause:') then
    redis.call('SET', name, earlier(redis.call('GET', name)), 'KEEPTTL')
  elseif kind == 'hash' and string.match(own, '^[^:]*:j:') then
    for _, field in ipairs({ 'finished', 'started', 'state' }) do
      local instant = redis.call('HGET', name, field)
      if instant then redis.call('HSET', name, field, (string.gsub(instant, '%d+', earlier))) end
    end
  end
  local told = string.match(own, ':wake$') or string.match(own, ':clock$') or string.match(own, '^@ctl:')
  if redis.call('PTTL', name) >= 0 and not told then
    redis.call('PEXPIREAT', name, string.format('%.0f', expiryOf(name) - passed))
  end
end
"""


@dataclass(frozen=True)
class Held:
    """All that a namespace holds, by the keys' names below the base.

    Attributes:
        asked: The server's time in milliseconds just before it was read: what is left of a TTL is that of an instant
            between this and ``now``.
        now: The server's time in milliseconds when it had been read.
        zsets: Members with their scores, in order.
        sets: Members.
        hashes: Fields.
        lists: Entries, the first of a string.
        ttls: Milliseconds left of those that expire.
        stored: The same, for the check of leftovers.
    """

    asked: int
    now: int
    zsets: Mapping[str, Mapping[str, float]]
    sets: Mapping[str, frozenset[str]]
    hashes: Mapping[str, Mapping[str, str]]
    lists: Mapping[str, list[str]]
    ttls: Mapping[str, int]
    stored: Stored

    def zset(self, name: str) -> Mapping[str, float]:
        """The members of a sorted set, in order; none if there is no such key."""
        return self.zsets.get(name, {})

    def names(self, prefix: str) -> dict[str, str]:
        """What follows the prefix in the names of the keys that begin with it, and these names."""
        return {name.removeprefix(prefix): name for name in self.stored.keys if name.startswith(prefix)}

    def without_time(self) -> object:
        """All of it but for the time left of what expires."""
        return self.zsets, self.sets, self.hashes, self.lists, sorted(self.ttls)

    def without_wakes(self) -> object:
        """All of it but for that, and for the markers that wake."""
        lists = {name: value for name, value in self.lists.items() if not name.endswith(":wake")}
        return (
            self.zsets,
            self.sets,
            self.hashes,
            lists,
            sorted(name for name in self.ttls if not name.endswith(":wake")),
        )


class Driver(Caller):
    """A caller whose calls are executed at once, in the order they are made."""

    def __init__(self, url: str, base: str, patch: Callable[[str], str] = str) -> None:
        """Send the scripts as ``patch`` leaves their texts."""
        super().__init__(Mock(), base)
        # redis-py's own types are incomplete; nothing of them goes further than this
        connection: Any = redis.Redis
        self._redis = connection.from_url(url, protocol=2, retry=Retry(NoBackoff(), 0))
        self._patch = patch
        self._shas: dict[str, str] = {}

    async def __call__(self, name: str, *arguments: Argument) -> Any:
        """Run a script."""
        try:
            return self._evaluate_text(name, self._patch(load(name).text), arguments)
        except ResponseError as error:
            raise ScriptError(load(name).locate(str(error))) from error

    def run(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        """The answer of a typed wrapper; it never waits."""
        try:
            call.send(None)
        except StopIteration as answered:
            return answered.value  # type: ignore[no-any-return] # what StopIteration holds is not typed
        raise RuntimeError("the call waits for something")

    def read(self) -> Held:
        """Read the whole namespace."""
        asked = self.server_time()
        now, entries = self._evaluate_text("read", READ, ())
        zsets: dict[str, Mapping[str, float]] = {}
        sets: dict[str, frozenset[str]] = {}
        hashes: dict[str, Mapping[str, str]] = {}
        lists: dict[str, list[str]] = {}
        ttls: dict[str, int] = {}
        keys: dict[str, Key] = {}
        for raw_name, raw_kind, ttl, raw in entries:
            name, kind, holds = raw_name.decode(), raw_kind.decode(), [part.decode() for part in raw]
            members: Mapping[str, float] = {}
            if kind == "zset":
                members = zsets[name] = dict(zip(holds[::2], map(float, holds[1::2]), strict=True))
            elif kind == "set":
                sets[name] = frozenset(holds)
                members = dict.fromkeys(holds, 0.0)
            elif kind == "hash":
                hashes[name] = dict(zip(holds[::2], holds[1::2], strict=True))
                members = dict.fromkeys(hashes[name], 0.0)
            else:
                lists[name] = holds
            if ttl >= 0:
                ttls[name] = ttl
            keys[name] = Key(expires=ttl >= 0, members=members, values=hashes.get(name, {}))
        return Held(asked, now, zsets, sets, hashes, lists, ttls, Stored(keys, places_of(keys), now))

    def server_time(self) -> int:
        """The server's time in milliseconds."""
        seconds, micros = self.command("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def pass_time(self, ms: int) -> None:
        """Have everything in the namespace be as if so much more time had passed."""
        self._evaluate_text("pass_time", LATER, (ms,))

    def command(self, *command: Argument) -> Any:
        """The answer to one command."""
        return self._redis.execute_command(*command)

    def wipe(self) -> None:
        """Delete the namespace."""
        for name in self._redis.keys(f"{self.base}:*"):
            self._redis.unlink(name)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def _evaluate_text(self, name: str, text: str, arguments: tuple[Argument, ...]) -> Any:
        sha = self._shas.get(name)
        if sha is None:
            sha = self._shas[name] = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        try:
            return self._redis.execute_command("EVALSHA", sha, 1, self.base, *arguments)
        except NoScriptError:
            return self._redis.execute_command("EVAL", text, 1, self.base, *arguments)
