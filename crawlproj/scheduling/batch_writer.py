"""How a message of the event loop gets into the frontier: in pieces, and without what the database
refuses.

Runs in the database thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from crawlproj.errors import DatabaseError
from crawlproj.frontier.base import Batch, Committed, Frontier, RobotsRow
from crawlproj.frontier.batches import (
    blames_content,
    count_items,
    halve_batch,
    harmless_batch,
    join_batches,
    refuse_giants,
    split_batch,
)
from crawlproj.politeness import robots
from crawlproj.scheduling.archiver import Archiver
from crawlproj.scheduling.messages import ToDatabase
from crawlproj.scheduling.request_log import RequestLog
from crawlproj.scheduling.retrying import OutageRetry

log = logging.getLogger(__name__)

INTERRUPTED = ("08", "57")
"""Classes of Postgres errors of a connection or statement that was ended by someone."""
LOSSES = 2
"""So often the connection may be lost while something is stored before that is taken for the
cause.
"""
TRIES_ALONE = 3
"""So often it must be lost over one item before that is set aside."""
MAX_LINES = 20
"""So many things that were set aside are logged, each in a line; more are only counted."""


class BatchWriter:
    """Stores messages. `stored`: ids of ends that are safe now; `committed`: what the commits did;
    both are taken by the database thread with each reply.

    A piece that is refused for what is in it is halved until the culprit is alone. That is set
    aside only if something harmless in its place can be stored: else it is not the content that is
    at fault, and the error goes on as if nothing had been tried. A connection that is lost says
    nothing of the cause. Only if it is lost again and again while the same things are stored, and
    the database answers in between, these are taken for it.
    """

    def __init__(
        self,
        frontier: Frontier,
        worker: str,
        outage: OutageRetry,
        archiver: Archiver | None = None,
        robot_name: str = "",
        request_log: RequestLog | None = None,
    ) -> None:
        self.frontier = frontier
        self.worker = worker
        self.outage = outage
        self.archiver = archiver
        self._request_log = request_log
        self._robot_name = robot_name
        self.stored: list[int] = []
        self.committed: list[Committed] = []
        self._losses = 0
        self._lost_alone = 0
        self._lines = 0

    def store_message(
        self, message: ToDatabase, until: float, before_piece: Callable[[], None] | None = None
    ) -> None:
        """Store what is in the message, piece by piece, until it is done or, after at least one
        piece, that moment has come. What is left, also by an error, stays in the message.
        `before_piece` is called for what must not wait until all is stored.
        """
        batch = message.batch
        if not count_items(batch):
            return
        if self.archiver is not None:
            self.archiver.flush_to_disk()
        if self._request_log is not None:
            self._request_log.flush_to_disk()
        pieces = split_batch(batch)
        losses = self._losses
        try:
            while pieces:
                if before_piece is not None:
                    before_piece()
                parts = self._store_or_divide(pieces[0])
                pieces[:1] = parts
                if not parts and time.monotonic() >= until:
                    break
        finally:
            message.replace_batch(join_batches(pieces))
        if not pieces or self._losses == losses:
            self._losses = 0

    def _store_or_divide(self, piece: Batch) -> list[Batch]:
        """Store a piece, or set aside the one item that it is; else return its halves, which are to
        be stored instead.
        """
        if self._losses:
            self._await_database()
        try:
            refuse_giants(piece)
            self._rejudge(piece.robots)
            self._commit(piece, piece)
        except Exception as error:
            lost = _is_silent(error)
            if lost:
                self._losses += 1
            if not blames_content(error) and not (lost and self._losses > LOSSES):
                raise
            if count_items(piece) > 1:
                return halve_batch(piece)
            if lost:
                self._lost_alone += 1
                if self._lost_alone < TRIES_ALONE:
                    return [piece]
            self._lost_alone = 0
            self._set_aside(piece, error)
        if self._losses > LOSSES:
            self.outage.note_success()
        return []

    def _commit(self, batch: Batch, taken: Batch) -> None:
        """Commit a batch, which stands for what was taken from the message."""
        self.committed.append(self.frontier.commit(batch, self.worker))
        self.stored += [outcome.id for outcome in taken.outcomes]
        if self.archiver is not None:
            self.archiver.mark_stored(taken.outcomes)

    def _rejudge(self, rows: Sequence[RobotsRow]) -> None:
        """Let URLs be visited that rules forbade and new ones allow. Done before these are stored,
        so that it is done again if we die in between.
        """
        if not rows:
            return
        before = self.frontier.get_robots([row.origin for row in rows])
        for row in {row.origin: row for row in rows}.values():
            rules = robots.robots_from_row(row)
            if row.origin not in before or rules.unreachable:
                continue
            if robots.same_rules(row, before[row.origin]):
                continue
            allows = partial(rules.allows, agent=self._robot_name)
            revived = self.frontier.rejudge_forbidden(row.origin, allows)
            hosts: frozenset[str] = frozenset()
            if revived:
                hosts = frozenset({row.host})
            self.committed.append(Committed(revived=revived, hosts=hosts))

    def _await_database(self) -> None:
        """Wait until the database answers, as for any that is away: what fails then fails by
        itself.
        """
        since = time.monotonic()
        while True:
            try:
                self.frontier.now()
                return
            except DatabaseError as error:
                self.outage.wait_or_raise(error, since)

    def _set_aside(self, culprit: Batch, error: Exception) -> None:
        """Store something harmless in place of the one item that is refused, and say so.

        If that is refused too, something else is wrong, and the error is raised.
        """
        reason = _printable(str(error))
        harmless = harmless_batch(culprit, reason)
        try:
            if self._losses:
                self._await_database()
            name = self._name(culprit)
            self.frontier.try_to_write()
            self._commit(harmless, culprit)
        except Exception as second:
            if blames_content(second):
                raise error from None
            raise
        self.committed.append(Committed(set_aside=1))
        self._lines += 1
        if self._lines <= MAX_LINES:
            log.error("Set aside, the database refuses it: %s: %s", name, reason)
        if self._lines == MAX_LINES:
            log.error("More that is set aside is only counted (frontier/set_aside)")

    def _name(self, culprit: Batch) -> str:
        """What the one item of a batch is called in the log."""
        ids = [outcome.id for outcome in culprit.outcomes]
        names = [f"the end of {url.url}" for url in self.frontier.get_urls(ids).values()]
        names += [f"the new URL {url.url[:200]}" for url in culprit.urls]
        names += [f"robots.txt of {row.origin}" for row in culprit.robots]
        names += [f"the clock of {host}" for host in culprit.clocks]
        names += [f"the host {host}, which is left out" for host in culprit.left_out]
        names += [f"the clock of server {server}" for server in culprit.server_clocks]
        names += [f"what is known of the texts of {host}" for host in culprit.texts]
        names += [f"what a sitemap says of {id_}" for id_ in culprit.listed]
        return _printable(", ".join(names))


def _is_silent(error: Exception) -> bool:
    """Does an error not say whether the database or what it was sent is at fault?"""
    if not isinstance(error, DatabaseError):
        return False
    return not error.sqlstate or error.sqlstate.startswith(INTERRUPTED)


def _printable(text: str) -> str:
    """A text for a log and a column, whatever of the web is quoted in it."""
    return "".join(char if char.isprintable() else " " for char in text[:300])
