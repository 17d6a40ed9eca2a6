"""The machine's own limits: what bare commands take from redis-py, with nothing around them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import Any

import redis.asyncio
import serving

# what the server has to do at least for one job, from its claim to its end: 12 commands
JOB = """
local queue, id = KEYS[1], redis.call('ZPOPMIN', KEYS[1] .. ':ready')[1]
local job = queue .. ':j:' .. id
redis.call('ZADD', queue .. ':leases', ARGV[1], id)
redis.call('SADD', queue .. ':active', id)
redis.call('HSET', job, 'state', 'active', 'token', ARGV[2])
local data = redis.call('HGET', job, 'data')
if redis.call('HGET', job, 'token') ~= ARGV[2] then return 0 end
redis.call('ZREM', queue .. ':leases', id)
redis.call('SREM', queue .. ':active', id)
redis.call('HSET', job, 'state', 'completed', 'result', ARGV[3])
redis.call('PEXPIRE', job, 300000)
redis.call('UNLINK', job .. ':steps')
redis.call('PUBLISH', queue .. ':done', id)
return data
"""
FILL = """
for i = 1, ARGV[1] do
  redis.call('HSET', KEYS[1] .. ':j:' .. i, 'data', ARGV[2], 'state', 'waiting')
  redis.call('ZADD', KEYS[1] .. ':ready', i, i)
end
"""
ADD = """
redis.call('HSET', KEYS[1] .. ':j:' .. ARGV[1], 'data', ARGV[2], 'state', 'waiting')
return redis.call('ZADD', KEYS[1] .. ':ready', 1, ARGV[1])
"""


class Machine(serving.Peer):
    async def open(self) -> None:
        self._client: Any = redis.asyncio.from_url(self.url)
        self._job: str = await self._client.script_load(JOB)
        self._add: str = await self._client.script_load(ADD)

    async def call_one_at_a_time(self, *, queue: str, jobs: int) -> float:
        """The script of one job, each when the one before it was answered; seconds."""
        await self._client.eval(FILL, 1, queue, jobs, "x" * 100)
        began = time.perf_counter()
        for _ in range(jobs):
            await self._client.evalsha(self._job, 1, queue, 1_000_000, "token", "null")
        return time.perf_counter() - began

    async def call_pipelined(self, *, queue: str, jobs: int, by: int) -> float:
        """The same, pipelined; seconds."""
        for start in range(0, jobs, 5000):
            await self._client.eval(FILL, 1, f"{queue}:{start}", min(5000, jobs - start), "x" * 100)
        began = time.perf_counter()
        for start in range(0, jobs, by):
            pipe = self._client.pipeline(transaction=False)
            for _ in range(min(by, jobs - start)):
                pipe.evalsha(self._job, 1, f"{queue}:{start // 5000 * 5000}", 1_000_000, "token", "null")
            await pipe.execute()
        return time.perf_counter() - began

    async def add(self, queue: str, payload: str) -> None:
        """The script that does the least for one added job."""
        await self._client.evalsha(self._add, 1, queue, time.perf_counter_ns(), payload)

    async def call_push(self, *, queue: str, jobs: int, pause: float) -> None:
        """Push the time, with pauses, for whoever pops in ``listen``."""
        for _ in range(jobs):
            await asyncio.sleep(pause)
            await self._client.lpush(queue, str(time.monotonic_ns()))

    @contextlib.asynccontextmanager
    async def worker(self, queue: str, slots: int) -> AsyncGenerator[None]:
        """A bare BRPOP."""
        del slots
        client: Any = redis.asyncio.from_url(self.url)

        async def pop() -> None:
            while True:
                popped = await client.brpop([queue], timeout=4)
                if popped is not None:
                    self.ran(popped[1])

        async with serving.background(pop()):
            yield
        await client.aclose()

    async def run(self, queue: str, payload: str) -> None:
        """Two bare scripts, and one publish that is heard."""
        if not hasattr(self, "_heard"):
            self._heard: Any = self._client.pubsub()
            await self._heard.subscribe("done")
            await self._heard.get_message(timeout=1)
            self._say: str = await self._client.script_load("return redis.call('PUBLISH', KEYS[1], ARGV[1])")
        await self._client.evalsha(self._add, 1, queue, payload, payload)
        heard = asyncio.ensure_future(self._heard.get_message(ignore_subscribe_messages=True, timeout=5))
        await self._client.evalsha(self._say, 1, "done", payload)
        await heard


serving.serve(Machine)
