"""Rows of the queries `refill` and `look` as Tickets and StoredUrls: decoded here, by name.

The columns of such a query carry the names of the fields that they become, in the order of the
fields; `tests/contract/test_rows.py` compares both. So a field that needs no decoding of its own
costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from operator import itemgetter
from typing import Any

from crawlproj.archive.exchange import Original
from crawlproj.frontier.base import Found, Lane, State, StoredUrl, Ticket

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

# Members out of a dictionary, and arguments without keywords: both are faster, and URLs are many.
LANES = {lane.value: lane for lane in Lane}
FOUND = {found.value: found for found in Found}
STATES = {state.value: state for state in State}
ticket_arguments = itemgetter(*(field.name for field in fields(Ticket)))


def read_tickets(rows: Iterable[tuple[Any, ...]]) -> tuple[list[Ticket], dict[str, int]]:
    """The rows of `refill` as tickets, and how many pages each of their hosts has given so far."""
    tickets = []
    host_pages = {}
    for row in rows:
        values = dict(zip(TICKET_COLUMNS, row, strict=True))
        values["lane"] = LANES[values["lane"]]
        values["state"] = STATES[values["state"]]
        values["found"] = FOUND.get(values["found"])
        values["original"] = None
        if values["original_digest"]:
            values["original"] = _read_original(values)
        tickets.append(Ticket(*ticket_arguments(values)))
        host_pages[values["host"]] = values["host_pages"]
    return tickets, host_pages


def _read_original(values: Mapping[str, Any]) -> Original:
    request = values["request"]
    return Original(
        request["url"] if request else values["url"],
        values["original_at"],
        values["original_digest"],
        record_id=f"{RECORD_PREFIX}{values['original_record']}>",
    )


def read_stored_urls(rows: Iterable[tuple[Any, ...]]) -> dict[int, StoredUrl]:
    """The rows of `look` by id."""
    found = {}
    for row in rows:
        values = dict(zip(STORED_URL_COLUMNS, row, strict=True))
        if values["lane"] is not None:
            values["lane"] = LANES[values["lane"]]
        values["state"] = STATES[values["state"]]
        values["found"] = FOUND.get(values["found"])
        found[values["id"]] = StoredUrl(**values)
    return found
