"""What it costs to plan a visit, with each policy.

    python -m benchmarks.revisit [--visits 20000]

Pages of many rates are visited again and again in virtual time. Printed are microseconds of CPU per
visit, all in all: learning, the policy, the price. With `optimal` it must be 50 at most. The last
line is the whole end of a visit that found the same bytes, beside the largest state of a page: it
must be 100 at most.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from crawlproj.content.changes import judge_change
from crawlproj.content.document import Block
from crawlproj.frontier.base import Lane, State, Ticket
from crawlproj.items import Page
from crawlproj.revisit.base import Bounds, RevisitSettings, Visit
from crawlproj.revisit.policies import POLICY_NAMES, choose_policy
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.urls.rules import SiteRevisit

LIMIT_US = 50.0
SAME_LIMIT_US = 100.0
SAME_VISITS = 5_000
URL = "http://www.example.org/page"
RUNS = 3
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SOURCES = Bounds(DAY / 96, DAY / 288, 365 * DAY)
BOUNDS = Bounds(5 * DAY, DAY / 2, 365 * DAY, sources=SOURCES)


def make_visits(number: int) -> list[Visit]:
    """Visits to pages and some sources of a thousand hosts, with numbers as they become."""
    random = Random(1)
    planner = choose_policy(RevisitSettings("optimal", BOUNDS))
    visits = []
    for place in range(number // 20):
        source = place % 10 == 0
        rate = random.lognormvariate(-2, 1.5)
        visit = Visit(
            START, False, source=source, host=f"www{place % 1000}.example.org", first=True
        )
        for times in range(20):
            visits.append(visit)
            plan = planner.plan(visit)
            days = plan.interval / DAY
            visit = replace(
                visit,
                now=visit.now + plan.interval,
                last_visit=visit.now,
                interval=plan.interval,
                changed=random.random() < rate * days,
                new_links=random.randrange(3) if source else None,
                numbers=plan.numbers,
                false_change=0.02,
                first=False,
                visits=times + 1,
            )
    return visits


def time_of_plan(settings: RevisitSettings, visits: list[Visit]) -> float:
    """Microseconds per visit, of the quickest run."""
    seconds = []
    for _ in range(RUNS):
        planner = choose_policy(settings)
        start = time.process_time()
        for visit in visits:
            planner.plan(visit)
        seconds.append(time.process_time() - start)
    return min(seconds) / len(visits) * 1e6


def time_of_same_bytes() -> float:
    """Microseconds from the Page to its Outcome, of the quickest run."""
    blocks = [Block(f"Paragraph {number} of a long page", "p", True) for number in range(300)]
    state = judge_change(blocks, None, URL, visit=0).state
    rules = OutcomeRules(
        choose_policy(RevisitSettings("optimal", BOUNDS)), 3, DAY, gone_limit=3, gone_interval=DAY
    )
    digest = bytes(16)
    ticket = Ticket(
        1,
        URL,
        "www.example.org",
        server=1,
        epoch=1,
        visit=7,
        lane=Lane.REVISIT,
        state=State.WAITING,
        depth=2,
        interval_s=DAY.total_seconds(),
        body_digest=digest,
        block_digest=digest,
        rate_a=0.5,
        rate_b=5 * DAY.total_seconds(),
        next_visit=START,
        page_state=state,
        last_read=START - DAY,
        reads=7,
    )
    page = Page(ticket, URL, 200, START, kind="html", body_digest=digest)
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        for _ in range(SAME_VISITS):
            rules.decide_outcome(page, ticket)
        seconds.append(time.process_time() - start)
    return min(seconds) / SAME_VISITS * 1e6


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--visits", type=int, default=20_000)
    visits = make_visits(parser.parse_args().visits)
    sites = {f"www{number}.example.org": SiteRevisit("", DAY) for number in range(500)}
    took_us = {name: time_of_plan(RevisitSettings(name, BOUNDS), visits) for name in POLICY_NAMES}
    took_us["optimal, beta"] = time_of_plan(RevisitSettings("optimal", BOUNDS, beta=1.0), visits)
    took_us["optimal, sites"] = time_of_plan(
        RevisitSettings("optimal", BOUNDS, sites=sites), visits
    )
    for name, us in took_us.items():
        print(f"{name:16}{us:6.1f} us per visit")
    same_us = time_of_same_bytes()
    print(f"{'same bytes':16}{same_us:6.1f} us per visit")
    return int(max(took_us.values()) > LIMIT_US or same_us > SAME_LIMIT_US)


if __name__ == "__main__":
    sys.exit(main())
