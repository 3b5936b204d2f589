"""The page for webmasters: who is this robot, how fast is it, how to slow or stop it. Made from the
settings, so it is true.
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


def robot_page(
    config: Config, server_delay_s: float = 0.0, pause_after: int = 0, pause_s: float = 0.0
) -> str:
    """HTML; ConfigError without ROBOT_CONTACT, since a page that leads to nobody helps nobody."""
    if not config.robot_contact:
        raise ConfigError(
            "ROBOT_CONTACT is empty: say whom webmasters can reach, e.g. -s "
            "ROBOT_CONTACT=mailto:you@example.org"
        )
    token = config.robot_name.partition("/")[0]
    limits = _limits(config, server_delay_s, pause_after, pause_s=pause_s)
    values = {
        "name": token,
        "token": token,
        "token_lower": token.lower(),
        "user_agent": config.user_agent,
        "max_crawl_delay": spell_duration(config.host_rules.max_crawl_delay_s),
        "robots_ttl": spell_duration(config.robots_ttl),
        "links": "" if config.follow_nofollow else " Links with rel=nofollow are not followed.",
    }
    safe = {name: escape(value) for name, value in values.items()}
    items = "\n".join(f"<li>{escape(text)}</li>" for text in limits)
    template = Template(
        files("crawlproj").joinpath("reports", "robot_page.html").read_text(encoding="utf-8")
    )
    return template.substitute(safe, limits=items, contact=_link(config.robot_contact))


def spell_duration(value: timedelta | float) -> str:
    """A length of time in full words: `1 day`, `2 minutes 30 seconds`."""
    words = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
    return re.sub(
        r"([\d.]+) (s|min|h|d)\b",
        lambda m: f"{m[1]} {words[m[2]]}{'' if m[1] == '1' else 's'}",
        format_duration(value),
    )


def _limits(config: Config, server_delay_s: float, pause_after: int, pause_s: float) -> list[str]:
    rules = config.host_rules
    found = [
        f"One request at a time to each host, and at least {spell_duration(rules.delay_s)} from the start "
        "of one to the start of the next."
    ]
    if server_delay_s:
        found.append(
            f"If many hosts share one server: at least {spell_duration(server_delay_s)} between two "
            "requests to the server."
        )
    if pause_after and pause_s:
        found.append(
            f"A rest of {spell_duration(pause_s)} after {format_count(pause_after, 'request')} to a host."
        )
    if rules.slowdown:
        times = f"{rules.slowdown:g} times as long as the last answer took"
        found.append(
            f"When your server is slow, it waits {times}, up to {spell_duration(rules.max_delay_s)}, "
            "before it asks again."
        )
    found.append("After errors and time-outs it waits longer each time.")
    return found


def _link(contact: str) -> str:
    """A link if it is one that a browser can follow; any other text as it is."""
    known = urlsplit(contact).scheme.lower() in ("mailto", "http", "https")
    target = (
        contact
        if known
        else f"mailto:{contact}"
        if "@" in contact and not set(contact) & set(" /:<>\"'")
        else ""
    )
    text = escape(contact.removeprefix("mailto:"))
    return f'<a href="{escape(target)}">{text}</a>' if target else text
