from __future__ import annotations

import logging

import pytest

from crawlproj.extensions.logformatter import without_passwords


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "{'DATABASE_URL': 'postgresql://me:se:c@ret@db:5432/news'}",
            "{'DATABASE_URL': 'postgresql://me:***@db:5432/news'}",
        ),
        (
            "'REDIS_URL': 'redis://:secret@127.0.0.1/0', 'X': 'http://a/'",
            "'REDIS_URL': 'redis://:***@127.0.0.1/0', 'X': 'http://a/'",
        ),
        ("'redis://:se/c@ret@127.0.0.1/0'", "'redis://:***@127.0.0.1/0'"),
        ("'redis://h/0?password=secret&db=1'", "'redis://h/0?password=***&db=1'"),
        ("see http://example.org:80/a@b", "see http://example.org:80/a@b"),
        ("'postgresql:///news?host=/tmp'", "'postgresql:///news?host=/tmp'"),
        ("100 % of nothing", "100 % of nothing"),
    ],
)
def test_no_password_of_a_url_is_logged(text: str, shown: str) -> None:
    record = logging.LogRecord(
        "scrapy.crawler",
        logging.INFO,
        "",
        0,
        "Overridden settings:\n%(settings)s",
        ({"settings": text},),
        None,
    )
    assert without_passwords(record)
    assert record.getMessage() == f"Overridden settings:\n{shown}"
