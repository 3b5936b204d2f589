"""A crawl that also says how much of its CPU goes into sources and hubs:
`python -m benchmarks.source_cost RESULT.json crawl news ...`, as the command scrapy.

Counted is the time of the threads that run them, in the crawl's process: what is noted of sources,
the watch for silence, hubs on trial, the places of links, the planning of visits to sources, and
handing what was noted to the database.
"""

from __future__ import annotations

import atexit
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from scrapy.cmdline import execute

from crawlproj.frontier import postgres
from crawlproj.revisit.base import Visit
from crawlproj.revisit.policies import RevisitPlanner
from crawlproj.scheduling import change_watch, crawl_worker, outcomes
from crawlproj.scheduling.barren_areas import BarrenAreas
from crawlproj.scheduling.link_places import LinkPlacer
from crawlproj.scheduling.source_watch import SourceWatch

PARTS: tuple[tuple[str, object, str], ...] = (
    ("notes", outcomes, "note_source"),
    ("trials", outcomes.OutcomeRules, "_next_look"),
    ("hubs", outcomes.OutcomeRules, "_is_hub"),
    ("watch", SourceWatch, "take_turn"),
    ("watch", SourceWatch, "look_at_all"),
    ("places", LinkPlacer, "__init__"),
    ("places", LinkPlacer, "place"),
    ("articles counted", change_watch, "count_articles"),
    ("articles counted", crawl_worker, "count_articles"),
    ("barren areas", BarrenAreas, "note_links"),
    ("barren areas", BarrenAreas, "note_read"),
    ("barren areas", BarrenAreas, "leaves_out"),
    ("stored", postgres, "put_sources"),
    ("planned", RevisitPlanner, "plan"),
)


class Timers:
    """Seconds of CPU by part; what is called from another part belongs to that one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside = threading.local()

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        inside = self._inside

        @wraps(call)
        def timed(*arguments: Any, **named: Any) -> Any:
            other = name == "planned" and not _is_of_source(arguments)
            if other or getattr(inside, "busy", False):
                return call(*arguments, **named)
            inside.busy = True
            began = time.thread_time()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds[name] += time.thread_time() - began
                inside.busy = False

        return timed


def _is_of_source(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(each, Visit) and each.source for each in arguments)


def main() -> None:
    result = Path(sys.argv[1])
    timers = Timers()
    for name, owner, attribute in PARTS:
        setattr(owner, attribute, timers.wrap(name, getattr(owner, attribute)))

    def write_result() -> None:
        whole = {"process_s": time.process_time(), "parts": dict(timers.seconds)}
        result.write_text(json.dumps(whole))

    atexit.register(write_result)
    execute(["scrapy", *sys.argv[2:]])


if __name__ == "__main__":
    main()
