"""Lines that only say how long ago something was: "4 days ago", "vor 4 Tagen", "4 天前"."""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 60
MAX_LETTERS: Final = 40
_UNITS: Final = (
    r"(?:s|m|h|d|w|y|secs?|mins?|hrs?|wks?|mos?|yrs?|seconds?|minutes?|hours?|days?|weeks?|months?"
    r"|years?)"
)
_NUMBER: Final = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|a few|few)"
_AGO: Final = rf"(?:about |over |almost )?{_NUMBER} ?{_UNITS}(?:,? (?:and )?\d+ ?{_UNITS})? ago"
_BEFORE: Final = r"(?:vor|il y a|hace|h[áa]|acum|przed) (?:\w+ ){0,2}?\d+ \w+\.?"
_AFTER: Final = (
    r"\d+ \w+\.? (?:fa|geleden|назад|тому|temu|önce|sitten|siden|sedan|atrás|пре|předtím)"
)
_WITHOUT_SPACES: Final = (
    r"\d+ ?(?:秒|分|分钟|分鐘|時間|小时|小時|日|天|周|週間?|か月|个月|個月|年)(?:前|之前|以前)"
    r"|\d+ ?\w{1,2} ?전"
)
_WORDS: Final = (
    r"(?:just now|moments? ago|today|yesterday|heute|gestern|aujourd.hui|hier|hoy|ayer|hoje|ontem"
    r"|oggi|ieri|vandaag|gisteren|сегодня|вчера|今天|昨天|今日|昨日|오늘|어제)"
)
_RELATIVE: Final = re.compile(
    rf"(?:[^\W\d]+[:,]?\s){{0,3}}\W*(?:{_AGO}|{_BEFORE}|{_AFTER}|{_WITHOUT_SPACES}|{_WORDS})\W*",
    re.IGNORECASE,
)


def is_relative_time(text: str) -> bool:
    """Whether it says when something was by how long ago that is, and hardly anything besides."""
    return len(text) <= MAX_LENGTH and _RELATIVE.fullmatch(text) is not None
