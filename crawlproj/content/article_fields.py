"""What a page says about its article beside the text: each field from the best place that has it.

Each function gives the value and the place it came from, or None and "".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from crawlproj.content.article_dates import LATEST, normalize_date
from crawlproj.content.article_page import ArticlePage, clean_text, first_texts, has_rel
from crawlproj.content.article_text import line_key
from crawlproj.content.json_ld import listed, plain_text, plain_texts, type_names
from crawlproj.content.language import normalize_hint

Found: TypeAlias = tuple[str | None, str]
FoundTexts: TypeAlias = tuple[tuple[str, ...], str]
NOTHING: Final[Found] = (None, "")

LONG_HEADING: Final = 15
"""Characters of a heading that is surely the title, if the title begins with it."""
LONG_TITLE: Final = 60
"""Characters from which a title may have been cut."""
MAX_TITLE: Final = 1_000
MAX_NAME: Final = 200
MAX_AUTHORS: Final = 30
MAX_KEYWORDS: Final = 100
MAX_PLACE: Final = 200
MAX_DATE: Final = 100

_SEPARATOR: Final = re.compile(r"\s[|\u2013\u2014\u00b7\u2022»«:~/\uff5c-]+\s+|[|_\uff5c]+|:\s+")
_WORDS: Final = re.compile(r"\w+")
_ELLIPSIS: Final = ("...", "\u2026")
_BY: Final = re.compile(
    r"(?:by|written by|von|par|por|di|door|af|av|od|text|автор|від)[\s:]+", re.I
)
_AND: Final = re.compile(r"\s?;\s*|\s(?:and|und|et|y|e|en|och|og|i|и|та|&)\s+|\s?[、\uff0c]\s*")
_OFFICE: Final = re.compile(
    r"""\b(?:writer|reporter|correspondent|editor|staff|columnist|contributor|producer|press|news
    |media|agency|times|post|director|professor|university|redakt\w+|korrespondent\w*|journalist\w*)\b
    """,
    re.I | re.X,
)
_AFTER_NAME: Final = re.compile(
    r"""\s(?:published|updated|posted|january|february|march|april|may|june|july|august|september
    |october|november|december)$""",
    re.I | re.X,
)
"""What byline extractors leave at the end of a name."""
_ROLE: Final = re.compile(
    r"""(?:^|\ )(?:(?:an?|ap|the|staff|senior|chief|national|political|politics|business|sports?
    |science|health|tech|technology|auto|music|entertainment|education|security|contributing|special
    |freelance|managing|deputy|associate|executive|news)\ ){0,4}
    (?:writer|reporter|correspondent|editor|columnist|contributor|producer|journalist)s?$
    | \ is\ (?:an?|the)\ .*""",
    re.I | re.X,
)
"""The office of somebody, behind the name or instead of it."""
_DAY_NAMES: Final = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
"""
_NO_NAMES: Final = frozenset((*_DAY_NAMES.split(), "staff", "admin", "editor", "unknown"))
_WRITTEN_DATE: Final = re.compile(
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[T ,]{1,3}\d{1,2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
"""A date in numbers, with its time, among other words."""
_NUMBERS: Final = re.compile(r"\d{1,4}")
_COMMAS: Final = re.compile(r"[,;、\uff0c]")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:[-_].*)?", re.I | re.S)
_PUBLISHED: Final = ("article:published_time", "og:article:published_time", "datepublished")
_MODIFIED: Final = ("article:modified_time", "og:updated_time", "datemodified")
_IMAGES: Final = ("og:image", "og:image:url", "og:image:secure_url", "twitter:image")


def find_title(page: ArticlePage) -> Found:
    """The title, without the name of the site."""
    names = site_keys(page)
    headings = first_texts(page.tree.iter("h1"), 5)
    heads = first_texts(page.tree.iter("title"), 1)
    og = page.meta.get("og:title", [])
    headline = plain_text(page.article.get("headline") or page.article.get("name"))
    others = [*og[:1], *headings, *heads]
    if headline and not _fits(headline, others):
        headline = ""
    candidates = [(headline, "json-ld"), (page.first_meta("og:title"), "og")]
    candidates += [(text, "h1") for text in _own_headings(headings, heads)]
    candidates += [(text, "title") for text in heads]
    whole = [strip_site(other, names, headings) for other in others]
    titles = [
        (_uncut_title(strip_site(text, names, headings), whole)[:MAX_TITLE], origin)
        for text, origin in candidates
    ]
    titles = [title for title in titles if line_key(title[0])]
    for title in titles:
        if line_key(title[0]) not in names:
            return title
    return titles[0] if titles else NOTHING


def title_forms(page: ArticlePage) -> list[str]:
    """The title in all forms that the page has, with and without the name of the site."""
    names = site_keys(page)
    headings = first_texts(page.tree.iter("h1"), 3)
    forms = [
        *plain_texts(page.article.get("headline")),
        *plain_texts(page.article.get("name")),
        *page.meta.get("og:title", ()),
        *page.meta.get("twitter:title", ()),
        *headings,
        *first_texts(page.tree.iter("title"), 1),
    ]
    return list(dict.fromkeys([*forms, *(strip_site(form, names, headings) for form in forms)]))


def strip_site(title: str, names: set[str], headings: Iterable[str] = ()) -> str:
    """A title without the name of the site before or after it; `names` are what the site is called,
    `headings` those of the page: what follows one of them is no part of the title.
    """
    for heading in headings:
        following = _SEPARATOR.match(title, len(heading))
        is_long = len(heading) >= LONG_HEADING and title.startswith(heading)
        if is_long and following and not following[0].startswith(":"):
            return heading
    for _ in range(3):
        separators = list(_SEPARATOR.finditer(title))
        if not separators:
            break
        first = separators[0]
        last = separators[-1]
        if _names_site(title[last.end() :], names):
            title = title[: last.start()].strip()
        elif _names_site(title[: first.start()], names):
            title = title[first.end() :].strip()
        else:
            break
    return title


def site_keys(page: ArticlePage) -> set[str]:
    """What the site is called, each as `line_key` has it."""
    names = [*page.meta.get("og:site_name", ()), *page.meta.get("application-name", ())]
    names += plain_texts(page.article.get("publisher"))
    for node in page.nodes:
        if "website" in type_names(node):
            names += plain_texts(node.get("name")) + plain_texts(node.get("alternateName"))
    host = _host_of(page.url)
    names += [host, host.removeprefix("www.")]
    labels = host.removeprefix("www.").split(".")
    names += [label for label in labels[:-1] if len(label) > 2]
    keys = {line_key(name) for name in names}
    keys |= {key.removeprefix("the") for key in keys} | {f"the{key}" for key in keys}
    return keys - {"", "the"}


def _names_site(part: str, names: set[str]) -> bool:
    """Whether a part of a title is the name of the site, or begins with it: "BBC News"."""
    if line_key(part) in names:
        return True
    words = part.split()
    return 1 < len(words) <= 4 and line_key(words[0]) in names


def find_published(page: ArticlePage, latest: date | None) -> Found:
    """When it was published."""
    for text in _json_texts(page, "datePublished", "uploadDate", "dateCreated"):
        found = normalize_date(text, latest or LATEST)
        if found:
            return found, "json-ld"
    for text in _meta_texts(page, _PUBLISHED):
        found = normalize_date(text, latest or LATEST)
        if found:
            return found, "meta"
    found = _ask_htmldate(page, latest)
    return (found, "htmldate") if found else NOTHING


def find_modified(page: ArticlePage, latest: date | None) -> Found:
    """When it was changed last, as it says itself."""
    for text in _json_texts(page, "dateModified"):
        found = normalize_date(text, latest or LATEST)
        if found:
            return found, "json-ld"
    for text in _meta_texts(page, _MODIFIED):
        found = normalize_date(text, latest or LATEST)
        if found:
            return found, "meta"
    return NOTHING


def parse_date(text: str, latest: date | None) -> str | None:
    """A date that a site's selector has found, in any language; what may be read in two ways, and
    what is no day of a calendar, is none here, too.
    """
    found = normalize_date(text, latest or LATEST)
    if found:
        return found
    text = text[:MAX_DATE]
    written = _WRITTEN_DATE.search(text)
    if written:
        return normalize_date(written[0], latest or LATEST)
    numbers = {int(number) for number in _NUMBERS.findall(text)}
    if not numbers:
        return None
    from htmldate.extractors import try_date_expr

    bounds = {"min_date": _day(date(1995, 1, 1)), "max_date": _day(latest or LATEST)}
    try:
        found = try_date_expr(text, "%Y-%m-%d", True, **bounds)
    except Exception:  # whatever it is, it is about this one text
        return None
    found = normalize_date(found, latest or LATEST)
    if found is None or not numbers.issuperset((int(found[:4]), int(found[8:10]))):
        return None  # it was made up: the first of a month, so many days ago
    return found


def find_authors(page: ArticlePage) -> FoundTexts:
    """The people who wrote it, or else the agency; never the site itself."""
    names = site_keys(page)
    for key in ("author", "creator"):
        authors = _json_authors(page.article.get(key), names)
        if authors:
            return authors, "json-ld"
    authors = _real_authors([_ask_for_authors(page)], names)
    return (authors, "trafilatura") if authors else ((), "")


def split_authors(text: str) -> list[str]:
    """The names in a byline such as "By A. Smith, Staff Writer, and B. Jones"."""
    text = text.strip().partition("|")[0].strip()
    match = _BY.match(text)
    if match:
        text = text[match.end() :]
    found: list[str] = []
    for part in _AND.split(text[:2_000]):
        first, *others = part.split(",")
        found += [first, *(piece for piece in others if _looks_like_name(piece))]
    names = (_strip_role(_AFTER_NAME.sub("", clean_text(name.strip(" .,;|")))) for name in found)
    return [name for name in names if name and name.casefold() not in _NO_NAMES]


def _strip_role(name: str) -> str:
    """A name without the office behind it; Ann Writer may be called so."""
    rest = _ROLE.sub("", name)
    return name if " " in name and rest and " " not in rest else rest


def _looks_like_name(text: str) -> bool:
    """Whether what follows a comma is another author, not an office, a degree or a company."""
    words = text.split()
    if not 2 <= len(words) <= 5 or _OFFICE.search(text):
        return False
    return not any(character.isdigit() for character in text) and "." not in text.strip(" .")[-5:]


def find_section(page: ArticlePage) -> Found:
    """The part of the site that it stands in."""
    for text in plain_texts(page.article.get("articleSection")):
        return text[:MAX_NAME], "json-ld"
    text = page.first_meta("article:section", "og:article:section")
    return (text[:MAX_NAME], "meta") if text else NOTHING


def find_keywords(page: ArticlePage) -> FoundTexts:
    """What it is about, in the site's own words."""
    found = split_keywords(plain_texts(page.article.get("keywords")))
    if found:
        return found, "json-ld"
    for name in ("article:tag", "og:article:tag", "news_keywords", "keywords"):
        found = split_keywords(page.meta.get(name, ()))
        if found:
            return found, "meta"
    return (), ""


def split_keywords(texts: Sequence[str]) -> tuple[str, ...]:
    """Each keyword once; a text may have several with commas between them."""
    parts = [part for text in texts for part in _COMMAS.split(text)]
    words = (clean_text(part)[:MAX_NAME] for part in parts)
    found = dict.fromkeys(word for word in words if word and not word.startswith("@"))
    return tuple(found)[:MAX_KEYWORDS]


def find_place(page: ArticlePage) -> Found:
    """Where it takes place, or where it was written."""
    for key in ("contentLocation", "locationCreated", "spatialCoverage", "dateline"):
        for value in listed(page.article.get(key)):
            place = _place_text(value)
            if place:
                return place[:MAX_PLACE], "json-ld"
    text = page.first_meta("geo.placename", "dc.coverage.spatial", "dcterms.spatial")
    return (text[:MAX_PLACE], "meta") if text else NOTHING


def find_image(page: ArticlePage) -> Found:
    """The address of its picture."""
    for value in listed(page.article.get("image")):
        if isinstance(value, dict):
            value = value.get("url") or value.get("contentUrl") or value.get("@id")
        for text in plain_texts(value):
            url = page.absolute_url(text)
            if url:
                return url, "json-ld"
    for text in _meta_texts(page, _IMAGES):
        url = page.absolute_url(text)
        if url:
            return url, "og"
    return NOTHING


def find_canonical(page: ArticlePage) -> Found:
    """The address that the page says it has."""
    for element in page.tree.iter("link"):
        if has_rel(element, "canonical"):
            url = page.absolute_url(element.get("href") or "")
            if url:
                return url, "link"
    for text in page.meta.get("og:url", ()):
        url = page.absolute_url(text)
        if url:
            return url, "og"
    return NOTHING


def find_language(page: ArticlePage) -> Found:
    """The language that it says it is in, in two letters. It is never guessed."""
    texts: list[tuple[object, str]] = []
    for value in listed(page.article.get("inLanguage")):
        if isinstance(value, dict):
            texts += [(value.get("alternateName"), "json-ld"), (value.get("name"), "json-ld")]
        else:
            texts.append((value, "json-ld"))
    texts += [(page.tree.get("lang") or page.tree.get("xml:lang"), "html")]
    texts += [(text, "og") for text in page.meta.get("og:locale", ())]
    for text, origin in texts:
        if isinstance(text, str) and (code := normalize_code(text)):
            return code, origin
    return NOTHING


def normalize_code(text: str) -> str:
    """The two letters of a language code; "" if it is none."""
    text = text.strip()
    return normalize_hint(text) if _LANGUAGE.fullmatch(text) else ""


def _fits(headline: str, others: Sequence[str]) -> bool:
    """Whether a headline is that of this page, as the rest of the page has it."""
    words = _word_set(headline)
    return not others or any(len(words & _word_set(other)) * 3 >= len(words) for other in others)


def _word_set(text: str) -> set[str]:
    words = _WORDS.findall(text.casefold())
    if len(words) < 3:  # the language may have no spaces
        return set("".join(words))
    return set(words)


def _own_headings(headings: Sequence[str], heads: Sequence[str]) -> list[str]:
    """Headings of the page, first those that its title begins with."""
    own = [text for text in headings if any(line_key(text) in line_key(head) for head in heads)]
    return [*own, *headings]


def _uncut_title(title: str, others: Iterable[str]) -> str:
    """The whole of a title that was cut; some say so with an ellipsis, some are just long."""
    start = line_key(title)
    if not title.endswith(_ELLIPSIS) and len(title) < LONG_TITLE:
        return title
    for other in others:
        if not other.endswith(_ELLIPSIS) and start and line_key(other).startswith(start):
            return other
    return title


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _json_texts(page: ArticlePage, *names: str) -> list[Any]:
    found: list[Any] = []
    for name in names:
        for value in listed(page.article.get(name)):
            if isinstance(value, dict):
                value = value.get("@value")
            found.append(value)
    return found


def _meta_texts(page: ArticlePage, names: Iterable[str]) -> list[str]:
    return [text for name in names for text in page.meta.get(name, ())]


def _ask_htmldate(page: ArticlePage, latest: date | None) -> str | None:
    """The date that the whole page looks as if it had."""
    from htmldate import find_date

    bound = _day(latest) if latest else None
    try:
        found = find_date(page.tree, original_date=True, url=page.url, max_date=bound)
    except Exception:  # whatever it is, it is about this one page
        return None
    return normalize_date(found, latest or LATEST)


def _day(day: date) -> datetime:
    return datetime.combine(day, time())


def _json_authors(value: object, names: set[str]) -> tuple[str, ...]:
    people = []
    others = []
    for part in listed(value):
        if isinstance(part, dict) and "organization" in " ".join(type_names(part)):
            others += plain_texts(part.get("name"))
        elif isinstance(part, dict):
            people += plain_texts(part.get("name"))
        else:
            people += plain_texts(part)
    return _real_authors(people, names) or _real_authors(others, names)


def _real_authors(texts: Iterable[str], names: set[str]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for text in texts:
        for name in split_authors(text):
            key = line_key(name)
            if not key or key in names or key.isdigit() or len(name) > MAX_NAME:
                continue
            if "://" not in name and "@" not in name and "www." not in name:
                found.setdefault(key, name)
    return tuple(found.values())[:MAX_AUTHORS]


def _ask_for_authors(page: ArticlePage) -> str:
    """The authors that trafilatura finds in the head or in the page."""
    from trafilatura.metadata import examine_meta, extract_author

    try:
        author = examine_meta(page.tree).author
        if not author or " " not in author:
            author = extract_author(page.tree)
    except Exception:  # whatever it is, it is about this one page
        return ""
    return author or ""


def _place_text(value: object) -> str:
    if not isinstance(value, dict):
        return plain_text(value)
    if plain_text(value.get("name")):
        return plain_text(value.get("name"))
    address = value.get("address")
    if not isinstance(address, dict):
        return plain_text(address)
    keys = ("addressLocality", "addressRegion", "addressCountry")
    return ", ".join(text for key in keys if (text := plain_text(address.get(key))))
