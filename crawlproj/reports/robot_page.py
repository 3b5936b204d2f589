"""The page for webmasters: who is this robot, how fast is it, how to slow or stop it.

It is made from the settings that the crawl uses, so that it is true.
"""

from __future__ import annotations

import re
from datetime import timedelta
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import urlsplit

from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count, format_duration

UNIT_WORDS = {"s": "second", "min": "minute", "h": "hour", "d": "day"}


def robot_page(
    config: Config, server_delay_s: float = 0.0, pause_after: int = 0, pause_s: float = 0.0
) -> str:
    """The page as HTML.

    ConfigError without ROBOT_CONTACT, since a page that leads to nobody helps nobody.
    """
    if not config.robot_contact:
        raise ConfigError(
            "ROBOT_CONTACT is empty: say whom webmasters can reach, e.g. -s "
            "ROBOT_CONTACT=mailto:you@example.org"
        )
    token = config.robot_name.partition("/")[0]
    limits = _limit_sentences(config, server_delay_s, pause_after, pause_s=pause_s)
    nofollow = ""
    if not config.follow_nofollow:
        nofollow = " Links with rel=nofollow are not followed."
    values = {
        "name": token,
        "token": token,
        "token_lower": token.lower(),
        "user_agent": config.user_agent,
        "max_crawl_delay": spell_duration(config.rules.host.max_crawl_delay_s),
        "robots_ttl": spell_duration(config.robots_ttl),
        "links": nofollow,
    }
    safe = {name: escape(value) for name, value in values.items()}
    items = "\n".join(f"<li>{escape(text)}</li>" for text in limits)
    template = Template(
        files("crawlproj").joinpath("reports", "robot_page.html").read_text(encoding="utf-8")
    )
    return template.substitute(safe, limits=items, contact=_contact_html(config.robot_contact))


def spell_duration(value: timedelta | float) -> str:
    """A length of time in full words: `1 day`, `2 minutes 30 seconds`."""
    return re.sub(r"(?<![\d.])([\d.]+) (s|min|h|d)\b", _spell_unit, format_duration(value))


def _spell_unit(match: re.Match[str]) -> str:
    number = match[1]
    unit = UNIT_WORDS[match[2]]
    if number == "1":
        return f"{number} {unit}"
    return f"{number} {unit}s"


def _limit_sentences(
    config: Config, server_delay_s: float, pause_after: int, pause_s: float
) -> list[str]:
    rules = config.rules.host
    delay = spell_duration(rules.delay_s)
    sentences = [
        f"One request at a time to each host, and at least {delay} from the start of one to the "
        "start of the next."
    ]
    if server_delay_s:
        sentences.append(
            f"If many hosts share one server: at least {spell_duration(server_delay_s)} between "
            "two requests to the server."
        )
    if pause_after and pause_s:
        requests = format_count(pause_after, "request")
        sentences.append(f"A rest of {spell_duration(pause_s)} after {requests} to a host.")
    if rules.slowdown:
        times = f"{rules.slowdown:g} times as long as the last answer took"
        sentences.append(
            f"When your server is slow, it waits {times}, up to "
            f"{spell_duration(rules.max_delay_s)}, before it asks again."
        )
    sentences.append("After errors and time-outs it waits longer each time.")
    return sentences


def _contact_html(contact: str) -> str:
    """A link if it is one that a browser can follow; any other text as it is."""
    text = escape(contact.removeprefix("mailto:"))
    if urlsplit(contact).scheme.lower() in ("mailto", "http", "https"):
        target = contact
    elif "@" in contact and not set(contact) & set(" /:<>\"'"):
        target = f"mailto:{contact}"
    else:
        return text
    return f'<a href="{escape(target)}">{text}</a>'
