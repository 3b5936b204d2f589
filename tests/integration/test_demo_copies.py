"""The copies that the demo web makes are judged as what its truth says, whichever is read first."""

from __future__ import annotations

import pytest

from crawlproj.database.connection import Database
from crawlproj.demo import EPOCH, Web, find_profile
from crawlproj.demo.model import DemoRequest
from tests.support.copies import Copies


@pytest.mark.parametrize("first", ["originals", "copies"])
def test_the_demo_webs_copies_are_judged_as_they_were_made(database: Database, first: str) -> None:
    web = Web(find_profile("demo"))
    made = web.truth_at(EPOCH + 60).copies
    assert {kind for _, kind in made.values()} == {"exact", "text", "near", "paragraph"}
    copies = Copies(database)
    for url, (original, kind) in made.items():
        if "/print/" in url:
            continue  # of the same article as /copy/: three of a kind, in the order of reading
        order = [original, url]
        if first == "copies":
            order.reverse()
        for page in order:
            copies.read(page, body_of(web, page))
        assert copies.stored().get(order[1]) == (order[0], kind), url
    copies.close()


def body_of(web: Web, url: str) -> str:
    host, _, path = url.removeprefix("http://").partition("/")
    return web.response_to(DemoRequest(host, f"/{path}"), EPOCH + 60).body.decode()
