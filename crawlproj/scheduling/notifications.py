"""What others say while a crawl runs: URLs were pushed, seeds were added, a robots.txt has changed,
pages are to be forgotten; and what dead workers leave: pages that they hung on.

The first three come as notifications, and a lost one does little harm. A call to forget must not be
lost, and whoever calls waits until all workers have obeyed: so it is looked for every two seconds,
and confirmed in the worker's row. All of it runs in the database thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from crawlproj.errors import ArchiveError
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.takedown import load_rules
from crawlproj.politeness.clocks import PolitenessRules
from crawlproj.scheduling.archiver import Archiver

log = logging.getLogger(__name__)

PUSHES = "crawlproj_push"
ROBOTS = "crawlproj_robots"
SEEDS = "crawlproj_seeds"
CALL_GAP_S = 2.0
"""How often calls to forget are looked for."""


class NotificationListener:
    """`on_robots_changed` is called with origins whose robots.txt another worker has read;
    `on_seeds_added` when this crawl has new seeds; `set_hung_pages_aside` at the start and every
    few seconds, before a dead worker's servers have rested.
    """

    def __init__(
        self,
        frontier: PostgresFrontier,
        worker: str,
        archiver: Archiver,
        on_robots_changed: Callable[[Iterable[str]], None],
        set_hung_pages_aside: Callable[[], None],
        rules: PolitenessRules,
        on_seeds_added: Callable[[], None],
    ) -> None:
        self._frontier = frontier
        self._db = frontier.db
        self._worker = worker
        self._rules = rules
        self._archiver = archiver
        self._on_robots_changed = on_robots_changed
        self._on_seeds_added = on_seeds_added
        self._obeyed = -1
        """The last call to forget whose rules are in force here."""
        self._confirmed = -1
        """The last one that was confirmed: what it is about is in closed files and in the
        database.
        """
        self._looked_at = 0.0
        self._set_hung_pages_aside = set_hung_pages_aside
        self._hung_looked_at = 0.0

    def start_listening(self) -> None:
        """Be known as a worker first: who calls then waits until this one has obeyed."""
        self._frontier.heartbeat(self._worker, False, self._rules.as_settings())
        self._db.listen(PUSHES)
        self._db.listen(ROBOTS)
        self._db.listen(SEEDS)
        self._check_takedowns()
        self._check_hung_pages()

    def poll_pushes(self) -> list[str]:
        """Receive what has come, and return the pushes into this crawl; new seeds count as such."""
        heard = self._db.receive_notifications()
        if time.monotonic() - self._looked_at >= CALL_GAP_S:
            self._check_takedowns()
        if time.monotonic() - self._hung_looked_at >= CALL_GAP_S:
            self._check_hung_pages()
        self._on_robots_changed(name for channel, name in heard if channel == ROBOTS)
        own = [(channel, name) for channel, name in heard if name == self._frontier.spec.name]
        if any(channel == SEEDS for channel, _ in own):
            self._on_seeds_added()
        return [name for channel, name in own if channel in (PUSHES, SEEDS)]

    def _check_takedowns(self) -> None:
        """Obey a call to forget, and confirm it. The rules are in force before the file is closed,
        so that nothing barred gets into the next one.
        """
        call = self._db.fetch_value("takedown_last_call")
        if call != self._obeyed:
            try:
                self._archiver.apply_takedowns(load_rules(self._db))
                self._obeyed = call
            except ArchiveError as error:  # the rules are in force; the file is tried again
                log.warning("The WARC file can't be closed now: %s", error)
                self._looked_at = time.monotonic()
                return
        if self._confirmed != self._obeyed and self._archiver.all_stored:
            known = self._db.run("takedown_heard", worker=self._worker, call=self._obeyed)
            if known:
                self._confirmed = self._obeyed
        self._looked_at = 0.0
        if self._confirmed == self._obeyed:
            self._looked_at = time.monotonic()

    def _check_hung_pages(self) -> None:
        self._hung_looked_at = time.monotonic()
        self._set_hung_pages_aside()
