from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from scrapy import Spider
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from crawlproj.config import config_of, parse_duration, parse_size, read_config
from crawlproj.errors import ConfigError
from crawlproj.politeness.networks import SharedNetworks
from crawlproj.urls.rules import SiteRevisit
from settings import base

OURS = {
    name: getattr(base, name) for name in [*base.OURS, "DOWNLOAD_TIMEOUT", "REDIRECT_MAX_TIMES"]
}


def settings(**more: object) -> Settings:
    return Settings({**OURS, **more})


def test_the_defaults_make_sense_and_name_the_crawl_after_the_spider() -> None:
    config = read_config(settings(), "site")
    assert config.spec.name == "site"
    assert config.crawl_dir == Path(".crawl").absolute()
    assert config.rules.host.delay_s == 2
    assert config.bounds.interval == timedelta(days=5)
    assert config.user_agent == "crawlproj"


@pytest.mark.parametrize(("asked", "delay_s"), [(3, 3), ("2.5", 2.5), (0.5, 2), (None, 2), (0, 2)])
def test_a_longer_delay_in_scrapy_s_own_words_is_kept(asked: object, delay_s: float) -> None:
    config = read_config(settings(DOWNLOAD_DELAY=asked), "x")
    assert config.rules.host.delay_s == delay_s


def test_values_from_the_environment_are_strings_and_are_read_all_the_same() -> None:
    config = read_config(
        settings(
            POLITENESS_DELAY="90s",
            FRONTIER_SHARES='{"new": 0.5}',
            DNS_HOSTS='{"*.test": "127.0.0.1"}',
            CRAWL_CONTINUOUS="yes",
            REVISIT_FILTER="html, feed",
            ROBOT_CONTACT="mailto:a@b.org",
        ),
        "x",
    )
    assert (config.rules.host.delay_s, config.spec.shares, config.continuous) == (
        90,
        {"new": 0.5},
        True,
    )
    assert config.revisit_filter == {"html", "feed"}
    assert config.user_agent == "crawlproj (+mailto:a@b.org)"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("20m", 1200), ("12h", 43200), ("5d", 432000), (7, 7), ("0.5", 0.5)],
)
def test_durations_have_units(text: object, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "number"), [("64KB", 64_000), ("100MB", 10**8), ("1.5g", 1_500_000_000), (7, 7)]
)
def test_sizes_have_units(text: object, number: int) -> None:
    assert parse_size(text) == number


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FRONTIER_ORDER", "zig"),
        ("POLITENESS_DELAY", -1),
        ("POLITENESS_DELAY", "soon"),
        ("FRONTIER_SHARES", {"new": 0.9, "revisit": 0.2}),
        ("FRONTIER_SHARES", {"old": 0.1}),
        ("DNS_HOSTS", "{"),
        ("CRAWL_CONTINUOUS", "maybe"),
        ("REVISIT_MIN", "400d"),
        ("REVISIT_MIN", 0),
        ("REVISIT_INTERVAL", "400d"),
        ("REVISIT_INTERVAL", 0),
        ("REVISIT_CLASSES", []),
        ("REVISIT_CLASSES", "1d,soon"),
        ("REVISIT_CLASSES", ["0", "1d"]),
        ("REVISIT_CLASSES", -1),
        ("REVISIT_BUDGET", 0),
        ("REVISIT_BUDGET", -5),
        ("REVISIT_BUDGET", "nan"),
        ("REVISIT_BETA", -1),
        ("REVISIT_BETA", 3),
        ("REVISIT_INCREASE", -0.1),
        ("REVISIT_FRESHNESS_TARGET", 1.1),
        ("REVISIT_SITES", "example.org"),
        ("REVISIT_SITES", {"example.org": "uniform"}),
        ("REVISIT_SITES", {"example.org": {"policy": "uniform", "every": "1h"}}),
        ("REVISIT_SITES", {"example.org": {"interval": "soon"}}),
        ("REVISIT_SITES", {"example.org": {"interval": "0"}}),
        ("REVISIT_SITES", {"https://example.org/": {"interval": "1h"}}),
        ("REVISIT_ARGS", [1]),
        ("FRONTIER_LEASE", 10),
        ("DOCUMENTS_TIMEOUT", "0"),
        ("DOCUMENTS_MEMORY", "10MB"),
        ("DOCUMENTS_MAX_SIZE", "a lot"),
        ("REVISIT_FILTER", "pdf"),
        ("REVISIT_DECREASE", 1),
        ("REVISIT_FILTER", "cats"),
        ("ROBOT_NAME", "two words"),
        ("FRONTIER_DEPTH", "1.5"),
        ("FRONTIER_PAGES", "nan"),
        ("CRAWL_PATIENCE", "999999999999999d"),
        ("LOG_REQUESTS", "perhaps"),
        ("LOG_REQUESTS_MAX_SIZE", 0),
        ("LOG_REQUESTS_MAX_SIZE", "100 miles"),
    ],
)
def test_nonsense_is_refused_with_the_name_of_the_setting(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        read_config(settings(**{name: value}), "site")


def test_revisits_are_read_as_they_are_meant() -> None:
    sites = '{"Example.org": {"interval": "1h"}, "a.org": {"policy": "classes"}}'
    revisit = read_config(
        settings(
            REVISIT_CLASSES="7d 1d,1d", REVISIT_BUDGET="1000", REVISIT_SITES=sites, REVISIT_MIN="1h"
        ),
        "site",
    ).revisit
    assert revisit.policy == "optimal"
    assert revisit.classes == (timedelta(days=1), timedelta(days=7))
    assert revisit.budget == 1000
    assert revisit.sites == {
        "example.org": SiteRevisit("", timedelta(hours=1)),
        "a.org": SiteRevisit("classes"),
    }
    assert revisit.bounds.shortest == timedelta(hours=1)
    assert revisit.bounds.of_kind(source=True).shortest == timedelta(minutes=5)
    often = read_config(settings(REVISIT_INTERVAL="1h"), "site").revisit.bounds
    assert often.shortest == often.interval == timedelta(hours=1), "whoever wants it more often"
    plain = read_config(settings(), "site").revisit
    assert plain.budget is None and plain.bounds.shortest == timedelta(hours=12)


ODD_NAMES = [
    "a\nb", "a\rb", "\x1b[31mred", "a\0", "\u202egnp.exe", "a\u200bb", "a\u2028b", "\x9b31m", "\ud800",
    "a" * 101, "../etc", "a/b", "..", ".", " ", "a ",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_that_could_steer_a_terminal_or_a_path_are_refused_in_one_line(name: str) -> None:
    for given, spider in (({"CRAWL_NAME": name}, "site"), ({}, name)):
        with pytest.raises(ConfigError, match="name") as refused:
            read_config(settings(**given), spider)
        assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["news", "Nachrichten 2026", "новости", "a-b_c.d", "a..b", "x:y"])
def test_other_names_of_crawls_are_taken(name: str) -> None:
    assert read_config(settings(CRAWL_NAME=name), "site").spec.name == name
    assert read_config(settings(), name).spec.name == name


@pytest.mark.parametrize("text", ["a@b.org\r\nX-Evil: 1", "a\x1b[2J", "\u202ea@b.org", "a" * 301])
def test_a_contact_is_one_line_that_can_be_printed(text: str) -> None:
    with pytest.raises(ConfigError, match="ROBOT_CONTACT") as refused:
        read_config(settings(ROBOT_CONTACT=text), "site")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["a\n", "a/1\n", "a/\u0661", "x" * 101, "a/b/c", "a\x1b"])
def test_the_robots_name_is_a_plain_word(name: str) -> None:
    with pytest.raises(ConfigError, match="ROBOT_NAME"):
        read_config(settings(ROBOT_NAME=name), "site")


def test_a_relative_folder_is_refused_under_scrapyd() -> None:
    with pytest.raises(ConfigError, match="CRAWL_DIR"):
        read_config(settings(CRAWL_DIR_ABSOLUTE=True), "site")


@pytest.mark.parametrize(
    "value",
    [["127.0.0.0/8", "::1"], '["127.0.0.0/8", "::1"]', "127.0.0.0/8, ::1", "127.0.0.0/8 ::1"],
)
def test_lists_may_come_as_json_or_as_words(value: object) -> None:
    config = read_config(settings(POLITENESS_SHARED_NETWORKS=value), "site")
    assert config.shared_networks == ("127.0.0.0/8", "::1/128")


def test_the_shipped_networks_are_networks() -> None:
    shared = SharedNetworks(read_config(settings(), "site").shared_networks)
    assert "104.16.1.1" in shared and "2606:4700::1" in shared and "192.0.2.1" not in shared


@pytest.mark.parametrize("value", ["[", "nonsense", ["1.2.3.4/99"], 5])
def test_networks_that_are_none_are_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="POLITENESS_SHARED_NETWORKS"):
        read_config(settings(POLITENESS_SHARED_NETWORKS=value), "site")


def test_the_settings_of_a_crawler_are_read_once_and_those_of_another_apart() -> None:
    class SiteLike(Spider):
        name = "site"

    first = get_crawler(SiteLike, {**OURS, "FRONTIER_RETRIES": 1})
    second = get_crawler(SiteLike, {**OURS, "FRONTIER_RETRIES": 2})
    assert config_of(first) is config_of(first)
    assert (config_of(first).retries, config_of(second).retries) == (1, 2)
