"""The shortcuts around downloader middlewares, handlers, listeners and callbacks do what Scrapy's
own parts do.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from pydispatch.robustapply import robustApply  # type: ignore[import-untyped]
from scrapy import Request, Spider
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.exceptions import NotSupported
from scrapy.http import Response
from scrapy.utils.test import get_crawler
from twisted.internet.defer import succeed

from crawlproj.extensions.overrides import (
    DirectHandlers,
    DirectMiddlewares,
    call_receiver,
    warn_once,
)

HERE = "http://a.test/"
THERE = "http://b.test/"


class Passing:
    def process_request(self, request: Request) -> None:
        return None

    def process_response(self, request: Request, response: Response) -> Response:
        return response


class Later:
    async def process_request(self, request: Request) -> None:
        await asyncio.sleep(0)

    async def process_response(self, request: Request, response: Response) -> Response:
        await asyncio.sleep(0)
        return response.replace(status=response.status + 1)


class Promising:
    def process_request(self, request: Request) -> Any:
        return succeed(None)

    def process_response(self, request: Request, response: Response) -> Any:
        return succeed(response)


class WithSpider:
    """The signature of older Scrapy."""

    def process_request(self, request: Request, spider: Spider) -> None:
        request.meta["spider"] = spider.name

    def process_response(self, request: Request, response: Response, spider: Spider) -> Response:
        return (
            response.replace(body=f"{response.text} {spider.name}".encode())
            if isinstance(response, Text)
            else response
        )


class Text(Response):
    text = "text"


class Answering:
    def process_request(self, request: Request) -> Response:
        return Response(THERE, status=300)


class AnsweringLater:
    async def process_request(self, request: Request) -> Request:
        return Request(THERE)


class Redirecting:
    def process_response(self, request: Request, response: Response) -> Request:
        return Request(THERE)


class Saying:
    """Something that nobody may say."""

    def process_request(self, request: Request) -> Any:
        return 0


class Forgetting:
    def process_response(self, request: Request, response: Response) -> Any:
        return None


class Failing:
    def process_request(self, request: Request) -> None:
        raise ValueError("no")


class Rescuing:
    def process_exception(self, request: Request, exception: Exception) -> Response | None:
        return Response(HERE, status=500) if isinstance(exception, ValueError) else None


async def through(
    kind: type[DownloaderMiddlewareManager], chain: tuple[type, ...], answer: Any
) -> str:
    chosen = {each: number for number, each in enumerate(chain)}
    settings = {
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "DOWNLOADER_MIDDLEWARES": chosen,
        "TWISTED_REACTOR_ENABLED": False,
    }
    crawler = get_crawler(settings_dict=settings)
    crawler.spider = Spider("s")
    manager = DownloaderMiddlewareManager.from_crawler(crawler)
    manager.__class__ = kind
    request = Request(HERE)

    async def download(request: Request) -> Any:
        return answer

    try:
        result = await manager.download_async(download, request)
    except Exception as error:
        return type(error).__name__
    return (
        f"{type(result).__name__} {result.url} {getattr(result, 'status', '')} {result.body!r} "
        f"{request.meta}"
    )


CHAINS = [
    (),
    (Passing,),
    (Later,),
    (Promising,),
    (WithSpider,),
    (Passing, Later, Promising, WithSpider, Passing),
    (Passing, Answering, Later),
    (Later, AnsweringLater),
    (Redirecting, Passing),
    (Saying, Passing),
    (Passing, Forgetting),
    (Failing, Passing),
    (Rescuing, Failing),
    (Passing, Failing, Rescuing),
]


@pytest.mark.parametrize(
    "chain", CHAINS, ids=lambda chain: "-".join(each.__name__ for each in chain) or "none"
)
@pytest.mark.parametrize(
    "answer",
    [Response(HERE), Text(HERE), Request(THERE), None],
    ids=["response", "text", "request", "none"],
)
@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
def test_middlewares_are_asked_in_the_same_way(chain: tuple[type, ...], answer: Any) -> None:
    ours, theirs = (
        asyncio.run(through(kind, chain, answer))
        for kind in (DirectMiddlewares, DownloaderMiddlewareManager)
    )
    assert ours == theirs


class Handler:
    lazy = True

    @classmethod
    def from_crawler(cls, crawler: Any) -> Handler:
        return cls()

    async def download_request(self, request: Request) -> Response:
        return Response(request.url, body=type(self).__name__.encode())

    async def close(self) -> None:
        return None


class Secure(Handler):
    pass


@pytest.mark.parametrize(
    "url", ["http://a.test/", "https://a.test/", "HTTP://a.test/", "gopher://a.test/", "data:,x"]
)
def test_handlers_are_chosen_by_the_same_scheme(url: str) -> None:
    found = []
    for kind in (DirectHandlers, DownloadHandlers):
        chosen = {
            "http": Handler,
            "https": Secure,
            "data": None,
            "file": None,
            "ftp": None,
            "s3": None,
        }
        crawler = get_crawler(
            settings_dict={"DOWNLOAD_HANDLERS": chosen, "TWISTED_REACTOR_ENABLED": False}
        )
        crawler.spider = Spider("s")
        for _ in range(2):  # the second time the handler is there already
            try:
                found.append(asyncio.run(kind(crawler).download_request_async(Request(url))).body)
            except NotSupported as error:
                found.append(str(error).encode())
    assert found[:2] == found[2:]


class Listeners:
    def nothing(self) -> str:
        return "nothing"

    def some(self, item: str, signal: object = None) -> tuple[str, object]:
        return item, signal

    def all(self, **named: Any) -> list[str]:
        return sorted(named)

    @staticmethod
    def still(item: str) -> str:
        return item

    def missing(self, absent: str) -> str:
        return absent

    def __call__(self, item: str) -> str:
        return f"called {item}"


@pytest.mark.parametrize("name", ["nothing", "some", "all", "still", "missing", "__call__", ""])
def test_listeners_hear_what_they_ask_for(name: str) -> None:
    receiver = getattr(Listeners(), name) if name else Listeners()
    found = []
    for apply in (call_receiver, robustApply, call_receiver):
        try:
            found.append(apply(receiver, signal="ping", sender="x", item="i"))
        except TypeError as error:
            found.append(str(error))
    assert found[0] == found[1] == found[2]


class Returning(Spider):
    name = "returning"

    def parse(self, response: Response, **named: Any) -> Iterator[dict[str, int]]:  # type: ignore[override]
        yield {}
        return 1

    def fine(self, response: Response) -> Iterator[dict[str, int]]:
        yield {}


def test_a_generator_that_returns_something_is_told_once() -> None:
    spider = Returning.from_crawler(get_crawler())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            warn_once(spider, spider.parse)
            warn_once(spider, spider.fine)
            warn_once(spider, lambda response: None)
    assert ["Returning.parse" in str(each.message) for each in told] == [True]
