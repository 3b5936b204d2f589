"""No query that a worker asks while it crawls may grow with the crawl: real plans on a filled
database.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.fill import fill
from benchmarks.plans import exercise, rows_read, text
from crawlproj.database.queries import load_queries

pytestmark = pytest.mark.proof

BIG = {"url", "host", "server", "origin", "crawl_host", "page", "page_version", "page_links"}
BIG |= {"page_text", "exact", "band", "paragraph", "cluster"}
BIG |= {"article_queue", "article", "article_address", "held_address"}
BIG |= {"page_state", "host_text", "host_hint", "source", "article_key"}
BOUND = 5_000
"""Rows that any step of a plan may read, whatever is asked for; a tenth of them would do
for most.
"""
BOUNDS = {"seeds": 10_000, "count_left_out": 100_000}
RARE = {
    "set_aside",
    "crawl_change",
    "rerank",
    "too_deep",
    "deep_enough",
    "all_hosts",
    "mend_host_clocks",
    "mend_server_clocks",
    "lock_rules",
    "unlock_rules",
    "crawl_rules",
    "put_crawl_delay",
    "put_duplicate_scheme",
    "put_crawl_rules",
    "judged_urls",
    "leave_out_urls",
    "take_back_urls",
    "outside_links",
    "rescaled_urls",
    "put_intervals",
    "outlook_unresolved",
    "foreign_clients",
    "surplus_hosts",
    "admit_hosts",
    "free_articles",
    "article_takers",
    "count_missing",
    "source_kinds",
    "sites_known",
    "dated_articles",
}
"""Asked when a crawl comes back with another order or depth limit: then all of its URLs are judged
again; or with another scope or revisit interval. Clocks are mended once at each start, 0.2 s for a
million hosts. Names that do not resolve: by a worker that has fetched nothing and has nothing to
send. Clients: by one that ends. What was taken from the queue of articles: by a worker that starts
or ends. Which sources there are, and which are silent: by one that ends. How soon articles were
fetched: by one that ends, of its run; and once a minute, of the last three.
"""
FEW = {"host_names", "discard"}
"""A few rows by primary key, when shorter depths reach other hosts; and no rows at all."""
PEOPLES = {
    "known_depths",
    "made_requests",
    "archived_places",
    "crawl_names",
    "crawl_named",
    "crawls_with_host",
    "crawls_with_url",
    "crawl_history",
    "crawl_history_start",
    "export_articles",
    "export_changes",
    "visited_pages",
    "is_own_page",
    "mark_mended",
}
PEOPLES_PREFIXES = (
    "migration_",
    "status_",
    "explain_",
    "plan_",
    "takedown_",
    "retention_",
    "import_",
    "report_",
)
"""Asked by people and when a worker starts; of those for take-downs a worker asks some, of tables
with few rows.
"""
ASKED = {
    n
    for n in load_queries()
    if n not in RARE | FEW | PEOPLES and not n.startswith(PEOPLES_PREFIXES)
}


def test_no_query_of_a_worker_reads_a_whole_table_or_sorts_all_that_is_due(
    any_server: str, database_url: str
) -> None:
    fill(database_url, "explained", 200_000, 20_000)
    seen = [one for one in exercise(database_url, "explained") if one.name not in RARE]
    assert {one.name for one in seen} == ASKED
    bad = {
        one.name: text(one)
        for one in seen
        for node in one.nodes()
        if (node["Node Type"] == "Seq Scan" and node.get("Relation Name") in BIG)
        or rows_read(node) > BOUNDS.get(one.name, BOUND)
    }
    assert not bad, "\n".join(f"{name}\n{plan}" for name, plan in bad.items())


def test_the_plans_in_the_docs_are_of_the_present_queries() -> None:
    """If this fails: `python -m benchmarks.plans > docs/plans.md`."""
    page = Path(__file__).parents[2] / "docs" / "plans.md"
    assert set(re.findall(r"^## (\w+)$", page.read_text(), re.MULTILINE)) == ASKED
