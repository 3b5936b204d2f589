"""What may happen to the twins: strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from crawlproj.frontier.base import Lane, State

CRAWLS = ("one", "two")
WORKERS = ("ann", "bob")
HOSTS = ("h0", "h1", "h2", "h3")
PATHS = range(4)

crawls = st.sampled_from(["one", "one", "two"])
workers = st.sampled_from(["ann", "ann", "ann", "bob"])
hosts = st.sampled_from(HOSTS)
orders = st.sampled_from(["best", "bfs", "dfs"])
max_depths = st.sampled_from([0, 2, 3])
places = st.tuples(hosts, st.sampled_from(PATHS))
urls = st.fixed_dictionaries(
    {
        "place": places,
        "depth": st.integers(0, 5),
        "score": st.sampled_from([0.125, 0.25, 0.5, 1.0]),
        "lane": st.sampled_from([Lane.NEW, Lane.NEW, Lane.BACKFILL, Lane.URGENT]),
        "hops": st.sampled_from([0, 0, 0, 2]),
        "parent": st.sampled_from([None, 1, 2]),
    }
)
ends = st.fixed_dictionaries(
    {
        "state": st.sampled_from([*State, State.WAITING, State.RETIRED]),
        "links": st.none() | st.lists(places, min_size=1, max_size=4),
        "changed": st.booleans(),
        "received": st.sampled_from([0, 10, 50]),
        "due_s": st.sampled_from([0.0, 30.5, 1000.0, None]),
        "interval_s": st.sampled_from([None, 60.0]),
        "tries": st.integers(0, 2),
        "spoil": st.sampled_from([None] * 8 + ["visit", "epoch"]),
        "again": st.sampled_from([False] * 4 + [True]),
    }
)
pauses = st.tuples(
    st.sampled_from([-5, 5, 15, 300]),
    st.sampled_from(["", "why"]),
    st.integers(0, 3),
    st.integers(0, 2),
)
rounds = st.fixed_dictionaries(
    {
        "picks": st.lists(st.tuples(st.integers(0, 100), ends), min_size=1, max_size=4),
        "batch": st.lists(urls, max_size=3),
        "clocks": st.dictionaries(hosts, pauses, max_size=2),
        "rests": st.lists(pauses, max_size=1),
        "robots": st.dictionaries(hosts, st.sampled_from([0, 200, 404]), max_size=2),
    }
)
places_of = st.none() | st.integers(0, 2)
leases = st.fixed_dictionaries(
    {"ranked": places_of, "unprepared": places_of, "unseen": st.sampled_from([0, 3])}
)
limits = st.fixed_dictionaries(
    {
        "host_pages": st.sampled_from([0, 2]),
        "host_bytes": st.sampled_from([0, 0, 90]),
        "pages": st.sampled_from([0, 0, 5]),
        "bytes": st.sampled_from([0, 0, 150]),
        "shares": st.sampled_from([{"new": 0.5, "revisit": 0.5}, {"new": 0.25, "revisit": 0.75}]),
    }
)
