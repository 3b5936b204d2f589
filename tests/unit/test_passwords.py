"""No password of a database or of Redis is in a message, a log line or a traceback, whatever is
wrong with its URL.
"""

from __future__ import annotations

import logging
import traceback

import pytest
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.database.connection import Database
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.scheduling.redis.connection import RedisConnection, connect_redis
from settings import base

SECRET = "Qz9secretX"
HERE = "127.0.0.1:1"
"""Nobody listens there."""
UNREADABLE = [
    f"redis://u:{SECRET}@127.0.0.1:bad/0",
    f"redis://u:{SECRET}@127.0.0.1:99999/0",
    f"redis://u:{SECRET}/x@{HERE}/0",
    f"redis://u:1/{SECRET}@{HERE}/0",
    f"redis://u:{SECRET}#x@{HERE}/0",
    f"redis://u:{SECRET}?x@{HERE}/0",
    f"redis://u:{SECRET}@[::1/0",
    f"redis://u:{SECRET}\n@{HERE}/0",
    f"reddis://u:{SECRET}@{HERE}/0",
    f"u:{SECRET}@{HERE}",
    f"redis://{HERE}/0?socket_timeout={SECRET}",
]
UNREACHABLE = [
    f"redis://:{SECRET}@{HERE}/0",
    f"redis://u:a:{SECRET}@{HERE}/0",
    f"redis://u:{SECRET}%40x@{HERE}/0",
    f"redis://{HERE}/0?password={SECRET}",
    f"unix:///no/such/socket?password={SECRET}",
    f"rediss://u:{SECRET}@{HERE}/0?ssl_cert_reqs={SECRET}",
]
DATABASES = [
    f"postgresql://u:{SECRET}@{HERE}/db",
    f"postgresql://u:{SECRET}%40x@{HERE}/db",
    f"postgresql://u:{SECRET}@127.0.0.1:bad/db",
    f"postgresql://u:{SECRET}@127.0.0.1:70000/db",
    f"postgresql://u:{SECRET}/x@{HERE}/db",
    f"postgresql://u:1/{SECRET}@{HERE}/db",
    f"postgresql://u:{SECRET}@[::1/db",
    f"postgresql://{HERE}/db?user=u&password={SECRET}",
    f"postgresql://u:{SECRET}@{HERE}/db?sslmode={SECRET}",
    f"postgress://u:{SECRET}@{HERE}/db?sslmode=disable",
    f"host=127.0.0.1 port=1 password={SECRET}",
    f"host=127.0.0.1 port=1 pasword={SECRET}",
]


def our_settings(**more: object) -> Settings:
    ours = {name: getattr(base, name) for name in base.OURS}
    return Settings(ours | {"DOWNLOAD_TIMEOUT": 60} | more)


@pytest.mark.parametrize("url", UNREADABLE)
def test_redis_url_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    settings = our_settings(REDIS_URL=url)
    with pytest.raises(ConfigError) as refused:
        read_config(settings, "site")
        connect_redis(settings)
    text = "".join(traceback.format_exception(refused.value))
    assert SECRET not in text
    assert str(refused.value).startswith("REDIS_URL")
    assert refused.value.__context__ is None or refused.value.__suppress_context__


@pytest.mark.parametrize("url", UNREACHABLE)
def test_redis_that_cannot_be_reached_is_named_without_its_password(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = our_settings(REDIS_URL=url)
    read_config(settings, "site")
    connection = RedisConnection(connect_redis(settings))
    with pytest.raises(Exception, match=r".") as failed:
        connection.client.ping()
    connection.note_failure(failed.value)
    assert "does not answer" in caplog.text
    assert SECRET not in caplog.text + connection.location


@pytest.mark.parametrize("url", DATABASES)
def test_database_that_cannot_be_reached_is_named_without_its_password(url: str) -> None:
    with pytest.raises(CrawlprojError) as failed:
        Database(url).connect()
    assert SECRET not in "".join(traceback.format_exception(failed.value))
