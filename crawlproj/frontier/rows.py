"""Rows of the queries `refill` and `look` as Tickets and StoredUrls: decoded here, by name.

The columns of such a query carry the names of the fields that they become, in the order of the
fields; `tests/contract/test_rows.py` compares both. So a field that needs no decoding of its own
costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from crawlproj.archive.exchange import Original
from crawlproj.frontier.base import Lane, State, StoredUrl, Ticket

RECORD_PREFIX = "<urn:uuid:"
"""Record ids are stored without it and without the bracket at the end, as UUIDs."""
TICKET_COLUMNS = (
    *(field.name for field in fields(Ticket) if field.name != "original"),
    "original_digest",
    "original_at",
    "original_record",
    "host_pages",
)
"""Columns of `refill`: the fields of a Ticket, the parts of its `original`, and how many pages its
host has given.
"""
STORED_URL_COLUMNS = tuple(field.name for field in fields(StoredUrl))
"""Columns of `look`."""

# Looking a member up in a dictionary is many times faster than calling the enumeration.
LANES = {lane.value: lane for lane in Lane}
STATES = {state.value: state for state in State}


def read_tickets(rows: Iterable[tuple[Any, ...]]) -> tuple[list[Ticket], dict[str, int]]:
    """The rows of `refill` as tickets, and how many pages each of their hosts has given so far."""
    tickets = []
    host_pages = {}
    for row in rows:
        values = dict(zip(TICKET_COLUMNS, row, strict=True))
        host_pages[values["host"]] = values.pop("host_pages")
        tickets.append(_read_ticket(values))
    return tickets, host_pages


def _read_ticket(values: dict[str, Any]) -> Ticket:
    digest = values.pop("original_digest")
    at = values.pop("original_at")
    record = values.pop("original_record")
    original = None
    if digest:
        request = values["request"]
        url = request["url"] if request else values["url"]
        original = Original(url, at, digest, record_id=f"{RECORD_PREFIX}{record}>")
    values["lane"] = LANES[values["lane"]]
    values["state"] = STATES[values["state"]]
    return Ticket(original=original, **values)


def read_stored_urls(rows: Iterable[tuple[Any, ...]]) -> dict[int, StoredUrl]:
    """The rows of `look` by id."""
    found = {}
    for row in rows:
        values = dict(zip(STORED_URL_COLUMNS, row, strict=True))
        if values["lane"] is not None:
            values["lane"] = LANES[values["lane"]]
        values["state"] = STATES[values["state"]]
        found[values["id"]] = StoredUrl(**values)
    return found
