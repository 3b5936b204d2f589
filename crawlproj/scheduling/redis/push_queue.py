"""URLs that others pushed into a Redis key: moved aside when taken, removed when they are safe in
the frontier.

The key may be a list, a set or a sorted set. What is taken moves, in one step, into a list of its
own under a new token (`KEY:taken:TOKEN`); `KEY:taken` says when. It is removed only after the
frontier has committed it. So no two workers get the same push, and what a worker had taken when it
died is found there by another one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from redis.exceptions import RedisError

ABANDONED_S = 30
"""What was taken so long ago, and is still there, belongs to a worker that has died or could not
store it.
"""

TAKE = """
local kind, n, found = redis.call('TYPE', KEYS[1]).ok, tonumber(ARGV[1]), {}
if kind == 'list' then
    found = redis.call('LRANGE', KEYS[1], 0, n - 1)
    redis.call('LTRIM', KEYS[1], n, -1)
elseif kind == 'set' then
    found = redis.call('SPOP', KEYS[1], n)
elseif kind == 'zset' then
    found = redis.call('ZREVRANGE', KEYS[1], 0, n - 1)
    redis.call('ZREMRANGEBYRANK', KEYS[1], -n, -1)
elseif kind ~= 'none' then
    return redis.error_reply(KEYS[1] .. ' is a ' .. kind .. ', not a list, a set or a sorted set')
end
if #found > 0 then
    redis.call('RPUSH', KEYS[3], unpack(found))
    redis.call('ZADD', KEYS[2], redis.call('TIME')[1], ARGV[2])
end
return {found, redis.call('ZCARD', KEYS[2])}
"""


@dataclass(frozen=True, slots=True)
class PushBatch:
    """Pushes under one token, taken `at` (monotonic). `doubtful`: Redis was started anew, so they
    may be an old snapshot's.
    """

    token: str
    payloads: Sequence[bytes | str]
    at: float
    doubtful: bool = False


class PushQueue:
    """One key. All methods ask Redis, and raise what the client raises."""

    def __init__(self, client: Any, key: str) -> None:
        self._client = client
        self.key = key
        self._run_id: str | None = None
        self._doubtful = False
        self._unsure: PushBatch | None = None
        self.under_way = True
        """Something taken, by us or by others, was not yet stored when we last looked."""

    def take_batch(self, count: int) -> PushBatch | None:
        """Up to so many pushes. If the answer to the last time was lost, first what that may have
        moved aside.
        """
        if self._unsure is not None and (
            lost := self._client.lrange(self._list(self._unsure.token), 0, -1)
        ):
            found = replace(self._unsure, payloads=lost)
            self._unsure = None
            return found
        self._unsure = mine = PushBatch(uuid4().hex, (), time.monotonic())
        info, answer = self._move(mine.token, count)
        if isinstance(answer, Exception):
            raise answer
        self._unsure = None
        payloads = answer[0]
        self.under_way = bool(answer[1])
        self._watch(info, bool(payloads))
        return replace(mine, payloads=payloads, doubtful=self._doubtful) if payloads else None

    def _move(self, token: str, count: int) -> Any:
        pipe = self._client.pipeline(transaction=False)
        pipe.info("server")
        pipe.eval(TAKE, 3, self.key, f"{self.key}:taken", self._list(token), count, token)
        return pipe.execute(raise_on_error=False)

    def _watch(self, info: Any, found: bool) -> None:
        """A Redis that was started anew may have come back with an old snapshot, in which pushes
        stand that were taken since. They are doubtful until the key is empty once. Without the
        right to ask for INFO we can't know.
        """
        run_id = None if isinstance(info, RedisError) else info.get("run_id")
        self._doubtful = found and (
            self._doubtful or (self._run_id is not None and run_id != self._run_id)
        )
        self._run_id = run_id or self._run_id

    def abandoned_batches(self) -> list[PushBatch]:
        now = self._client.time()[0]
        old = self._client.zrangebyscore(
            f"{self.key}:taken", "-inf", now - ABANDONED_S, withscores=True
        )
        return [
            self._again(token if isinstance(token, str) else token.decode(), now - since)
            for token, since in old
        ]

    def _again(self, token: str, age_s: float) -> PushBatch:
        return PushBatch(
            token, self._client.lrange(self._list(token), 0, -1), time.monotonic() - age_s
        )

    def delete_batch(self, batch: PushBatch) -> None:
        """It is safe in the frontier."""
        pipe = self._client.pipeline()
        pipe.delete(self._list(batch.token))
        pipe.zrem(f"{self.key}:taken", batch.token)
        pipe.execute()

    def _list(self, token: str) -> str:
        return f"{self.key}:taken:{token}"
