"""Two commits meet at one host: what it has to offer is noted rightly, whoever comes first."""

from __future__ import annotations

import threading
import time

import pytest

from crawlproj.database.connection import Database
from crawlproj.frontier.base import Batch, CrawlSpec, NewUrl, Outcome, State, Want
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.urls.canonical import host_of, url_key

CRAWL = "meeting"


def url(path: str, score: float) -> NewUrl:
    text = f"http://a.test{path}"
    return NewUrl(url_key(CRAWL, text), text, host_of(text), 1, score)


def waits_for_a_lock(database: Database) -> bool:
    query = (
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = "
        "current_database()"
    )
    return bool(database.run_script(query)[0][0])


@pytest.mark.parametrize("received", [0, 1000], ids=["nothing came", "a page came"])
def test_a_url_that_is_added_while_the_last_one_of_its_host_ends_is_offered(
    received: int, any_server: str, database: Database
) -> None:
    """The host is offered for the first URL already, so adding another one changes nothing of that;
    then the first one ends.
    """
    ending, adding = (
        PostgresFrontier(database.new_connection(), CrawlSpec(CRAWL)) for _ in range(2)
    )
    ending.open()
    adding.open()
    ending.add([url("/first", 1.0)])
    ending.put_addresses({"a.test": "127.0.0.1"})
    (lease,) = ending.lease("w", 1)
    (ticket,) = ending.due_tickets([Want("a.test", lease.server, lease.epoch, 9)])
    end = Outcome(
        ticket.id,
        ticket.visit,
        ticket.server,
        ticket.epoch,
        State.DEAD,
        ending.now(),
        404,
        received=received,
    )
    ended = threading.Thread(target=lambda: ending.commit(Batch([end]), "w"))
    with adding.db.transaction() as tx:
        adding._commit(tx, Batch(urls=[url("/second", 0.5)]), "")
        ended.start()
        while ended.is_alive() and not waits_for_a_lock(database):
            time.sleep(0.01)
    ended.join()
    ending.release_servers("w", [lease.server])
    (lease,) = adding.lease("v", 1)
    found = adding.due_tickets([Want("a.test", lease.server, lease.epoch, 9)])
    assert [each.url for each in found] == ["http://a.test/second"]
    ending.close()
    adding.close()
