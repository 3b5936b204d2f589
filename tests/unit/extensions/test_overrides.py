"""The shortcuts do what Scrapy's own parts do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.scraper import Scraper
from scrapy.exceptions import DropItem
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, succeed

from crawlproj.extensions.overrides import DirectDownloader, DirectSignals, DirectStats

PING = object()


class Listeners:
    def plain(self, number: int) -> int:
        return number

    def everything(self, **named: Any) -> list[str]:
        return sorted(named)

    def broken(self) -> None:
        raise ValueError("broken")

    async def later(self, number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    async def broken_later(self) -> None:
        await asyncio.sleep(0)
        raise ValueError("broken later")

    def deferred(self, number: int) -> Deferred[int]:
        return succeed(number + 2)


NAMES = ("plain", "everything", "broken", "later", "broken_later", "deferred")


def told(manager: SignalManager, chosen: tuple[str, ...], wait: bool) -> list[tuple[str, str]]:
    listeners = Listeners()
    for name in chosen:
        manager.connect(getattr(listeners, name), PING)

    async def run() -> Any:
        call = manager.send_catch_log_async if wait else manager.send_catch_log
        found = call(PING, number=5, spider=None)
        return await found if wait else found  # type: ignore[misc]

    return [
        (receiver.__name__, repr(getattr(value, "value", value)))
        for receiver, value in asyncio.run(run())
    ]


@pytest.mark.parametrize("chosen", [(), NAMES[:1], NAMES[:3], NAMES[3:], NAMES, NAMES[::-1]])
@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
def test_who_listens_hears_the_same_and_answers_the_same(
    chosen: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    assert told(DirectSignals(object()), chosen, wait=True) == told(
        SignalManager(object()), chosen, wait=True
    )
    ours, theirs = (
        sum(record.name == name for record in caplog.records)
        for name in ("crawlproj.extensions.overrides", "scrapy.utils.signal")
    )
    assert ours == theirs == len({"broken", "broken_later"} & set(chosen))


@pytest.mark.parametrize("chosen", [(), NAMES[:3]])
def test_signals_that_nobody_waits_for_too(chosen: tuple[str, ...]) -> None:
    assert told(DirectSignals(object()), chosen, wait=False) == told(
        SignalManager(object()), chosen, wait=False
    )


def test_who_listens_to_any_sender_hears_it() -> None:
    heard: list[int] = []

    def listen(number: int) -> None:
        heard.append(number)

    from pydispatch import dispatcher

    dispatcher.connect(listen, PING)
    try:
        DirectSignals(object()).send_catch_log(PING, number=7)
    finally:
        dispatcher.disconnect(listen, PING)
    assert heard == [7]


def test_counts_are_scrapys() -> None:
    crawler = get_crawler()
    found = []
    for kind in (DirectStats, MemoryStatsCollector):
        stats = kind(crawler)
        stats.set_value("a", 1)
        stats.inc_value("a")
        stats.inc_value("b", 3, start=2)
        stats.max_value("a", 9)
        stats.min_value("b", 1)
        found.append((stats.get_stats(), stats.get_value("c", 4), str(stats)))
    assert found[0] == found[1]


class Handlers:
    """Answers when told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gates: dict[str, asyncio.Future[None]] = {}

    async def download_request_async(self, request: Request) -> Response:
        self.asked.append(request.url)
        await self.gates.setdefault(request.url, asyncio.get_running_loop().create_future())
        return Response(request.url)


async def two_in_a_slot(kind: type[Downloader], **options: Any) -> list[object]:
    settings = {
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "TWISTED_REACTOR_ENABLED": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    } | options
    crawler = get_crawler(settings_dict=settings)
    crawler.spider = Spider("s")
    downloader = kind(crawler)
    handlers = Handlers()
    seen = []
    downloader.handlers = handlers  # type: ignore[assignment]

    def notes(name: str) -> Any:
        return lambda request: seen.append((name, request.url))

    listeners = [notes("reached"), notes("downloaded"), notes("left")]
    kinds = (
        signals.request_reached_downloader,
        signals.response_downloaded,
        signals.request_left_downloader,
    )
    for listener, signal in zip(listeners, kinds, strict=True):
        crawler.signals.connect(listener, signal)
    loop = asyncio.get_running_loop()
    requests = [Request(f"http://a.test/{n}") for n in range(2)]
    tasks = [downloader.fetch(request).asFuture(loop) for request in requests]
    for request in requests:
        while request.url not in handlers.gates:
            await asyncio.sleep(0)
        seen.append(
            (list(handlers.asked), len(downloader.active), len(downloader.slots["a.test"].active))
        )
        handlers.gates[request.url].set_result(None)
    seen += [(await task).url for task in tasks]
    seen.append(
        (
            len(downloader.active),
            len(downloader.slots["a.test"].active),
            len(downloader.slots["a.test"].transferring),
        )
    )
    downloader.close()
    return seen


def test_a_slot_lets_requests_through_one_after_the_other() -> None:
    """Scrapy's would let both through if they come at the same moment."""
    first = "http://a.test/0"
    second = "http://a.test/1"
    assert asyncio.run(two_in_a_slot(DirectDownloader)) == [
        ("reached", first),
        ("reached", second),
        ([first], 2, 2),
        ("downloaded", first),
        ("left", first),
        ([first, second], 1, 1),
        ("downloaded", second),
        ("left", second),
        first,
        second,
        (0, 0, 0),
    ]


def test_a_slot_with_a_delay_is_scrapys() -> None:
    delay = {"DOWNLOAD_DELAY": 0.01}
    assert asyncio.run(two_in_a_slot(DirectDownloader, **delay)) == asyncio.run(
        two_in_a_slot(Downloader, **delay)
    )


class Plain:
    def process_item(self, item: Any) -> Any:
        return item


class Another:
    """Gives back something else, asks for the spider, and does not want the letter b."""

    def process_item(self, item: Any, spider: Spider) -> Any:
        if item == "b":
            raise DropItem(spider.name)
        return item + "!"


class Later:
    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0)
        if item == "c!":
            raise ValueError(item)
        return item + "?"


class Promised:
    def process_item(self, item: Any) -> Any:
        return succeed(item + ".")


class Engine:
    """Notes requests."""

    scheduler: Any = None

    def __init__(self, seen: list[object]) -> None:
        self.seen = seen

    def crawl(self, request: Request) -> None:
        self.seen.append(request.url)


def letters() -> Iterator[Any]:
    yield "a"
    yield Request("http://a.test/")
    yield from "bcd"
    yield None
    raise RuntimeError("in the callback")


async def letters_later() -> AsyncIterator[Any]:
    for letter in letters():
        await asyncio.sleep(0)
        yield letter


async def scraped(processor: str, output: Any) -> list[object]:
    seen: list[object] = []
    pipelines = {kind: number for number, kind in enumerate((Plain, Another, Later, Promised))}
    more = {
        "ITEM_PIPELINES": pipelines,
        "ITEM_PROCESSOR": processor,
        "CONCURRENT_ITEMS": 1,
        "TWISTED_REACTOR_ENABLED": False,
    }
    crawler = get_crawler(settings_dict=more)
    crawler.spider = Spider.from_crawler(crawler, "s")
    crawler.engine = Engine(seen)  # type: ignore[assignment]
    scraper = crawler.engine.scraper = Scraper(crawler)  # type: ignore[union-attr]

    def notes(name: str) -> Any:
        return lambda **told: seen.append(
            (name, told.get("item"), str(told.get("exception") or told.get("failure") or "")[:40])
        )

    listeners = {
        name: notes(name) for name in ("item_scraped", "item_dropped", "item_error", "spider_error")
    }
    for name, listener in listeners.items():
        crawler.signals.connect(listener, getattr(signals, name))
    await scraper.open_spider_async()
    await scraper.handle_spider_output_async(
        output(), Request("http://a.test/0"), Response("http://a.test/0")
    )
    await scraper.close_spider_async()
    return [type(scraper) is Scraper, *seen]


@pytest.mark.parametrize("output", [letters, letters_later])
@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
def test_what_callbacks_yield_goes_the_same_way(output: Any) -> None:
    ours = asyncio.run(scraped("crawlproj.extensions.overrides.DirectItems", output))
    theirs = asyncio.run(scraped("scrapy.pipelines.ItemPipelineManager", output))
    assert (ours[0], theirs[0]) == (False, True)
    assert [note[1] for note in ours if isinstance(note, tuple)] == ["a!?.", "b", "c", "d!?.", None]

    def order(notes: list[object]) -> list[object]:
        """Scrapy reads a little ahead: when a callback fails is not the same."""
        return sorted(map(str, notes[1:]))

    assert order(ours) == order(theirs)
