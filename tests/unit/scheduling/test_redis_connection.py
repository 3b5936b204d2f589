"""What is said of a Redis that does not answer, and of one that does."""

from __future__ import annotations

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from scrapy.settings import Settings

from crawlproj.scheduling.redis.connection import RedisConnection, connect_redis


def test_only_a_redis_that_was_there_is_back(caplog: pytest.LogCaptureFixture) -> None:
    connection = RedisConnection(connect_redis(Settings({"REDIS_URL": "redis://127.0.0.1:1/0"})))
    for _ in range(2):
        connection.note_failure(RedisConnectionError("refused"))
        connection.note_failure(RedisConnectionError("refused"))
        connection.note_success()
        connection.note_success()
    gone = "does not answer, the crawl goes on without it: refused"
    assert caplog.messages == [
        f"Redis at 127.0.0.1:1/0 {words}" for words in (gone, "answers now", gone, "is back")
    ]


def test_nothing_is_said_of_a_redis_that_always_answers(caplog: pytest.LogCaptureFixture) -> None:
    connection = RedisConnection(connect_redis(Settings({"REDIS_URL": "redis://127.0.0.1:1/0"})))
    connection.note_success()
    connection.note_success()
    assert not caplog.messages
