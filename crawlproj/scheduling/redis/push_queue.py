"""The queue of pushed URLs in Redis: moved aside when taken, removed when the frontier has them.

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
"""What was taken so long ago and is still there was left by a worker that died or failed."""

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
    """Pushes under one token, taken `at` (monotonic).

    `doubtful`: Redis was restarted, so they may come from an old snapshot.
    """

    token: str
    payloads: Sequence[bytes | str]
    at: float
    doubtful: bool = False


class PushQueue:
    """The queue under one key. All methods ask Redis, and raise what the client raises."""

    def __init__(self, client: Any, key: str) -> None:
        self._client = client
        self.key = key
        self._run_id: str | None = None
        self._doubtful = False
        self._unconfirmed: PushBatch | None = None
        """A batch that Redis may have moved aside, although its reply did not come."""
        self.under_way = True
        """Something taken, by us or by others, was not yet stored when we last looked."""

    def take_batch(self, count: int) -> PushBatch | None:
        """Take up to so many pushes; None if there are none.

        If the reply to the last call was lost, what that call may have moved aside comes first.
        """
        if self._unconfirmed is not None:
            moved = self._payloads(self._unconfirmed.token)
            if moved:
                batch = replace(self._unconfirmed, payloads=moved)
                self._unconfirmed = None
                return batch
        batch = PushBatch(uuid4().hex, (), time.monotonic())
        self._unconfirmed = batch
        info, reply = self._move(batch.token, count)
        if isinstance(reply, Exception):
            raise reply
        self._unconfirmed = None
        payloads, batches_taken = reply
        self.under_way = bool(batches_taken)
        self._note_restart(info, bool(payloads))
        if not payloads:
            return None
        return replace(batch, payloads=payloads, doubtful=self._doubtful)

    def _move(self, token: str, count: int) -> Any:
        """Replies to INFO and to the script; each may be an exception."""
        pipe = self._client.pipeline(transaction=False)
        pipe.info("server")
        pipe.eval(TAKE, 3, self.key, f"{self.key}:taken", self._list_key(token), count, token)
        return pipe.execute(raise_on_error=False)

    def _note_restart(self, info: Any, found: bool) -> None:
        """Notice by its run ID that Redis was restarted.

        It may have come back with an old snapshot, with pushes that have been taken since. They are
        doubtful until the key is empty once. Without the right to ask for INFO we can't know.
        """
        run_id = None
        if not isinstance(info, RedisError):
            run_id = info.get("run_id")
        restarted = self._run_id is not None and run_id != self._run_id
        self._doubtful = found and (self._doubtful or restarted)
        self._run_id = run_id or self._run_id

    def abandoned_batches(self) -> list[PushBatch]:
        """Batches that were taken long ago and not removed."""
        now, _microseconds = self._client.time()
        old = self._client.zrangebyscore(
            f"{self.key}:taken", "-inf", now - ABANDONED_S, withscores=True
        )
        batches = []
        for token, taken_at in old:
            if isinstance(token, bytes):
                token = token.decode()
            age_s = now - taken_at
            batches.append(PushBatch(token, self._payloads(token), time.monotonic() - age_s))
        return batches

    def delete_batch(self, batch: PushBatch) -> None:
        """Remove a batch that the frontier has committed."""
        pipe = self._client.pipeline()
        pipe.delete(self._list_key(batch.token))
        pipe.zrem(f"{self.key}:taken", batch.token)
        pipe.execute()

    def _payloads(self, token: str) -> Sequence[bytes | str]:
        payloads: Sequence[bytes | str] = self._client.lrange(self._list_key(token), 0, -1)
        return payloads

    def _list_key(self, token: str) -> str:
        return f"{self.key}:taken:{token}"
