"""Is a page an article, a listing of others, or something else? By what was read of it anyway.

Each sign counts some points for an article or against it: what the page claims (og:type, JSON-LD,
a date of publication), what its URL looks like, and its text: how much of it stands together in
paragraphs without links between them. No sign decides alone; most claims are wrong on some sites.

Pages whose points leave no doubt teach what pages under like URLs of their host are, and what was
learned counts for the doubtful ones. Pure, and the same for the same pages in the same order.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from crawlproj.content.document import Block, Document
from crawlproj.content.packed_text import LONG, LOW_LINKS
from crawlproj.content.page_signs import PageSigns
from crawlproj.content.url_signs import PAGE_WORDS, UrlSigns, read_url

PageKind = Literal["article", "listing", "other"]

MAX_BLOCKS: Final = 3_000
"""Blocks of a page that are looked at."""
LONG_BLOCK: Final = 20_000
"""Characters from which a block's bytes are not counted: it is long in any case."""
MAX_HOSTS: Final = 2_000
MAX_PATTERNS: Final = 32
"""Patterns of URLs that are known of a host; the one that was used longest ago is forgotten."""
MAX_COUNT: Final = 40
"""Pages of a pattern that are counted; at more the older ones count half."""
SURE: Final = 3.0
"""Points from which a page is surely an article and teaches others."""
SURELY_NOT: Final = -5.0
"""Points down to which a page may only lack signs; with less it has some against it."""
MAX_LEARNED: Final = 6.0
"""Points that like pages can give or take."""
LINK_PENALTY: Final = 50
"""Bytes of text that a linked block between paragraphs takes away, and half of the rest."""
HEADLINE: Final = 25
"""Bytes from which a line may be a headline."""
MANY_ARTICLES: Final = 4
"""Types of articles from which a page is rather about several."""
MANY_TEASERS: Final = 20
"""Links as long as headlines from which a page with little text is rather a list."""

_ARTICLE_TYPES: Final = frozenset(
    (
        "advertisercontentarticle",
        "analysisnewsarticle",
        "article",
        "askpublicnewsarticle",
        "backgroundnewsarticle",
        "blogposting",
        "criticreview",
        "interview",
        "liveblogposting",
        "newsarticle",
        "opinionnewsarticle",
        "report",
        "reportagenewsarticle",
        "review",
        "reviewnewsarticle",
        "satiricalarticle",
        "scholarlyarticle",
    )
)
_LISTING_TYPES: Final = frozenset(
    ("collectionpage", "itemlist", "profilepage", "searchresultspage")
)
_OTHER_TYPES: Final = frozenset(
    (
        "aboutpage",
        "contactpage",
        "course",
        "discussionforumposting",
        "event",
        "faqpage",
        "hotel",
        "imagegallery",
        "jobposting",
        "mediagallery",
        "movie",
        "musicrecording",
        "offer",
        "product",
        "qapage",
        "restaurant",
        "softwareapplication",
        "techarticle",
        "videogallery",
    )
)
_SINGLE_CLASSES: Final = frozenset(
    (
        "article",
        "article-page",
        "node-type-article",
        "node-type-story",
        "page-article",
        "page-node-type-article",
        "post-page",
        "post-template",
        "post-template-default",
        "single",
        "single-post",
        "story",
    )
)
_LIST_CLASSES: Final = frozenset(("archive", "category", "paged", "search-results"))
_PAGE_CLASSES: Final = frozenset(("page-template", "page-template-default", "single-product"))
_WORDS: Final = re.compile(r"[^\W\d_]+").findall
_TITLE_END: Final = re.compile("\\s[-\u2013\u2014|:\u00b7\u2022]\\s|\\s?[|\u00ab\u00bb]\\s?")
_TIME: Final = re.compile(r"\d\d?[:h]\d\d").search
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)").search
_DATE: Final = re.compile(
    r"(?<!\d)(?:19|20)\d\d\s?(?:[-/.]|\w)\s?\d\d?\s?(?:[-/.]|\w)\s?\d\d?"
    r"|\d\d?[./-]\s?\d\d?[./-]\s?(?:19|20)\d\d"
    r"|\d\d?(?:st|nd|rd|th|er|[.º])?,?[\s-](?:de\s)?[^\W\d_]{3,12}[.,]?[\s-](?:del?\s)?(?:19|20)\d\d"
    r"|[^\W\d_]{3,12}\.?\s\d\d?(?:st|nd|rd|th)?,?\s{1,3}(?:19|20)\d\d"
).search
"""Dates with a year of four digits: by numbers in any order, or with the name of a month."""


class KindGuess(NamedTuple):
    """What one page is by its own evidence, or by that of like pages too.

    `points` are those for an article; `sure`: they leave no doubt. `why` names the signs that
    counted, in words for people.
    """

    kind: PageKind
    sure: bool
    why: str
    points: float = 0.0


class _Text(NamedTuple):
    """Sizes of a page's text, in bytes: a letter beyond ASCII has two or more."""

    run: int
    """The longest run of paragraphs with few links between them."""
    link_share: float
    long_links: int
    """Blocks that are links and as long as headlines."""
    start: int
    """The block where the run starts."""


def judge_page(document: Document, url: str) -> KindGuess:
    """What a page is, by its own evidence alone."""
    return _judge(document, read_url(url))


def _judge(document: Document, about_url: UrlSigns, learned: float = 0.0) -> KindGuess:
    text = _look_at_text(document.blocks)
    counts = [
        *_url_points(about_url),
        *_title_points(document.title),
        *_claim_points(document.signs),
        *_text_points(text, document.signs.article_elements),
    ]
    points = -2.0 + sum([count for count, _ in counts])
    if SURELY_NOT < points < SURE and text.run >= 300:
        # Dearer than the rest, so only for those that are in doubt.
        more = _top_points(document, text.start, url_dated=about_url.dated)
        counts += more
        points += sum([count for count, _ in more])
    sure = points >= SURE or points <= SURELY_NOT
    if learned and not sure:
        counts.append((learned, "like pages of the host"))
        points += learned
    why = ", ".join([f"{name} {count:+.1f}" for count, name in counts])
    if points > 0:
        return KindGuess("article", sure, why, points)
    return KindGuess(_other_kind(about_url, text), sure, why, points)


def _url_points(signs: UrlSigns) -> Iterable[tuple[float, str]]:
    if signs.front:
        yield -8.0, "front page"
        return
    if signs.archive:
        yield -5.0, "URL of an archive"
    elif signs.dated:
        yield 3.0, "date in the URL"
    if signs.listing:
        yield -4.0, "URL of a listing"
    if signs.gallery:
        yield -6.0, "URL of a gallery"
    if signs.other:
        yield -4.0, "URL of another kind"
    if signs.words >= 4:
        yield 1.5, "headline in the URL"
    elif signs.words <= 1 and not signs.number and not signs.dated:
        yield -1.0, "short name in the URL"
    if signs.number:
        yield 0.5, "number in the URL"


def _claim_points(signs: PageSigns) -> Iterable[tuple[float, str]]:
    if signs.og_type:
        count = _og_points(signs.og_type)
        if count:
            yield count, f"og:type {signs.og_type[:30]}"
    yield from _type_points(signs.types)
    if signs.published:
        yield 2.0, "date of publication"
    if signs.article_elements == 1:
        yield 0.5, "one article element"
    if 1 <= signs.time_elements <= 4:
        yield 0.5, "time element"
    if signs.body_class:
        classes = signs.body_class.split()
        if not _SINGLE_CLASSES.isdisjoint(classes):
            yield 2.0, "body of a post"
        elif not _LIST_CLASSES.isdisjoint(classes):
            yield -3.0, "body of a listing"
        elif not _PAGE_CLASSES.isdisjoint(classes):
            yield -2.0, "body of a page"


def _type_points(types: tuple[str, ...]) -> Iterable[tuple[float, str]]:
    """The first type that says something counts: what comes later is inside of it, or beside it."""
    for number, name in enumerate(types):
        if name in _ARTICLE_TYPES:
            if sum([other in _ARTICLE_TYPES for other in types]) < MANY_ARTICLES:
                yield 3.0, name
            return
        if name in _LISTING_TYPES:
            if types[number + 1 : number + 2] == ("sitenavigationelement",):
                continue
            yield -3.0, name
            return
        if name in _OTHER_TYPES:
            yield -4.0, name
            return


def _title_points(title: str) -> Iterable[tuple[float, str]]:
    words = _WORDS(_TITLE_END.split(title, 1)[0].lower())
    if words and PAGE_WORDS.issuperset(words):
        yield -3.0, "title of another kind"


def _og_points(og_type: str) -> float:
    if any(word in og_type for word in ("article", "news", "post", "entry", "story")):
        return 1.5
    if og_type.startswith(("website", "video", "object", "company")):
        return -1.0
    if og_type.startswith(("product", "profile", "music", "book", "place", "restaurant", "image")):
        return -4.0
    return 0.0


def _text_points(text: _Text, article_elements: int) -> Iterable[tuple[float, str]]:
    run = text.run
    if run < 300:
        yield -4.0, "hardly any text"
    elif run < 600:
        yield -2.0, "little text"
    elif run < 1000:
        yield -0.5, "some text"
    elif run < 2000:
        yield 0.5, "text"
    else:
        yield 1.5, "long text"
    if run < 1000:
        if text.link_share > 0.6:
            yield -1.0, "mostly links"
        if text.long_links >= MANY_TEASERS or article_elements >= 8:
            yield -1.0, "many teasers"


def _other_kind(about_url: UrlSigns, text: _Text) -> PageKind:
    if about_url.archive or about_url.listing:
        return "listing"
    if text.long_links >= 8 and (text.link_share > 0.3 or text.run < 600):
        return "listing"
    return "other"


def _look_at_text(blocks: list[Block]) -> _Text:
    """The sizes that tell an article from a list.

    The longest run is the best sum of any stretch of the page in which paragraphs count their bytes
    and each linked block halves what there is: teasers with a headline each come to little, however
    many there are.
    """
    total = linked = best = run = 0
    long_links = start = best_start = 0
    for number, (text, _, _, share) in enumerate(blocks[:MAX_BLOCKS]):
        size = len(text)
        if not text.isascii() and size < LONG_BLOCK:
            size = len(text.encode("utf-8", "replace"))
        total += size
        if share >= LOW_LINKS:
            linked += int(size * share)
            if size >= 15:
                run = run // 2 - LINK_PENALTY if run > 2 * LINK_PENALTY else 0
                if size >= 30 and share > 0.7:
                    long_links += 1
        elif size >= LONG:
            if not run:
                start = number
            run += size
            if run > best:
                best = run
                best_start = start
    return _Text(best, linked / (total or 1), long_links, best_start)


def _top_points(document: Document, start: int, *, url_dated: bool) -> list[tuple[float, str]]:
    """What stands around the start of the text: the page's own title as a headline, and a date."""
    title = document.title
    headline = -0.5
    dated = 0.0
    for text, _, _, share in document.blocks[max(0, start - 15) : start + 8]:
        if len(text) > 300 or share >= LOW_LINKS:
            continue
        if headline < 0 and text in title and len(text.encode("utf-8", "replace")) >= HEADLINE:
            headline = 1.0
        if dated < 2.5 and len(text) < 200 and _YEAR(text) is not None and _DATE(text) is not None:
            dated = 2.5 if _TIME(text) is not None else 1.5
    if headline > 0:
        points = [(headline, "title as a headline")]
    else:
        points = [(headline, "no headline")]
    signs = document.signs
    if dated:
        points.append((dated, "date in the text"))
    elif not (url_dated or signs.published or signs.time_elements):
        points.append((-0.5, "no date at all"))
    return points


class _Learned:
    """How many pages of one pattern were surely articles, and how many were surely none."""

    __slots__ = ("articles", "others")

    def __init__(self) -> None:
        self.articles = 0
        self.others = 0

    def add(self, *, article: bool) -> None:
        if article:
            self.articles += 1
        else:
            self.others += 1
        if self.articles + self.others > MAX_COUNT:
            self.articles //= 2
            self.others //= 2

    @property
    def points(self) -> float:
        """What a page of the pattern gets: nothing as long as pages of both kinds had it."""
        articles = self.articles
        others = self.others
        return MAX_LEARNED * (articles - others) / (articles + others + 2)


class PageKinds:
    """What pages are, by their own evidence and by what was learned of each host and path.

    It keeps the hosts that were seen last, each with the patterns that were used last.
    """

    def __init__(self, max_hosts: int = MAX_HOSTS) -> None:
        self._max_hosts = max_hosts
        self._hosts: OrderedDict[str, OrderedDict[str, _Learned]] = OrderedDict()

    def judge(self, document: Document, url: str) -> PageKind:
        """The kind of a page; if there is no doubt about it, others like it learn from it."""
        return self.guess(document, url).kind

    def guess(self, document: Document, url: str) -> KindGuess:
        """As `judge`, with the reasons."""
        about_url = read_url(url)
        learned = self._find(url, about_url.pattern)
        guess = _judge(document, about_url, learned.points)
        if guess.sure and not about_url.front:
            learned.add(article=guess.kind == "article")
        return guess

    def _find(self, url: str, pattern: str) -> _Learned:
        host = url.partition("://")[2].partition("/")[0].lower()
        patterns = self._hosts.get(host)
        if patterns is None:
            patterns = self._hosts[host] = OrderedDict()
            if len(self._hosts) > self._max_hosts:
                self._hosts.popitem(last=False)
        else:
            self._hosts.move_to_end(host)
        learned = patterns.get(pattern)
        if learned is None:
            learned = patterns[pattern] = _Learned()
            if len(patterns) > MAX_PATTERNS:
                patterns.popitem(last=False)
        else:
            patterns.move_to_end(pattern)
        return learned
