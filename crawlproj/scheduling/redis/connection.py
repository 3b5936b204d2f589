"""The connection to Redis: scrapy-redis's own, with short timeouts, and one line in the log when it
goes and when it is back.
"""

from __future__ import annotations

import logging
from typing import Any

from redis.backoff import NoBackoff
from redis.retry import Retry
from scrapy.settings import BaseSettings
from scrapy_redis.connection import SETTINGS_PARAMS_MAP, get_redis_from_settings  # type: ignore[import-untyped]

log = logging.getLogger(__name__)

TIMEOUT_S = 2.0


def connect_redis(settings: BaseSettings) -> Any:
    """A client by scrapy-redis's settings. Nothing is sent yet. A Redis that hangs costs two
    seconds, not thirty, unless REDIS_PARAMS says otherwise. Nothing is ever sent twice: taking
    pushes must not be repeated without our knowing.
    """
    quick = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
    once = {"retry_on_timeout": False, "retry": Retry(NoBackoff(), 0)}
    own = BaseSettings(
        {name: settings.get(name) for name in SETTINGS_PARAMS_MAP if settings.get(name)}
    )
    own.set("REDIS_PARAMS", quick | settings.getdict("REDIS_PARAMS") | once)
    return get_redis_from_settings(own)


def redis_location(client: Any) -> str:
    """Where it is, for people; never with a password."""
    where = client.connection_pool.connection_kwargs
    return (
        where.get("path")
        or f"{where.get('host', 'localhost')}:{where.get('port', 6379)}/{where.get('db') or 0}"
    )


class RedisConnection:
    """Says once that Redis does not answer, and once that it does again."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.location = redis_location(client)
        self.away = False

    def note_failure(self, error: Exception) -> None:
        if not self.away:
            self.away = True
            log.warning(
                "Redis at %s does not answer, the crawl goes on without it: %s",
                self.location,
                error,
            )

    def note_success(self) -> None:
        if self.away:
            self.away = False
            log.warning("Redis at %s is back", self.location)
