"""What a URL says of the kind of its page: a date, a headline, a number, or the name of a section.

And its pattern: what it has in common with the URLs of like pages of its host.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

MAX_PATH: Final = 500
"""Characters of a path and of a query that are looked at."""
MAX_NAME: Final = 150
"""Characters of a name among which a long number is looked for."""
MAX_SEGMENTS: Final = 8
KEPT_URLS: Final = 4_096
"""The signs of so many URLs are kept: each link is asked about several times, and again at the next
visit to its page.
"""
LONG_WORD: Final = 25
"""Bytes of a segment from which it is taken for a headline, though nothing parts its words."""

# fmt: off
LISTING_WORDS: Final = frozenset((
    "auteur", "author", "authors", "autor", "autoren", "autores", "by", "byline", "categoria",
    "categorias", "categorie", "categories", "category", "channel", "columnist", "columnists",
    "contributor", "contributors", "dossier", "etiqueta", "etiquetas", "hashtag", "journalist",
    "kategori", "kategoria", "kategorie", "keyword", "keywords", "label", "labels", "latest",
    "newest", "page", "pages", "person", "profile", "profiles", "recherche", "ressort", "rubric",
    "rubrica", "rubrik", "rubrique", "search", "section", "sections", "sitemap", "suche", "tag",
    "tags", "teema", "tema", "temas", "thema", "theme", "themen", "topic", "topico", "topics",
    "user", "users", "zoeken",
))
"""A segment before the last, or the last: what comes after it is a name, not a headline."""
LISTING_NAMES: Final = LISTING_WORDS | frozenset((
    "all", "archiv", "archive", "archives", "archivo", "arquivo", "blog", "blogs", "breaking",
    "business", "culture", "economy", "entertainment", "health", "local", "nachrichten", "national",
    "news", "noticias", "opinion", "politics", "science", "sport", "sports", "tech", "technology",
    "travel", "world",
))
"""Last segments of lists; before the last they may stand before an article."""
FIRM_WORDS: Final = frozenset((
    "account", "calendar", "cart", "checkout", "doc", "docs", "documentation", "forum", "forums",
    "login", "manual", "product", "producto", "productos", "products", "produkt", "produkte",
    "produto", "register", "shop", "showthread", "store", "thread", "threads", "viewforum",
    "viewtopic", "wiki",
))
"""Segments before a page of another kind, also if its name looks like a headline or has a date."""
OTHER_WORDS: Final = FIRM_WORDS | frozenset((
    "about", "aboutus", "accessibility", "accounts", "advertise", "agb", "aide", "api", "app",
    "apps", "auth", "basket", "board", "booking", "calendario", "career", "careers", "catalog",
    "catalogue", "community", "contact", "contacto", "contacts", "contato", "contatti", "cookie",
    "cookies", "copyright", "customer", "datenschutz", "directory", "disclaimer", "discussion",
    "discussions", "donate", "download", "downloads", "eula", "event", "events", "faq", "faqs",
    "feedback", "forumdisplay", "guidelines", "help", "hilfe", "impressum", "imprint", "item",
    "jobs", "kalender", "kontakt", "konto", "legal", "licence", "license", "listings", "logout",
    "man", "manuals", "map", "masthead", "member", "members", "membership", "my", "newsletter",
    "newsletters", "order", "password", "playlist", "podcasts", "policies", "policy", "preferences",
    "press-kit", "prices", "pricing", "privacy", "question", "questions", "quiz", "refer",
    "reference", "registration", "settings", "signin", "signup", "sso", "staff", "stores",
    "subscribe", "subscription", "support", "team", "terms", "tickets", "tos", "tutorial",
    "weather", "wetter", "wishlist",
))
"""Segments before a page of another kind; before headlines they are sections of news, too."""
GALLERY_WORDS: Final = frozenset((
    "bilder", "bildergalerie", "bildergalerien", "diaporama", "diaporamas", "fotogaleria",
    "fotogalerie", "fotos", "fotostrecke", "fotostrecken", "galeria", "galerias", "galerie",
    "galerien", "galleries", "gallery", "photos", "pictures", "slideshow", "slideshows",
))
"""Words for pages of pictures."""
PAGE_WORDS: Final = OTHER_WORDS | frozenset((
    "add", "advertising", "and", "at", "change", "code", "company", "condiciones", "conditions",
    "conduct", "create", "de", "edit", "ethics", "for", "forgot", "gtc", "guestbook", "home", "in",
    "info", "information", "join", "legales", "log", "lost", "me", "mentions", "new", "notice",
    "of", "on", "online", "our", "out", "personal", "post", "privacidad", "profile", "qui",
    "recover", "recovery", "reply", "reset", "rights", "rules", "security", "send", "service",
    "services", "sign", "site", "sitemap", "standards", "statement", "the", "to", "ueber", "uns",
    "up", "us", "use", "user", "view", "who", "with", "write", "you", "your",
))
"""Words of which names like privacy-policy and about-us are made; no headline has only these."""
OTHER_HOSTS: Final = frozenset((
    "account", "accounts", "auth", "booking", "community", "dev", "developers", "doc", "docs",
    "faq", "forum", "forums", "help", "id", "legal", "login", "manual", "my", "policies", "privacy",
    "shop", "signin", "sso", "store", "support", "tickets", "wiki",
))
"""First labels of hosts that have no articles."""
LANGUAGES: Final = frozenset((
    "ar", "az", "be", "bg", "bn", "ca", "cn", "cs", "cz", "da", "de", "deutsch", "dk", "el", "en",
    "eng", "english", "es", "espanol", "et", "fa", "fi", "fr", "fra", "francais", "gb", "ger", "gr",
    "he", "hi", "hr", "hu", "id", "int", "it", "ja", "jp", "ka", "kk", "ko", "kr", "lt", "lv", "mk",
    "ms", "nb", "nl", "no", "pl", "pt", "ro", "ru", "rus", "sk", "sl", "spa", "sq", "sr", "sv",
    "th", "tr", "tw", "ua", "uk", "ur", "us", "uz", "vi", "zh",
))
"""Languages and countries as they stand at the start of a path."""
# fmt: on
_FRONTS: Final = frozenset(("index", "default", "home", "main", "homepage", "start", "welcome"))
_PAGE_QUERIES: Final = frozenset(("page", "paged", "offset", "seite"))
_SEARCH_QUERIES: Final = frozenset(("s", "q", "query", "search", "search_query", "suche"))
_MONTHS: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE: Final = re.compile(
    rf"/(?:19|20)\d\d[/.-](?:0?[1-9]|1[0-2]|(?:{_MONTHS})[a-z]{{0,6}})(?![a-z\d])"
    r"|/(?:19|20)\d\d/[^\W\d_]{3,10}/\d\d?(?=/)"
    r"|(?<!\d)(?:19|20)\d\d[_.-](?:0[1-9]|1[0-2])[_.-](?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"|[/_-](?:19|20)\d\d(?:0[1-9]|1[0-2])(?:(?:0[1-9]|[12]\d|3[01])(?:\d{4,})?)?(?!\d)"
).search
"""/2026/11/, /2026/nov/ and /2026/listopad/5/; 2026-11-05 anywhere; /20261105 and -202611."""
_YEAR: Final = re.compile(r"/(?:19|20)\d\d(?=/|$)").search
_ONLY_DATE: Final = re.compile(r"(?:19|20)?\d{2}|\d{1,2}|(?:" + _MONTHS + r")[a-z]{0,6}").fullmatch
_WHOLE_DATE: Final = re.compile(r"(?:19|20)\d\d[_.-]?\d\d(?:[_.-]?\d\d)?").fullmatch
_WORDS: Final = re.compile(r"[^\W\d_]+").findall
_DIGITS: Final = re.compile(r"\d+")
_LONG_NUMBER: Final = re.compile(
    r"\d{5,}|(?<![0-9a-f-])(?=[0-9a-f-]*[a-f])(?=[0-9a-f-]*\d)[0-9a-f-]{10,}"
).search
_EXTENSION: Final = re.compile(
    r"\.(?:[a-z]{1,4}html?|s?html?|php\d?|aspx?|jsp|do|cfm|cms|csp|\w{2,5})$"
)
_PAGE_NUMBER: Final = re.compile(r"p(?:age|g|\.)?[-_]?\d{1,4}|seite[-_]?\d{1,4}").fullmatch
_LANGUAGE: Final = re.compile(r"([a-z]{2,8})(?:[-_][a-z]{2,4})?").fullmatch


class UrlSigns(NamedTuple):
    """Signs of one URL."""

    pattern: str
    """Its path in general: what like pages of the host have in common."""
    front: bool = False
    """The front page of a host, or of one of its languages."""
    dated: bool = False
    """A date, and something after it or beside it."""
    archive: bool = False
    """It ends with a date, or with the number of a page: a list of what was new then."""
    listing: bool = False
    """It is named as a tag, an author, a search or the like."""
    other: bool = False
    """It is named as a shop, a forum, a manual, a legal notice or the like."""
    gallery: bool = False
    """It is named as a gallery of pictures."""
    words: int = 0
    """Words of its last name: headlines have many."""
    number: bool = False
    """Its last name or its query has a long number: most are those of an article or a product."""


@lru_cache(maxsize=KEPT_URLS)
def read_url(url: str) -> UrlSigns:
    """What an absolute URL says, at a glance: any string gives signs."""
    _, _, rest = url.partition("://")
    host, _, target = rest.partition("/")
    path, _, query = target.partition("#")[0].partition("?")
    path = path[:MAX_PATH].lower()
    query = query[:MAX_PATH].lower()
    if "%" in path:
        path = unquote(path)
    segments = [segment for segment in path.split("/") if segment]
    names = _query_names(query)
    pattern = _pattern(segments, names)
    last = ""
    if segments:
        last = _EXTENSION.sub("", segments[-1])
    if last in _FRONTS and not _has_number(query):
        # .../some-headline/index.html is as good as .../some-headline/
        segments.pop()
        last = segments[-1] if segments else ""
    if _is_front(segments) and not _has_number(query):
        if not _SEARCH_QUERIES.isdisjoint(names):
            return UrlSigns(pattern, listing=True)
        return UrlSigns(pattern, front=True)
    words = _WORDS(last)
    count = len(words)
    if count < 4 and len(last.encode("utf-8", "replace")) >= LONG_WORD and not last.isascii():
        count = 4
    archive = _is_archive(segments, last, names)
    dated = not archive and _is_dated("/" + path, last, count)
    headline = count >= 5 or dated
    return UrlSigns(
        pattern,
        dated=dated,
        archive=archive,
        listing=not (dated or archive) and _is_listing(segments, last, names, headline=headline),
        other=_is_other(host, segments, words, headline=headline),
        gallery=_is_gallery(segments, words),
        words=count,
        number=_has_long_number(last) or _has_long_number(query),
    )


def _query_names(query: str) -> tuple[str, ...]:
    if not query:
        return ()
    return tuple(part.partition("=")[0] for part in query.split("&")[:MAX_SEGMENTS])


def _has_number(query: str) -> bool:
    return any(len(number) > 1 for number in _DIGITS.findall(query))


def _has_long_number(text: str) -> bool:
    # The pattern looks ahead from each character: not in texts of any length.
    return _LONG_NUMBER(text[:MAX_NAME]) is not None


def _is_front(segments: list[str]) -> bool:
    if not segments:
        return True
    if len(segments) > 2:
        return False
    return all(
        (found := _LANGUAGE(segment)) is not None and found[1] in LANGUAGES for segment in segments
    )


def _is_dated(path: str, last: str, words: int) -> bool:
    """Has it a date beside a name? A mere date may be a daily column, or all that was new then."""
    if _WHOLE_DATE(last):
        return False
    return _DATE(path) is not None or (words >= 4 and _YEAR(path) is not None)


def _is_archive(segments: list[str], last: str, names: tuple[str, ...]) -> bool:
    if _PAGE_NUMBER(last) and len(segments) > 1:
        return True
    if len(segments) > 1 and segments[-2] in ("page", "seite", "p") and last.isdigit():
        return len(last) < 5
    if names and len(_WORDS(last)) < 3 and not _PAGE_QUERIES.isdisjoint(names) and len(names) == 1:
        return True
    return (
        _ONLY_DATE(last) is not None
        and _DATE("/" + "/".join(segments[-3:])) is not None
        and all(_ONLY_DATE(segment) for segment in segments[-2:])
    ) or (len(last) == 4 and last.startswith(("19", "20")) and last.isdigit())


def _is_listing(segments: list[str], last: str, names: tuple[str, ...], *, headline: bool) -> bool:
    if last in LISTING_NAMES or not _SEARCH_QUERIES.isdisjoint(names):
        return True
    if headline or len(segments) < 2:
        return False
    return segments[-2] in LISTING_WORDS and not _has_long_number(last)


def _is_other(host: str, segments: list[str], words: list[str], *, headline: bool) -> bool:
    if PAGE_WORDS.issuperset(words) and sum(map(len, words)) > 2:
        return True
    if host.partition(".")[0] in OTHER_HOSTS:
        return True
    named = FIRM_WORDS if headline else OTHER_WORDS
    return not named.isdisjoint(segments[:-1])


def _is_gallery(segments: list[str], words: list[str]) -> bool:
    if len(words) <= 3 and not GALLERY_WORDS.isdisjoint(words):
        return True
    return not GALLERY_WORDS.isdisjoint(segments[:-1])


def _pattern(segments: list[str], names: tuple[str, ...]) -> str:
    """The path with names, dates, numbers and headlines as what they are, not as which."""
    general = [_general(segment) for segment in segments[:MAX_SEGMENTS]]
    if len(segments) > MAX_SEGMENTS:
        general.append("...")
    elif general:
        name, dot, extension = segments[-1].rpartition(".")
        if not dot or len(extension) > 5:
            name, extension = segments[-1], ""
        general[-1] = _class(name) + dot * bool(extension) + extension
    pattern = "/" + "/".join(general)
    if names:
        pattern += "?" + "&".join(sorted(_general(name) for name in names))
    return pattern


def _general(segment: str) -> str:
    """A segment that is not the last: short words stand for themselves."""
    if len(segment) <= 20 and segment.replace("-", "").replace("_", "").isalpha():
        return segment
    return _class(segment)


def _class(name: str) -> str:
    """What a name is: a number, a word, two or three words, a headline, with digits or without."""
    if name.isdigit():
        return "9"
    words = len(_WORDS(name))
    if words >= 4 or not name.isascii():
        return "headline"
    if any(character.isdigit() for character in name):
        return "word9" if words < 2 else "words9"
    return "word" if words < 2 else "words"
