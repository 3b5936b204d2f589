"""The connection to Redis: scrapy-redis's client with short timeouts and without retries."""

from __future__ import annotations

import logging
from typing import Any

from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from scrapy.settings import BaseSettings
from scrapy_redis.connection import (  # type: ignore[import-untyped]
    SETTINGS_PARAMS_MAP,
    get_redis_from_settings,
)

from crawlproj.errors import ConfigError

log = logging.getLogger(__name__)

TIMEOUT_S = 2.0


def connect_redis(settings: BaseSettings) -> Any:
    """A client by scrapy-redis's settings; nothing is sent yet.

    A Redis that hangs costs two seconds, not thirty, unless REDIS_PARAMS says otherwise. The client
    never retries: taking pushes must not be repeated without our knowing. ConfigError, which does
    not quote them, if the settings make no client.
    """
    short_timeouts = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
    no_retries = {"retry_on_timeout": False, "retry": Retry(NoBackoff(), 0)}
    given = {name: settings.get(name) for name in SETTINGS_PARAMS_MAP if settings.get(name)}
    own = BaseSettings(given)
    own.set("REDIS_PARAMS", short_timeouts | settings.getdict("REDIS_PARAMS") | no_retries)
    try:
        return get_redis_from_settings(own)
    except (RedisError, TypeError, ValueError):
        pass  # its text may quote the URL, and so may the chain of an error that is raised here
    raise ConfigError("REDIS_URL or REDIS_PARAMS: redis-py can't read an option in it")


def redis_location(client: Any) -> str:
    """Where a Redis is, for people; never with a password."""
    options = client.connection_pool.connection_kwargs
    if options.get("path"):
        return str(options["path"])
    host = options.get("host", "localhost")
    port = options.get("port", 6379)
    return f"{host}:{port}/{options.get('db') or 0}"


class RedisConnection:
    """A client, and one line in the log when Redis does not answer, one when it does again."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.location = redis_location(client)
        self.away = False
        self._ever_answered = False
        self._password = str(client.connection_pool.connection_kwargs.get("password") or "")

    def note_failure(self, error: Exception) -> None:
        if not self.away:
            self.away = True
            text = str(error)
            if self._password:
                text = text.replace(self._password, "***")
            log.warning(
                "Redis at %s does not answer, the crawl goes on without it: %s", self.location, text
            )

    def note_success(self) -> None:
        if self.away:
            self.away = False
            if self._ever_answered:
                log.warning("Redis at %s is back", self.location)
            else:
                log.warning("Redis at %s answers now", self.location)
        self._ever_answered = True
