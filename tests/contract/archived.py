"""Contract: what a ticket says about the record in the archive that has the body of the last
reading.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from crawlproj.archive.exchange import Original, RecordLocation
from crawlproj.archive.write_queue import Receipt
from crawlproj.frontier.base import Lane, State, Ticket
from tests.contract.visits import handed_out
from tests.contract.worlds import DAY_S, Hand, World, page


def receipt(world: World, ticket: Ticket, number: int, kind: str = "response") -> Receipt:
    record_id = f"<urn:uuid:{UUID(int=number)}>"
    original = Original(ticket.url, world.clock.now, f"sha1:{number}", record_id)
    return Receipt(
        RecordLocation(
            "a.warc.gz", number, 100, kind, record_id, f"sha1:{number}", world.clock.now, original
        )
    )


def original_of(kept: Receipt) -> Original | None:
    assert kept.record_location is not None
    return kept.record_location.original


def again(world: World, hand: Hand) -> Ticket:
    world.clock.advance(DAY_S + 1)
    hand.leases = {}
    return hand.ticket()


class Archived:
    def test_a_page_that_was_never_read_has_no_record(self, world: World) -> None:
        _, _, (ticket,) = handed_out(world)
        assert (ticket.original, ticket.noarchive) == (None, False)

    def test_the_record_of_a_reading_comes_with_the_next_ticket(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        kept = receipt(world, ticket, 7)
        hand.end(ticket, status=200, content=page(), receipt=kept)
        assert again(world, hand).original == original_of(kept)

    def test_a_revisit_and_an_error_keep_the_record(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        kept = receipt(world, ticket, 7)
        hand.end(ticket, status=200, content=page(), receipt=kept)
        for status, kind in ((304, "revisit"), (200, "revisit"), (404, "response")):
            ticket = again(world, hand)
            hand.end(
                ticket,
                State.GONE if status == 404 else State.WAITING,
                status=status,
                receipt=receipt(world, ticket, 8, kind),
            )
            assert again(world, hand).original == original_of(kept)

    def test_another_text_without_a_record_has_none(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        hand.end(ticket, status=200, content=page(), receipt=receipt(world, ticket, 7))
        hand.end(again(world, hand), status=200, content=page(text="other"))
        assert again(world, hand).original is None

    def test_the_same_body_stored_again_is_the_record_from_then_on(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        hand.end(ticket, status=200, content=page())
        ticket = again(world, hand)
        kept = receipt(world, ticket, 9)
        hand.end(ticket, status=200, receipt=kept)
        assert again(world, hand).original == original_of(kept)

    def test_what_a_page_said_about_archives_comes_with_the_next_ticket(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        hand.end(ticket, status=200, content=replace(page(), noarchive=True))
        ticket = again(world, hand)
        assert ticket.noarchive and ticket.lane is Lane.REVISIT

    def test_so_does_what_it_said_about_being_indexed_also_with_a_304(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        hand.end(ticket, status=200, content=page())
        ticket = again(world, hand)
        assert not ticket.noindex
        hand.end(ticket, status=304, turns_noindex=True)
        ticket = again(world, hand)
        assert ticket.noindex
        hand.end(ticket, status=304)
        ticket = again(world, hand)
        assert ticket.noindex, "a 304 that says nothing"
        hand.end(ticket, status=200, content=page())
        assert not again(world, hand).noindex
