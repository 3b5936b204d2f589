"""Dates of entries of feeds and sitemaps, as programs and people write them, in UTC.

They are hints: when a page was published, as its feed says. A date is right or it is none: what may
be read in two ways, what no calendar has, what is in the future or older than the web is None. A
time without a zone, or with one that nobody knows, is taken for UTC; a day without a time is its
midnight.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

MAX_LENGTH: Final = 100
EARLIEST: Final = datetime(1990, 1, 1, tzinfo=UTC)
LONGEST_AHEAD: Final = timedelta(days=1)
"""How far in the future a date may be: clocks are wrong, and so are zones."""
_LONGEST_OFFSET: Final = timedelta(hours=14)

_EPOCH: Final = re.compile(r"(\d{9,16})(?:\.\d{0,9})?")
_DIGITS_OF_MILLISECONDS: Final = (12, 13)
_DIGITS_OF_MICROSECONDS: Final = (15, 16)
_DIGITS_OF_COMPACT: Final = (12, 14)
"""As many has a date with a time, too."""
_COMPACT: Final = re.compile(
    r"((?:19|20)\d\d)(\d\d)(\d\d)(?:[Tt ]?(\d\d)(?:(\d\d)(\d\d)?)?(?:[.,]\d{1,9})?)?"
    r"(?P<zone>[^\d].*)?"
)
_ISO: Final = re.compile(
    r"(\d{4})(?P<mark>[-/.\u2010-\u2013])(\d{1,2})(?P=mark)(\d{1,2})(?!\d)(?P<rest>.*)"
)
_ORDINAL: Final = re.compile(r"(\d{4})-(\d{3})(?!\d)(?P<rest>.*)")
_NUMBERS: Final = re.compile(
    r"(?:[^\W\d]{1,12}\.?,? )?(\d{1,2})(?P<mark>[-/.]) ?(\d{1,2})(?P=mark) ?(\d{4}|\d\d)(?!\d)"
    r"(?P<rest>.*)"
)
_TIME: Final = re.compile(
    r"(?<!\d)(\d{1,2})[:h](\d{2})(?!\d)(?::(\d{1,2})(?!\d))?(?:[.,:]\d{1,9})?", re.I
)
_ISO_TIME: Final = re.compile(r"[Tt](\d\d)(?:(\d\d)(\d\d)?)?(?![\d:])(?:[.,]\d{1,9})?")
"""08, 0857 and 085740 after the T of a date with hyphens."""
_HALF: Final = re.compile(r" ?([ap])\.?m\b\.?", re.I)
_OFFSET: Final = re.compile(
    r" ?\(?(?:GMT|UTC|UT|Z)? ?(?P<sign>[+\u2212-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?(?!\d)",
    re.I,
)
_LOST_PLUS: Final = re.compile(r" (?P<hours>0\d|1[0-4]):?(?P<minutes>00|30|45)(?!\d)")
"""An offset whose + a form made a blank."""
_ZONE: Final = re.compile(r" ?\(?([A-Za-z]{1,5})\b")
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_ANOTHER_DATE: Final = re.compile(r"\d{4}[-/.]\d|\d[-/.]\d{1,2}[-/.]\d")

_ZONES: Final = {
    name: float(hours)
    for hours, names in (
        (-10, "hst"),
        (-9, "akst"),
        (-8, "pst akdt"),
        (-7, "mst pdt"),
        (-6, "cst mdt"),
        (-5, "est cdt"),
        (-4, "edt ast"),
        (-3.5, "nst"),
        (-3, "adt brt art"),
        (-2.5, "ndt"),
        (0, "z gmt ut utc wet"),
        (1, "cet mez bst west met"),
        (2, "cest mesz eet sast mest"),
        (3, "msk eest"),
        (5, "pkt"),
        (5.5, "ist"),
        (7, "wib"),
        (8, "hkt sgt awst"),
        (9, "jst kst"),
        (9.5, "acst"),
        (10, "aest"),
        (10.5, "acdt"),
        (11, "aedt"),
        (12, "nzst"),
        (13, "nzdt"),
    )
    for name in names.split()
}


def _fold_word(word: str) -> str:
    """Small letters without accents."""
    letters = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


_MONTHS: Final = {
    _fold_word(name): number
    for number, names in enumerate(
        (
            "jan january januar jänner jän janvier janv enero ene leden ledna led январь января янв"
            " gennaio gen janeiro januari stycznia sty",
            "feb february februar feber février févr fév febrero únor února úno февраль февраля фев"
            " февр febbraio fevereiro fev februari lutego lut",
            "mar march märz mrz mär mars marzo březen března bře март марта мар março maart mrt"
            " marca",
            "apr april avril avr abril abr duben dubna dub апрель апреля апр aprile kwietnia kwi",
            "may mai mayo květen května kvě май мая maggio mag maio mei maja",
            "jun june juni juin junio červen června čvn июнь июня июн giugno giu junho czerwca cze",
            "jul july juli juillet juil julio červenec července čvc июль июля июл luglio lug julho"
            " lipca lip",
            "aug august août aoû agosto ago srpen srpna srp август августа авг augustus sierpnia"
            " sie",
            "sep sept september septembre septiembre set setiembre září zář сентябрь сентября сен"
            " сент settembre setembro września wrz",
            "oct october okt oktober octobre octubre říjen října říj октябрь октября окт ottobre"
            " ott outubro out października paź",
            "nov november novembre noviembre listopad listopadu lis ноябрь ноября ноя нояб novembro"
            " listopada",
            "dec december dez dezember décembre déc diciembre dic prosinec prosince pro декабрь"
            " декабря дек dicembre dezembro grudnia gru",
        ),
        1,
    )
    for name in names.split()
}
"""Names of months in the languages whose feeds have them, without accents."""


def parse_entry_date(text: str, now: datetime) -> datetime | None:
    """The moment that an entry's date means, aware and in UTC; None if it is none that can be told.

    `now` is when the feed was fetched: what is later by more than a day is None. Never raises.
    """
    cleaned = " ".join(text[: 2 * MAX_LENGTH].replace("\0", " ").split()).strip("\"',; ")
    if not 6 <= len(cleaned) <= MAX_LENGTH:
        return None
    try:
        moment = _read_moment(cleaned, now)
        if moment is None:
            return None
        moment = moment.astimezone(UTC)
        if EARLIEST <= moment <= now + LONGEST_AHEAD:
            return moment
    except (ValueError, OverflowError):  # the 31st of February
        pass
    return None


def _read_moment(text: str, now: datetime) -> datetime | None:
    epoch = _EPOCH.fullmatch(text)
    if epoch and len(epoch[1]) not in _DIGITS_OF_COMPACT:
        return _read_epoch(epoch[1])
    compact = _COMPACT.fullmatch(text)
    if compact:
        day = date(int(compact[1]), int(compact[2]), int(compact[3]))
        return _at_time(day, compact[4], compact[5], compact[6], compact["zone"] or "")
    if epoch:
        return _read_epoch(epoch[1])
    iso = _ISO.match(text)
    if iso:
        day = date(int(iso[1]), int(iso[3]), int(iso[4]))
        return _with_rest(day, iso["rest"])
    ordinal = _ORDINAL.match(text)
    if ordinal:
        number = int(ordinal[2])
        day = date(int(ordinal[1]), 1, 1) + timedelta(days=number - 1)
        return _with_rest(day, ordinal["rest"]) if day.year == int(ordinal[1]) else None
    numbers = _NUMBERS.fullmatch(text)
    if numbers:
        found = _read_numbers(numbers[1], numbers[3], numbers[4], numbers["mark"], now)
        return _with_rest(found, numbers["rest"]) if found else None
    return _read_words(text, now)


def _read_epoch(digits: str) -> datetime | None:
    """Seconds since 1970, or thousandths, or millionths of them."""
    value = int(digits)
    if len(digits) in _DIGITS_OF_MILLISECONDS:
        return datetime.fromtimestamp(value // 1000, UTC)
    if len(digits) in _DIGITS_OF_MICROSECONDS:
        return datetime.fromtimestamp(value // 1_000_000, UTC)
    return datetime.fromtimestamp(value, UTC) if len(digits) <= 10 else None


def _read_numbers(first: str, second: str, year: str, mark: str, now: datetime) -> date | None:
    """The day; None if the month may come first as well, or the year."""
    day = int(first)
    month = int(second)
    if mark == ".":
        return date(_full_year(year, now), month, day)
    if month > 12:
        return date(_full_year(year, now), day, month)
    if len(year) == 2 or (day <= 12 and day != month):
        return None
    return date(int(year), month, day)


def _full_year(text: str, now: datetime) -> int:
    year = int(text)
    if len(text) != 2:
        return year
    return year + 2000 if year + 2000 <= now.year + 1 else year + 1900


def _read_words(text: str, now: datetime) -> datetime | None:
    """A date with the name of its month: a day, a year and a time in whatever order."""
    time = _TIME.search(text)
    moment_of_day = ""
    if time:
        moment_of_day, text = _take_time(text, time)
    months: list[int] = []
    numbers: list[tuple[str, bool]] = []
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isdigit():
            numbers.append((word, bool(months)))
        else:
            month = _MONTHS.get(_fold_word(word))
            if month:
                months.append(month)
    if len(months) == 2 and months[0] == 3:
        # "mar" is a Tuesday too, in French, Spanish and Italian.
        months = months[1:]
    if len(numbers) != 2 or not months or len(set(months)) != 1:
        return None
    day, year = numbers[0][0], numbers[1][0]
    if len(day) == 4:
        day, year = year, day
    if len(day) > 2 or len(year) not in (2, 4):
        return None
    return _with_rest(date(_full_year(year, now), months[0], int(day)), moment_of_day)


def _take_time(text: str, time: re.Match[str]) -> tuple[str, str]:
    """The time of day with its zone; and the text without them."""
    end = time.end()
    half = _HALF.match(text, end)
    if half:
        end = half.end()
    offset = _OFFSET.match(text, end) or _LOST_PLUS.match(text, end)
    if offset:
        return text[time.start() : offset.end()], text[: time.start()] + " " + text[offset.end() :]
    zone = _ZONE.match(text, end)
    if zone and _fold_word(zone[1]) not in _MONTHS:
        offset = _OFFSET.match(text, zone.end())
        end = offset.end() if offset else zone.end()
    return text[time.start() : end], text[: time.start()] + " " + text[end:]


def _with_rest(day: date, rest: str) -> datetime | None:
    """The day at the time that is written behind it; None if another date is."""
    if not rest:
        return _at_time(day, "", "", "", "")
    compact = _ISO_TIME.match(rest)
    if compact:
        return _at_time(day, compact[1], compact[2], compact[3], rest[compact.end() :])
    time = _TIME.search(rest)
    if time:
        return _at_time(day, time[1], time[2], time[3], rest[time.end() :])
    if _ANOTHER_DATE.search(rest):
        return None
    return _at_time(day, "", "", "", rest)


def _at_time(
    day: date, hour: str | None, minute: str | None, second: str | None, zone: str
) -> datetime | None:
    """The moment; None if there is no such time or another date follows."""
    if _ANOTHER_DATE.search(zone):
        return None
    hours = int(hour or 0)
    half = _HALF.match(zone)
    if half:
        zone = zone[half.end() :]
        if hours <= 12:
            hours = hours % 12 + (12 if half[1].lower() == "p" else 0)
    if hours > 24 or int(minute or 0) > 59 or int(second or 0) > 60:
        return None
    moment = datetime(day.year, day.month, day.day, tzinfo=timezone(_read_offset(zone)))
    return moment + timedelta(
        hours=hours, minutes=int(minute or 0), seconds=min(int(second or 0), 59)
    )


def _read_offset(text: str) -> timedelta:
    """How far a zone is ahead of UTC; 0 if there is none or nobody knows it."""
    offset = _OFFSET.match(text) or _LOST_PLUS.match(text)
    if not offset:
        zone = _ZONE.match(text)
        if zone is None:
            return timedelta()
        # "CET+0100" says it twice, "UTC+1" once.
        offset = _OFFSET.match(text, zone.end())
        if not offset:
            return timedelta(hours=_ZONES.get(zone[1].lower(), 0.0))
    groups = offset.groupdict()
    ahead = timedelta(hours=int(groups["hours"]), minutes=int(groups["minutes"] or 0))
    if ahead > _LONGEST_OFFSET or int(groups["minutes"] or 0) > 59:
        return timedelta()
    return ahead if groups.get("sign", "+") == "+" else -ahead
