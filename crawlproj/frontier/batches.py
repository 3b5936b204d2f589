"""Batches in pieces: none is too much for one message to Postgres, and one that is refused for what
is in it is halved until the culprit is alone.

Pure. The database thread and the Redis thread store with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from crawlproj.errors import ArchiveError, DatabaseError
from crawlproj.frontier.base import (
    Batch,
    Committed,
    Content,
    HostText,
    LeftOutHost,
    NewUrl,
    Outcome,
    Pause,
    RobotsRow,
    State,
)
from crawlproj.urls.canonical import url_key

PIECE_CHARS = 2_000_000
"""About so many characters are stored in one transaction: some 4,000 URLs, half a second."""
LARGEST_CHARS = 16_000_000
"""No single end or URL may have more: the driver needs several times its size in memory."""
URL_CHARS = 400
"""What a URL counts beside its text: what it costs is time rather than room."""
ROW_CHARS = 1_000
"""The same for the end of a visit and for a robots.txt."""
TEXT_CHARS = 8_000
"""What is known of the texts of a host, in hex."""
LINK_CHARS = 24
"""A link by its id, with its kind."""
CONTENT_CLASSES = frozenset({"0A", "21", "22", "23", "44", "54", "P0", "XX"})
"""Classes of SQLSTATE by which Postgres refuses what a statement holds: bad data, a broken
constraint, too big, raised by a trigger, an internal error.
"""
NO_MEMORY = "53200"
"""Less at once may do."""
DAMAGED = frozenset({"XX001", "XX002"})
"""The table or index itself is."""


HARMLESS_HOST = "harmless.invalid"
"""No host can have this name."""


@dataclass(frozen=True, slots=True)
class HostPause:
    """The clock of a host in a batch."""

    host: str
    pause: Pause


@dataclass(frozen=True, slots=True)
class ServerPause:
    """The clock of a server in a batch."""

    server: int
    pause: Pause


@dataclass(frozen=True, slots=True)
class TextOfHost:
    """What is known of the texts of a host, in a batch."""

    host: str
    text: HostText


@dataclass(frozen=True, slots=True)
class ListedPage:
    """When a sitemap says that a page was changed, in a batch."""

    id: int
    at: datetime


Item = (
    NewUrl | Outcome | RobotsRow | HostPause | ServerPause | LeftOutHost | TextOfHost | ListedPage
)


def split_batch(batch: Batch, most_chars: int = PIECE_CHARS) -> list[Batch]:
    """The batch in pieces that may be stored one after the other; most batches are one piece.

    An end is in the same piece as the last URLs that its page has brought, or in a later one: if we
    die in between, the page is fetched again, and nothing is lost. Pages with few new URLs come
    first, so that their ends don't wait for those of a page with many.
    """
    if batch_weight(batch) <= most_chars:
        return [batch]
    pieces: list[Batch] = []
    items: list[Item] = []
    total = 0
    for item in ordered_items(batch):
        weight = item_weight(item)
        if items and total + weight > most_chars:
            pieces.append(_batch_of(items, batch))
            items = []
            total = 0
        items.append(item)
        total += weight
    return [*pieces, _batch_of(items, batch)]


def halve_batch(batch: Batch) -> list[Batch]:
    """Two halves of a batch of several items, to be stored in this order."""
    items = ordered_items(batch)
    middle = len(items) // 2
    return [_batch_of(items[:middle], batch), _batch_of(items[middle:], batch)]


def join_batches(batches: Sequence[Batch]) -> Batch:
    """One batch again; of a clock that is in several the last one counts."""
    clocks: dict[str, Pause] = {}
    server_clocks: dict[int, Pause] = {}
    left_out: dict[str, LeftOutHost] = {}
    texts: dict[str, HostText] = {}
    listed: dict[int, datetime] = {}
    for batch in batches:
        clocks |= batch.clocks
        server_clocks |= batch.server_clocks
        left_out |= batch.left_out
        texts |= batch.texts
        listed |= batch.listed
    return Batch(
        [outcome for batch in batches for outcome in batch.outcomes],
        [url for batch in batches for url in batch.urls],
        [row for batch in batches for row in batch.robots],
        clocks=clocks,
        server_clocks=server_clocks,
        left_out=left_out,
        texts=texts,
        listed=listed,
    )


def ordered_items(batch: Batch) -> list[Item]:
    """All that is in a batch, in an order in which it may be stored bit by bit: the URLs of a page
    before its end; but a URL that ends here itself after that, which may have retired it.
    """
    ends: dict[int, list[Outcome]] = defaultdict(list)
    for outcome in batch.outcomes:
        ends[outcome.id].append(outcome)
    pages: dict[int | None, list[NewUrl]] = {id_: [] for id_ in ends}
    ended: list[NewUrl] = []
    for url in batch.urls:
        if url.id in ends:
            ended.append(url)
        else:
            pages.setdefault(url.parent, []).append(url)
    items: list[Item] = [*batch.robots, *_pauses(batch), *batch.left_out.values()]
    for parent, urls in sorted(pages.items(), key=lambda page: len(page[1])):
        items += urls
        if parent is not None:
            items += ends.get(parent, ())
    items += [TextOfHost(host, text) for host, text in batch.texts.items()]
    items += [ListedPage(id_, at) for id_, at in batch.listed.items()]
    return [*items, *ended]


def _pauses(batch: Batch) -> Iterator[HostPause | ServerPause]:
    for host, pause in batch.clocks.items():
        yield HostPause(host, pause)
    for server, pause in batch.server_clocks.items():
        yield ServerPause(server, pause)


def _batch_of(items: Iterable[Item], whole: Batch) -> Batch:
    """A batch of some of the items of `whole`."""
    outcomes: list[Outcome] = []
    urls: list[NewUrl] = []
    robots: list[RobotsRow] = []
    clocks: dict[str, Pause] = {}
    server_clocks: dict[int, Pause] = {}
    left_out: dict[str, LeftOutHost] = {}
    texts: dict[str, HostText] = {}
    listed: dict[int, datetime] = {}
    for item in items:
        match item:
            case NewUrl():
                urls.append(item)
            case Outcome():
                outcomes.append(item)
            case RobotsRow():
                robots.append(item)
            case HostPause(host, pause):
                clocks[host] = pause
            case ServerPause(server, pause):
                server_clocks[server] = pause
            case LeftOutHost():
                left_out[item.name] = item
            case TextOfHost(host, text):
                texts[host] = text
            case ListedPage(id_, at):
                listed[id_] = at
    return Batch(
        outcomes,
        urls,
        robots,
        clocks=clocks,
        server_clocks=server_clocks,
        left_out=left_out,
        texts=texts,
        listed=listed,
        since=whole.since,
    )


def count_items(batch: Batch) -> int:
    """How many things are in a batch."""
    return (
        len(batch.outcomes)
        + len(batch.urls)
        + len(batch.robots)
        + len(batch.clocks)
        + len(batch.server_clocks)
        + len(batch.left_out)
        + len(batch.texts)
        + len(batch.listed)
    )


def batch_weight(batch: Batch) -> int:
    """About how many characters a batch is on its way to the database."""
    return (
        sum(map(_url_weight, batch.urls))
        + sum(map(_end_weight, batch.outcomes))
        + sum(map(_robots_weight, batch.robots))
        + URL_CHARS * (len(batch.clocks) + len(batch.server_clocks) + len(batch.left_out))
        + URL_CHARS * len(batch.listed)
        + TEXT_CHARS * len(batch.texts)
    )


def item_weight(item: Item) -> int:
    """The same of one item."""
    if isinstance(item, NewUrl):
        return _url_weight(item)
    if isinstance(item, Outcome):
        return _end_weight(item)
    if isinstance(item, RobotsRow):
        return _robots_weight(item)
    if isinstance(item, TextOfHost):
        return TEXT_CHARS
    return URL_CHARS


def _url_weight(url: NewUrl) -> int:
    weight = URL_CHARS + len(url.url)
    if url.request is not None:
        weight += len(url.request)
    return weight


def _end_weight(outcome: Outcome) -> int:
    weight = ROW_CHARS + len(outcome.why)
    weight += len(outcome.moved_to or "") + len(outcome.etag or "") + len(outcome.modified or "")
    if outcome.page_state is not None:
        weight += 2 * len(outcome.page_state)
    if outcome.source_note is not None:
        weight += URL_CHARS + len(outcome.source_note.title)
    content = outcome.content
    if content is None:
        return weight
    if content.text is not None:
        weight += 2 * len(content.text.packed)  # in hex
    if content.article is not None:
        weight += 2 * len(content.article.body)
    weight += URL_CHARS * len(content.links.held)
    if content.marks is not None:
        weight += LINK_CHARS * len(content.marks.paragraphs)
    links = content.links
    weight += len(content.title) + len(content.content_type) + len(content.language)
    weight += LINK_CHARS * (len(links.known) + len(links.other))
    # Joining is several times faster than adding up lengths, and each page is weighed.
    weight += len("".join(links.known_texts)) + len(links.details)
    return weight + len("".join(links.other)) + len("".join(links.other_texts))


def _robots_weight(row: RobotsRow) -> int:
    return ROW_CHARS + len(row.body) + len(row.etag or "") + len(row.modified or "")


def sum_commits(commits: Sequence[Committed]) -> Committed:
    """What several commits did together."""
    return Committed(
        done=frozenset().union(*(commit.done for commit in commits)),
        late=sum(commit.late for commit in commits),
        added=sum(commit.added for commit in commits),
        revived=sum(commit.revived for commit in commits),
        nearer=sum(commit.nearer for commit in commits),
        refused=sum(commit.refused for commit in commits),
        hosts=frozenset().union(*(commit.hosts for commit in commits)),
        verdicts={id_: verdict for commit in commits for id_, verdict in commit.verdicts.items()},
        lock_s=sum(commit.lock_s for commit in commits),
        articles=sum(commit.articles for commit in commits),
        article_copies=sum(commit.article_copies for commit in commits),
    )


def refuse_giants(batch: Batch) -> None:
    """DatabaseError if the only thing in a batch is too large to be sent at all."""
    if count_items(batch) == 1 and batch_weight(batch) > LARGEST_CHARS:
        raise DatabaseError(f"it has more than {LARGEST_CHARS // 1_000_000} MB", "54000")


def blames_content(error: Exception) -> bool:
    """Is the batch at fault, by what the error says, and not the database? An error of Python is
    one of a value that it could not write.
    """
    if isinstance(error, ArchiveError):
        return False
    if not isinstance(error, DatabaseError):
        return True
    code = error.sqlstate or ""
    if code in DAMAGED:
        return False
    return code == NO_MEMORY or code[:2] in CONTENT_CLASSES


def harmless_batch(batch: Batch, reason: str) -> Batch:
    """What is stored in place of a batch of one item that is refused: an end that says only when
    and why, a robots.txt that was not reached, a clock without its reason; of a URL nothing.
    """
    return Batch(
        [_harmless_end(outcome, reason) for outcome in batch.outcomes],
        [],
        [replace(row, status=0, body="", etag=None, modified=None) for row in batch.robots],
        clocks={host: Pause(pause.until) for host, pause in batch.clocks.items()},
        server_clocks={server: Pause(pause.until) for server, pause in batch.server_clocks.items()},
    )


def _harmless_end(outcome: Outcome, reason: str) -> Outcome:
    """A page is visited again when it would have been; what else the visit meant is not known."""
    state = State.DEAD
    next_visit = None
    if outcome.state is State.WAITING:
        state = State.WAITING
        next_visit = outcome.next_visit
    status = outcome.status
    if not 0 <= status < 1_000:
        status = 0
    return Outcome(
        outcome.id,
        outcome.visit,
        outcome.server,
        outcome.epoch,
        state,
        outcome.at,
        status=status,
        why=f"set aside: {reason}",
        next_visit=next_visit,
        received=outcome.received,
    )


class HarmlessPage(NamedTuple):
    """A page that no web has, to try whether pages can be stored."""

    url: NewUrl
    robots: RobotsRow
    outcome: Outcome


def harmless_page(crawl: str, now: datetime) -> HarmlessPage:
    """Such a page for a crawl."""
    origin = f"http://{HARMLESS_HOST}"
    url = f"{origin}/"
    id_ = url_key(crawl, url)
    outcome = Outcome(
        id_, 0, 0, 0, State.WAITING, now, status=200, content=Content(b"-", b"-", title="-")
    )
    robots = RobotsRow(origin, HARMLESS_HOST, 200, "-", now, now)
    return HarmlessPage(NewUrl(id_, url, HARMLESS_HOST), robots, outcome)
